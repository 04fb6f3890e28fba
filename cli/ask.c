/* ask: puts one question to the person at the terminal */
#include "ask.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

bool
ask_is_possible(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Without its newline; false at end of file or on a line that is too long. */
static bool
read_line(FILE *tty, char *out, size_t size)
{
	size_t n;

	if (fgets(out, (int)size, tty) == NULL)
		return false;
	n = strcspn(out, "\n");
	if (out[n] != '\n')
		return false;
	out[n] = '\0';
	while (n > 0 && (out[n - 1] == ' ' || out[n - 1] == '\r'))
		out[--n] = '\0';
	return true;
}

bool
ask_commit(const char *id, uint64_t rows)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	FILE *tty = fd == -1 ? NULL : fdopen(fd, "r+");
	char want[32] = "y", got[64] = "";
	bool yes;

	if (tty == NULL) {
		if (fd != -1)
			close(fd);
		return false;
	}
	fflush(stdout);
	tcflush(fd, TCIFLUSH);
	if (rows != 0) {
		snprintf(want, sizeof(want), "%" PRIu64, rows);
		fprintf(tty,
		    "High risk. To commit %s type the number of rows that "
		    "change: ",
		    id);
	} else {
		fprintf(tty, "Commit %s? [y/N] ", id);
	}
	fflush(tty);
	yes = read_line(tty, got, sizeof(got)) &&
	      (strcmp(got, want) == 0 ||
		  (rows == 0 &&
		      (strcmp(got, "Y") == 0 || strcmp(got, "yes") == 0)));
	fclose(tty);
	return yes;
}
