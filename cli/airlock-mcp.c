/* airlock-mcp: what an MCP client starts; carries its lines to airlockd */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "wire/bridge.h"
#include "wire/place.h"

#define LINGER_MS 1000 /* clients send SIGTERM 2 s after the end of input */
#define AGENT_LEN_MAX 32

static const char usage_text[] =
    "usage: airlock-mcp [--state-dir DIR] [--agent NAME] [--socket PATH]\n"
    "       airlock-mcp --help | --version\n";

static const char help_text[] =
    "\n"
    "Speaks MCP on standard input and output for one client and passes it on\n"
    "to airlockd, by the socket of one agent.\n"
    "\n"
    "  --state-dir DIR  airlockd's state directory, if it is not where one\n"
    "                   user's own or the machine's is\n"
    "  --agent NAME     which agent of airlockd's to be (\"agent\")\n"
    "  --socket PATH    the agent's socket, where it is elsewhere\n"
    "\n"
    "See airlock-mcp(1).\n";

struct flags {
	const char *state_dir, *agent, *socket;
};

static int
usage(void)
{
	fputs(usage_text, stderr);
	return 2;
}

static int
print(const char *head, const char *tail)
{
	return printf("%s%s", head, tail) < 0 || fflush(stdout) != 0;
}

/* Negative: go on.  Otherwise the exit code. */
static int
parse_flags(int argc, char **argv, struct flags *f)
{
	static const struct option options[] = {
		{ "state-dir", required_argument, NULL, 'd' },
		{ "agent", required_argument, NULL, 'a' },
		{ "socket", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (c == 'd')
			f->state_dir = optarg;
		else if (c == 'a')
			f->agent = optarg;
		else if (c == 's')
			f->socket = optarg;
		else if (c == 'h')
			return print(usage_text, help_text);
		else if (c == 'V')
			return print("airlock-mcp " AIRLOCK_VERSION, "\n");
		else
			return usage();
	}
	return optind < argc ? usage() : -1;
}

/* Anything else could lead out of the directory. */
static bool
is_agent_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return n > 0 && n <= AGENT_LEN_MAX && s[n] == '\0';
}

/* Else the daemon's socket could become our standard output. */
static void
fill_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd != -1 && fd <= STDERR_FILENO);
	if (fd != -1)
		close(fd);
}

/* A parent may have had them ignored; there is nothing to tidy up. */
static void
set_signals(void)
{
	sigset_t none;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int
main(int argc, char **argv)
{
	struct flags f = { NULL, "agent", NULL };
	struct bridge_options o = {
		.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.linger_ms = LINGER_MS,
	};
	struct place place;
	char *name;
	int code;

	fill_descriptors();
	log_init("airlock-mcp", LOG_INFO);
	code = parse_flags(argc, argv, &f);
	if (code >= 0)
		return code;
	if (!is_agent_name(f.agent)) {
		log_warnx("'%s' is no agent's name: 1 to 32 of a-z 0-9 _ -",
		    f.agent);
		return 2;
	}
	set_signals();
	name = mem_printf("agent-%s", f.agent);
	place_find(&place, f.state_dir, f.socket, name);
	o.socket = place.socket;
	o.owner_dir = place.owner_dir;
	o.state_dir = f.socket == NULL ? place.owner_dir : f.state_dir;
	bridge_run(&o);
	place_release(&place);
	free(name);
	return 0;
}
