/* knock: the other end of guardd, and the tricks of an agent that needs C */
/*
 *	knock agent DIR  connects, prints the answer, stays
 *	knock control DIR     asks, prints the verdict
 *	knock heir DIR        connects; a child of it asks
 *	knock ghost DIR       connects and ends; a child of it asks
 *	knock passed DIR      connects; another process, which got the
 *descriptor over a socket, asks knock lone CMD ...    runs CMD on a terminal of
 *its own whose leader is an orphan knock adopt CMD ...   runs CMD and adopts
 *the orphans below it
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int
reach(const char *dir, const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", dir, name);
	if (fd == -1 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1)
		err(2, "%s", sa.sun_path);
	return fd;
}

/* One line, whose end is the end of what guardd sends at once. */
static void
get(int fd, char *buf, size_t size)
{
	size_t n = 0;

	while (n < size - 1 && (n == 0 || buf[n - 1] != '\n')) {
		ssize_t got = read(fd, buf + n, size - 1 - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	buf[n] = '\0';
}

static int
ask(int fd)
{
	char buf[1024];

	get(fd, buf, sizeof(buf));
	if (write(fd, buf, strlen(buf)) == -1)
		err(2, "write");
	get(fd, buf, sizeof(buf));
	fputs(buf, stdout);
	return strcmp(buf, "allow\n") == 0 ? 0 : 1;
}

static int
stay(const char *dir)
{
	int fd = reach(dir, "agent");
	char buf[64];

	get(fd, buf, sizeof(buf));
	fputs(buf, stdout);
	fflush(stdout);
	fclose(stdout);
	get(fd, buf, sizeof(buf));
	return 0;
}

static int
ask_by_child(const char *dir)
{
	int fd = reach(dir, "control"), status;
	pid_t child = fork();

	if (child == 0)
		exit(ask(fd));
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

/* The child waits until its parent is gone: the pipe's other end closes. */
static int
ask_by_orphan(const char *dir)
{
	int fd = reach(dir, "control"), gone[2];
	char c;

	if (pipe(gone) == -1)
		err(2, "pipe");
	if (fork() == 0) {
		close(gone[1]);
		if (read(gone[0], &c, 1) != 0)
			err(2, "read");
		exit(ask(fd));
	}
	return 0;
}

static void
send_fd(int to, int fd)
{
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char c = 'x';
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };

	control.h.cmsg_level = SOL_SOCKET;
	control.h.cmsg_type = SCM_RIGHTS;
	control.h.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
	if (sendmsg(to, &m, 0) == -1)
		err(2, "sendmsg");
}

static int
take_fd(int from)
{
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char c;
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(from, &m, 0) != 1)
		err(2, "recvmsg");
	memcpy(&fd, CMSG_DATA(&control.h), sizeof(fd));
	return fd;
}

static int
ask_by_another(const char *dir)
{
	int pair[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1)
		err(2, "socketpair");
	child = fork();
	if (child == 0)
		exit(ask(take_fd(pair[1])));
	send_fd(pair[0], reach(dir, "control"));
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

static void
lead(const char *tty, int held, char **argv)
{
	char c;
	int fd;

	/* Not before the parent has ended. */
	if (read(held, &c, 1) != 0)
		err(2, "read");
	if (setsid() == -1 || (fd = open(tty, O_RDWR)) == -1 ||
	    ioctl(fd, TIOCSCTTY, 0) == -1)
		err(2, "no controlling terminal");
	execvp(argv[0], argv);
	err(2, "%s", argv[0]);
}

static int
run_alone(char **argv)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), held[2], ended[2];
	char tty[64], c;

	if (master == -1 || grantpt(master) == -1 || unlockpt(master) == -1 ||
	    ptsname_r(master, tty, sizeof(tty)) != 0 || pipe(held) == -1 ||
	    pipe(ended) == -1)
		err(2, "no pseudo-terminal");
	if (fork() == 0) {
		if (fork() == 0) {
			close(held[1]);
			close(ended[0]);
			lead(tty, held[0], argv);
		}
		_exit(0);
	}
	close(ended[1]);
	wait(NULL);
	close(held[1]);
	return read(ended[0], &c, 1) == 0 ? 0 : 2;
}

static int
adopt(char **argv)
{
	pid_t child;
	int status;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1)
		err(2, "prctl");
	child = fork();
	if (child == 0) {
		execvp(argv[0], argv);
		err(2, "%s", argv[0]);
	}
	while (wait(&status) != -1 || errno == EINTR)
		;
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const char *dir);
	} tricks[] = {
		{ "agent", stay },
		{ "heir", ask_by_child },
		{ "ghost", ask_by_orphan },
		{ "passed", ask_by_another },
	};
	size_t i;

	if (argc < 3)
		errx(2, "usage: knock VERB DIR|CMD ...");
	if (strcmp(argv[1], "control") == 0)
		return ask(reach(argv[2], "control"));
	if (strcmp(argv[1], "lone") == 0)
		return run_alone(argv + 2);
	if (strcmp(argv[1], "adopt") == 0)
		return adopt(argv + 2);
	for (i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++)
		if (strcmp(argv[1], tricks[i].name) == 0)
			return tricks[i].run(argv[2]);
	errx(2, "'%s' is not a verb", argv[1]);
}
