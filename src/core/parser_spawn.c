/* parser_spawn: starts the parser child, and buries it without waiting */
#include "core/parser_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

#define STACK_SPARE ((rlim_t)8 << 20)

/* Runs between fork and exec: system calls only. */
static void
become(const char *program, size_t statement_bytes_max, size_t memory_max,
    int channel, pid_t parent)
{
	static char name[] = "airlockd", parser[] = "--parser";
	char *const argv[] = { name, parser, NULL }, *const envp[] = { NULL };
	struct rlimit stack, memory = { memory_max, memory_max };
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null == -1 || dup2(null, STDIN_FILENO) == -1 ||
	    dup2(null, STDOUT_FILENO) == -1)
		_exit(126);
	if (!SPAWN_SANITIZED && dup2(null, STDERR_FILENO) == -1)
		_exit(126);
	/* dup2() onto itself would leave close-on-exec set. */
	if (channel == SPAWN_CHANNEL ? fcntl(channel, F_SETFD, 0) == -1
				     : dup2(channel, SPAWN_CHANNEL) == -1)
		_exit(126);
	if (close_range(SPAWN_CHANNEL + 1, ~0u, 0) == -1)
		_exit(126);
	if (getrlimit(RLIMIT_STACK, &stack) == 0) {
		rlim_t want = (rlim_t)statement_bytes_max * 1024 + STACK_SPARE;

		stack.rlim_cur = want < stack.rlim_max ? want : stack.rlim_max;
		setrlimit(RLIMIT_STACK, &stack);
	}
	if (!SPAWN_SANITIZED && memory_max > 0)
		setrlimit(RLIMIT_AS, &memory);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		execve(program, argv, envp);
	_exit(127);
}

int
spawn_parser(const char *program, size_t statement_bytes_max, size_t memory_max,
    struct spawned *out, struct err *e)
{
	int pair[2];
	pid_t parent = getpid(), pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
		return err_sys(e, "cannot make the parser's channel");
	if (fcntl(pair[0], F_SETFL, O_NONBLOCK) == -1 || (pid = fork()) == -1) {
		err_sys(e, "cannot start the parser");
		close(pair[0]);
		close(pair[1]);
		return -1;
	}
	if (pid == 0)
		become(program, statement_bytes_max, memory_max, pair[1],
		    parent);
	close(pair[1]);
	out->pid = pid;
	out->channel = pair[0];
	return 0;
}

struct dying {
	LIST_ENTRY(dying) entry;
	pid_t pid;
	int pidfd;
	struct event *end;
};

static void
close_grave(struct dying *d)
{
	LIST_REMOVE(d, entry);
	if (d->end != NULL)
		event_free(d->end);
	if (d->pidfd != -1)
		close(d->pidfd);
	free(d);
}

static void
bury(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct dying *d = arg;

	if (waitpid(d->pid, NULL, WNOHANG) != 0)
		close_grave(d);
}

void
spawn_end(struct event_base *base, struct spawned *s, struct graves *g)
{
	struct dying *d;

	if (s->pid == 0)
		return;
	kill(s->pid, SIGKILL);
	d = mem_new(sizeof(*d));
	LIST_INSERT_HEAD(g, d, entry);
	d->pid = s->pid;
	d->pidfd = pidfd_open(s->pid, 0);
	s->pid = 0;
	if (d->pidfd != -1)
		d->end =
		    event_new(base, d->pidfd, EV_READ | EV_PERSIST, bury, d);
	if (d->end == NULL || event_add(d->end, NULL) == -1) {
		/* Nothing to watch: it has been killed, so it ends at once. */
		waitpid(d->pid, NULL, 0);
		close_grave(d);
	}
}

void
spawn_bury_all(struct graves *g)
{
	struct dying *d;

	while ((d = LIST_FIRST(g)) != NULL) {
		waitpid(d->pid, NULL, 0);
		close_grave(d);
	}
}
