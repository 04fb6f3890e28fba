/* clock: deadlines that count while asleep, and times as people write them */
#ifndef AIRLOCK_BASE_CLOCK_H
#define AIRLOCK_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CLOCK_ISO_SIZE sizeof("2026-01-02T03:04:05.678Z")

/* Milliseconds of CLOCK_BOOTTIME: it does not stop in suspend and is not
 * set by anyone, so times to live are kept on it. */
int64_t clock_boot_ms(void);
/* Nanoseconds of CLOCK_MONOTONIC, for measuring. */
int64_t clock_mono_ns(void);
/* Milliseconds of CLOCK_REALTIME since 1970. */
int64_t clock_wall_ms(void);
/* RFC 3339 in UTC with milliseconds. */
void clock_iso(char out[CLOCK_ISO_SIZE], int64_t wall_ms);
/* "90", "90s", "10m", "2h", "500ms" to milliseconds, 1 ms to 30 days; a bare
 * number is seconds. */
int clock_parse_duration(const char *s, int64_t *ms, struct err *e) MUST_CHECK;
/* The shortest of those spellings for ms ("10m"). */
void clock_print_duration(char *out, size_t size, int64_t ms);

#endif
