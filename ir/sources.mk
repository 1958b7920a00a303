# The sources of ir/, room by room.
SOURCES += ir/ir.c
SOURCES += ir/algebra/define_factor.c ir/algebra/define_jacobi.c ir/algebra/define_linalg.c
SOURCES += ir/base/arena.c ir/base/cut.c ir/base/diag.c ir/base/keywords.c ir/base/map.c ir/base/text.c ir/base/vec.c
SOURCES += ir/build/broadcast.c ir/build/build.c ir/build/counted.c ir/build/infer.c \
	ir/build/infer_math.c ir/build/infer_rule.c ir/build/nest.c ir/build/select.c ir/build/stretch.c
SOURCES += ir/core/attr.c ir/core/context.c ir/core/dim.c ir/core/dim_bound.c ir/core/dim_equal.c ir/core/dim_poly.c ir/core/dim_range.c ir/core/dim_together.c \
           ir/core/op.c ir/core/op_attr.c ir/core/op_clone.c \
	ir/core/size_facts.c ir/core/table.c ir/core/tensor.c ir/core/type.c ir/core/waits.c ir/core/winograd.c
SOURCES += ir/define/define.c ir/define/define_assign.c ir/define/define_case.c ir/define/define_diagonal.c ir/define/define_fft.c \
	ir/define/define_functions.c ir/define/define_fused.c \
	ir/define/define_graph.c ir/define/define_random.c \
	ir/define/define_rearrange.c ir/define/infer_composed.c
SOURCES += ir/define/define_conv.c ir/define/define_einsum.c \
	ir/define/define_index.c ir/define/define_mutable.c ir/define/define_nn.c \
	ir/define/define_reduce.c ir/define/define_rnn.c ir/define/define_scatter.c \
	ir/define/define_special.c ir/define/define_tensor.c ir/define/define_train.c \
	ir/define/expr.c ir/define/expr_fold.c
SOURCES += ir/detect/define_boxes.c ir/detect/define_detect.c ir/detect/define_match.c ir/detect/define_mine.c ir/detect/define_nms.c \
	ir/detect/define_proposals.c ir/detect/define_retinanet.c ir/detect/define_roi.c ir/detect/define_yolo_loss.c
SOURCES += ir/fusion/define_fusion.c ir/fusion/define_pyramid.c ir/fusion/define_transformer.c
SOURCES += ir/gradient/array_sums.c ir/gradient/duals.c ir/gradient/gradient.c ir/gradient/gradient_array.c ir/gradient/gradient_affine.c ir/gradient/gradient_asked.c ir/gradient/gradient_checkpoint.c \
	ir/gradient/gradient_contract.c ir/gradient/gradient_control.c ir/gradient/gradient_keep.c ir/gradient/gradient_kernel.c \
	ir/gradient/gradient_log.c ir/gradient/gradient_loop.c ir/gradient/gradient_reach.c ir/gradient/gradient_remat.c ir/gradient/gradient_revolve.c \
	ir/gradient/gradient_body.c ir/gradient/gradient_nest.c ir/gradient/gradient_norm.c ir/gradient/gradient_sizes.c \
	ir/gradient/gradient_stack.c ir/gradient/gradient_round.c ir/gradient/tangent.c ir/gradient/tangent_control.c \
	ir/gradient/tangent_nest.c
SOURCES += ir/infer/attention.c ir/infer/infer_array.c ir/infer/infer_bounds.c \
	ir/infer/infer_detect.c \
	ir/infer/infer_image.c ir/infer/infer_index.c ir/infer/infer_list.c ir/infer/infer_mutable.c ir/infer/infer_nn.c \
	ir/infer/infer_norm.c ir/infer/infer_product.c ir/infer/infer_sizes.c ir/infer/windows.c \
	ir/infer/infer_range.c ir/infer/infer_reduce.c ir/infer/infer_repeat.c ir/infer/infer_rnn.c ir/infer/infer_scatter.c ir/infer/infer_slice.c \
	ir/infer/infer_special.c ir/infer/infer_tensor.c ir/infer/infer_train.c
SOURCES += ir/image/define_fractional.c ir/image/define_resize.c ir/image/define_sample.c ir/image/position.c
SOURCES += ir/interp/interp.c ir/interp/interp_array.c ir/interp/interp_attention.c \
	ir/interp/interp_complex.c ir/interp/interp_conv.c ir/interp/interp_layout.c ir/interp/interp_control.c ir/interp/interp_feeds.c ir/interp/interp_sizes.c ir/interp/interp_gradient.c ir/interp/interp_integer.c ir/interp/interp_kernel.c \
	ir/interp/interp_maps.c ir/interp/interp_memory.c ir/interp/interp_nest.c \
	ir/interp/interp_scalar.c ir/interp/interp_scan.c ir/interp/interp_select.c \
	ir/interp/interp_strip.c ir/interp/interp_winograd.c
SOURCES += ir/loss/define_classes.c ir/loss/define_loss.c ir/loss/define_measure.c ir/loss/define_norm.c ir/loss/define_ranking.c ir/loss/define_slope.c
SOURCES += ir/search/define_compare.c ir/search/define_focus.c ir/search/define_order.c ir/search/define_search.c ir/search/define_unique.c
SOURCES += ir/sequence/define_beam.c ir/sequence/define_chunk.c ir/sequence/define_crf.c ir/sequence/define_ctc.c ir/sequence/define_rank.c ir/sequence/define_sequence.c \
	ir/sequence/define_sequence_fused.c ir/sequence/define_sequence_image.c ir/sequence/define_sequence_move.c ir/sequence/define_sequence_step.c ir/sequence/define_transducer.c \
	ir/sequence/infer_sequence.c
SOURCES += ir/text/lex.c ir/text/parse.c ir/text/parse_attr.c ir/text/parse_draft.c ir/text/parse_name.c ir/text/parse_type.c ir/text/print.c
SOURCES += ir/verify/rules.c ir/verify/verify.c ir/verify/verify_array.c ir/verify/verify_control.c ir/verify/verify_stack.c \
	ir/verify/verify_kernel.c ir/verify/verify_loop.c ir/verify/verify_schedule.c ir/verify/verify_scope.c ir/verify/verify_table.c ir/verify/verify_text.c ir/verify/verify_types.c \
	ir/verify/verify_winograd.c
# The table of operators, and what generates C from it.
OPS_YAML += ir/ops/complex.yaml ir/ops/fused.yaml ir/ops/fusion.yaml ir/ops/gradient.yaml ir/ops/graph.yaml ir/ops/linalg.yaml ir/ops/loss.yaml ir/ops/matrix.yaml ir/ops/slope.yaml \
	ir/ops/random.yaml ir/ops/rearrange.yaml ir/ops/search.yaml \
	ir/ops/special_functions.yaml
OPS_YAML += ir/ops/array.yaml ir/ops/attributes.yaml ir/ops/builtin.yaml ir/ops/control.yaml ir/ops/detect.yaml \
	ir/ops/enums.yaml ir/ops/kernel.yaml ir/ops/loop.yaml ir/ops/math.yaml ir/ops/nn.yaml ir/ops/paddle3.yaml \
	ir/ops/reduce.yaml ir/ops/rnn.yaml ir/ops/sequence.yaml ir/ops/special.yaml ir/ops/tensor.yaml \
	ir/ops/train.yaml
OPGEN = ir/gen/opgen.c ir/gen/opgen_expr.c ir/gen/opgen_hooks.c ir/gen/opgen_legacy.c ir/gen/opgen_pir.c ir/gen/opgen_signature.c ir/gen/opgen_table.c
