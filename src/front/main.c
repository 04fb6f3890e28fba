/* main: airlockd from its arguments to its end */
#include <event2/event.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "core/gate.h"
#include "core/parser.h"
#include "front/config.h"
#include "front/control.h"
#include "front/embedded.h"
#include "front/flags.h"
#include "front/harden.h"
#include "front/mcp.h"
#include "front/notify.h"
#include "front/statedir.h"
#include "rule/grants.h"

#define STOP_S 20 /* for rolling back and closing */

static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
#define NSIGNALS (sizeof(signals) / sizeof(signals[0]))

struct daemon {
	struct flags flags;
	char *config_path;  /* NULL: none */
	struct config run;  /* the core lends it */
	struct config read; /* the same as it was written, for reloading */
	struct statedir state;
	struct embedded *embedded;
	char program[PATH_MAX];
	struct event_base *base;
	struct event *signal_events[NSIGNALS], *patience;
	struct gate *gate;
	struct control *control;
	struct mcp_server **servers; /* one an agent */
	bool stopping;
	int status;
};

/* Reading what we are to do. */

/* Without --config and --db: the user's file, else the system's, if there. */
static char *
find_config(const struct flags *f)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *path = NULL;

	if (f->value[FLAG_CONFIG] != NULL)
		return mem_strdup(f->value[FLAG_CONFIG]);
	if (f->value[FLAG_DB] != NULL)
		return NULL;
	if (base != NULL && base[0] == '/')
		path = mem_printf("%s/airlock/airlockd.conf", base);
	else if (home != NULL)
		path = mem_printf("%s/.config/airlock/airlockd.conf", home);
	if (path != NULL && access(path, F_OK) == 0)
		return path;
	free(path);
	path = mem_strdup("/etc/airlock/airlockd.conf");
	if (access(path, F_OK) == 0)
		return path;
	free(path);
	return NULL;
}

static int
load(struct daemon *d, struct config *c, struct err *e)
{
	config_init(c);
	if (d->config_path != NULL && config_read(c, d->config_path, e) != 0)
		goto bad;
	if (flags_apply(&d->flags, c, e) != 0)
		goto bad;
	if (c->state_dir == NULL && statedir_default(&c->state_dir, e) != 0)
		goto bad;
	if (config_finish(c, e) != 0)
		goto bad;
	return 0;
bad:
	config_release(c);
	return -1;
}

/* What needs no database and runs as any user. */

static int
print_grants(const struct flags *f)
{
	struct text t = { 0 };
	struct err e = ERR_INIT;

	if (grants_add(&t, f->nrest, f->rest, &e) == -1)
		fatalx("%s", e.text);
	fputs(text_str(&t), stdout);
	text_release(&t);
	return fflush(stdout) == 0 ? 0 : 1;
}

static int
check_config(struct daemon *d)
{
	struct text overlaps = { 0 };
	struct err e = ERR_INIT;
	const char *line;

	if (load(d, &d->run, &e) != 0 || config_resolve(&d->run, &e) != 0)
		fatalx("%s", e.text);
	if (d->flags.value[FLAG_VERBOSE] != NULL)
		config_print(&d->run, stdout);
	config_overlaps(&d->run, &overlaps);
	for (line = text_str(&overlaps); *line != '\0';) {
		size_t n = strcspn(line, "\n");

		log_warnx("%.*s", (int)n, line);
		line += n + (line[n] == '\n');
	}
	log_info("the configuration is valid");
	text_release(&overlaps);
	config_release(&d->run);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* The way up. */

static void
prepare(struct daemon *d)
{
	struct err e = ERR_INIT;
	ssize_t n =
	    readlink("/proc/self/exe", d->program, sizeof(d->program) - 1);

	if (n <= 0)
		fatal("cannot find our own program");
	d->program[n] = '\0';
	if (load(d, &d->read, &e) != 0 || load(d, &d->run, &e) != 0 ||
	    config_resolve(&d->run, &e) != 0 || harden_process(&e) != 0)
		fatalx("%s", e.text);
	harden_environment();
	notify_init();
	log_set_level((enum log_level)d->run.log_level);
	if (d->flags.db_secret)
		log_warnx("the password in --db was visible to every user of "
			  "this machine until now; keep it in a passfile or in "
			  "the configuration");
	if (statedir_open(d->run.state_dir, &d->state, &e) != 0 ||
	    statedir_runtime(&d->state, d->run.runtime_dir, &e) != 0)
		fatalx("%s", e.text);
}

/* fatalx would leave the server to its parent-death signal. */
static void
give_up(struct daemon *d, const struct err *e)
{
	embedded_stop(d->embedded);
	fatalx("%s", e->text);
}

static void
start_database(struct daemon *d)
{
	struct database_options *o = &d->run.gate.database;
	struct err e = ERR_INIT;

	if (!d->run.embedded)
		return;
	if (embedded_start(&d->state, d->run.init_file, &d->embedded, &e) != 0)
		fatalx("%s", e.text);
	free(o->writer_dsn);
	o->writer_dsn = embedded_dsn(d->embedded, GRANTS_WRITER);
	o->reader_dsn = embedded_dsn(d->embedded, GRANTS_READER);
	o->observer_dsn = embedded_dsn(d->embedded, GRANTS_OBSERVER);
}

static void
start_core(struct daemon *d)
{
	struct gate_options *o = &d->run.gate;
	struct err e = ERR_INIT;

	o->state_fd = d->state.fd;
	o->state_dir = d->state.path;
	o->runtime_dir = d->state.runtime;
	o->parser.program = d->program;
	d->base = event_base_new();
	if (d->base == NULL)
		fatalx("cannot make an event loop");
	if (gate_new(d->base, o, &d->gate, &e) != 0)
		give_up(d, &e);
	d->servers = mem_array(o->nagents, sizeof(struct mcp_server *));
	for (size_t i = 0; i < o->nagents; i++)
		if (mcp_server_open(d->base, d->gate,
			gate_agent(d->gate, o->agents[i].name), &d->servers[i],
			&e) != 0)
			give_up(d, &e);
	if (control_open(d->base, d->gate, &d->control, &e) != 0)
		give_up(d, &e);
	if (d->embedded != NULL)
		embedded_watch(d->embedded, d->base);
}

/* Signals. */

static void
stopped(void *arg)
{
	struct daemon *d = arg;

	event_base_loopbreak(d->base);
}

static void
out_of_patience(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct daemon *d = arg;

	log_warnx("not stopped after %d seconds; leaving at once", STOP_S);
	d->status = 1;
	event_base_loopbreak(d->base);
}

static void
stop(struct daemon *d)
{
	const struct timeval patience = { STOP_S, 0 };

	if (d->stopping) {
		log_warnx("second signal; leaving at once");
		d->status = 1;
		event_base_loopbreak(d->base);
		return;
	}
	d->stopping = true;
	log_info("stopping");
	notify("STOPPING=1");
	evtimer_add(d->patience, &patience);
	gate_stop(d->gate, stopped, d);
}

static void
reload(struct daemon *d)
{
	struct text waits = { 0 };
	struct config fresh;
	struct err e = ERR_INIT;
	int taken;

	if (load(d, &fresh, &e) != 0) {
		log_warnx("not reloaded: %s", e.text);
		return;
	}
	taken = config_reload(&d->run, &d->read, &fresh, &waits);
	log_set_level((enum log_level)d->run.log_level);
	log_info("reloaded: %d keys changed", taken);
	if (waits.len > 0)
		log_warnx("waits for a restart: %s", waits.s);
	text_release(&waits);
	config_release(&fresh);
}

static void
on_signal(evutil_socket_t number, short what UNUSED, void *arg)
{
	struct daemon *d = arg;

	if (number != SIGHUP)
		stop(d);
	else if (!d->stopping)
		reload(d);
}

static void
watch_signals(struct daemon *d)
{
	d->patience = evtimer_new(d->base, out_of_patience, d);
	if (d->patience == NULL)
		fatalx("cannot make a timer");
	for (size_t i = 0; i < NSIGNALS; i++) {
		d->signal_events[i] =
		    evsignal_new(d->base, signals[i], on_signal, d);
		if (d->signal_events[i] == NULL ||
		    event_add(d->signal_events[i], NULL) == -1)
			fatalx("cannot watch for signals");
	}
}

/* The way down: in the order of who uses whom. */
static void
close_all(struct daemon *d)
{
	for (size_t i = 0; i < d->run.gate.nagents; i++)
		mcp_server_close(d->servers[i]);
	free(d->servers);
	control_close(d->control);
	gate_free(d->gate);
	for (size_t i = 0; i < NSIGNALS; i++)
		event_free(d->signal_events[i]);
	event_free(d->patience);
	embedded_stop(d->embedded);
	event_base_free(d->base);
	statedir_close(&d->state);
	config_release(&d->run);
	config_release(&d->read);
	flags_release(&d->flags);
	free(d->config_path);
}

static int
serve(struct daemon *d)
{
	if (geteuid() == 0 || getuid() == 0)
		fatalx("does not run as root: make a user of its own (adduser "
		       "--system --group airlock) and start it as that user, "
		       "by examples/airlockd.service or with setpriv(1)");
	prepare(d);
	start_database(d);
	start_core(d);
	watch_signals(d);
	log_info("ready: version %s, state in '%s', sockets in '%s', database "
		 "'%s', %zu agent%s",
	    AIRLOCK_VERSION, d->state.path, d->state.runtime,
	    d->run.gate.database.name, d->run.gate.nagents,
	    d->run.gate.nagents == 1 ? "" : "s");
	notify("READY=1");
	event_base_dispatch(d->base);
	if (d->status == 0)
		log_info("stopped");
	close_all(d);
	return d->status;
}

int
main(int argc, char **argv)
{
	static struct daemon d;
	struct err e = ERR_INIT;

	/* The child's descriptors are its parent's business. */
	if (argc == 2 && strcmp(argv[1], "--parser") == 0)
		return parser_child();
	harden_descriptors();
	log_init("airlockd", LOG_INFO);
	if (flags_parse(&d.flags, argc, argv, &e) != 0)
		fatalx("%s", e.text);
	if (d.flags.value[FLAG_PARSER] != NULL)
		fatalx("--parser is internal and stands alone");
	if (d.flags.value[FLAG_HELP] != NULL) {
		flags_usage(stdout);
		return fflush(stdout) == 0 ? 0 : 1;
	}
	if (d.flags.value[FLAG_VERSION] != NULL) {
		printf("airlockd %s\n", AIRLOCK_VERSION);
		return fflush(stdout) == 0 ? 0 : 1;
	}
	if (d.flags.value[FLAG_GRANTS] != NULL)
		return print_grants(&d.flags);
	d.config_path = find_config(&d.flags);
	if (d.flags.value[FLAG_CHECK] != NULL)
		return check_config(&d);
	return serve(&d);
}
