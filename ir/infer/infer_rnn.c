// Types of the operators of ops/rnn.yaml.
#include "ir/build/infer.h"
#include "ir/infer/rnn.h"

#include <string.h>

enum { MAX_LAYERS = 1024, MAX_SIZE = 1 << 24 };

static void mode_read(const Op *op, Rnn *r)
{
	static const int gates[] = {4, 3, 1, 1}; // by CellKind
	r->mode = (CellKind)op_enum(op, "mode");
	r->gates = gates[r->mode];
	r->nstate = r->mode == CELL_LSTM ? 2 : 1;
}

bool rnn_read(Op *op, Rnn *r)
{
	mode_read(op, r);
	int64_t layers = op_int(op, "num_layers", 1);
	r->hidden = op_int(op, "hidden_size", 0);
	r->directions = op_bool(op, "is_bidirec", false) ? 2 : 1;
	if (layers < 1 || layers > MAX_LAYERS || r->hidden < 1 || r->hidden > MAX_SIZE)
		return op_error(op, "%lld layers of size %lld", (long long)layers, (long long)r->hidden);
	r->layers = (int)layers;
	r->x = op_operand(op, 0);
	r->lengths = op_operand(op, 3);
	int nweight = op_operand_list(op, 2, &r->weights), nstate = op_operand_list(op, 1, &r->states);
	if (nweight != 4 * r->layers * r->directions || nstate != r->nstate)
		return op_error(op, "%d weights and %d states for %d layers in %d direction%s", nweight,
		                nstate, r->layers, r->directions, r->directions > 1 ? "s" : "");
	return true;
}

// Whether v is a tensor of these sizes with the elements of op's x.
static bool check_shape(const Op *op, const Value *v, const char *what, int rank,
                        const Dim *const *dims)
{
	const Dim *same;
	const Type *t = v ? v->type : NULL;
	if (!t || !type_is_tensor(t) || t->rank != rank || t->dtype != op_operand(op, 0)->type->dtype)
		return op_error(op, "%s is no tensor of %d axes like the input", what, rank);
	const char *sizes = arena_printf(op->ctx->arena, "sizes of %s", what);
	for (int d = 0; d < rank; d++)
		if (!infer_same_dim(op, dims[d], t->dims[d], sizes, &same))
			return false;
	return true;
}

static bool check_weights(const Op *op, const Rnn *r)
{
	Context *c = op->ctx;
	const Dim *rows = dim_const(c, r->gates * r->hidden), *hidden = dim_const(c, r->hidden);
	const Dim *above = dim_const(c, r->directions * r->hidden);
	int pairs = r->layers * r->directions;
	for (int i = 0; i < pairs; i++) {
		const Dim *from_x[] = {rows, i < r->directions ? r->x->type->dims[2] : above},
				  *from_h[] = {rows, hidden};
		Value *const *w = r->weights + 2 * i, *const *bias = w + 2 * pairs;
		if (!check_shape(op, w[0], "a weight of the input", 2, from_x) ||
		    !check_shape(op, w[1], "a weight of the state", 2, from_h) ||
		    !check_shape(op, bias[0], "a bias", 1, &rows) ||
		    !check_shape(op, bias[1], "a bias", 1, &rows))
			return false;
	}
	return true;
}

bool infer_hook_rnn(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 3);
	Rnn r;
	if (!x || !rnn_read(op, &r) || !check_weights(op, &r))
		return false;
	if (!op_bool(op, "is_test", false) && op_number(op, "dropout_prob") > 0 && r.layers > 1)
		return op_error(op, "dropout between layers in training is not supported");
	const Dim *batch = x->dims[1], *hidden = dim_const(c, r.hidden), *same;
	const Dim *state[] = {dim_const(c, r.layers * r.directions), batch, hidden};
	const Type *states[2];
	for (int i = 0; i < r.nstate; i++) {
		if (!check_shape(op, r.states[i], "a state", 3, state))
			return false;
		states[i] = type_tensor(c, x->dtype, 3, state, 0);
	}
	const Type *lengths = r.lengths ? infer_rank(op, 3, 1) : NULL;
	if (r.lengths &&
	    (!lengths || !infer_same_dim(op, batch, lengths->dims[0], "rows and their lengths", &same)))
		return false;
	const Dim *out[] = {x->dims[0], batch, dim_const(c, r.directions * r.hidden)};
	infer_result_shape(op, 0, x->dtype, 3, out);
	return infer_result(op, 1, type_group(c, TY_VEC, r.nstate, states));
}

static bool check_width(const Op *op, const Dim *d)
{
	if (dim_is_const(d) && d->value > 0 && d->value <= MAX_SIZE)
		return true;
	return op_error(
		op, "the size of the state must be known when the program is compiled, and reasonable");
}

bool infer_hook_lstm_unit(Op *op)
{
	const Type *x = infer_rank(op, 0, 2), *before = x ? infer_rank(op, 1, 2) : NULL;
	if (!before || !check_width(op, before->dims[1]))
		return false;
	const Dim *wide = dim_mul(op->ctx, dim_const(op->ctx, 4), before->dims[1]);
	const Dim *want[] = {before->dims[0], wide};
	return check_shape(op, op_operand(op, 0), "the gates", 2, want) &&
	       check_shape(op, op_operand(op, 1), "the state", 2, before->dims) &&
	       infer_result(op, 0, before) && infer_result(op, 1, before);
}

bool infer_hook_gru_unit(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 2), *before = x ? infer_rank(op, 1, 2) : NULL;
	if (!before || !check_width(op, before->dims[1]))
		return false;
	const Dim *d = before->dims[1], *wide = dim_mul(c, dim_const(c, 3), d);
	const Dim *gates[] = {before->dims[0], wide}, *weight[] = {d, wide},
			  *bias[] = {dim_const(c, 1), wide};
	if (!check_shape(op, op_operand(op, 0), "the input", 2, gates) ||
	    !check_shape(op, op_operand(op, 1), "the state", 2, before->dims) ||
	    !check_shape(op, op_operand(op, 2), "the weight", 2, weight) ||
	    (op_operand(op, 3) && !check_shape(op, op_operand(op, 3), "the bias", 2, bias)))
		return false;
	if (op_int(op, "activation", 2) < 0 || op_int(op, "activation", 2) > 3 ||
	    op_int(op, "gate_activation", 1) < 0 || op_int(op, "gate_activation", 1) > 3)
		return op_error(op, "an activation that is none of identity, sigmoid, tanh and relu");
	return infer_result_shape(op, 0, x->dtype, 2, gates) && infer_result(op, 1, before) &&
	       infer_result(op, 2, before);
}
