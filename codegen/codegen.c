// From a lowered module to source, header and weights. Called by the driver. The only file that
// sees both backends.
#include "codegen/codegen.h"
#include "codegen/func/func.h"

bool codegen(Context *c, const Op *module, const Target *t, const CodegenOptions *o,
             CodegenResult *out)
{
	return (t->cuda ? &cuda_backend : &c_backend)->module(c, module, t, o, out);
}
