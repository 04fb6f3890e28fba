/* gate: owns the links, the changes, the journal and the agents */
#include "core/gate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "core/internal.h"
#include "core/judge.h"

#define SYNC_MS 1000

/* --- logins --- */

static void
login_changed(void *arg, struct pool *p UNUSED, const struct err *e)
{
	struct login *l = arg;

	if (e != NULL)
		return;
	catalog_refresh(l->catalog);
	decide_resolve_soon(l->gate);
}

/* One pool for all who would connect in the same way. */
static struct login *
login(struct gate *g, const char *dsn, const char *search_path)
{
	const struct limits *l = &g->o->limits;
	struct pool_options o = {
		.conninfo = dsn,
		.search_path = search_path,
		.links_max = l->changes_max + l->reads_max,
		.connect_timeout_ms = l->connect_timeout_ms,
		.lock_timeout_ms = l->lock_timeout_ms,
		.statement_timeout_ms = l->read_timeout_ms,
		.row_bytes_max = l->row_bytes_max,
	};
	struct login *n;

	for (size_t i = 0; i < g->nlogins; i++)
		if (pool_is_for(g->logins[i]->pool, &o))
			return g->logins[i];
	n = mem_new(sizeof(*n));
	n->gate = g;
	n->pool = pool_new(g->base, &o, login_changed, n);
	n->catalog = catalog_new(n->pool);
	n->reach = reach_list_new(n->pool, judge_rules());
	g->logins = mem_grow(g->logins, g->nlogins + 1, sizeof(*g->logins));
	g->logins[g->nlogins++] = n;
	return n;
}

static const char *
first(const char *a, const char *b, const char *c)
{
	return a != NULL ? a : b != NULL ? b : c;
}

static void
connect_all(struct gate *g)
{
	const struct database_options *d = &g->o->database;

	g->nagents = g->o->nagents;
	g->agents = mem_array(g->nagents, sizeof(*g->agents));
	for (size_t i = 0; i < g->nagents; i++) {
		const struct agent_options *o = &g->o->agents[i];
		const char *path =
		    first(o->search_path, d->search_path, "\"$user\", public");
		const char *writer = first(o->writer_dsn, NULL, d->writer_dsn);
		struct agent_logins *l = mem_new(sizeof(*l));

		l->writer = login(g, writer, path);
		l->reader = login(g,
		    o->reader_dsn != NULL
			? o->reader_dsn
			: first(o->writer_dsn, d->reader_dsn, writer),
		    path);
		g->agents[i] = (struct agent){ .o = o, .links = l };
	}
	g->observer =
	    login(g, first(d->observer_dsn, d->writer_dsn, d->writer_dsn),
		first(d->search_path, "\"$user\", public", ""));
}

/* --- start --- */

static const char *const files[] = { "rows.ndjson", "rows.next", "rows.folded",
	"rows.net" };
#define NFILES (sizeof(files) / sizeof(files[0]))

/* Files of changes that an earlier run held: nothing of them is left in the
 * database, and what must outlive them is in the journal. */
static void
sweep_changes(int fd)
{
	DIR *dir = fdopendir(dup(fd));
	struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		int sub;

		if (strncmp(d->d_name, "chg_", 4) != 0)
			continue;
		sub = openat(fd, d->d_name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub != -1) {
			for (size_t i = 0; i < NFILES; i++)
				(void)unlinkat(sub, files[i], 0);
			close(sub);
		}
		if (unlinkat(fd, d->d_name, AT_REMOVEDIR) == -1)
			log_warn("cannot remove changes/%s", d->d_name);
	}
	if (dir != NULL)
		closedir(dir);
}

static int
open_changes(struct gate *g, struct err *e)
{
	if (mkdirat(g->o->state_fd, "changes", 0700) == -1 && errno != EEXIST)
		return err_sys(e, "cannot make 'changes'");
	g->changes_fd = openat(g->o->state_fd, "changes",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (g->changes_fd == -1)
		return err_sys(e, "cannot open 'changes'");
	sweep_changes(g->changes_fd);
	return 0;
}

static void
sync_journal(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct gate *g = arg;
	struct err e = ERR_INIT;

	if (journal_sync(g->journal, &e) == -1)
		log_warnx("journal: %s", e.text);
}

static void
add_agent_uids(struct gate *g)
{
	guard_add_agent_uid(g->guard, geteuid());
	for (size_t i = 0; i < g->nagents; i++)
		for (size_t k = 0; k < g->agents[i].o->nuids; k++)
			guard_add_agent_uid(g->guard, g->agents[i].o->uids[k]);
}

static void stopped(evutil_socket_t fd, short what, void *arg);

int
gate_new(struct event_base *base, const struct gate_options *o,
    struct gate **out, struct err *e)
{
	struct gate *g = mem_new(sizeof(*g));
	static const struct timeval every = { SYNC_MS / 1000, 0 };

	g->base = base;
	g->o = o;
	g->changes_fd = -1;
	g->started_wall = clock_wall_ms();
	TAILQ_INIT(&g->changes);
	TAILQ_INIT(&g->over);
	g->ended = json_object();
	g->in_doubt = json_array();
	g->stop_event = evtimer_new(base, stopped, g);
	if (journal_open(o->state_fd, &o->journal, &g->journal, e) == -1 ||
	    open_changes(g, e) == -1 || recover(g, e) == -1)
		goto bad;
	if (!gate_record(g,
		json_pack("{s:s, s:s}", "kind", "start", "version",
		    AIRLOCK_VERSION),
		true)) {
		err_set(e, ERR_SYSTEM, "cannot write to the journal");
		goto bad;
	}
	g->sync = event_new(base, -1, EV_PERSIST, sync_journal, g);
	event_add(g->sync, &every);
	g->parser = parser_new(base, &o->parser);
	g->guard = guard_new(&o->guard);
	connect_all(g);
	add_agent_uids(g);
	*out = g;
	return 0;
bad:
	gate_free(g);
	return -1;
}

/* --- stop --- */

static bool
is_quiet(const struct gate *g)
{
	const struct change *c;

	TAILQ_FOREACH (c, &g->changes, next)
		if (c->state != CHANGE_IN_DOUBT)
			return false;
	return true;
}

static void
stopped(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct gate *g = arg;

	if (!is_quiet(g) || g->stopped == NULL)
		return;
	(void)gate_record(g, json_pack("{s:s}", "kind", "stop"), true);
	g->stopped(g->stopped_arg);
	g->stopped = NULL;
}

/* A change being committed is waited for: its end is the truth. */
void
gate_stop(struct gate *g, void (*done)(void *arg), void *arg)
{
	static const struct timeval now = { 0, 0 };
	struct change *c, *next;

	g->stopping = true;
	g->stopped = done;
	g->stopped_arg = arg;
	for (c = TAILQ_FIRST(&g->changes); c != NULL; c = next) {
		next = TAILQ_NEXT(c, next);
		if (c->state == CHANGE_RUNNING && c->run != NULL) {
			run_abort(c->run);
			change_free(c);
		} else if (c->state == CHANGE_HELD ||
			   c->state == CHANGE_ADDING) {
			change_end(c, WHY_SHUTDOWN, NULL, NULL);
		}
	}
	evtimer_add(g->stop_event, &now);
}

static void
free_changes(struct change_list *list)
{
	struct change *c;

	while ((c = TAILQ_FIRST(list)) != NULL) {
		if (c->run != NULL)
			run_abort(c->run);
		if (c->reader != NULL)
			query_abort(c->reader);
		change_free(c);
	}
}

void
gate_free(struct gate *g)
{
	if (g == NULL)
		return;
	free_changes(&g->changes);
	free_changes(&g->over);
	for (size_t i = 0; i < g->nlogins; i++) {
		catalog_free(g->logins[i]->catalog);
		reach_list_free(g->logins[i]->reach);
		pool_free(g->logins[i]->pool);
		free(g->logins[i]);
	}
	free(g->logins);
	for (size_t i = 0; i < g->nagents; i++) {
		free(g->agents[i].links);
		cooloff_release(&g->agents[i].cooloff);
	}
	free(g->agents);
	parser_free(g->parser);
	guard_free(g->guard);
	if (g->sync != NULL)
		event_free(g->sync);
	if (g->resolve != NULL)
		event_free(g->resolve);
	event_free(g->stop_event);
	free(g->doubt);
	journal_close(g->journal);
	json_decref(g->ended);
	json_decref(g->in_doubt);
	if (g->changes_fd != -1)
		close(g->changes_fd);
	free(g);
}

/* --- asking --- */

struct event_base *
gate_base(const struct gate *g)
{
	return g->base;
}

const struct gate_options *
gate_get_options(const struct gate *g)
{
	return g->o;
}

struct agent *
gate_agent(struct gate *g, const char *name)
{
	for (size_t i = 0; i < g->nagents; i++)
		if (strcmp(g->agents[i].o->name, name) == 0)
			return &g->agents[i];
	return NULL;
}

struct guard *
gate_guard(struct gate *g)
{
	return g->guard;
}

struct journal *
gate_journal(struct gate *g)
{
	return g->journal;
}

bool
gate_cools_off(const struct agent *a, struct reply *reply)
{
	int64_t left = cooloff_left(&a->cooloff, clock_boot_ms());

	if (left > 0)
		reply_reason(reply, REASON_COOL_OFF,
		    "%s: for another %" PRId64 " s",
		    reasons[REASON_COOL_OFF].meaning, (left + 999) / 1000);
	return left > 0;
}

void
gate_refused(struct gate *g, struct agent *a, const char *code)
{
	const struct limits *l = &g->o->limits;
	const struct cooloff_rule rule = { (size_t)l->refusals_max,
		l->refusals_window_ms, l->cool_off_ms };

	if (!cooloff_count(&a->cooloff, &rule, code, clock_boot_ms()))
		return;
	log_warnx("agent %s: %d refusals within refusals_window; nothing more "
		  "is run for it for cool_off",
	    a->o->name, l->refusals_max);
	(void)gate_record(g,
	    json_pack("{s:s, s:s, s:i, s:I}", "kind", "cool_off", "agent",
		a->o->name, "refusals", l->refusals_max, "ms",
		(json_int_t)l->cool_off_ms),
	    false);
}

bool
gate_record(struct gate *g, json_t *rec, bool sync)
{
	struct err e = ERR_INIT;

	if (rec == NULL) {
		log_warnx("journal: a record could not be made");
		return false;
	}
	if (journal_append(g->journal, rec, sync, &e) == -1) {
		log_warnx("journal: %s", e.text);
		return false;
	}
	return true;
}

static bool
all_up(const struct gate *g, const char **why)
{
	for (size_t i = 0; i < g->nlogins; i++)
		if (!pool_is_up(g->logins[i]->pool)) {
			*why = pool_why(g->logins[i]->pool);
			return false;
		}
	return true;
}

json_t *
gate_health(const struct gate *g)
{
	const char *why = "";

	return json_pack("{s:s, s:s}", "daemon",
	    g->stopping ? "stopping" : "up", "database",
	    all_up(g, &why) ? "up" : "down");
}

static json_t *
login_json(const struct login *l)
{
	const struct session_facts *f = pool_facts(l->pool);
	json_t *j = json_pack("{s:s, s:b, s:i}", "user", f->user, "up",
	    pool_is_up(l->pool), "lent", pool_lent(l->pool));
	json_t *warnings = json_array();
	const struct {
		bool holds;
		const char *text;
	} checks[] = {
		{ f->superuser, "is a superuser" },
		{ f->replication, "has REPLICATION" },
		{ f->createrole, "has CREATEROLE" },
		{ f->server_files, "may use server files or programs" },
		{ f->owns_tables, "owns tables" },
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i].holds)
			json_array_append_new(warnings,
			    json_string(checks[i].text));
	json_object_set_new(j, "warnings", warnings);
	json_object_set_new(j, "server_version", json_integer(f->version));
	if (!pool_is_up(l->pool))
		json_object_set_new(j, "why", json_string(pool_why(l->pool)));
	return j;
}

json_t *
gate_status(const struct gate *g)
{
	const struct limits *l = &g->o->limits;
	json_t *j = gate_health(g), *logins = json_array();
	json_int_t in_doubt = (json_int_t)json_array_size(g->in_doubt);
	const struct change *c;
	char since[CLOCK_ISO_SIZE];

	clock_iso(since, g->started_wall);
	for (size_t i = 0; i < g->nlogins; i++)
		json_array_append_new(logins, login_json(g->logins[i]));
	json_object_set_new(j, "version", json_string(AIRLOCK_VERSION));
	json_object_set_new(j, "started_at", json_string(since));
	json_object_set_new(j, "name", json_string(g->o->database.name));
	json_object_set_new(j, "logins", logins);
	json_object_set_new(j, "pending",
	    json_integer((json_int_t)change_pending(g, NULL)));
	json_object_set_new(j, "changes_max", json_integer(l->changes_max));
	TAILQ_FOREACH (c, &g->changes, next)
		in_doubt += c->state == CHANGE_IN_DOUBT;
	json_object_set_new(j, "in_doubt", json_integer(in_doubt));
	json_object_set_new(j, "journal_seq",
	    json_integer((json_int_t)journal_seq(g->journal)));
	json_object_set_new(j, "journal_low",
	    json_boolean(journal_is_low(g->journal)));
	json_object_set_new(j, "parser_pid",
	    json_integer(parser_pid(g->parser)));
	json_object_set_new(j, "operator_guard",
	    json_string(g->o->guard.mode == GUARD_OFF ? "off" : "ancestry"));
	return j;
}

json_t *
gate_agents(const struct gate *g)
{
	json_t *list = json_array();

	for (size_t i = 0; i < g->nagents; i++)
		json_array_append_new(list,
		    json_pack("{s:s, s:s, s:i, s:I}", "name",
			g->agents[i].o->name, "access",
			access_name[g->agents[i].o->access], "calls",
			g->agents[i].calls, "pending",
			(json_int_t)change_pending(g, &g->agents[i])));
	return list;
}

json_t *
gate_pending(const struct gate *g)
{
	json_t *list = json_array();
	const struct change *c;
	json_t *intent;
	size_t i;

	json_array_foreach (g->in_doubt, i, intent)
		json_array_append(list, json_object_get(intent, "header"));
	TAILQ_FOREACH (c, &g->changes, next)
		if (change_is_pending(c) || c->state == CHANGE_IN_DOUBT)
			json_array_append_new(list, change_header(c));
	return list;
}

json_t *
gate_doubted(const struct gate *g, const char *id)
{
	json_t *intent, *header;
	size_t i;

	json_array_foreach (g->in_doubt, i, intent) {
		header = json_object_get(intent, "header");
		if (strcmp(json_string_value(json_object_get(header, "id")),
			id) == 0)
			return json_incref(header);
	}
	return NULL;
}

static int
by_id(const void *a, const void *b)
{
	return strcmp(a, b);
}

void
gate_add_change(struct gate *g, struct change *c)
{
	if (tsearch(c->id, &g->ids, by_id) == NULL)
		fatalx("out of memory");
	TAILQ_INSERT_TAIL(&g->changes, c, next);
}

void
gate_put_over(struct gate *g, struct change *c)
{
	TAILQ_REMOVE(&g->changes, c, next);
	TAILQ_INSERT_TAIL(&g->over, c, next);
	g->nover++;
}

void
gate_remove_change(struct gate *g, struct change *c)
{
	if (change_has_ended(c)) {
		TAILQ_REMOVE(&g->over, c, next);
		g->nover--;
	} else {
		TAILQ_REMOVE(&g->changes, c, next);
	}
	tdelete(c->id, &g->ids, by_id);
}

struct change *
gate_change(struct gate *g, const char *id)
{
	char *const *found = tfind(id, &g->ids, by_id);

	return found == NULL
	           ? NULL
	           : (struct change *)(void *)(*found -
					       offsetof(struct change, id));
}

json_t *
gate_ended(struct gate *g, const char *id, const char **agent)
{
	json_t *j = json_object_get(g->ended, id);

	if (j == NULL)
		return NULL;
	*agent = json_string_value(json_object_get(j, "agent"));
	if (*agent == NULL)
		*agent = "";
	return json_incref(j);
}
