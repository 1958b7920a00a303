// For state-api.test: status 0 when parameters behave.
#include <stdint.h>
#include <string.h>

#include "m.h"

static PDRT_ALIGN64 unsigned char workspace[M_WORKSPACE_BYTES];

#define EXPECT(x) do { if (!(x)) return __LINE__ % 200 + 1; } while (0)

int main(void)
{
	static const float x[2] = {1, 2};
	float y[2];
	m model;
	memset(&model, 0, sizeof model);
	EXPECT(!m_parameter(&model, "w").data && m_reset(&model) == PD_NULL);
	EXPECT(m_init(&model, NULL, 0, workspace, sizeof workspace) == PD_OK);
	const m_inputs in = {.x = x};
	m_outputs out = {.w = y};
	for (int i = 0; i < 3; i++)
		EXPECT(m_run(&model, &in, &out) == PD_OK);
	EXPECT(y[0] == 6 && y[1] == 11);
	const pd_parameter w = m_parameter(&model, "w"), seen = m_parameter(&model, "seen");
	EXPECT(w.info && w.info->dtype == PD_F32 && w.info->rank == 1 && w.info->dims[0] == 2 && w.info->bytes == sizeof y);
	EXPECT(!memcmp(w.data, y, sizeof y) && *(const int64_t *)seen.data == 3);
	((float *)w.data)[0] = 100;
	EXPECT(m_run(&model, &in, &out) == PD_OK && y[0] == 101 && y[1] == 13);
	EXPECT(!m_parameter(&model, "x").data && !m_parameter(&model, "x").info && !m_parameter(&model, NULL).data);
	EXPECT(m_reset(&model) == PD_OK && *(const int64_t *)seen.data == 0);
	EXPECT(m_run(&model, &in, &out) == PD_OK && y[0] == 4 && y[1] == 7);
	const void *const inputs[] = {x};
	void *const outputs[] = {y};
	for (int i = 0; i < 2; i++)
		EXPECT(m_call(inputs, outputs) == 0);
	EXPECT(y[0] == 5 && y[1] == 9);
	return 0;
}
