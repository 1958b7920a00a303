# The sources of lower/, room by room.
SOURCES += lower/pipeline.c
SOURCES += lower/analysis/course.c lower/analysis/deps.c lower/analysis/dim_order.c lower/analysis/edges.c lower/analysis/found_sizes.c \
	lower/analysis/fuse_shape.c lower/analysis/lanes.c \
	lower/analysis/loop_blocks.c lower/analysis/nest_loops.c lower/analysis/number_range.c lower/analysis/numbers.c lower/analysis/places.c lower/analysis/rows.c lower/analysis/structure.c lower/analysis/trip_count.c \
	lower/analysis/touches.c lower/analysis/work.c
SOURCES += lower/arrays/arrays.c lower/arrays/arrays_find.c lower/arrays/arrays_forward.c \
	lower/arrays/arrays_join.c lower/arrays/arrays_ops.c lower/arrays/arrays_size.c \
	lower/arrays/narrow.c lower/arrays/stacks.c lower/arrays/stacks_resolve.c
SOURCES += lower/clean/bounds.c lower/clean/canonicalize.c lower/clean/compared.c lower/clean/known.c lower/clean/cse.c lower/clean/dce.c \
	lower/clean/expand.c lower/clean/fold.c lower/clean/fold_batch_norm.c lower/clean/hoist.c \
	lower/clean/hoist_guard.c lower/clean/integers.c lower/clean/loop_args.c lower/clean/loop_trips.c \
	lower/clean/cases.c lower/clean/dead_stacks.c lower/clean/sccp.c lower/clean/order_values.c lower/clean/pooled_mask.c lower/clean/select.c \
	lower/clean/simplify_if.c lower/clean/sink.c lower/clean/strip_backward.c lower/clean/unit_rows.c
SOURCES += lower/cuda/check_waits.c lower/cuda/count_loops.c lower/cuda/epilogues.c lower/cuda/forms.c lower/cuda/graph.c lower/cuda/graph_nodes.c lower/cuda/index_width.c lower/cuda/kernels.c lower/cuda/rows.c lower/cuda/steps.c lower/cuda/teams.c lower/cuda/waits.c
SOURCES += lower/grad/checkpoints.c lower/grad/differentiate.c lower/grad/ports.c lower/grad/train.c lower/grad/train_dropout.c lower/grad/train_forms.c \
	lower/grad/train_loss.c lower/grad/train_step.c lower/grad/train_update.c
SOURCES += lower/kernels/attention.c lower/kernels/decompose.c lower/kernels/layout.c \
	lower/kernels/layout_blocked.c lower/kernels/layout_channels.c lower/kernels/layout_conv.c \
	lower/kernels/layout_deconv.c lower/kernels/layout_few.c lower/kernels/layout_form.c lower/kernels/layout_gemm.c lower/kernels/layout_image.c lower/kernels/layout_integer.c lower/kernels/layout_last.c lower/kernels/layout_volume.c lower/kernels/einsum.c \
	lower/kernels/library.c lower/kernels/rows.c lower/kernels/scratch.c lower/kernels/split_reduce.c lower/kernels/volumes.c \
	lower/kernels/threads.c lower/kernels/winograd.c
SOURCES += lower/kernels/layout_gradient.c
SOURCES += lower/memory/flatten.c lower/memory/plan.c \
	lower/memory/plan_branch.c lower/memory/plan_buffer.c lower/memory/plan_live.c lower/memory/plan_pack.c \
	lower/memory/plan_parallel.c lower/memory/plan_place.c lower/memory/plan_reads.c lower/memory/plan_scale.c lower/memory/plan_slot.c \
	lower/memory/plan_state.c lower/memory/plan_symbolic.c lower/memory/state.c lower/memory/updates.c
SOURCES += lower/nests/fuse.c lower/nests/fuse_epilogue.c lower/nests/fuse_index.c \
	lower/nests/fuse_inline.c lower/nests/fuse_join.c lower/nests/fuse_range.c lower/nests/fuse_simplify.c lower/nests/hoist_terms.c lower/nests/join_axes.c \
	lower/nests/positions.c lower/nests/split_loops.c lower/nests/to_loops.c
SOURCES += lower/pass/control.c lower/pass/numbering.c lower/pass/rewrite.c
SOURCES += lower/target/cuda_attention.c lower/target/cuda_schedule.c lower/target/target.c lower/target/winograd.c
