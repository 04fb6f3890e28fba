/* embedded: a private PostgreSQL cluster that lives and dies with the daemon */
#include "front/embedded.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "front/child.h"
#include "front/cluster.h"
#include "front/dsn.h"

#define READY_MS (120 * 1000) /* a crash may have to be recovered from */
#define READY_STEP_MS 20      /* between two looks at the pid file */
#define STOP_FAST_MS (30 * 1000)
#define STOP_AT_ONCE_MS (10 * 1000)
#define RESTART_MIN_S 1
#define RESTART_MAX_S 30
#define STEADY_MS (60 * 1000) /* lived this long: the next wait is short */

struct embedded {
	struct cluster cluster;
	struct child server; /* pid 0: not running */
	struct event_base *base;
	struct event *ended, *restart;
	int64_t started_ms;
	long wait_s;
};

/* There is no event for readiness, but there is one for the server's end. */
static int
wait_until_ready(struct embedded *d, struct err *e)
{
	int64_t until = clock_boot_ms() + READY_MS;

	while (!cluster_is_ready(&d->cluster, d->server.pid)) {
		struct pollfd p = { .fd = d->server.pidfd, .events = POLLIN };

		if (poll(&p, 1, READY_STEP_MS) == 1)
			return err_set(e, ERR_DATABASE,
			    "the embedded PostgreSQL server ended at once; "
			    "see '%s/log'",
			    d->cluster.path);
		if (clock_boot_ms() > until)
			return err_set(e, ERR_DATABASE,
			    "the embedded PostgreSQL server is not ready "
			    "after %d seconds; see '%s/log'",
			    READY_MS / 1000, d->cluster.path);
	}
	return 0;
}

static int
start(struct embedded *d, struct err *e)
{
	d->started_ms = clock_boot_ms();
	return cluster_serve(&d->cluster, &d->server, e);
}

int
embedded_start(const struct statedir *s, const char *init_file,
    struct embedded **out, struct err *e)
{
	struct embedded *d = mem_new(sizeof(*d));

	d->wait_s = RESTART_MIN_S;
	if (cluster_open(s, &d->cluster, e) != 0) {
		free(d);
		return -1;
	}
	if (start(d, e) == 0 && wait_until_ready(d, e) == 0 &&
	    (!d->cluster.is_new ||
		cluster_set_up(&d->cluster, init_file, e) == 0)) {
		*out = d;
		return 0;
	}
	cluster_log_tail(&d->cluster);
	embedded_stop(d);
	return -1;
}

/* Watching. */

static void
watch_server(struct embedded *d)
{
	if (event_assign(d->ended, d->base, d->server.pidfd, EV_READ,
		event_get_callback(d->ended), d) == -1 ||
	    event_add(d->ended, NULL) == -1)
		log_warnx("cannot watch the embedded PostgreSQL server");
}

static void
restart_later(struct embedded *d)
{
	const struct timeval tv = { d->wait_s, 0 };

	evtimer_add(d->restart, &tv);
	if (d->wait_s < RESTART_MAX_S)
		d->wait_s *= 2;
}

static void
on_restart(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct embedded *d = arg;
	struct err e = ERR_INIT;

	if (start(d, &e) == 0) {
		watch_server(d);
		return;
	}
	log_warnx("embedded PostgreSQL: %s", e.text);
	restart_later(d);
}

static void
on_end(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct embedded *d = arg;
	struct err e = ERR_INIT;
	int status = 0;

	if (child_wait(&d->server, 0, &status, &e) != 0) {
		watch_server(d);
		return;
	}
	if (clock_boot_ms() - d->started_ms > STEADY_MS)
		d->wait_s = RESTART_MIN_S;
	log_warnx("the embedded PostgreSQL server ended (status %d); it is "
		  "started again in %ld s",
	    status, d->wait_s);
	cluster_log_tail(&d->cluster);
	restart_later(d);
}

void
embedded_watch(struct embedded *d, struct event_base *base)
{
	d->base = base;
	d->ended = event_new(base, d->server.pidfd, EV_READ, on_end, d);
	d->restart = evtimer_new(base, on_restart, d);
	if (d->ended == NULL || d->restart == NULL ||
	    event_add(d->ended, NULL) == -1)
		fatalx("cannot watch the embedded PostgreSQL server");
}

char *
embedded_dsn(const struct embedded *d, const char *login)
{
	struct text t = { 0 };

	dsn_add(&t, "host", d->cluster.run);
	dsn_add(&t, "port", CLUSTER_PORT);
	dsn_add(&t, "dbname", CLUSTER_DATABASE);
	dsn_add(&t, "user", login);
	return text_take(&t);
}

static void
stop_server(struct embedded *d)
{
	static const struct {
		int signal, wait_ms;
	} ways[] = { { SIGINT, STOP_FAST_MS }, { SIGQUIT, STOP_AT_ONCE_MS } };
	struct err e = ERR_INIT;
	int status;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		kill(d->server.pid, ways[i].signal);
		if (child_wait(&d->server, ways[i].wait_ms, &status, &e) == 0)
			return;
	}
	log_warnx("the embedded PostgreSQL server does not stop; killing it");
	child_kill(&d->server);
}

void
embedded_stop(struct embedded *d)
{
	if (d == NULL)
		return;
	if (d->ended != NULL)
		event_free(d->ended);
	if (d->restart != NULL)
		event_free(d->restart);
	if (d->server.pid != 0)
		stop_server(d);
	cluster_close(&d->cluster);
	free(d);
}
