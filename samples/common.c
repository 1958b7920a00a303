/* What the samples share: memory, files, statuses (common.h). */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALIGNMENT = 64 };

void *allocate(size_t size)
{
	void *p = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
	if (!p) {
		perror("memory");
		exit(1);
	}
	return p;
}

unsigned char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	long n = -1;
	if (f && fseek(f, 0, SEEK_END) == 0)
		n = ftell(f);
	if (n <= 0 || fseek(f, 0, SEEK_SET) != 0) {
		perror(path);
		exit(1);
	}
	*size = (size_t)n;
	unsigned char *data = allocate(*size);
	if (fread(data, 1, *size, f) != *size) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return data;
}

void check(const char *what, pd_status status, const char **failed)
{
	if (status == PD_OK)
		return;
	const char *at = failed ? *failed : NULL;
	fprintf(stderr, "%s: %s%s%s\n", what, pd_status_text(status), at ? " at " : "", at ? at : "");
	exit(1);
}
