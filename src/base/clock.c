/* clock: deadlines that count while asleep, and times as people write them */
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"

#define DURATION_MAX_MS ((int64_t)30 * 24 * 3600 * 1000)

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {
	{ "h", 3600000 },
	{ "m", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
};

static int64_t
read_ns(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) == -1)
		fatal("clock_gettime");
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t
clock_boot_ms(void)
{
	return read_ns(CLOCK_BOOTTIME) / 1000000;
}

int64_t
clock_mono_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

int64_t
clock_wall_ms(void)
{
	return read_ns(CLOCK_REALTIME) / 1000000;
}

void
clock_iso(char out[CLOCK_ISO_SIZE], int64_t wall_ms)
{
	time_t t = (time_t)(wall_ms / 1000);
	char date[sizeof("2026-01-02T03:04:05")];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, CLOCK_ISO_SIZE, "%s.%03dZ", date,
	    (int)((unsigned)(wall_ms % 1000) % 1000));
}

int
clock_parse_duration(const char *s, int64_t *ms, struct err *e)
{
	int64_t n = 0, unit = 1000;
	const char *p = s;

	for (; *p >= '0' && *p <= '9' && n <= DURATION_MAX_MS; p++)
		n = n * 10 + (*p - '0');
	if (p == s)
		goto bad;
	if (*p != '\0') {
		size_t i = 0;

		while (i < sizeof(units) / sizeof(units[0]) &&
		       strcmp(p, units[i].name) != 0)
			i++;
		if (i == sizeof(units) / sizeof(units[0]))
			goto bad;
		unit = units[i].ms;
	}
	if (n < 1 || n > DURATION_MAX_MS / unit)
		goto bad;
	*ms = n * unit;
	return 0;
bad:
	return err_set(e, ERR_INPUT,
	    "not a duration: '%.40s' (write 500ms, 90s, 10m or 2h; 30 days at "
	    "most)",
	    s);
}

void
clock_print_duration(char *out, size_t size, int64_t ms)
{
	size_t i = 0;

	while (units[i].ms > 1 && ms % units[i].ms != 0)
		i++;
	snprintf(out, size, "%lld%s", (long long)(ms / units[i].ms),
	    units[i].name);
}
