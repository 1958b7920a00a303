// Texts as HTML has them.
#include "frontend/report/report.h"

void html_text(Text *t, const char *s)
{
	for (; *s; s++) {
		if (*s == '<')
			text_str(t, "&lt;");
		else if (*s == '&')
			text_str(t, "&amp;");
		else if (*s == '"')
			text_str(t, "&quot;");
		else
			text_char(t, *s);
	}
}
