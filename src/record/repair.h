/* repair: what a crash left at the end of the journal */
#ifndef AIRLOCK_RECORD_REPAIR_H
#define AIRLOCK_RECORD_REPAIR_H

#include <stdint.h>

#include "base/err.h"
#include "record/chain.h"

#define REPAIR_NAME_SIZE sizeof("torn-18446744073709551615")

struct repair {
	uint64_t size;                /* of the file, as it now is */
	uint64_t torn;                /* bytes moved away, mostly 0 */
	char saved[REPAIR_NAME_SIZE]; /* to here */
};

/*
 * Checks the newest file against `*c`, the end of the chain before it, and
 * moves *c to its end.  What a crash may leave there is moved to torn-<seq>: a
 * last line without its newline, and all from a line with NUL bytes on (blocks
 * that never reached the disk; nothing behind them was synced).  Any other
 * fault is no crash's doing: ERR_INPUT, nothing is touched.
 */
int repair_file(int dirfd, unsigned number, struct chain_end *c,
    struct repair *out, struct err *e) MUST_CHECK;

#endif
