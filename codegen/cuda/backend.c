// CUDA as a backend: the table through which everything shared reaches what is CUDA's own.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "codegen/nest/nest.h"
#include "lower/analysis/analysis.h"
#include "lower/target/schedule.h"

static bool compute_print(Codegen *cg, const Op *op, Emitter *emit)
{
	if (cuda_op_is_library(op))
		return cuda_library_print(cg, op);
	KernelFunc *k = kernel_new(cg, op);
	if (!emit(k))
		return false;
	text_printf(&cg->run, "\n\t/* %s: %s */\n", comment_text(cg->arena, op_title(cg, op)),
	            shape_comment(cg, op->results[0].type));
	cg->fails |= k->status;
	return cuda_launch_print(cg, k);
}

static void store_print(Codegen *cg, const Op *op, const char *at, const char *data,
                        const char *bytes)
{
	cuda_node_step(cg, op);
	text_line(&cg->run, 1, "pd_copy(queue, %s, %s, (size_t)%s);", at, data, bytes);
}

const Backend cuda_backend = {
	.name = "CUDA",
	.device = true,
	.late = true,
	.alignment = 16,
	.memory = "memory",
	.head = KERNEL_HEAD,
	.helper = "static __host__ __device__ inline",
	.copy = "pd_copy(queue, ",
	.queue = ", cudaStream_t stream",
	.reset = "m->failed = m->error",
	.options = cuda_options_check,
	.module = cuda_module_print,
	.walk = cuda_graph_print,
	.emitter = cuda_emitter_of,
	.compute = compute_print,
	.bind = cuda_bind_print,
	.capacity = cuda_capacity_print,
	.update = cuda_update_print,
	.append = cuda_append_print,
	.assert_ = cuda_assert_print,
	.fetch = cuda_fetch_print,
	.store = store_print,
	.size = cuda_size,
	.tensor = tensor_pointer,
	.reduce = reduce_print,
	.team_reduce = team_reduce_print,
	.members = cuda_members,
	.entry_points = cuda_entry_points,
	.info = cuda_info_functions,
	.states = cuda_states_print,
	.state_copy = cuda_state_copy_print,
};
