// Views of a model that need nobody but the model: a module as a graphviz picture, what stands in
// the .yml beside a program. Leaves text. Uses frontend/read and ir/core.
#ifndef PDCC_FRONTEND_REPORT_REPORT_H
#define PDCC_FRONTEND_REPORT_REPORT_H

#include "frontend/read/config.h"

// dot.c
void emit_dot(Text *t, const Op *module);

// config.c: what the .yml says, as text, JSON, and part of a page.
void config_print(Text *t, const ModelConfig *m);
void config_json(Text *t, const ModelConfig *m); // one member, with a comma behind it
void config_html(Text *t, const ModelConfig *m);

// quote.c
void html_text(Text *t, const char *s);

#endif
