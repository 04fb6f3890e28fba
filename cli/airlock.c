/* airlock: the operator's command: look at what agents did, commit or undo it
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/version.h"
#include "client.h"
#include "offline.h"
#include "options.h"
#include "verbs.h"

/* Rows of a database pass through: no core file, no debugger of the same user,
 * and descriptors 0 to 2 are really there. */
static void
harden(void)
{
	const struct rlimit none = { 0, 0 };
	int fd;

	prctl(PR_SET_DUMPABLE, 0);
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGPIPE, SIG_IGN);
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* What could not be written was not shown. */
static int
leave(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	fputs("airlock: cannot write to standard output\n", stderr);
	return code == CTL_DONE ? CTL_NO : code;
}

int
main(int argc, char **argv)
{
	struct err e = { 0 };
	struct options o;
	struct client c;
	int code;

	harden();
	if (options_parse(argc, argv, &o, &e) == -1) {
		fprintf(stderr, "airlock: %s\n", e.text);
		return CTL_USAGE;
	}
	if (o.help) {
		options_help(stdout);
		return leave(CTL_DONE);
	}
	if (o.version) {
		printf("airlock %s\n", AIRLOCK_VERSION);
		return leave(CTL_DONE);
	}
	if (o.offline != NULL)
		return leave(
		    o.offline->run(o.json, argc - o.rest, argv + o.rest));
	client_init(&c, &o);
	code = verb_run(&o, &c);
	client_release(&c);
	return leave(code);
}
