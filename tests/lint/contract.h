/* contract: what base/err.h promises, for analyzers that see one file at a time */
#ifndef AIRLOCK_TESTS_LINT_CONTRACT_H
#define AIRLOCK_TESTS_LINT_CONTRACT_H

#include "base/err.h"

#define err_set(...) ((err_set)(__VA_ARGS__), -1)
#define err_sys(...) ((err_sys)(__VA_ARGS__), -1)
#define err_wrap(...) ((err_wrap)(__VA_ARGS__), -1)

#endif
