# The sources of codegen/, room by room.
SOURCES += codegen/codegen.c
SOURCES += codegen/c/blocks.c codegen/c/compute.c codegen/c/map.c codegen/c/module.c \
	codegen/c/parameters.c codegen/c/plan.c codegen/c/repeat.c codegen/c/repeat_find.c \
	codegen/c/repeat_lay.c codegen/c/repeat_names.c codegen/c/run.c codegen/c/scope.c codegen/c/share.c \
	codegen/c/trace.c codegen/c/update.c
SOURCES += codegen/tuned/conv.c codegen/tuned/depthwise.c codegen/tuned/filter_gradient.c \
	codegen/tuned/gemm.c codegen/tuned/gemm_tile.c codegen/tuned/integer.c codegen/tuned/layout.c codegen/tuned/norm.c \
	codegen/tuned/pool_gradient.c codegen/tuned/row.c codegen/tuned/softmax.c codegen/tuned/winograd.c
SOURCES += codegen/cuda/backend.c codegen/cuda/cuda.c codegen/cuda/function.c codegen/cuda/graph.c codegen/cuda/header.c \
	codegen/cuda/host.c codegen/cuda/instance.c codegen/cuda/library.c codegen/cuda/library_conv.c \
	codegen/cuda/move.c codegen/cuda/nodes.c \
	codegen/cuda/parameters.c codegen/cuda/report.c codegen/cuda/state.c codegen/cuda/step.c
SOURCES += codegen/device/attention.c codegen/device/conv.c codegen/device/depthwise.c \
	codegen/device/matmul.c codegen/device/narrow.c codegen/device/nest.c \
	codegen/device/reduce.c codegen/device/rows.c codegen/device/select.c codegen/device/tile.c \
	codegen/device/turn.c codegen/device/vector.c codegen/device/wide.c
SOURCES += codegen/func/estimate.c codegen/func/func.c codegen/func/guards.c codegen/func/indices.c codegen/func/limits.c codegen/func/needed.c codegen/func/scalar.c codegen/func/scalar_complex.c codegen/func/scalar_convert.c \
	codegen/func/scalar_integer.c codegen/func/scalar_parts.c codegen/func/scalar_print.c codegen/func/scalar_table.c codegen/func/sizes.c codegen/func/spans.c
SOURCES += codegen/model/branch.c codegen/model/moves.c codegen/model/header.c codegen/model/identity.c codegen/model/info.c \
	codegen/model/declare.c codegen/model/lines.c codegen/model/locals.c codegen/model/module.c codegen/model/offsets.c codegen/model/ports.c codegen/model/run.c \
	codegen/model/state.c codegen/model/story.c codegen/model/update.c codegen/model/weights.c
SOURCES += codegen/nest/accumulate.c codegen/nest/ahead.c codegen/nest/blocks.c codegen/nest/clip.c codegen/nest/cut.c codegen/nest/kernel_scan.c codegen/nest/kernel_select.c \
	codegen/nest/lanes.c codegen/nest/lanes_row.c \
	codegen/nest/nest.c codegen/nest/needed.c codegen/nest/parts.c codegen/nest/reduce.c codegen/nest/groups.c codegen/nest/region.c codegen/nest/terms.c codegen/nest/tiny.c codegen/nest/turn.c
SOURCES += codegen/text/names.c codegen/text/parens.c codegen/text/prelude.c codegen/text/template.c codegen/text/unbrace.c codegen/text/words.c codegen/text/braces.c codegen/text/wrap.c
# Texts that pdcc carries: the templates of generated code, the runtime stub, the emulator of CUDA.
TEXTS += codegen/c/kernels/ahead_step.c.in codegen/c/kernels/conv.c.in \
	codegen/c/kernels/conv_groups.c.in \
	codegen/c/kernels/conv_plain.c.in \
	codegen/c/kernels/conv_point.c.in \
	codegen/c/kernels/conv_shape.c.in \
	codegen/c/kernels/conv_steps.c.in \
	codegen/c/kernels/conv_tile.c.in \
	codegen/c/kernels/depthwise.c.in \
	codegen/c/kernels/depthwise_call.c.in \
	codegen/c/kernels/depthwise_taps.c.in \
	codegen/c/kernels/depthwise_tile.c.in \
	codegen/c/kernels/filter_gradient.c.in \
	codegen/c/kernels/filter_gradient_plain.c.in \
	codegen/c/kernels/filter_gradient_single.c.in \
	codegen/c/kernels/filter_gradient_tile.c.in \
	codegen/c/kernels/gemm.c.in \
	codegen/c/kernels/gemm_columns.c.in \
	codegen/c/kernels/gemm_sums.c.in \
	codegen/c/kernels/gemm_rows.c.in \
	codegen/c/kernels/gemm_tile.c.in codegen/c/kernels/gemm_tiles.c.in \
	codegen/c/kernels/gemm_whole.c.in \
	codegen/c/kernels/integer_conv.c.in \
	codegen/c/kernels/integer_matrix.c.in \
	codegen/c/kernels/integer_shape.c.in \
	codegen/c/kernels/integer_tile.c.in \
	codegen/c/kernels/interleave.c.in \
	codegen/c/kernels/interleave_lanes.c.in \
	codegen/c/kernels/join_blocks.c.in \
	codegen/c/kernels/layer_norm.c.in \
	codegen/c/kernels/panels.c.in \
	codegen/c/kernels/pool_gradient.c.in codegen/c/kernels/pool_most.c.in \
	codegen/c/kernels/pool_window.c.in \
	codegen/c/kernels/prefetch.c.in \
	codegen/c/kernels/row_max.c.in \
	codegen/c/kernels/row_spread.c.in \
	codegen/c/kernels/row_sum.c.in \
	codegen/c/kernels/softmax.c.in \
	codegen/c/kernels/softmax_short.c.in codegen/c/kernels/softmax_tail.c.in \
	codegen/c/kernels/spread_gnu.c.in \
	codegen/c/kernels/spread_plain.c.in \
	codegen/c/kernels/unknown.c.in \
	codegen/c/kernels/unblock.c.in \
	codegen/c/kernels/unblock_lanes.c.in \
	codegen/c/kernels/vector_integer.c.in \
	codegen/c/kernels/winograd.c.in \
	codegen/c/kernels/winograd_1.c.in \
	codegen/c/kernels/winograd_4.c.in \
	codegen/c/kernels/winograd_all.c.in \
	codegen/c/kernels/winograd_in_6.c.in \
	codegen/c/kernels/winograd_input.c.in \
	codegen/c/kernels/winograd_out_6.c.in \
	codegen/c/kernels/winograd_output.c.in \
	codegen/c/kernels/winograd_parts.c.in \
	codegen/c/kernels/winograd_products.c.in \
	codegen/c/kernels/winograd_shape.c.in \
	codegen/c/kernels/winograd_tile.c.in
TEXTS += codegen/cuda/kernels/cuda_attention.c.in \
	codegen/cuda/kernels/cuda_attention_mma.c.in \
	codegen/cuda/kernels/cuda_attention_row.c.in \
	codegen/cuda/kernels/cuda_compact.c.in \
	codegen/cuda/kernels/cuda_conv.c.in \
	codegen/cuda/kernels/cuda_conv_blocked.c.in \
	codegen/cuda/kernels/cuda_conv_shape.c.in \
	codegen/cuda/kernels/cuda_depthwise.c.in \
	codegen/cuda/kernels/cuda_depthwise_blocked.c.in \
	codegen/cuda/kernels/cuda_dnn.c.in \
	codegen/cuda/kernels/cuda_entry.c.in \
	codegen/cuda/kernels/cuda_epilogue.c.in \
	codegen/cuda/kernels/cuda_info.c.in \
	codegen/cuda/kernels/cuda_instance.c.in \
	codegen/cuda/kernels/cuda_layer_norm.c.in \
	codegen/cuda/kernels/cuda_layer_norm_long.c.in \
	codegen/cuda/kernels/cuda_library.c.in \
	codegen/cuda/kernels/cuda_lt.c.in \
	codegen/cuda/kernels/cuda_members.c.in \
	codegen/cuda/kernels/cuda_mma.c.in \
	codegen/cuda/kernels/cuda_mma_rows.c.in \
	codegen/cuda/kernels/cuda_narrow.c.in \
	codegen/cuda/kernels/cuda_nms.c.in \
	codegen/cuda/kernels/cuda_prelude.c.in \
	codegen/cuda/kernels/cuda_ptx.c.in \
	codegen/cuda/kernels/cuda_row_kernel.c.in \
	codegen/cuda/kernels/cuda_run.c.in \
	codegen/cuda/kernels/cuda_scan.c.in \
	codegen/cuda/kernels/cuda_scan_wide.c.in \
	codegen/cuda/kernels/cuda_scatter.c.in \
	codegen/cuda/kernels/cuda_softmax.c.in \
	codegen/cuda/kernels/cuda_softmax_across.c.in \
	codegen/cuda/kernels/cuda_softmax_across_long.c.in \
	codegen/cuda/kernels/cuda_softmax_long.c.in \
	codegen/cuda/kernels/cuda_sort.c.in \
	codegen/cuda/kernels/cuda_sort_long.c.in \
	codegen/cuda/kernels/cuda_tile.c.in \
	codegen/cuda/kernels/cuda_tile_kernel.c.in \
	codegen/cuda/kernels/cuda_wait.c.in
TEXTS += codegen/nest/kernels/box_lanes.c.in codegen/nest/kernels/box_overlap.c.in \
	codegen/nest/kernels/compact.c.in \
	codegen/nest/kernels/kernel_macros.c.in codegen/nest/kernels/nms.c.in \
	codegen/nest/kernels/scan.c.in codegen/nest/kernels/scan_across.c.in codegen/nest/kernels/scatter.c.in codegen/nest/kernels/sort.c.in \
	codegen/nest/kernels/sort_heap.c.in codegen/nest/kernels/sort_rows.c.in \
	codegen/nest/kernels/tile_end.c.in codegen/nest/kernels/turn_gnu.c.in codegen/nest/kernels/vector_gnu.c.in \
	codegen/nest/kernels/vector_gnu_sums.c.in \
	codegen/nest/kernels/vector_plain.c.in
TEXTS += codegen/text/kernels/complex.c.in codegen/text/kernels/math.c.in codegen/text/kernels/prelude.c.in
TEXTS += runtime_stub/cudaemu/api.cc runtime_stub/cudaemu/banks.cc runtime_stub/cudaemu/block.cc \
	runtime_stub/cudaemu/cublasLt.h runtime_stub/cudaemu/cuda_bf16.h runtime_stub/cudaemu/cuda_fp16.h \
	runtime_stub/cudaemu/cuda_library.h runtime_stub/cudaemu/cuda_runtime.h \
	runtime_stub/cudaemu/cuda_runtime_api.h runtime_stub/cudaemu/cudaemu.h \
	runtime_stub/cudaemu/cudnn.h runtime_stub/cudaemu/memory.cc runtime_stub/cudaemu/objects.h \
	runtime_stub/cudaemu/order.h runtime_stub/cudaemu/queue.cc runtime_stub/cudaemu/races.cc \
	runtime_stub/cudaemu/report.cc runtime_stub/cudaemu/shadow.cc
TEXTS += runtime_stub/machine.c runtime_stub/harness_profile.h runtime_stub/harness.c runtime_stub/harness_arrays.h runtime_stub/harness_npy.h runtime_stub/harness_run.h runtime_stub/harness_threads.h runtime_stub/harness_trace.h runtime_stub/pdrt.c runtime_stub/pdrt.h \
	runtime_stub/pdrt_threads.c runtime_stub/pdrt_threads.h \
	runtime_stub/pdrt_cuda.h runtime_stub/pdrt_cuda_device.h
