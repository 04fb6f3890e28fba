/* log: one line an event, on a descriptor of our own, every byte printable */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static const char *program = "airlock";
static enum log_level threshold = LOG_INFO;
static int log_fd = STDERR_FILENO;

void
log_init(const char *name, enum log_level level)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	program = name;
	threshold = level;
	if (fd != -1)
		log_fd = fd;
}

void
log_set_level(enum log_level level)
{
	threshold = level;
}

/* No allocation here: out of memory has to be sayable. */
static void line(enum log_level level, int error, const char *fmt, va_list ap)
    PRINTF_LIKE(3, 0);
static void
line(enum log_level level, int error, const char *fmt, va_list ap)
{
	char raw[2048], quoted[4096], out[4600];
	int n;

	if (level > threshold)
		return;
	n = vsnprintf(raw, sizeof(raw), fmt, ap);
	if (n < 0)
		return;
	text_quote_into(quoted, sizeof(quoted), raw, strlen(raw));
	n = snprintf(out, sizeof(out), "%s: %s%s%s\n", program, quoted,
	    error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
	if (n > 0 && write(log_fd, out, (size_t)n) == -1)
		return; /* nowhere left to say it */
}

#define LINE(level, error)                                                     \
	do {                                                                   \
		int saved = errno;                                             \
		va_list ap;                                                    \
		va_start(ap, fmt);                                             \
		line(level, error, fmt, ap);                                   \
		va_end(ap);                                                    \
		errno = saved;                                                 \
	} while (0)

void
log_info(const char *fmt, ...)
{
	LINE(LOG_INFO, 0);
}

void
log_debug(const char *fmt, ...)
{
	LINE(LOG_DEBUG, 0);
}

void
log_warn(const char *fmt, ...)
{
	LINE(LOG_WARN, saved);
}

void
log_warnx(const char *fmt, ...)
{
	LINE(LOG_WARN, 0);
}

void
fatal(const char *fmt, ...)
{
	LINE(LOG_ERROR, saved);
	exit(1);
}

void
fatalx(const char *fmt, ...)
{
	LINE(LOG_ERROR, 0);
	exit(1);
}
