// The shapes of kernel.attention: what its regions' positions run over. Called by the verifier, the
// interpreter, fusion and code generation.
#include "ir/infer/attention.h"
#include "ir/core/core.h"

#include <string.h>

int attention_axis(const Op *op, int i)
{
	const Attr *perm = op_attr(op, "perm");
	return perm && perm->kind == ATTR_INTS && i < perm->n ? (int)perm->ints[i] : i;
}

bool attention_is_split(const Op *op)
{
	return op_int(op, "split", 1) > 1;
}

const Type *attention_domain(const Op *op, int region)
{
	const Type *t = op->results[0].type;
	const Dim *dims[MAX_RANK], *keys = op_attr(op, "keys")->dim;
	const int part = attention_is_split(op), rank = t->rank - part;
	if (region == ATTENTION_EPILOGUE)
		return t;
	for (int i = 0; i < rank; i++)
		dims[attention_axis(op, i)] = t->dims[part + i];
	if (region == ATTENTION_KEY || region == ATTENTION_VALUE)
		dims[rank - 2] = keys;
	if (region == ATTENTION_QUERY || region == ATTENTION_KEY)
		dims[rank - 1] = dim_const(op->ctx, op_int(op, "depth", 1));
	if (region == ATTENTION_SCORE)
		dims[rank - 1] = keys;
	return type_tensor(op->ctx, DT_F32, rank, dims, 0);
}
