/* ptyrun: runs a command on a terminal of its own, as sshd and login do */
/*
 *	ptyrun [-u UID] [-g GID] COMMAND [ARG ...]
 *
 * As root: the child leads a session, has a fresh pseudo-terminal as its
 * controlling terminal, drops to UID and GID and runs COMMAND; the parent stays
 * root, holds the terminal, and copies stdin to it and its output to stdout.
 * At the end of stdin ^D is typed.  Exits with the command's code, 128 + n
 * where signal n ended it, 125 where it could not be started.
 *
 * As anybody else nothing can hold a terminal that the operator guard accepts
 * but a listed program: then tmuxrun.sh, beside this program's source, opens a
 * window of the tmux server whose socket AIRLOCK_TMUX names, started before the
 * agent's client.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define EXIT_SETUP 125

static volatile sig_atomic_t stopped;

static void
on_signal(int sig)
{
	stopped = sig;
}

static unsigned
to_id(const char *s)
{
	char *end;
	unsigned long v = strtoul(s, &end, 10);

	if (*s == '\0' || *end != '\0' || v > 0x7fffffff)
		errx(EXIT_SETUP, "'%s' is not a uid", s);
	return (unsigned)v;
}

static int
open_master(char *name, size_t size)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd == -1 || grantpt(fd) == -1 || unlockpt(fd) == -1 ||
	    ptsname_r(fd, name, size) != 0)
		err(EXIT_SETUP, "no pseudo-terminal");
	return fd;
}

static void
become(const char *tty, uid_t uid, gid_t gid, char **argv)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int fd;

	if (setsid() == -1 || (fd = open(tty, O_RDWR)) == -1 ||
	    ioctl(fd, TIOCSCTTY, 0) == -1)
		err(EXIT_SETUP, "no controlling terminal");
	ioctl(fd, TIOCSWINSZ, &size);
	if (fchown(fd, uid, (gid_t)-1) == -1 || dup2(fd, 0) == -1 ||
	    dup2(fd, 1) == -1 || dup2(fd, 2) == -1)
		err(EXIT_SETUP, "cannot use '%s'", tty);
	if (fd > 2)
		close(fd);
	if (setgroups(0, NULL) == -1 || setresgid(gid, gid, gid) == -1 ||
	    setresuid(uid, uid, uid) == -1)
		err(EXIT_SETUP, "cannot become uid %u", (unsigned)uid);
	execvp(argv[0], argv);
	err(EXIT_SETUP, "cannot run '%s'", argv[0]);
}

/* Writes it all; false where the other end is gone. */
static bool
put(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, p, n);

		if (done == -1 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

/* False at the end of file, and at EIO: the last process left the terminal. */
static bool
copy(int from, int to)
{
	char buf[4096];
	ssize_t n = read(from, buf, sizeof(buf));

	if (n == -1 && errno == EINTR)
		return true;
	return n > 0 && put(to, buf, (size_t)n);
}

/* Until the command ends; its orphans may keep the terminal open for longer. */
static int
attend(int master, pid_t child)
{
	struct pollfd fds[] = { { .fd = master, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN } };
	int status = 0, ready;
	pid_t ended = 0;

	while (stopped == 0) {
		if (ended == 0)
			ended = waitpid(child, &status, WNOHANG);
		ready = poll(fds, 2, ended != 0 ? 0 : 50);
		if (fds[0].revents != 0 && !copy(master, STDOUT_FILENO))
			fds[0].fd = -1;
		else if (ended != 0 && (ready <= 0 || fds[0].revents == 0))
			break;
		if (fds[0].fd == -1 && ended != 0)
			break;
		if (fds[1].revents != 0 && !copy(STDIN_FILENO, master)) {
			put(master, "\004", 1);
			fds[1].fd = -1;
		}
	}
	if (stopped != 0) {
		kill(-child, SIGHUP);
		return 128 + (int)stopped;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Beside the programs of a build, or where AIRLOCK_TMUXRUN says. */
static void
run_in_tmux(char **argv)
{
	const char *script = getenv("AIRLOCK_TMUXRUN");
	char **v = calloc(64, sizeof(*v)), sh[] = "sh";
	size_t n = 0;

	if (script == NULL || getenv("AIRLOCK_TMUX") == NULL || v == NULL)
		errx(EXIT_SETUP,
		    "not root: AIRLOCK_TMUX must name the socket "
		    "of a tmux server and AIRLOCK_TMUXRUN tmuxrun.sh");
	v[n++] = sh;
	v[n++] = strdup(script);
	while (*argv != NULL && n < 63)
		v[n++] = *argv++;
	execvp("sh", v);
	err(EXIT_SETUP, "cannot run sh");
}

int
main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	uid_t uid = getuid();
	gid_t gid = getgid();
	bool has_gid = false;
	char tty[64];
	pid_t child;
	int opt, master;

	while ((opt = getopt(argc, argv, "+u:g:")) != -1) {
		if (opt == 'u')
			uid = to_id(optarg);
		else if (opt == 'g')
			gid = to_id(optarg), has_gid = true;
		else
			return EXIT_SETUP;
	}
	if (optind == argc)
		errx(EXIT_SETUP, "usage: ptyrun [-u UID] [-g GID] COMMAND ...");
	if (geteuid() != 0)
		run_in_tmux(argv + optind);
	if (!has_gid && uid != getuid())
		gid = (gid_t)uid;
	master = open_master(tty, sizeof(tty));
	child = fork();
	if (child == -1)
		err(EXIT_SETUP, "fork");
	if (child == 0)
		become(tty, uid, gid, argv + optind);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	return attend(master, child);
}
