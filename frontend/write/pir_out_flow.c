// Branches and loops, and tensor arrays.
//
// `1.while` has one region: its arguments are the loop variables, and it yields whether to go on
// and the next values. So the condition is written twice, before the loop and at the end of its
// body. Arrays change in place: they are no variables of loops nor results of branches, and a new
// value of an array has the number of the old one, or of its copy where that is read again.
//
// Of Paddle 3.2.2, measured: where a value without elements comes out of a branch or a round, what
// the variable held before stays; what is written into an array two regions below the one that
// makes it is lost; and a variable of a loop shares memory with the value that it begins with,
// which operations in place in the body change. The first is checked when it runs, the second
// refused, and such values are copied.
#include "frontend/write/pir_out.h"
#include "ir/build/infer.h"

#include <string.h>

static bool is_array(const Value *v)
{
	return v->type->kind == TY_ARRAY;
}

// The variable `to` is the array `from`, changed in place.
static bool same_array(PirWriter *w, const Value *from, const Value *to)
{
	if (out_number(w, from) == out_number(w, to))
		return true;
	return out_fail(w, "the array '%s' is not one array in all branches and rounds",
	                to->name ? to->name : "");
}

// Whether a value may come to have no elements where `before` (NULL: nothing) had some, or had none
// in another shape.
static bool may_lose_elements(const Type *before, const Type *after)
{
	int64_t lo, hi;
	int empty = 0, changed = 0;
	for (int i = 0; i < after->rank; i++) {
		dim_range(after->dims[i], &lo, &hi);
		empty += lo < 1;
		changed += !before || before->dims[i] != after->dims[i];
	}
	return empty && changed;
}

static int64_t flag(PirWriter *w, const char *name, int64_t a, int64_t b)
{
	OutOp *o = out_new(w, name, 2, 1);
	o->in[0] = a;
	o->in[1] = b;
	o->out[0].type = out_tensor(w, DT_BOOL, 0, NULL);
	return out_op(w, o);
}

static int64_t shape_of(PirWriter *w, const Value *v)
{
	const int64_t rank = v->type->rank;
	OutOp *o = out_new(w, "1.shape64", 1, 1);
	o->in[0] = out_number(w, v);
	o->out[0].type = out_tensor(w, DT_I64, 1, &rank);
	return out_op(w, o);
}

// The run fails where `after`, which comes out of a branch or a round, has no elements, and has not
// the shape of `before` (NULL: nothing) either.
static void keep_elements(PirWriter *w, const Value *before, const Value *after)
{
	if (after->type->kind != TY_TENSOR ||
	    !may_lose_elements(before ? before->type : NULL, after->type))
		return;
	OutOp *count = out_new(w, "1.numel", 1, 1), *list = out_new(w, "0.combine", 1, 1),
		  *o = out_new(w, "1.assert", 2, 0);
	count->in[0] = out_number(w, after);
	count->out[0].type = out_tensor(w, DT_I64, 0, NULL);
	const int64_t elements = out_op(w, count);
	int64_t fine = flag(w, "1.greater_than", elements, out_full(w, 0, DT_I64, attr_int(w->c, 0)));
	if (before && before->type->rank == after->type->rank)
		fine = flag(w, "1.logical_or", fine,
		            flag(w, "1.equal_all", shape_of(w, before), shape_of(w, after)));
	list->in[0] = count->in[0];
	list->out[0].type = type_group(w->c, TY_VEC, 1, &after->type);
	o->in[0] = fine;
	o->in[1] = out_op(w, list);
	out_attr_int(o, "summarize", PIR_I64, -1);
	out_op(w, o);
}

// ---- if -----------------------------------------------------------------------------------------

static bool branch(PirWriter *w, const Region *r, int n)
{
	const SizeMark sizes = out_sizes_mark(w);
	const Op *yield = block_terminator(r->first);
	int64_t *numbers = NEW_ARRAY(w->c->arena, (size_t)n + 1, int64_t);
	int kept = 0;
	out_region_begin(w, 0, NULL);
	bool ok = w->block(w, r->first);
	for (int i = 0; i < yield->noperand; i++)
		if (!is_array(op_operand(yield, i))) {
			keep_elements(w, NULL, op_operand(yield, i));
			numbers[kept++] = out_number(w, op_operand(yield, i));
		}
	out_yield(w, kept, numbers);
	out_region_end(w);
	out_sizes_reset(w, sizes);
	return ok;
}

bool out_if(PirWriter *w, const Op *op)
{
	if (op->nregion != 2)
		return out_fail(w, "branches of training have no form in Paddle 3");
	OutOp *o = out_new(w, "1.if", 1, op->nresult);
	o->in[0] = out_number(w, op_operand(op, 0));
	o->nout = 0;
	for (int i = 0; i < op->nresult; i++)
		if (!is_array(&op->results[i]))
			o->out[o->nout++] = (OutResult){.type = op->results[i].type, .value = &op->results[i]};
	const Op *then = block_terminator(op->regions[0].first),
			 *other = block_terminator(op->regions[1].first);
	out_head(w, o);
	text_str(w->t, ",\"regions\":[");
	bool ok = branch(w, &op->regions[0], op->nresult);
	text_char(w->t, ',');
	ok &= branch(w, &op->regions[1], op->nresult);
	text_str(w->t, "]}");
	for (int i = 0; i < op->nresult; i++) {
		const Value *v = op_operand(then, i);
		if (!is_array(v))
			out_size_note(w, &op->results[i]);
		else if (!same_array(w, v, op_operand(other, i)))
			ok = false;
		else
			out_bind(w, &op->results[i], out_number(w, v));
	}
	return ok;
}

// ---- while --------------------------------------------------------------------------------------

static int64_t copied(PirWriter *w, int64_t number, const Type *type)
{
	OutOp *o = out_new(w, type->kind == TY_ARRAY ? "1.assign_array" : "1.assign", 1, 1);
	o->in[0] = number;
	o->out[0].type = type;
	return out_op(w, o);
}

// The condition's region with these arguments. *go_on: whether to go on, a value of its own, since
// the loop changes it.
static bool condition(PirWriter *w, const Block *cond, Value *const *values, int64_t *go_on)
{
	for (int i = 0; i < cond->narg; i++) {
		out_bind(w, cond->args[i], out_number(w, values[i]));
		out_size_note(w, cond->args[i]);
	}
	const bool ok = w->block(w, cond);
	const Value *v = op_operand(block_terminator(cond), 0);
	*go_on = out_number(w, v);
	if (v->def && v->def->block == cond)
		return ok;
	*go_on = copied(w, *go_on, v->type);
	return ok;
}

// The numbers of whether to go on and of what the condition hands over; how many.
static int handed_over(PirWriter *w, const Block *cond, int64_t go_on, int64_t *numbers)
{
	const Op *end = block_terminator(cond);
	int n = 0;
	numbers[n++] = go_on;
	for (int i = 1; i < end->noperand; i++)
		if (!is_array(op_operand(end, i)))
			numbers[n++] = out_number(w, op_operand(end, i));
	return n;
}

// The value that the loop begins with where its condition hands over `v`.
static const Value *begun_with(const Op *loop, const Value *v)
{
	return v->block == loop->regions[0].first ? op_operand(loop, (int)v->index) : v;
}

static bool begins_twice(const Op *loop, const Value *v)
{
	const Op *end = block_terminator(loop->regions[0].first);
	int n = 0;
	for (int i = 1; i < end->noperand; i++)
		n += begun_with(loop, op_operand(end, i)) == v;
	return n > 1;
}

// Whether the rounds change the array that is variable i.
static bool rounds_change(const Op *loop, int i)
{
	const Block *body = loop->regions[1].first;
	return op_operand(block_terminator(body), i) != body->args[i];
}

// What else reads a variable's first value gets to see what the loop makes of it: such a value is
// copied.
static void keep_first_values(PirWriter *w, const Op *loop, int64_t *numbers)
{
	const Op *end = block_terminator(loop->regions[0].first);
	int n = 1; // behind the condition
	for (int i = 1; i < end->noperand; i++) {
		const Value *handed = op_operand(end, i), *v = begun_with(loop, handed);
		if (is_array(v)) {
			if (rounds_change(loop, i - 1) && (out_read_later(w, v, loop) || begins_twice(loop, v)))
				out_bind(w, handed, copied(w, out_number(w, v), v->type));
			continue;
		}
		const bool kept = v->def && v->def->code == OP_BUILTIN_GET_PARAMETER;
		if (kept || out_read_later(w, v, loop) || begins_twice(loop, v))
			numbers[n] = copied(w, numbers[n], v->type);
		n++;
	}
}

static bool body_region(PirWriter *w, const Block *cond, const Block *body)
{
	const SizeMark sizes = out_sizes_mark(w);
	const Op *yield = block_terminator(body), *end = block_terminator(cond);
	const Value **args = NEW_ARRAY(w->c->arena, (size_t)body->narg + 1, const Value *);
	Value **next = NEW_ARRAY(w->c->arena, (size_t)body->narg + 1, Value *);
	int64_t *numbers = NEW_ARRAY(w->c->arena, (size_t)body->narg + 1, int64_t), go_on;
	int n = 0;
	for (int i = 0; i < body->narg; i++)
		if (is_array(body->args[i]))
			out_bind(w, body->args[i], out_number(w, op_operand(end, i + 1)));
		else
			args[n++] = body->args[i];
	out_region_begin(w, n, args);
	bool ok = w->block(w, body);
	for (int i = 0; i < body->narg; i++) {
		next[i] = op_operand(yield, i);
		if (is_array(next[i]))
			ok &= same_array(w, body->args[i], next[i]);
		keep_elements(w, body->args[i], next[i]);
	}
	out_sizes_reset(w, sizes); // the same symbols are those of the next round now
	ok &= condition(w, cond, next, &go_on);
	out_yield(w, handed_over(w, cond, go_on, numbers), numbers);
	out_region_end(w);
	return ok;
}

bool out_while(PirWriter *w, const Op *op)
{
	if (op->nregion != 2)
		return out_fail(w, "loops of training have no form in Paddle 3");
	const Block *cond = op->regions[0].first, *body = op->regions[1].first;
	const SizeMark sizes = out_sizes_mark(w);
	Value **inits = NEW_ARRAY(w->c->arena, (size_t)op->noperand + 1, Value *);
	int64_t go_on;
	for (int i = 0; i < op->noperand; i++)
		inits[i] = op_operand(op, i);
	bool ok = condition(w, cond, inits, &go_on);
	out_sizes_reset(w, sizes); // those of the loop's variables change from round to round
	OutOp *o = out_new(w, "1.while", op->noperand + 1, op->nresult);
	o->nin = handed_over(w, cond, go_on, o->in);
	keep_first_values(w, op, o->in);
	o->nout = 0;
	for (int i = 0; i < op->nresult; i++) {
		const Value *handed = op_operand(block_terminator(cond), i + 1);
		if (is_array(handed))
			out_bind(w, &op->results[i], out_number(w, handed));
		else
			o->out[o->nout++] = (OutResult){.type = op->results[i].type, .value = &op->results[i]};
	}
	out_head(w, o);
	text_str(w->t, ",\"regions\":[");
	ok &= body_region(w, cond, body);
	text_str(w->t, "]}");
	out_sizes_reset(w, sizes);
	for (int i = 0; i < op->nresult; i++)
		out_size_note(w, &op->results[i]);
	return ok;
}

// ---- tensor arrays ------------------------------------------------------------------------------

bool out_create_array(PirWriter *w, const Op *op)
{
	const Value *v = &op->results[0];
	OutOp *o = out_new(w, "1.create_array", 0, 1);
	out_attr_dtype(o, "dtype", attr_dtype(w->c, v->type->dtype));
	o->out[0] = (OutResult){.type = v->type, .value = v};
	out_op(w, o);
	return true;
}

// The block of the operation that made an array.
static const Block *array_home(const Value *v)
{
	for (;;) {
		const Op *op = v->def;
		if (!op)
			v = op_operand(v->block->region->op, (int)v->index);
		else if (op->code == OP_PD_ARRAY_WRITE || op->code == OP_PD_ARRAY_SLICE)
			v = op_operand(op, 0);
		else if (op->code == OP_PD_WHILE)
			v = op_operand(op, (int)v->index);
		else if (op->code == OP_PD_IF)
			v = op_operand(block_terminator(op->regions[0].first), (int)v->index);
		else
			return op->block;
	}
}

static int regions_below(const Op *op, const Block *home)
{
	int n = 0;
	for (; op && op->block != home; op = op_parent(op))
		n++;
	return n;
}

// The number of the array that `op` changes, and gives as its result: that of operand 0, or of its
// copy where that is read again. 0 after a diagnostic.
static int64_t changed_array(PirWriter *w, const Op *op)
{
	const Value *array = op_operand(op, 0);
	int64_t number = out_number(w, array);
	if (out_read_later(w, array, op))
		number = copied(w, number, array->type);
	else if (regions_below(op, array_home(array)) > 1)
		return out_fail(w, "Paddle 3.2 loses what changes in the array '%s' two blocks inside",
		                array->name ? array->name : "");
	out_bind(w, &op->results[0], number);
	return number;
}

bool out_array_write(PirWriter *w, const Op *op)
{
	const int64_t array = changed_array(w, op);
	OutOp *o = out_new(w, "1.array_write_", 3, 1);
	o->in[0] = array;
	o->in[1] = out_number(w, op_operand(op, 2));
	o->in[2] = out_number(w, op_operand(op, 1));
	o->out[0].type = op->results[0].type;
	out_op(w, o);
	return array != 0;
}

static bool is_number(const Value *v, int64_t number)
{
	const Dim *const *known;
	return value_known(v, &known) == 1 && dim_is_const(known[0]) && known[0]->value == number;
}

// Whether `v` is the position of the last element of `array`.
static bool is_last(const Value *v, const Value *array)
{
	const Op *minus = v->def;
	if (!minus || minus->code != OP_PD_SUBTRACT || !is_number(op_operand(minus, 1), 1))
		return false;
	const Op *length = op_operand(minus, 0)->def;
	return length && length->code == OP_PD_ARRAY_LENGTH && op_operand(length, 0) == array;
}

// Cutting off the last element is the one way to cut in place.
bool out_array_slice(PirWriter *w, const Op *op)
{
	const Value *array = op_operand(op, 0);
	const Type *t = array->type;
	if (!is_number(op_operand(op, 1), 0) || !is_last(op_operand(op, 2), array))
		return out_fail(w, "Paddle 3 has no such operation");
	const int64_t number = changed_array(w, op);
	OutOp *o = out_new(w, "1.array_pop", 1, 2);
	o->in[0] = number;
	out_attr_int(o, "index", PIR_I32, -1);
	o->out[0].type = op->results[0].type;
	o->out[1].type = type_tensor(w->c, t->dtype, t->rank, t->dims, 0);
	out_op(w, o);
	return number != 0;
}
