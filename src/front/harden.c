/* harden: what a process that holds secrets does to itself first */
#include "front/harden.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

/* Leak detection attaches to the process with ptrace(2), which only works on
 * a dumpable one: the single difference of a build under that sanitizer. */
#if defined(__SANITIZE_ADDRESS__)
#define DUMPABLE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DUMPABLE 1
#endif
#endif
#ifndef DUMPABLE
#define DUMPABLE 0
#endif

extern char **environ;

static const char *const scrubbed[] = { "PG", "LD_" };

void
harden_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd == -1)
			fatal("cannot open '/dev/null'");
	} while (fd <= STDERR_FILENO);
	close(fd);
}

int
harden_process(struct err *e)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit files;

	umask(077);
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return err_sys(e, "cannot ignore SIGPIPE");
	if (prctl(PR_SET_DUMPABLE, DUMPABLE, 0, 0, 0) == -1)
		return err_sys(e, "cannot become undumpable");
	if (setrlimit(RLIMIT_CORE, &none) == -1)
		return err_sys(e, "cannot turn core files off");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return err_sys(e, "cannot renounce new privileges");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &files) == -1)
			log_warn("cannot raise the limit of descriptors");
	}
	return 0;
}

static bool
is_scrubbed(const char *entry)
{
	for (size_t i = 0; i < sizeof(scrubbed) / sizeof(scrubbed[0]); i++)
		if (text_starts_with(entry, scrubbed[i]))
			return true;
	return false;
}

/* The bytes are wiped too: /proc/PID/environ shows where they were at start. */
void
harden_environment(void)
{
	char **to = environ;

	for (char **from = environ; from != NULL && *from != NULL; from++) {
		if (is_scrubbed(*from))
			mem_wipe(*from, strlen(*from));
		else
			*to++ = *from;
	}
	if (to != NULL)
		*to = NULL;
}

void
harden_wipe_argument(char *arg)
{
	mem_wipe(arg, strlen(arg));
}
