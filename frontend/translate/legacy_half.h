// f16 and bf16 in legacy programs. Private to frontend/.
#ifndef PDCC_FRONTEND_LEGACY_HALF_H
#define PDCC_FRONTEND_LEGACY_HALF_H

#include "frontend/translate/translator.h"

OpStep legacy_cast_create, legacy_full_create;

#endif
