// Unit tests of the readers and writers: programs, parameter files, .npy arrays, atomic files.
// Files cut at every byte and damaged at random must give a diagnostic or a result, and nothing
// else; run it under sanitizers too.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/ir.h"
#include "frontend/read/desc.h"
#include "frontend/read/read.h"
#include "frontend/translate/translate.h"

typedef struct Fixture {
	Context *c;
	char folder[64];
	const char *path; // a scratch file in it
} Fixture;

static int set_up(void **state)
{
	Fixture *f = calloc(1, sizeof *f);
	if (!f)
		return -1;
	strcpy(f->folder, "/tmp/pdcc-readers-XXXXXX");
	if (!mkdtemp(f->folder))
		return -1;
	f->c = context_new();
	f->path = arena_printf(f->c->arena, "%s/x", f->folder);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;
	unlink(f->path);
	rmdir(f->folder);
	context_free(f->c);
	free(f);
	return 0;
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void put_file(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

// ---- programs -------------------------------------------------------------------------------

// feed x; y = relu(x); fetch y. Packed into an arena array.
static uint8_t *pack_program(Arena *a, size_t *size)
{
	int64_t dims[] = {-1, 3};
	Paddle__TensorDesc tensor = PADDLE__TENSOR_DESC__INIT;
	tensor.data_type = PADDLE__VAR_KIND__FP32;
	tensor.n_dims = 2;
	tensor.dims = dims;
	Paddle__LodTensorDesc lod = PADDLE__LOD_TENSOR_DESC__INIT;
	lod.tensor = &tensor;
	Paddle__VarType type = PADDLE__VAR_TYPE__INIT;
	type.type = PADDLE__VAR_KIND__LOD_TENSOR;
	type.lod_tensor = &lod;
	Paddle__VarDesc x = PADDLE__VAR_DESC__INIT, y = PADDLE__VAR_DESC__INIT, *vars[] = {&x, &y};
	x.name = "x";
	y.name = "y";
	x.type = y.type = &type;
	char *xs[] = {"x"}, *ys[] = {"y"}, *feed[] = {"feed"}, *fetch[] = {"fetch"};
	char **const ins[] = {feed, xs, ys}, **const outs[] = {xs, ys, fetch};
	static const char *const types[] = {"feed", "relu", "fetch"};
	Paddle__OpAttr col = PADDLE__OP_ATTR__INIT, *cols[] = {&col};
	col.name = "col";
	col.type = PADDLE__ATTR_KIND__INT;
	col.has_i = 1;
	Paddle__OpDesc ops[3], *op_list[3];
	Paddle__OpSlot in[3], out[3], *in_list[3], *out_list[3];
	for (int i = 0; i < 3; i++) {
		paddle__op_desc__init(&ops[i]);
		paddle__op_slot__init(&in[i]);
		paddle__op_slot__init(&out[i]);
		in[i].parameter = "X";
		out[i].parameter = "Out";
		in[i].n_arguments = out[i].n_arguments = 1;
		in[i].arguments = ins[i];
		out[i].arguments = outs[i];
		in_list[i] = &in[i];
		out_list[i] = &out[i];
		ops[i].type = (char *)(uintptr_t)types[i];
		ops[i].n_inputs = ops[i].n_outputs = 1;
		ops[i].n_attrs = i != 1; // relu has no column
		ops[i].inputs = &in_list[i];
		ops[i].outputs = &out_list[i];
		ops[i].attrs = cols;
		op_list[i] = &ops[i];
	}
	Paddle__BlockDesc block = PADDLE__BLOCK_DESC__INIT, *blocks[] = {&block};
	block.parent_idx = -1;
	block.n_vars = 2;
	block.vars = vars;
	block.n_ops = 3;
	block.ops = op_list;
	Paddle__ProgramDesc p = PADDLE__PROGRAM_DESC__INIT;
	p.n_blocks = 1;
	p.blocks = blocks;
	*size = paddle__program_desc__get_packed_size(&p);
	uint8_t *data = arena_alloc(a, *size);
	paddle__program_desc__pack(&p, data);
	return data;
}

// Reads and translates in a context of its own. A failure without a diagnostic, or a result with an
// error, is wrong.
static bool try_program(const char *path)
{
	Context *c = context_new();
	Paddle__ProgramDesc *p = model_read(c, path);
	Op *module = p ? translate(c, p, NULL) : NULL;
	assert_int_equal(module == NULL, diag_errors(c->diag) > 0);
	bool ok = module != NULL;
	context_free(c);
	return ok;
}

static void test_program(void **state)
{
	Fixture *f = *state;
	size_t size;
	uint8_t *data = pack_program(f->c->arena, &size);
	put_file(f->path, data, size);
	assert_true(try_program(f->path));
}

static void test_program_cut(void **state)
{
	Fixture *f = *state;
	size_t size;
	uint8_t *data = pack_program(f->c->arena, &size);
	for (size_t n = 0; n < size; n++) {
		put_file(f->path, data, n);
		assert_false(try_program(f->path));
	}
}

static void test_program_damaged(void **state)
{
	Fixture *f = *state;
	size_t size;
	uint8_t *data = pack_program(f->c->arena, &size), *copy = arena_alloc(f->c->arena, size);
	uint32_t seed = 1;
	for (int round = 0; round < 3000; round++) {
		memcpy(copy, data, size);
		for (uint32_t k = next_random(&seed) % 4; k < 4; k++)
			copy[next_random(&seed) % size] = (uint8_t)next_random(&seed);
		put_file(f->path, copy, size);
		try_program(f->path);
	}
	for (int round = 0; round < 500; round++) {
		for (size_t i = 0; i < size; i++)
			copy[i] = (uint8_t)next_random(&seed);
		copy[0] = 0x0a;
		put_file(f->path, copy, 1 + next_random(&seed) % (size - 1));
		assert_false(try_program(f->path));
	}
}

static void test_program_absent(void **state)
{
	Fixture *f = *state;
	assert_null(model_read(f->c, f->path));
	assert_null(model_read(f->c, f->folder)); // a folder without a program
	assert_int_equal(diag_errors(f->c->diag), 2);
}

// ---- parameters -----------------------------------------------------------------------------

// A program that declares parameters a [2 x 3] f32 and b [4] i64 and reads both.
static Paddle__ProgramDesc *param_program(Arena *arena)
{
	Paddle__ProgramDesc *p = NEW(arena, Paddle__ProgramDesc);
	Paddle__BlockDesc *block = NEW(arena, Paddle__BlockDesc);
	static const int64_t dims[2][2] = {{2, 3}, {4}};
	paddle__program_desc__init(p);
	paddle__block_desc__init(block);
	p->n_blocks = 1;
	p->blocks = NEW_ARRAY(arena, 1, Paddle__BlockDesc *);
	p->blocks[0] = block;
	block->n_vars = 2;
	block->vars = NEW_ARRAY(arena, 2, Paddle__VarDesc *);
	for (int i = 0; i < 2; i++) {
		Paddle__VarDesc *v = block->vars[i] = NEW(arena, Paddle__VarDesc);
		paddle__var_desc__init(v);
		paddle__var_type__init(v->type = NEW(arena, Paddle__VarType));
		paddle__lod_tensor_desc__init(v->type->lod_tensor = NEW(arena, Paddle__LodTensorDesc));
		paddle__tensor_desc__init(v->type->lod_tensor->tensor = NEW(arena, Paddle__TensorDesc));
		v->name = i ? "b" : "a";
		v->has_persistable = v->persistable = 1;
		v->type->type = PADDLE__VAR_KIND__LOD_TENSOR;
		v->type->lod_tensor->tensor->data_type = i ? PADDLE__VAR_KIND__INT64
		                                           : PADDLE__VAR_KIND__FP32;
		v->type->lod_tensor->tensor->n_dims = i ? 1 : 2;
		v->type->lod_tensor->tensor->dims = (int64_t *)(uintptr_t)dims[i];
	}
	return p;
}

static uint8_t *pack_params(Context *c, size_t *size)
{
	uint8_t *data;
	Tensor *a = tensor_new(c->arena, DT_F32, 2, (int64_t[]){2, 3}),
		   *b = tensor_new(c->arena, DT_I64, 1, (int64_t[]){4});
	for (int i = 0; i < 6; i++)
		tensor_set_f(a, i, 0.5 * i);
	for (int i = 0; i < 4; i++)
		tensor_set_i(b, i, -i);
	assert_true(params_encode(c, 2, (Tensor *[]){a, b}, &data, size));
	return data;
}

static bool try_params(const char *path)
{
	Context *c = context_new();
	c->file = "program";
	bool ok = params_load(c, param_program(c->arena), "program", path, 0, NULL);
	assert_int_equal(ok, diag_errors(c->diag) == 0);
	if (ok) {
		assert_int_equal(tensor_numel(param_get(c, "a")), 6);
		assert_int_equal(tensor_numel(param_get(c, "b")), 4);
	}
	context_free(c);
	return ok;
}

static void test_params(void **state)
{
	Fixture *f = *state;
	size_t size;
	uint8_t *data = pack_params(f->c, &size);
	put_file(f->path, data, size);
	assert_true(params_load(f->c, param_program(f->c->arena), "program", f->path, 0, NULL));
	assert_true(tensor_get_f(param_get(f->c, "a"), 5) == 2.5);
	assert_int_equal(tensor_get_i(param_get(f->c, "b"), 3), -3);
}

static void test_params_cut(void **state)
{
	Fixture *f = *state;
	size_t size;
	uint8_t *data = pack_params(f->c, &size);
	for (size_t n = 0; n < size; n++) {
		put_file(f->path, data, n);
		assert_false(try_params(f->path));
	}
	uint8_t *longer = arena_alloc(f->c->arena, size + 1);
	memcpy(longer, data, size);
	put_file(f->path, longer, size + 1);
	assert_false(try_params(f->path));
}

static void test_params_damaged(void **state)
{
	Fixture *f = *state;
	size_t size;
	uint8_t *data = pack_params(f->c, &size), *copy = arena_alloc(f->c->arena, size);
	uint32_t seed = 7;
	for (int round = 0; round < 3000; round++) {
		memcpy(copy, data, size);
		for (uint32_t k = next_random(&seed) % 3; k < 3; k++)
			copy[next_random(&seed) % size] =
				(uint8_t)(next_random(&seed) % 2 ? 0xff : next_random(&seed));
		put_file(f->path, copy, size);
		try_params(f->path);
	}
}

static void test_params_names(void **state)
{
	Fixture *f = *state;
	uint8_t *data;
	size_t size;
	Tensor *b = tensor_new(f->c->arena, DT_I64, 1, (int64_t[]){4});
	assert_true(params_encode(f->c, 1, &b, &data, &size));
	put_file(f->path, data, size);
	assert_true(params_load(f->c, param_program(f->c->arena), "program", f->path, 1,
	                        (const char *[]){"b"}));
	assert_null(param_get(f->c, "a"));
	assert_non_null(param_get(f->c, "b"));
	assert_false(params_load(f->c, param_program(f->c->arena), "program", f->path, 1,
	                         (const char *[]){"c"}));
}

// ---- arrays ---------------------------------------------------------------------------------

static void test_npy_round_trip(void **state)
{
	Fixture *f = *state;
	for (int t = 0; t < DT_COUNT; t++) {
		for (int rank = 0; rank < 4; rank++) {
			const int64_t dims[] = {2, rank == 3 ? 0 : 3, 1};
			Tensor *a = tensor_new(f->c->arena, (DType)t, rank, dims);
			for (int64_t i = 0; i < (int64_t)tensor_bytes(a); i++)
				((uint8_t *)a->data)[i] = (uint8_t)(t == DT_BOOL ? i & 1 : i * 37);
			assert_true(npy_write(f->c, f->path, a));
			Tensor *b = npy_read(f->c, f->path);
			assert_non_null(b);
			assert_int_equal(b->dtype, t);
			assert_int_equal(b->rank, rank);
			assert_memory_equal(a->dims, b->dims, sizeof(int64_t) * (size_t)rank);
			if (a->data)
				assert_memory_equal(a->data, b->data, tensor_bytes(a));
		}
	}
}

// Writes a .npy file of version 1 with this header.
static void put_npy(const char *path, const char *header, const void *data, size_t size)
{
	char file[512] = "\x93NUMPY\x01\0";
	size_t n = strlen(header);
	file[8] = (char)n;
	memcpy(file + 10, header, n);
	memcpy(file + 10 + n, data, size);
	put_file(path, file, 10 + n + size);
}

static void test_npy_fortran(void **state)
{
	Fixture *f = *state;
	const int16_t columns[] = {1, 4, 2, 5, 3, 6};
	put_npy(f->path, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", columns,
	        sizeof columns);
	Tensor *t = npy_read(f->c, f->path);
	assert_non_null(t);
	for (int i = 0; i < 6; i++)
		assert_int_equal(tensor_get_i(t, i), i + 1);
}

static void test_npy_refused(void **state)
{
	Fixture *f = *state;
	static const char *const headers[] = {
		"{'descr': '>i2', 'fortran_order': False, 'shape': (1,)}",
		"{'descr': '<i2', 'shape': (1,)}",
		"{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}",
		"{'descr': '<i2', 'fortran_order': False, 'shape': (-1,)}",
		"{'descr': '<i2', 'fortran_order': False, 'shape': (1 1)}",
		"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
		"{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (1,)}",
		"{",
		"",
		"[]",
		"{'descr': '<i2', 'fortran_order': False, 'shape': (9223372036854775807, "
		"9223372036854775807, 0)}",
		"{'descr': '<i2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1)}"};
	for (size_t i = 0; i < COUNT_OF(headers); i++) {
		put_npy(f->path, headers[i], "\1\0", 2);
		assert_null(npy_read(f->c, f->path));
		assert_int_equal(diag_errors(f->c->diag), i + 1);
	}
}

static void test_npy_damaged(void **state)
{
	Fixture *f = *state;
	uint8_t file[256];
	Tensor *t = tensor_new(f->c->arena, DT_F32, 2, (int64_t[]){2, 3});
	assert_true(npy_write(f->c, f->path, t));
	FILE *in = fopen(f->path, "rb");
	assert_non_null(in);
	size_t size = fread(file, 1, sizeof file, in);
	fclose(in);
	for (size_t n = 0; n < size; n++) {
		put_file(f->path, file, n);
		assert_null(npy_read(f->c, f->path));
	}
	uint32_t seed = 3;
	for (int round = 0; round < 3000; round++) {
		uint8_t copy[256];
		memcpy(copy, file, size);
		copy[next_random(&seed) % 80] = (uint8_t)next_random(&seed);
		put_file(f->path, copy, size);
		Context *c = context_new();
		t = npy_read(c, f->path);
		assert_int_equal(t == NULL, diag_errors(c->diag) > 0);
		context_free(c);
	}
}

// ---- writing --------------------------------------------------------------------------------

static void test_write_replaces(void **state)
{
	Fixture *f = *state;
	size_t size;
	assert_true(file_write(f->c, f->path, "first", 5));
	const uint8_t *old = file_map(f->c, f->path, &size);
	assert_true(file_write(f->c, f->path, "2nd", 3));
	assert_memory_equal(old, "first", 5); // whoever had it open keeps what he had
	const uint8_t *new = file_map(f->c, f->path, &size);
	assert_int_equal(size, 3);
	assert_memory_equal(new, "2nd", 3);
}

static void test_write_group(void **state)
{
	Fixture *f = *state;
	const char *bad = arena_printf(f->c->arena, "%s/none/y", f->folder);
	const FilePiece pieces[] = {{f->path, "a", 1}, {bad, "b", 1}};
	assert_false(file_write_group(f->c, 2, pieces));
	assert_int_equal(diag_errors(f->c->diag), 1);
	assert_int_equal(access(f->path, F_OK), -1);
	assert_int_equal(rmdir(f->folder), 0); // not even a temporary file is left
	assert_int_equal(mkdir(f->folder, 0700), 0);
}

static void test_write_full(void **state)
{
	Fixture *f = *state;
	if (access("/dev/full", W_OK) != 0)
		skip();
	assert_false(file_write(f->c, "/dev/full", "data", 4));
	assert_int_equal(diag_errors(f->c->diag), 1);
	assert_false(file_write(f->c, f->folder, "data", 4)); // a directory
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_program),        TEST(test_program_cut),  TEST(test_program_damaged),
		TEST(test_program_absent), TEST(test_params),       TEST(test_params_cut),
		TEST(test_params_damaged), TEST(test_params_names), TEST(test_npy_round_trip),
		TEST(test_npy_fortran),    TEST(test_npy_refused),  TEST(test_npy_damaged),
		TEST(test_write_replaces), TEST(test_write_group),  TEST(test_write_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
