// Operators on sequences that stand for several others (ir/ops/fusion.yaml).
#include "ir/define/define.h"
#include "ir/sequence/sequence.h"

#include <string.h>

bool define_hook_fusion_lstm(Builder *b, Op *op, Value **results)
{
	static const char *const names[] = {"use_peepholes", "is_reverse", "gate_activation",
	                                    "cell_activation", "candidate_activation"};
	NamedAttr attrs[COUNT_OF(names)];
	const int n = op_attrs_given(op, COUNT_OF(names), names, attrs);
	Value *x = build2(b, OP_PD_MATMUL, op_operand(op, 0), op_operand(op, 1), NULL);
	Value *operands[] = {x,
	                     op_operand(op, 4),
	                     op_operand(op, 5),
	                     op_operand(op, 2),
	                     op_operand(op, 3),
	                     op_operand(op, 6)};
	Op *lstm = x ? build_op(b, OP_PD_LSTM, COUNT_OF(operands), operands, n, attrs) : NULL;
	if (!lstm)
		return false;
	results[0] = op_result(lstm, 0);
	results[1] = op_result(lstm, 1);
	return true;
}

bool define_hook_fusion_seqpool_concat(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *const *x, *const *lod, *cvm = op_operand(op, 1);
	int n = op_operand_list(op, 0, &x);
	if (op_operand_list(op, 2, &lod) != n || n < 1)
		return op_error(op, "every x needs sequences");
	Value **parts = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++) {
		const NamedAttr kind = {"pooltype", attr_str(c, op_str(op, "pooltype", "SUM"))};
		Op *pool = build_op(b, OP_PD_SEQUENCE_POOL, 2, (Value *[]){x[i], lod[i]}, 1, &kind);
		parts[i] = pool ? op_result(pool, 0) : NULL;
		if (parts[i] && cvm)
			parts[i] = build2(b, OP_PD_CVM, parts[i], cvm, "use_cvm",
			                  attr_bool(c, op_bool(op, "use_cvm", true)), NULL);
		if (!parts[i])
			return false;
	}
	results[0] = tensor_concat(b, n, parts, op_int(op, "axis", 1));
	Nest rows = nest_open(b, type_like(c, lod[0]->type, DT_I64)); // each is a sequence of its own
	results[1] = nest_close(&rows, scalar_from_index(&rows.b, rows.at[0], DT_I64));
	return results[0] && results[1];
}

// For each row of a tensor, the row of x for its sequence.
static Value *spread_over_rows(Builder *b, Value *x, Value *lod, const Dim *rows)
{
	const Dim *dims[] = {rows, x->type->dims[1]};
	Nest n = nest_open(b, type_tensor(b->ctx, x->type->dtype, 2, dims, 0));
	Value *i = sequence_of_row(&n.b, lod, n.at[0]);
	i = i ? index_from_data(&n.b, scalar_from_index(&n.b, i, DT_I64), x->type->dims[0], false)
	      : NULL;
	return i ? nest_close(&n, load(&n.b, x, (Value *const[]){i, n.at[1]})) : NULL;
}

bool define_hook_fusion_seqexpand_concat_fc(Builder *b, Op *op, Value **results)
{
	Value *const *x, *const *lod, *bias = op_operand(op, 2);
	int n = op_operand_list(op, 0, &x);
	if (op_operand_list(op, 3, &lod) != n || n < 2)
		return op_error(op, "at least two x are needed, with sequences");
	Value **parts = NEW_ARRAY(b->ctx->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++) {
		if (x[i]->type->rank != 2)
			return op_error(op, "x of rank %d", x[i]->type->rank);
		parts[i] = i ? spread_over_rows(b, x[i], lod[0], x[0]->type->dims[0]) : x[0];
		if (!parts[i])
			return false;
	}
	Value *rows = tensor_concat(b, n, parts, 1);
	Value *out = rows ? build2(b, OP_PD_MATMUL, rows, op_operand(op, 1), NULL) : NULL;
	out = out && bias ? tensor_add(b, out, bias) : out;
	results[0] = activation_apply(b, op_enum(op, "fc_activation"), out);
	return results[0] != NULL;
}
