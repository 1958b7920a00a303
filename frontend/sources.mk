# The sources of frontend/, room by room.
SOURCES += frontend/driver/build_cache.c frontend/driver/build_cuda.c \
	frontend/driver/build_model.c frontend/driver/build_nvcc.c frontend/driver/cmd_bench.c \
	frontend/driver/cmd_compile.c frontend/driver/cmd_diff.c frontend/driver/cmd_info.c frontend/driver/cmd_opt.c \
	frontend/driver/cmd_run.c frontend/driver/cmd_verify.c frontend/driver/depfile.c \
	frontend/driver/external.c frontend/driver/info_cuda.c frontend/driver/info_chart.c frontend/driver/info_html.c \
	frontend/driver/pdcc.c \
	frontend/driver/session.c frontend/driver/stages.c frontend/driver/stats.c \
	frontend/driver/verify_expect.c frontend/driver/verify_find.c frontend/driver/verify_inputs.c frontend/driver/verify_trace.c
SOURCES += frontend/options/commands.c frontend/options/completion.c frontend/options/help.c \
	frontend/options/parse.c frontend/options/table.c frontend/options/values.c
SOURCES += frontend/read/pir_flow.c frontend/read/pir_gradient.c frontend/read/pir_json.c frontend/read/pir_desc.c frontend/read/pir_op.c frontend/read/pir_read.c \
	frontend/read/pir_type.c
SOURCES += frontend/read/attrs.c frontend/read/config.c frontend/read/config_yaml.c frontend/read/desc.c \
	frontend/read/file.c frontend/read/folder.c frontend/read/gradient_names.c frontend/read/legacy_text.c \
	frontend/read/model.c frontend/read/npy.c frontend/read/params.c frontend/read/params_record.c
SOURCES += frontend/job/array_types.c frontend/job/besides.c frontend/job/flow.c frontend/job/general.c frontend/job/job.c \
	frontend/job/lod.c frontend/job/lod_rule.c frontend/job/selected_rows.c frontend/job/undefined.c \
	frontend/job/variables.c
SOURCES += frontend/control/control_array.c frontend/control/control_block.c \
	frontend/control/control_element.c frontend/control/control_if.c frontend/control/control_join.c \
	frontend/control/control_recurrent.c frontend/control/control_select.c \
	frontend/control/control_while.c frontend/control/control_while_types.c frontend/control/control_while_vars.c
SOURCES += frontend/gradient/gradient.c frontend/gradient/gradient_branch.c \
	frontend/gradient/gradient_forward.c frontend/gradient/gradient_loop.c frontend/gradient/gradient_match.c \
	frontend/gradient/gradient_paddle.c
SOURCES += frontend/translate/elementwise.c frontend/translate/feeds.c frontend/translate/lod_beam.c frontend/translate/lod_ops.c \
	frontend/translate/optimizers.c frontend/translate/quantised.c frontend/translate/shares.c frontend/translate/steps.c frontend/translate/translate.c \
	frontend/translate/versions.c
SOURCES += frontend/recipe/recipe.c
SOURCES += frontend/report/align.c frontend/report/measured.c frontend/report/compare.c frontend/report/config.c frontend/report/dot.c frontend/report/panes.c frontend/report/quote.c
SOURCES += frontend/write/pir_out.c frontend/write/pir_out_base.c frontend/write/pir_out_flow.c frontend/write/pir_out_kernel.c \
	frontend/write/pir_out_nest.c frontend/write/pir_out_fit.c frontend/write/pir_out_op.c frontend/write/pir_out_prepare.c \
	frontend/write/pir_out_program.c frontend/write/pir_out_size.c \
	frontend/write/pir_out_state.c frontend/write/pir_out_type.c
