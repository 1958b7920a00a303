#include "lower.h"

bool pass_decompose(PassContext *p)
{
	(void)p;
	return true;
}
