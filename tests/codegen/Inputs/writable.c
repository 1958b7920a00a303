// For writable.test: status 0 when a weight that was written counts.
#include <string.h>

#include "m.h"

static PDRT_ALIGN64 unsigned char workspace[M_WORKSPACE_BYTES];

int main(void)
{
	static const float x[2] = {1, 2}, more[4] = {10, 0, 0, 10};
	float y[2];
	m model;
	if (m_init(&model, NULL, 0, workspace, sizeof workspace) != PD_OK)
		return 1;
	const m_inputs in = {.x = x};
	m_outputs out = {.y = y};
	if (m_run(&model, &in, &out) != PD_OK || y[0] != 2 || y[1] != 3)
		return 2;
	const pd_parameter w = m_parameter(&model, "linear_0.w_0");
	if (!w.info || w.info->rank != 2 || w.info->bytes != sizeof more || m_parameter(&model, "linear_0.b_0").info)
		return 3;
	memcpy(w.data, more, sizeof more);
	for (int i = 0; i < 2; i++)
		if (m_run(&model, &in, &out) != PD_OK || y[0] != 11 || y[1] != 21)
			return 4;
	return m_reset(&model) != PD_OK || m_run(&model, &in, &out) != PD_OK || y[0] != 2 ? 5 : 0;
}
