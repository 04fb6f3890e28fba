/* ask: puts one question to the person at the terminal */
#ifndef AIRLOCK_CLI_ASK_H
#define AIRLOCK_CLI_ASK_H

#include <stdbool.h>
#include <stdint.h>

/* True where a person sits at both ends of this process. */
bool ask_is_possible(void);
/*
 * Asks on /dev/tty; what was typed before the question does not count.  With
 * `rows` not 0 the number has to be typed, else y.  False: no, or no terminal.
 */
bool ask_commit(const char *id, uint64_t rows);

#endif
