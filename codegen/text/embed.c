// Build tool: writes files as C character arrays and a table of them, so that the compiler carries
// the texts of its kernel templates and of the runtime stub. Not part of pdcc; the Makefile runs
// it:
//
//   embed obj/kernels.inc codegen/*/kernels/*.c.in runtime_stub/pdrt.h ...
//
// A name in the table is the file's name without folders and without `.in`. template.c includes the
// result.
#include <stdio.h>
#include <string.h>

static int embed_file(FILE *to, const char *path, int number)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return 0;
	}
	fprintf(to, "static const char embed_text_%d[] = {", number);
	long n = 0;
	for (int c; (c = getc(f)) != EOF; n++)
		fprintf(to, "%s%d,", n % 24 ? "" : "\n\t", c > 127 ? c - 256 : c);
	fprintf(to, "\n\t0\n};\n");
	int ok = !ferror(f);
	fclose(f);
	return ok;
}

static void embed_name(FILE *to, const char *path)
{
	const char *name = strrchr(path, '/');
	name = name ? name + 1 : path;
	size_t n = strlen(name);
	if (n > 3 && !strcmp(name + n - 3, ".in"))
		n -= 3;
	fprintf(to, "%.*s", (int)n, name);
}

int main(int argc, char **argv)
{
	FILE *to = argc > 1 ? fopen(argv[1], "wb") : NULL;
	if (!to) {
		fprintf(stderr, "usage: embed OUT FILE...\n");
		return 2;
	}
	int ok = 1;
	for (int i = 2; i < argc && ok; i++)
		ok = embed_file(to, argv[i], i);
	fprintf(to, "\nstatic const struct { const char *name, *text; } embed_table[] = {\n");
	for (int i = 2; i < argc; i++) {
		fprintf(to, "\t{\"");
		embed_name(to, argv[i]);
		fprintf(to, "\", embed_text_%d},\n", i);
	}
	fprintf(to, "\t{0, 0}\n};\n");
	ok &= !ferror(to);
	ok &= !fclose(to);
	if (!ok)
		remove(argv[1]);
	return !ok;
}
