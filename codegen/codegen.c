// From a lowered module to source, header and weights. Called by the driver. The only file that
// sees both backends.
#include "codegen/codegen.h"
#include "codegen/model/model.h"

bool codegen(Context *c, const Op *module, const Target *t, const CodegenOptions *o,
             CodegenResult *out)
{
	const Backend *backend = t->language == LANGUAGE_CUDA ? &cuda_backend : &c_backend;
	Codegen *cg = NEW(c->arena, Codegen);
	CodegenOptions *options = NEW(c->arena, CodegenOptions);
	*options = *o;
	options->entry = o->entry ? o->entry : "run";
	if ((backend->options && !backend->options(c, options)) ||
	    !codegen_begin(cg, backend, c, module, t, options))
		return false;
	codegen_end(cg, out);
	backend->module(cg, out);
	return true;
}
