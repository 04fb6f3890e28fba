/* child: programs that the daemon starts and waits for with a deadline */
#include "front/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define EXIT_NOT_RUN 127

/* execv(3) takes what it never changes. */
union words {
	const char *const *in;
	char *const *out;
};

static void
become(const struct child_options *o, pid_t parent)
{
	const union words argv = { .in = o->argv };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int in = o->input != -1 ? o->input : null;
	int out = o->output != -1 ? o->output : null;
	sigset_t none;

	/* a parent that died before the prctl would never be noticed */
	if (prctl(PR_SET_PDEATHSIG, o->death_signal, 0, 0, 0) == -1 ||
	    getppid() != parent)
		_exit(EXIT_NOT_RUN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	if (o->session)
		setsid();
	if (dup2(in, STDIN_FILENO) == -1 || dup2(out, STDOUT_FILENO) == -1 ||
	    dup2(out, STDERR_FILENO) == -1)
		_exit(EXIT_NOT_RUN);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	execv(argv.in[0], argv.out);
	_exit(EXIT_NOT_RUN);
}

int
child_start(const struct child_options *o, struct child *out, struct err *e)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == -1)
		return err_sys(e, "cannot fork for '%s'", o->argv[0]);
	if (pid == 0)
		become(o, parent);
	out->pid = pid;
	out->pidfd = pidfd_open(pid, 0);
	if (out->pidfd == -1) {
		err_sys(e, "cannot watch '%s'", o->argv[0]);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -1;
	}
	return 0;
}

static void
reap(struct child *c, int *status)
{
	pid_t r;

	do
		r = waitpid(c->pid, status, 0);
	while (r == -1 && errno == EINTR);
	if (r == -1)
		*status = 0; /* somebody else reaped it */
	close(c->pidfd);
	c->pidfd = -1;
	c->pid = 0;
}

int
child_wait(struct child *c, int timeout_ms, int *status, struct err *e)
{
	int64_t until = clock_boot_ms() + timeout_ms, left;
	int r;

	do {
		struct pollfd p = { .fd = c->pidfd, .events = POLLIN };

		left = until - clock_boot_ms();
		r = poll(&p, 1, left > 0 ? (int)left : 0);
	} while (r == -1 && errno == EINTR);
	if (r == -1)
		return err_sys(e, "cannot wait for a child");
	if (r == 0)
		return err_set(e, ERR_LIMIT, "not done after %d ms",
		    timeout_ms);
	reap(c, status);
	return 0;
}

void
child_kill(struct child *c)
{
	int status;

	if (c->pid == 0)
		return;
	kill(c->pid, SIGKILL);
	reap(c, &status);
}

int
child_run(const struct child_options *o, int timeout_ms, struct err *e)
{
	struct child c = { 0, -1 };
	int status = 0;

	if (child_start(o, &c, e) != 0)
		return -1;
	if (child_wait(&c, timeout_ms, &status, e) != 0) {
		child_kill(&c);
		return err_wrap(e, "'%s'", o->argv[0]);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		return err_set(e, ERR_SYSTEM, "'%s' was ended by signal %d",
		    o->argv[0], WTERMSIG(status));
	if (WEXITSTATUS(status) == EXIT_NOT_RUN)
		return err_set(e, ERR_SYSTEM, "cannot run '%s'", o->argv[0]);
	return err_set(e, ERR_SYSTEM, "'%s' ended with exit code %d",
	    o->argv[0], WEXITSTATUS(status));
}
