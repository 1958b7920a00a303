// The derivatives of every entry of the operator table, over operands and attributes drawn at
// random from what the entry says: gradients against central differences of the interpreter in f64,
// tangents against gradients. An entry of which no draw can be run, or that has no gradient, is in
// a list here with the reason, and must need to be.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/gradient/gradient.h"
#include "ir/interp/interp.h"
#include "ir/verify/verify.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 24, MAX_OPERANDS = 24, MAX_ATTRS = 48, MAX_SHAPES = 8, TRIES = 400, ENOUGH = 5 };

// ---- random numbers -----------------------------------------------------------------------------

static uint64_t random_state;

static unsigned draw(unsigned below)
{
	uint64_t z = random_state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return (unsigned)((z ^ z >> 31) >> 33) % below;
}

static double draw_between(double low, double high)
{
	return low + (high - low) * (draw(1u << 30) + 0.5) / (double)(1u << 30);
}

// ---- what an operation is tried on --------------------------------------------------------------

// Where shapes at random would hardly ever fit: shapes, as "2,3"; "i2,3 4": whole numbers below 4;
// "": left out; "[2,3;2,3]": a list; and attributes that are not drawn, in the text form.
typedef struct Recipe {
	const char *op, *shapes[MAX_SHAPES], *attrs;
	bool positive; // only numbers between 0 and 1
} Recipe;

static const Recipe recipes[] = {
#include "tests/unit/derivatives_recipes.inc"
};

// Entries that are not tried, or not differentiated, and why.
typedef struct Exception {
	const char *op, *why;
	bool skip; // do not even try
} Exception;

static const Exception exceptions[] = {
#include "tests/unit/derivatives_exceptions.inc"
};

static const Exception *exception_of(const OpInfo *info)
{
	for (size_t i = 0; i < COUNT_OF(exceptions); i++)
		if (!strcmp(exceptions[i].op, info->short_name))
			return &exceptions[i];
	return NULL;
}

// One input of the program that is tried.
typedef struct Input {
	const Type *type;
	Tensor *x, *dx; // dx: a direction; NULL: does not move
	Value *value;
} Input;

typedef struct Trial {
	Context *c;
	const OpInfo *info;
	int ninput;
	Input inputs[MOST];
	int noperand;
	int first[MAX_OPERANDS], count[MAX_OPERANDS]; // inputs of each; count -1: a list, 0: left out
	int nlist[MAX_OPERANDS];
	int nattr;
	NamedAttr attrs[MAX_ATTRS];
} Trial;

static const Type *draw_type(Context *c, DType t, int rank, const int64_t *sizes)
{
	const Dim *dims[MAX_RANK];
	for (int i = 0; i < rank; i++)
		dims[i] = dim_const(c, sizes[i]);
	return type_tensor(c, t, rank, dims, 0);
}

static void input_add(Trial *t, const Type *type, int below, int domain)
{
	static const double ranges[][2] = {{0.2, 0.9}, {-1.4, 1.4}, {1.1, 2.5}};
	Input *in = &t->inputs[t->ninput++];
	int64_t dims[MAX_RANK] = {0};
	for (int d = 0; d < type->rank; d++)
		dims[d] = type->dims[d]->value;
	const bool moves = type_moves(type);
	*in = (Input){.type = type, .x = tensor_new(t->c->arena, type->dtype, type->rank, dims)};
	in->dx = moves ? tensor_new(t->c->arena, type->dtype, type->rank, dims) : NULL;
	for (int64_t i = 0; i < tensor_numel(in->x); i++) {
		if (!moves) {
			tensor_set_i(in->x, i, draw((unsigned)(below > 0 ? below : 2)));
			continue;
		}
		tensor_set_f(in->x, i, draw_between(ranges[domain][0], ranges[domain][1]));
		tensor_set_f(in->dx, i, draw_between(-1, 1));
	}
}

// A shape related to that of the first operand.
static const Type *draw_shape(Trial *t, DType dtype, int rank, const int64_t *base)
{
	int64_t dims[MAX_RANK];
	memcpy(dims, base, sizeof *dims * (size_t)rank);
	switch (draw(8)) {
	case 0: return draw_type(t->c, dtype, 1, &dims[rank - 1]);
	case 1: return draw_type(t->c, dtype, 1, &dims[rank > 1]);
	case 2: return draw_type(t->c, dtype, 1, (const int64_t[]){1});
	case 3: dims[draw((unsigned)rank)] = 1; return draw_type(t->c, dtype, rank, dims);
	case 4: return draw_type(t->c, dtype, 1, &dims[0]);
	case 5: dims[rank - 1] = 1; return draw_type(t->c, dtype, rank, dims);
	default: return draw_type(t->c, dtype, rank, dims);
	}
}

static DType class_dtype(OperandClass k, bool whole)
{
	switch (k) {
	case CLASS_BOOL: return DT_BOOL;
	case CLASS_INT:
	case CLASS_INDEX: return DT_I64;
	default: return whole ? DT_I64 : DT_F64;
	}
}

// Offsets of `n` sequences in so many rows.
static void fill_offsets(Tensor *x, int64_t n, int64_t rows)
{
	for (int64_t i = 0; i <= n; i++)
		tensor_set_i(x, i, i == n ? rows : i);
}

static bool is_lod(const char *name)
{
	const size_t n = strlen(name);
	return n >= 3 && !strcmp(name + n - 3, "lod");
}

static void operands_by_chance(Trial *t)
{
	const OpInfo *info = t->info;
	const int rank = 1 + (int)draw(4), domain = (int)draw(3);
	const bool alike = draw(2);
	int64_t base[MAX_RANK];
	for (int i = 0; i < rank; i++)
		base[i] = 2 + draw(rank > 2 ? 2 : 3);
	t->noperand = info->noperand;
	for (int i = 0; i < info->noperand; i++) {
		const OperandInfo *o = &info->operands[i];
		const DType dtype = class_dtype(o->klass, false);
		t->first[i] = t->ninput;
		if (o->optional && draw(dtype == DT_F64 ? 2 : 4))
			continue;
		t->count[i] = o->vec ? -1 : 1;
		t->nlist[i] = o->vec ? 1 + (int)draw(3) : 1;
		if (is_lod(o->name)) {
			input_add(t, draw_type(t->c, DT_I64, 1, (const int64_t[]){3}), 2, 0);
			fill_offsets(t->inputs[t->ninput - 1].x, 2, base[0]);
			continue;
		}
		for (int k = 0; k < t->nlist[i]; k++)
			input_add(t,
			          i == 0 || alike ? draw_type(t->c, dtype, rank, base)
			                          : draw_shape(t, dtype, rank, base),
			          2, domain);
	}
}

// "2,3" or "i2,3 4"; gives what follows.
static const char *shape_parse(Trial *t, const char *text, int domain)
{
	int64_t dims[MAX_RANK];
	int rank = 0, used, below = 0;
	const bool whole = *text == 'i', truth = *text == 'b';
	const bool offsets = *text == 'o'; // of as many sequences, in so many rows: "o3 5"
	for (text += whole || truth || offsets; *text && *text != ';' && *text != ']';
	     text += *text == ',') {
		int n = 0;
		if (*text == ' ') {
			if (sscanf(text, "%d%n", &below, &used) == 1)
				text += used;
			break;
		}
		if (sscanf(text, "%d%n", &n, &used) != 1)
			break;
		text += used;
		dims[rank++] = n;
	}
	if (offsets)
		dims[0]++;
	input_add(t,
	          draw_type(t->c,
	                    whole || offsets ? DT_I64
	                    : truth          ? DT_BOOL
	                                     : DT_F64,
	                    rank, dims),
	          below, domain);
	if (offsets)
		fill_offsets(t->inputs[t->ninput - 1].x, dims[0] - 1, below);
	return text;
}

static void operands_by_recipe(Trial *t, const Recipe *r)
{
	const int domain = r->positive ? 0 : (int)draw(3);
	for (; t->noperand < MAX_SHAPES && r->shapes[t->noperand]; t->noperand++) {
		const char *text = r->shapes[t->noperand];
		const int i = t->noperand;
		t->first[i] = t->ninput;
		if (!*text)
			continue;
		t->count[i] = *text == '[' ? -1 : 1;
		for (text += *text == '['; *text && *text != ']'; text += *text == ';') {
			text = shape_parse(t, text, domain);
			t->nlist[i]++;
		}
	}
}

static const Attr *attr_by_chance(Context *c, const AttrInfo *a)
{
	int64_t ints[4];
	const Dim *dims[4];
	const int n = 1 + (int)draw(3);
	for (int i = 0; i < n; i++) {
		ints[i] = draw(3);
		dims[i] = dim_const(c, 1 + draw(3));
	}
	if (a->choices)
		return attr_str(c, a->choices->words[draw((unsigned)a->choices->n)]);
	switch (a->kind) {
	case ATTR_BOOL: return attr_bool(c, draw(2));
	case ATTR_INT: return attr_int(c, (int64_t)draw(4) - 1);
	case ATTR_FLOAT: return attr_float(c, draw_between(0.3, 1.6));
	case ATTR_DTYPE: return attr_dtype(c, DT_F64);
	case ATTR_INTS: return attr_ints(c, n, ints);
	case ATTR_DIMS: return attr_dims(c, n, dims);
	default: return NULL;
	}
}

// Whether an attribute changes gradients alone: no slope shows it.
static bool changes_gradients_only(const AttrInfo *a)
{
	return !strcmp(a->name, "norm_by_times");
}

// Attributes of the recipe, then, of the others, some at random.
static void draw_attrs(Trial *t, const char *text)
{
	const OpInfo *info = t->info;
	while (*text) {
		size_t key = strcspn(text, "="), value = strcspn(text + key + 1, ";");
		const AttrInfo *a = op_info_attr(info, context_strn(t->c, text, key));
		assert_non_null(a);
		t->attrs[t->nattr].name = a->name;
		t->attrs[t->nattr].attr = attr_parse(t->c, a->kind,
		                                     context_strn(t->c, text + key + 1, value));
		assert_non_null(t->attrs[t->nattr++].attr);
		text += key + 1 + value;
		text += *text == ';';
	}
	for (int i = 0; i < info->nattr && t->nattr < MAX_ATTRS; i++) {
		const AttrInfo *a = &info->attrs[i];
		bool have = changes_gradients_only(a) || (!a->required && draw(3));
		for (int k = 0; k < t->nattr; k++)
			have |= t->attrs[k].name == a->name;
		const Attr *attr = have ? NULL : attr_by_chance(t->c, a);
		if (attr)
			t->attrs[t->nattr++] = (NamedAttr){a->name, attr};
	}
}

// ---- the program --------------------------------------------------------------------------------

static Value *feed(Trial *t, Block *b, int i)
{
	Op *op = op_new(t->c, OP_PD_FEED, &loc_unknown, 1, &t->inputs[i].type, 0, NULL, 0, 0);
	op_set_attr(op, "name", attr_str(t->c, context_str(t->c, arena_printf(t->c->arena, "x%d", i))));
	op_set_attr(op, "col", attr_int(t->c, i));
	op_append(b, op);
	return op_result(op, 0);
}

static void fetch(Context *c, Block *b, int col, Value *v)
{
	Op *op = op_new(c, OP_PD_FETCH, &loc_unknown, 0, NULL, 1, &v, 0, 0);
	op_set_attr(op, "name", attr_str(c, context_str(c, arena_printf(c->arena, "y%d", col))));
	op_set_attr(op, "col", attr_int(c, col));
	op_append(b, op);
}

// A weight for each element of a result, so that no gradient is zero by symmetry.
static Value *weighted_sum(Builder *b, Value *y, int shift)
{
	Nest n = nest_open(b, type_tensor(b->ctx, DT_F64, y->type->rank, y->type->dims, 0));
	Value *at = index_linear(&n.b, y->type->rank, y->type->dims, n.at),
		  *angle = scalar_from_index(&n.b, index_plus(&n.b, index_times(&n.b, at, 3), shift),
	                                 DT_F64),
		  *weights = nest_close(&n, apply1(&n.b, OP_PD_COS, angle));
	return build1(b, OP_PD_SUM, tensor_mul(b, y, weights), "reduce_all", attr_bool(b->ctx, true),
	              NULL);
}

static void add_to_loss(Builder *b, Value *y, int shift, Value **loss)
{
	if (!y || !type_is_tensor(y->type) || y->type->dtype != DT_F64)
		return;
	Value *part = weighted_sum(b, y, shift);
	*loss = *loss && part ? tensor_add(b, *loss, part) : part;
}

// The operation on its inputs, and the loss in column 0. NULL: they do not fit.
static Op *build_program(Trial *t, Value **loss)
{
	Context *c = t->c;
	Op *module = module_new(c);
	Block *block = module_block(module);
	Builder b = builder_at_end(c, block, &loc_unknown);
	Value *operands[MAX_OPERANDS] = {NULL};
	for (int i = 0; i < t->ninput; i++)
		t->inputs[i].value = feed(t, block, i);
	for (int i = 0; i < t->noperand; i++) {
		Value *list[MOST];
		for (int k = 0; k < t->nlist[i]; k++)
			list[k] = t->inputs[t->first[i] + k].value;
		if (t->count[i])
			operands[i] = t->count[i] > 0 ? list[0]
			                              : build(&b, OP_BUILTIN_COMBINE, t->nlist[i], list, NULL);
	}
	Op *op = build_op(&b, t->info->code, t->noperand, operands, t->nattr, t->attrs);
	*loss = NULL;
	for (int i = 0; op && i < op->nresult; i++) {
		Value *y = op_result(op, i);
		const int n = y->type->kind == TY_VEC ? y->type->nelem : 0;
		for (int k = 0; k < n; k++)
			add_to_loss(&b, build1(&b, OP_BUILTIN_SLICE, y, "index", attr_int(c, k), NULL), k,
			            loss);
		add_to_loss(&b, y, i, loss);
	}
	if (!*loss || diag_errors(c->diag))
		return NULL;
	fetch(c, block, 0, *loss);
	return ir_verify(module) ? module : NULL;
}

// Column `col` of a run where the inputs are moved by h along their directions; NAN: it failed.
static double run_at(Trial *t, Op *module, double h, int col)
{
	Arena *scratch = arena_scratch(t->c->arena);
	Interp *in = interp_new(t->c, scratch);
	interp_set_max_trip(in, 1000);
	for (int i = 0; i < t->ninput; i++) {
		Input *x = &t->inputs[i];
		Tensor *at = tensor_new(scratch, x->x->dtype, x->x->rank, x->x->dims);
		for (int64_t k = 0; k < tensor_numel(at); k++) {
			if (x->dx)
				tensor_set_f(at, k, tensor_get_f(x->x, k) + h * tensor_get_f(x->dx, k));
			else
				tensor_set_i(at, k, tensor_get_i(x->x, k));
		}
		interp_set_feed(in, arena_printf(scratch, "x%d", i), at);
	}
	double y = interp_run(in, module) ? tensor_get_f(interp_fetch(in, col), 0) : (double)NAN;
	arena_free(scratch);
	return y;
}

// A constant like x, in front of everything.
static Value *constant(Context *c, Block *block, const Tensor *x)
{
	Builder b = builder_before(block->first);
	return build_constant(&b, x);
}

// Appends the gradients' product with the directions, as column 1. False: none, after a diagnostic.
static bool add_reverse(Trial *t, Op *module, Value *loss)
{
	Context *c = t->c;
	Block *block = module_block(module);
	Duals *d = duals_new(c, NULL);
	for (int i = 0; i < t->ninput; i++)
		if (t->inputs[i].dx)
			duals_want(d, t->inputs[i].value);
	Op *last = block->last;
	Builder b = builder_at_end(c, block, &loc_unknown);
	Value *sum = build_full(&b, loss->type, 0);
	if (!duals_add(&b, d, loss, build_full(&b, loss->type, 1)) ||
	    !gradient_ops(&b, d, block->first, last))
		return false;
	for (int i = 0; i < t->ninput; i++) {
		Value *dv = t->inputs[i].dx ? duals_get(&b, d, t->inputs[i].value) : NULL;
		if (!dv)
			continue;
		Value *along = tensor_mul(&b, dv, constant(c, block, t->inputs[i].dx));
		Value *part = build1(&b, OP_PD_SUM, along, "reduce_all", attr_bool(c, true), NULL);
		sum = part ? tensor_add(&b, sum, part) : NULL;
		if (!sum)
			return false;
	}
	fetch(c, block, 1, sum);
	return true;
}

static bool add_forward(Trial *t, Op *module, Value *loss)
{
	Context *c = t->c;
	Block *block = module_block(module);
	Duals *d = duals_new(c, NULL);
	Op *last = block->last;
	for (int i = 0; i < t->ninput; i++) {
		Builder b = builder_before(block->first);
		if (!t->inputs[i].dx)
			continue;
		duals_want(d, t->inputs[i].value);
		if (!duals_add(&b, d, t->inputs[i].value, constant(c, block, t->inputs[i].dx)))
			return false;
	}
	if (!tangent_ops(d, block->first, last))
		return false;
	Builder b = builder_at_end(c, block, &loc_unknown);
	Value *moves = duals_get(&b, d, loss);
	fetch(c, block, 1, moves ? moves : build_full(&b, loss->type, 0));
	return true;
}

// ---- trials -------------------------------------------------------------------------------------

typedef enum Verdict {
	UNFIT,         // cannot be run like this
	UNSMOOTH,      // differences say nothing
	UNDERIVED,     // a diagnostic instead of a derivative
	WRONG_REVERSE, // not what differences give
	WRONG_FORWARD, // not what the reverse mode gives
	RIGHT
} Verdict;

static Trial trial_new(Context *c, const OpInfo *info, const Recipe *r)
{
	Trial t = {.c = c, .info = info};
	if (r)
		operands_by_recipe(&t, r);
	else
		operands_by_chance(&t);
	draw_attrs(&t, r ? r->attrs : "");
	return t;
}

static Verdict try_once(Trial *t, double *want, double *reverse, double *forward)
{
	Value *loss;
	Op *module = build_program(t, &loss), *module_f;
	if (!module)
		return UNFIT;
	const double h = 2e-5, at = run_at(t, module, 0, 0);
	if (!isfinite(at))
		return UNFIT;
	*want = (run_at(t, module, h, 0) - run_at(t, module, -h, 0)) / (2 * h);
	const double finer = (run_at(t, module, h / 4, 0) - run_at(t, module, -h / 4, 0)) / (h / 2),
				 scale = 1 + fabs(at) + fabs(*want);
	if (!(fabs(*want - finer) < 2e-7 * scale))
		return UNSMOOTH;
	if (!add_reverse(t, module, loss))
		return UNDERIVED;
	*reverse = run_at(t, module, 0, 1);
	if (!(fabs(*reverse - *want) < 1e-6 * scale))
		return WRONG_REVERSE;
	module_f = build_program(t, &loss);
	if (!module_f)
		return UNFIT;
	if (!add_forward(t, module_f, loss))
		return UNDERIVED;
	*forward = run_at(t, module_f, 0, 1);
	return fabs(*forward - *reverse) < 1e-10 * scale ? RIGHT : WRONG_FORWARD;
}

static bool quiet = true;

// What became of the trials of an entry.
typedef struct Tally {
	int counts[RIGHT + 1];
	char first[4000]; // the first that is not right
} Tally;

static void describe(const Trial *t, Tally *y, const char *text, double a, double b)
{
	Text attrs;
	text_init(&attrs, t->c->arena);
	for (int i = 0; i < t->nattr; i++) {
		text_printf(&attrs, " %s=", t->attrs[i].name);
		attr_print(&attrs, t->attrs[i].attr);
	}
	for (int i = 0; i < t->ninput; i++)
		text_printf(&attrs, " %s", type_text_of(t->c, t->inputs[i].type));
	if (!*y->first)
		snprintf(y->first, sizeof y->first, "%s:%s: %s %.12g, %.12g", t->info->name, attrs.text,
		         text, a, b);
}

static void tally_one(const OpInfo *info, const Recipe *r, Tally *y)
{
	Context *c = context_new();
	double want = 0, reverse = 0, forward = 0;
	Trial t = trial_new(c, info, r);
	const Verdict v = try_once(&t, &want, &reverse, &forward);
	y->counts[v]++;
	if (v == WRONG_REVERSE)
		describe(&t, y, "gradient, slope", reverse, want);
	else if (v == WRONG_FORWARD)
		describe(&t, y, "tangent, gradient", forward, reverse);
	else if (v == UNDERIVED)
		describe(&t, y, "no derivative", 0, 0);
	if (!quiet && (v == UNDERIVED || v == UNFIT))
		diag_flush(c->diag, stderr, false);
	context_free(c);
}

static Tally tally(const OpInfo *info, const char *name)
{
	Tally y = {{0}, ""};
	int nrecipe = 0;
	random_state = 77;
	for (const char *p = name; *p; p++)
		random_state = random_state * 31 + (unsigned char)*p;
	for (size_t i = 0; i < COUNT_OF(recipes); i++) {
		if (strcmp(recipes[i].op, info->short_name))
			continue;
		nrecipe++;
		for (int k = 0, before = y.counts[RIGHT]; k < TRIES && y.counts[RIGHT] < before + 2; k++)
			tally_one(info, &recipes[i], &y);
	}
	for (int k = 0; k < TRIES && y.counts[RIGHT] < ENOUGH && !nrecipe && !*y.first; k++)
		tally_one(info, NULL, &y);
	return y;
}

// Whether the entry is one of those that this test is about.
static bool has_derivative(const OpInfo *info)
{
	const bool own = !strncmp(info->name, "pd.", 3) && info->kind != KIND_CONTROL &&
	                 info->kind != KIND_BUILTIN;
	bool moves = false;
	for (int i = 0; i < info->noperand; i++)
		moves |= info->operands[i].klass != CLASS_INT && info->operands[i].klass != CLASS_BOOL &&
		         info->operands[i].klass != CLASS_INDEX;
	return own && moves;
}

static void test_derivatives(void **state)
{
	(void)state;
	const char *only = getenv("DERIVATIVES_OF");
	int tried = 0, wrong = 0;
	quiet = !only;
	for (int code = 0; code < OP_COUNT; code++) {
		const OpInfo *info = &op_table[code];
		if (!has_derivative(info) || (only && strcmp(only, info->short_name)))
			continue;
		const Exception *why = exception_of(info);
		if (why && why->skip)
			continue;
		const Tally y = tally(info, info->short_name);
		const bool right = y.counts[RIGHT] && !*y.first;
		tried += right;
		if (right != !why) {
			wrong++;
			print_message("%s: %s (%d right, %d unfit, %d not smooth)\n", info->short_name,
			              why && right ? "needs to be no exception"
			              : *y.first   ? y.first
			                           : "cannot be tried",
			              y.counts[RIGHT], y.counts[UNFIT], y.counts[UNSMOOTH]);
		}
	}
	assert_int_equal(wrong, 0);
	assert_true(only || tried > 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_derivatives)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
