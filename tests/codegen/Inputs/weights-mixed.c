// For weights-mixed.test: status 0 when init takes the first file of its arguments only.
#include <stdio.h>

#include "m.h"

static PDRT_ALIGN64 unsigned char workspace[256];
static PDRT_ALIGN64 unsigned char weights[1 << 12];

static size_t weights_read(const char *path)
{
	FILE *f = fopen(path, "rb");
	const size_t n = f ? fread(weights, 1, sizeof weights, f) : 0;
	if (f)
		fclose(f);
	return n;
}

static int status_of(size_t n)
{
	m model;
	return m_init(&model, weights, n, workspace, sizeof workspace);
}

int main(int argc, char **argv)
{
#ifdef OBJECT // with the weights of another model
	return argc > 1 || argv[1] || weights_read("") || status_of(0) != PD_WEIGHTS;
#endif
	for (int i = 1; i < argc; i++) {
		const size_t n = weights_read(argv[i]);
		if (!n || n != m_info()->weights_size || status_of(n) != (i == 1 ? PD_OK : PD_WEIGHTS))
			return i;
		if (status_of(n - 64) != PD_WEIGHTS)
			return 10 + i;
	}
	return 0;
}
