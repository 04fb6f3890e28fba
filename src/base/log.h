/* log: one line an event, on a descriptor of our own, every byte printable */
#ifndef AIRLOCK_BASE_LOG_H
#define AIRLOCK_BASE_LOG_H

#include "base/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/*
 * Lines go to a duplicate of stderr made by log_init (close-on-exec), as
 * "airlockd: text".  Whatever is formatted passes text_quote, so a line is
 * one line and harmless on a terminal.  log_warn adds strerror(errno).
 */
void log_init(const char *program, enum log_level level);
void log_set_level(enum log_level level);
void log_info(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_debug(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_warn(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_warnx(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* For start-up and allocation only: logs and exits 1. */
void fatal(const char *fmt, ...) PRINTF_LIKE(1, 2) __attribute__((noreturn));
void fatalx(const char *fmt, ...) PRINTF_LIKE(1, 2) __attribute__((noreturn));

#endif
