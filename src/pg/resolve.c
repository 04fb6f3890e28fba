/* resolve: host names to addresses in a child process, since libpq blocks */
#include "pg/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

#define ADDRESSES_MAX 16
#define ANSWER_MAX 8192

struct resolve {
	struct event *event; /* the child's answer, or just "now" */
	int fd;
	pid_t child;
	char *host, *hostaddr, *port;
	struct text answer; /* lines "index address", or "!text" */
	resolve_done *done;
	void *arg;
};

static bool
is_name(const char *host)
{
	unsigned char addr[sizeof(struct in6_addr)];

	return host[0] != '\0' && host[0] != '/' && host[0] != '@' &&
	       inet_pton(AF_INET, host, addr) != 1 &&
	       inet_pton(AF_INET6, host, addr) != 1;
}

static void
answer_add(struct text *answer, int index, const char *host)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *a;
	char name[INET6_ADDRSTRLEN];
	int rc = getaddrinfo(host, NULL, &hints, &list), n = 0;

	if (rc != 0) {
		text_addf(answer, "!cannot resolve host '%s': %s\n", host,
		    gai_strerror(rc));
		return;
	}
	for (a = list; a != NULL && n < ADDRESSES_MAX; a = a->ai_next, n++)
		if (getnameinfo(a->ai_addr, a->ai_addrlen, name, sizeof(name),
			NULL, 0, NI_NUMERICHOST) == 0)
			text_addf(answer, "%d %s\n", index, name);
	freeaddrinfo(list);
}

/* In the child: one line an address, in the order of the hosts. */
static void
child(const char *hosts, int fd)
{
	struct text answer = { 0 };
	char *list = mem_strdup(hosts), *rest = list, *host;
	int index = 0;

	while ((host = strsep(&rest, ",")) != NULL) {
		if (is_name(host))
			answer_add(&answer, index, host);
		index++;
	}
	if (write(fd, text_str(&answer), answer.len) == -1)
		_exit(1);
	_exit(0);
}

static bool
any_name(const char *hosts)
{
	char *list = mem_strdup(hosts), *rest = list, *host;
	bool found = false;

	while ((host = strsep(&rest, ",")) != NULL)
		found = found || is_name(host);
	free(list);
	return found;
}

static void
add_item(struct text *t, const char *item, bool first)
{
	if (!first)
		text_addc(t, ',');
	text_add(t, item);
}

/* The n-th of a comma list; a list of one stands for all. */
static char *
nth(const char *list, int n)
{
	const char *p = list, *end;

	if (strchr(list, ',') == NULL)
		return mem_strdup(list);
	for (; n > 0 && p != NULL; n--)
		p = strchr(p, ',') != NULL ? strchr(p, ',') + 1 : NULL;
	if (p == NULL)
		return mem_strdup("");
	end = strchrnul(p, ',');
	return mem_strndup(p, (size_t)(end - p));
}

struct expanded {
	struct text host, addr, port;
	bool any;
};

static void
expand_one(struct resolve *r, struct expanded *x, const char *host, int index)
{
	char *port = nth(r->port, index), *copy, *rest, *line;

	copy = mem_strdup(text_str(&r->answer));
	rest = is_name(host) ? copy : NULL;
	if (rest == NULL) {
		bool socket =
		    host[0] == '\0' || host[0] == '/' || host[0] == '@';

		add_item(&x->host, host, !x->any);
		add_item(&x->addr, socket ? "" : host, !x->any);
		add_item(&x->port, port, !x->any);
		x->any = true;
	}
	while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
		char *address = strchr(line, ' ');

		if (address == NULL || strtol(line, NULL, 10) != index)
			continue;
		add_item(&x->host, host, !x->any);
		add_item(&x->addr, address + 1, !x->any);
		add_item(&x->port, port, !x->any);
		x->any = true;
	}
	free(copy);
	free(port);
}

static void
finish(struct resolve *r)
{
	struct expanded x = { 0 };
	struct resolve_hosts out;
	struct err e = ERR_INIT;
	const char *bad = strchr(text_str(&r->answer), '!');
	char *list = mem_strdup(r->host), *rest = list, *host;
	int index = 0;

	if (bad != NULL)
		err_set(&e, ERR_DATABASE, "%.*s", (int)strcspn(bad + 1, "\n"),
		    bad + 1);
	while (bad == NULL && (host = strsep(&rest, ",")) != NULL)
		expand_one(r, &x, host, index++);
	if (bad == NULL && !x.any)
		bad = "no address";
	out = (struct resolve_hosts){ text_str(&x.host), text_str(&x.addr),
		text_str(&x.port) };
	if (e.code == ERR_NONE && bad != NULL)
		err_set(&e, ERR_DATABASE, "no address for host '%.200s'",
		    r->host);
	r->done(r->arg, bad == NULL ? &out : NULL, &e);
	text_release(&x.host);
	text_release(&x.addr);
	text_release(&x.port);
	free(list);
}

static void
readable(evutil_socket_t fd, short what, void *arg)
{
	struct resolve *r = arg;
	char buf[1024];
	ssize_t n = fd != -1 ? read(fd, buf, sizeof(buf)) : 0;

	(void)what;
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && r->answer.len + (size_t)n < ANSWER_MAX) {
		text_addn(&r->answer, buf, (size_t)n);
		return;
	}
	event_del(r->event);
	finish(r);
	resolve_cancel(r);
}

static void
fork_child(struct resolve *r)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) == -1) {
		text_add(&r->answer, "!cannot make a pipe\n");
		return;
	}
	r->child = fork();
	if (r->child == 0) {
		close(p[0]);
		child(r->host, p[1]);
	}
	close(p[1]);
	if (r->child == -1) {
		close(p[0]);
		text_add(&r->answer, "!cannot fork a resolver\n");
		return;
	}
	r->fd = p[0];
}

struct resolve *
resolve_start(struct event_base *base, const char *host, const char *hostaddr,
    const char *port, resolve_done *done, void *arg)
{
	struct resolve *r = mem_new(sizeof(*r));
	struct timeval now = { 0, 0 };

	r->fd = -1;
	r->host = mem_strdup(host != NULL ? host : "");
	r->hostaddr = hostaddr != NULL ? mem_strdup(hostaddr) : NULL;
	r->port = mem_strdup(port != NULL ? port : "");
	r->done = done;
	r->arg = arg;
	if (any_name(r->host))
		fork_child(r);
	r->event = event_new(base, r->fd,
	    r->fd != -1 ? EV_READ | EV_PERSIST : 0, readable, r);
	if (r->fd != -1)
		event_add(r->event, NULL);
	else
		evtimer_add(r->event, &now);
	return r;
}

void
resolve_cancel(struct resolve *r)
{
	if (r == NULL)
		return;
	event_free(r->event);
	if (r->child > 0) {
		kill(r->child, SIGKILL);
		waitpid(r->child, NULL, 0);
	}
	if (r->fd != -1)
		close(r->fd);
	text_release(&r->answer);
	free(r->host);
	free(r->hostaddr);
	free(r->port);
	free(r);
}
