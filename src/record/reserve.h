/* reserve: disk space kept for the records that must be written on a full disk
 */
#ifndef AIRLOCK_RECORD_RESERVE_H
#define AIRLOCK_RECORD_RESERVE_H

#include <stdint.h>

#include "base/err.h"

/* Sees to it that dirfd's file "reserve" occupies that many bytes. ERR_SYSTEM
 * where the disk does not have them; then nothing is occupied. */
int reserve_make(int dirfd, uint64_t bytes, struct err *e) MUST_CHECK;
/* Gives the space back to the disk. */
void reserve_give_up(int dirfd);

#endif
