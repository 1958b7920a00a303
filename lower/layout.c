#include "lower.h"

bool pass_layout(PassContext *p)
{
	(void)p;
	return true;
}
