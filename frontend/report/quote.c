// Texts as JSON and HTML have them.
#include "frontend/report/report.h"

// Control characters, those of two bytes (U+0080 on) too, are escaped.
void json_text(Text *t, const char *s)
{
	text_char(t, '"');
	for (; *s; s++) {
		const unsigned char byte = (unsigned char)*s, next = (unsigned char)s[1];
		const bool two = byte == 0xC2 && next >= 0x80 && next < 0xA0;
		if (byte == '"' || byte == '\\')
			text_char(t, '\\');
		if (byte < 0x20 || byte == 0x7F || two)
			text_printf(t, "\\u%04x", two ? next : byte);
		else
			text_char(t, *s);
		s += two;
	}
	text_char(t, '"');
}

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
