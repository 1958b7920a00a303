// Small helpers that several passes share: replacing operations, looking through to constant data,
// and making parameters.
#include "lower/pass/rewrite.h"
#include "ir/build/build.h"

#include <string.h>

void op_replace(Op *op, Value *const *with)
{
	for (int i = 0; i < op->nresult; i++) {
		Value *from = &op->results[i], *to = with[i];
		if (from == to)
			continue;
		// The name is a hint for generated code; what replaces a named value without one takes it
		// over.
		if (!to->name)
			to->name = from->name;
		value_replace(from, to);
	}
	op_erase(op);
}

bool tensors_equal(const Tensor *a, const Tensor *b)
{
	return a->dtype == b->dtype && a->rank == b->rank &&
	       !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) &&
	       (!tensor_bytes(a) || !memcmp(a->data, b->data, tensor_bytes(a)));
}

// Of a name without the suffix that it has from before: what is folded twice says so once.
static size_t stem_length(const char *name, const char *suffix)
{
	const size_t n = strlen(name), more = strlen(suffix) + 1;
	size_t end = n;
	while (end && strchr("0123456789", name[end - 1]))
		end--;
	end = end && end < n && name[end - 1] == '.' ? end - 1 : n;
	const bool has = end > more && name[end - more] == '.' &&
	                 !strncmp(name + end - more + 1, suffix, more - 1);
	return has ? end - more : n;
}

// The name of a parameter that holds t. Two layers, or a loop and what stands in front of it, may
// derive the same from one weight: then it is one parameter; others of that name are numbered.
static const char *parameter_name(Context *c, const char *name, const char *suffix, Tensor *t)
{
	Text text;
	text_init(&text, c->arena);
	text_printf(&text, "%.*s.%s", (int)stem_length(name, suffix), name, suffix);
	size_t stem = text.len;
	const Tensor *other;
	for (int n = 2; (other = param_get(c, text.text)) && !tensors_equal(other, t); n++) {
		text.len = stem;
		text_printf(&text, ".%d", n);
	}
	const char *unique = context_str(c, text.text);
	if (!other)
		param_set(c, unique, t);
	return unique;
}

Value *build_parameter(Builder *b, const char *name, const char *suffix, Tensor *t)
{
	Context *c = b->ctx;
	const char *unique = parameter_name(c, name ? name : "const", suffix, t);
	const Dim *dims[MAX_RANK];
	for (int i = 0; i < t->rank; i++)
		dims[i] = dim_const(c, t->dims[i]);
	const Type *type = type_tensor(c, t->dtype, t->rank, dims, 0);
	Op *op = op_new(c, OP_BUILTIN_GET_PARAMETER, b->loc, 1, &type, 0, NULL, 0, 0);
	op_set_attr(op, "name", attr_str(c, unique));
	builder_insert(b, op);
	op->results[0].name = unique;
	return op_result(op, 0);
}

Value *build_index(Builder *b, int64_t v)
{
	const Type *type = type_index(b->ctx);
	Op *op = op_new(b->ctx, OP_LOOP_CONSTANT, b->loc, 1, &type, 0, NULL, 0, 0);
	op_set_attr(op, "value", attr_int(b->ctx, v));
	builder_insert(b, op);
	return op_result(op, 0);
}

Value *build_element(Builder *b, const Tensor *t, int64_t i)
{
	const Type *type = type_scalar(b->ctx, t->dtype);
	Op *op = op_new(b->ctx, OP_LOOP_CONSTANT, b->loc, 1, &type, 0, NULL, 0, 0);
	bool real = dtype_is_float(t->dtype);
	op_set_attr(op, "value",
	            real ? attr_float(b->ctx, tensor_get_f(t, i))
	                 : attr_int(b->ctx, tensor_get_i(t, i)));
	builder_insert(b, op);
	return op_result(op, 0);
}

bool slice_is_fixed(const Op *op)
{
	for (int i = 1; i < op->noperand; i++)
		if (op_operand(op, i))
			return false;
	return true;
}

bool nests_visit(Region *r, bool (*visit)(Op *nest))
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			if (op->code == OP_LOOP_NEST) {
				if (!visit(op))
					return false;
				continue;
			}
			for (int i = 0; op->info->kind == KIND_CONTROL && i < op->nregion; i++)
				if (!nests_visit(&op->regions[i], visit))
					return false;
		}
	return true;
}
