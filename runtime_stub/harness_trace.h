/* What the harness does with a model that was compiled with --trace. A part of harness.c, which
 * alone includes it.
 *
 * --trace prints a line for each result of each operator: where the operator stands, how long it
 * took, what kind of tensor it gave, its hash, smallest and largest element, and the first ones.
 * --trace-values F writes all results to F, for pdcc verify: of each, six numbers of 64 bits
 * (TRACE_MAGIC, operator, result, dtype, rank, bytes), its dims, and its bytes. */
#ifndef HARNESS_TRACE_H
#define HARNESS_TRACE_H

#include "harness_npy.h"

#include <math.h>

enum { TRACE_MAGIC = 0x74726163, TRACE_SHOWN = 4 };

typedef struct Tracer {
	FILE *values;     /* NULL: lines for people */
	double begin, ns; /* of the operator that ended last */
} Tracer;

static int64_t trace_count(const pd_trace_event *e)
{
	int64_t n = 1;
	for (int d = 0; d < e->rank; d++)
		n *= e->dims[d];
	return n;
}

static float half_value(uint16_t bits)
{
	const int exponent = bits >> 10 & 31, fraction = bits & 1023;
	const float x = exponent == 31 ? fraction ? NAN : INFINITY
	                : exponent     ? ldexpf((float)(fraction + 1024), exponent - 25)
	                               : ldexpf((float)fraction, -24);
	return bits >> 15 ? -x : x;
}

/* An element as a number; of complex ones the real part. */
static double trace_number(pd_dtype dtype, const void *data, int64_t i)
{
	const unsigned char *p = (const unsigned char *)data + (size_t)i * pd_dtype_size(dtype);
	union {
		int8_t i8;
		int16_t i16;
		int32_t i32;
		int64_t i64;
		uint16_t u16;
		uint32_t u32;
		float f32;
		double f64;
	} x;
	memset(&x, 0, sizeof x);
	memcpy(&x, p, pd_dtype_size(dtype) < 8 ? pd_dtype_size(dtype) : 8);
	switch (dtype) {
	case PD_BOOL:
	case PD_U8: return *p;
	case PD_I8: return x.i8;
	case PD_I16: return x.i16;
	case PD_I32: return x.i32;
	case PD_I64: return (double)x.i64;
	case PD_F16: return half_value(x.u16);
	case PD_BF16: x.u32 <<= 16; return x.f32;
	case PD_F32:
	case PD_C64: return x.f32;
	default: return x.f64;
	}
}

static void trace_print(const Tracer *t, const pd_trace_event *e)
{
	const int64_t n = trace_count(e);
	double least = INFINITY, most = -INFINITY;
	int64_t odd = 0;
	printf("block %d, op %d: %s: ", e->op->block, e->op->op, e->op->title);
	printf("%.2f us, [", t->ns * 1e-3);
	for (int d = 0; d < e->rank; d++)
		printf("%s%" PRId64, d ? " x " : "", e->dims[d]);
	printf("] %s, hash %016" PRIx64, dtype_names[e->dtype],
	       pd_hash(e->data, (size_t)n * pd_dtype_size(e->dtype)));
	for (int64_t i = 0; i < n; i++) {
		const double x = trace_number(e->dtype, e->data, i);
		odd += !isfinite(x);
		least = x < least ? x : least;
		most = x > most ? x : most;
	}
	if (odd)
		printf(", %" PRId64 " not finite", odd);
	if (least <= most)
		printf(", from %.6g to %.6g", least, most);
	for (int64_t i = 0; i < n && i < TRACE_SHOWN; i++)
		printf("%s%.6g", i ? " " : ": ", trace_number(e->dtype, e->data, i));
	printf(n > TRACE_SHOWN ? " ..\n" : "\n");
}

static void trace_write(const Tracer *t, const pd_trace_event *e)
{
	const size_t bytes = (size_t)trace_count(e) * pd_dtype_size(e->dtype);
	const int64_t head[] = {TRACE_MAGIC, e->op->number, e->result,
	                        e->dtype,    e->rank,       (int64_t)bytes};
	if (fwrite(head, sizeof head, 1, t->values) != 1 ||
	    (e->rank &&
	     fwrite(e->dims, sizeof *e->dims, (size_t)e->rank, t->values) != (size_t)e->rank) ||
	    (bytes && fwrite(e->data, bytes, 1, t->values) != 1))
		fail("cannot write traced values: %s", strerror(errno));
}

static void trace_event(void *arg, const pd_trace_event *e)
{
	Tracer *t = arg;
	if (e->what == PD_TRACE_BEGIN) {
		t->begin = clock_ns();
	} else if (e->what == PD_TRACE_END) {
		t->ns = clock_ns() - t->begin;
	} else if (t->values) {
		trace_write(t, e);
	} else {
		trace_print(t, e);
	}
}

static void tracer_open(Tracer *t, const char *path)
{
	if (path && !(t->values = fopen(path, "wb")))
		fail("cannot write '%s': %s", path, strerror(errno));
}

static void tracer_close(Tracer *t)
{
	if (t->values && (ferror(t->values) | fclose(t->values)))
		fail("cannot write traced values");
}

#endif
