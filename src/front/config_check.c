/* config_check: what must fit together, what is filled in, and reloading */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "front/config.h"
#include "front/config_keys.h"
#include "front/dsn.h"

#define DATABASE_NAME "main"
#define AGENT_NAME "agent"

/* Where nobody is named: the daemon's own user may do everything. */
static int
fill_operator(struct config *c, struct err *e)
{
	const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
	const struct passwd *pw = getpwuid(geteuid());
	const char *name = pw != NULL ? pw->pw_name : "operator";
	char uid[16];

	if (strlen(name) > 32 || strspn(name, allowed) != strlen(name))
		name = "operator";
	snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	if (config_set(c, "operator", name, "user", uid, e) != 0)
		return -1;
	return config_set(c, "operator", name, "role", "admin", e);
}

static int
fill(struct config *c, struct err *e)
{
	struct gate_options *g = &c->gate;

	if (g->database.name == NULL)
		g->database.name = mem_strdup(DATABASE_NAME);
	if (g->nagents == 0 && config_set(c, "agent", AGENT_NAME, "access",
				   access_name[ACCESS_DATA], e) != 0)
		return -1;
	if (g->noperators == 0 && fill_operator(c, e) != 0)
		return -1;
	c->embedded = g->database.writer_dsn != NULL &&
	              strcmp(g->database.writer_dsn, CONFIG_EMBEDDED) == 0;
	g->parser.statement_bytes_max = g->limits.statement_bytes_max;
	g->guard.hosts = c->guard_hosts;
	g->state_dir = c->state_dir;
	g->runtime_dir = c->runtime_dir;
	return 0;
}

/* Without a list it is the daemon's own uid that may connect. */
static bool
may_connect(const struct agent_options *a, uid_t uid)
{
	if (a->nuids == 0)
		return uid == geteuid();
	for (size_t i = 0; i < a->nuids; i++)
		if (a->uids[i] == uid)
			return true;
	return false;
}

static bool
share_a_uid(const struct agent_options *a, const struct agent_options *b,
    uid_t *uid)
{
	*uid = geteuid();
	if (a->nuids == 0)
		return may_connect(b, *uid);
	for (size_t i = 0; i < a->nuids; i++) {
		*uid = a->uids[i];
		if (may_connect(b, *uid))
			return true;
	}
	return false;
}

static int
check_pair(const struct agent_options *a, const struct agent_options *b,
    struct err *e)
{
	uid_t uid = 0;

	if (a->access == b->access)
		return 0;
	if (share_a_uid(a, b, &uid))
		return err_set(e, ERR_INPUT,
		    "agents '%s' and '%s' differ in access but uid %u may "
		    "connect to both; give them users of their own, or set "
		    "shared_uid = yes",
		    a->name, b->name, (unsigned)uid);
	return 0;
}

static int
check_agent(const struct config *c, const struct agent_options *a,
    struct err *e)
{
	bool others = false;

	if (a->gid != (gid_t)-1 && a->nuids == 0)
		return err_set(e, ERR_INPUT,
		    "agent '%s' has a group but no users; the group only "
		    "narrows who can try to connect",
		    a->name);
	for (size_t i = 0; i < a->nuids; i++)
		others = others || a->uids[i] != geteuid();
	if (others && c->runtime_dir == NULL)
		return err_set(e, ERR_INPUT,
		    "agent '%s' is for other users, who cannot reach a socket "
		    "in the state directory; set runtime_dir",
		    a->name);
	return 0;
}

static int
check_operator(const struct config *c, const struct operator_options *o,
    struct err *e)
{
	if ((o->uid == (uid_t)-1) == (o->gid == (gid_t)-1))
		return err_set(e, ERR_INPUT,
		    "operator '%s' needs either a user or a group", o->name);
	if (o->uid != geteuid() && c->runtime_dir == NULL)
		return err_set(e, ERR_INPUT,
		    "operator '%s' is another user, who cannot reach a socket "
		    "in the state directory; set runtime_dir",
		    o->name);
	return 0;
}

static int
check(const struct config *c, struct err *e)
{
	const struct gate_options *g = &c->gate;

	if (g->database.writer_dsn == NULL)
		return err_set(e, ERR_INPUT,
		    "no database: give --db URL, --db embedded, or writer_dsn "
		    "in [database NAME]");
	if (c->init_file != NULL && !c->embedded)
		return err_set(e, ERR_INPUT,
		    "an init file is for the embedded database only");
	if (c->embedded && (g->database.reader_dsn != NULL ||
			       g->database.observer_dsn != NULL))
		return err_set(e, ERR_INPUT,
		    "the embedded database has logins of its own; leave "
		    "reader_dsn and observer_dsn out");
	if (g->limits.rows_default > g->limits.rows_max)
		return err_set(e, ERR_INPUT,
		    "rows_default is more than rows_max");
	if (g->limits.cell_bytes_max > g->limits.result_bytes_max)
		return err_set(e, ERR_INPUT,
		    "cell_bytes_max is more than result_bytes_max");
	for (size_t i = 0; i < g->nagents; i++) {
		if (check_agent(c, &g->agents[i], e) != 0)
			return -1;
		for (size_t j = 0; j < i && !c->shared_uid; j++)
			if (check_pair(&g->agents[j], &g->agents[i], e) != 0)
				return -1;
	}
	for (size_t i = 0; i < g->noperators; i++)
		if (check_operator(c, &g->operators[i], e) != 0)
			return -1;
	return 0;
}

int
config_finish(struct config *c, struct err *e)
{
	if (fill(c, e) != 0)
		return -1;
	return check(c, e);
}

void
config_overlaps(const struct config *c, struct text *out)
{
	const struct gate_options *g = &c->gate;
	const char *left =
	    g->guard.mode == GUARD_OFF
		? "nothing keeps the agent from deciding"
		: "only operator_guard, which is no wall, keeps the agent from "
		  "deciding";

	for (size_t i = 0; i < g->nagents; i++) {
		const struct agent_options *a = &g->agents[i];

		if (may_connect(a, geteuid()))
			text_addf(out,
			    "agent '%s' may run as airlockd's own uid %u: its "
			    "processes can read the connection strings and the "
			    "state directory\n",
			    a->name, (unsigned)geteuid());
		for (size_t j = 0; j < g->noperators; j++)
			if (g->operators[j].uid != (uid_t)-1 &&
			    may_connect(a, g->operators[j].uid))
				text_addf(out,
				    "agent '%s' and operator '%s' share uid "
				    "%u: %s\n",
				    a->name, g->operators[j].name,
				    (unsigned)g->operators[j].uid, left);
	}
}

/* Calls each(arg, ...) for all sections in the order of a file. */
typedef int each_section(enum config_section s, const char *name, void *target,
    void *arg);

static int
walk(struct config *c, each_section *each, void *arg)
{
	struct gate_options *g = &c->gate;
	int r = each(SECTION_AIRLOCK, NULL, c, arg);

	if (r == 0 && g->database.name != NULL)
		r = each(SECTION_DATABASE, g->database.name, c, arg);
	for (size_t i = 0; r == 0 && i < g->nagents; i++)
		r = each(SECTION_AGENT, g->agents[i].name, &g->agents[i], arg);
	for (size_t i = 0; r == 0 && i < g->noperators; i++)
		r = each(SECTION_OPERATOR, g->operators[i].name,
		    &g->operators[i], arg);
	return r;
}

/* Resolving. */

static int
resolve(enum config_section s, const char *name UNUSED, void *target, void *arg)
{
	for (size_t i = 0; i < config_nkeys; i++) {
		const struct config_key *k = &config_keys[i];
		char **dsn, *whole;

		if (k->section != s || !config_key_is_dsn(k))
			continue;
		dsn = (char **)(void *)((char *)target + k->offset);
		if (*dsn == NULL || strcmp(*dsn, CONFIG_EMBEDDED) == 0)
			continue;
		if (dsn_resolve(*dsn, &whole, arg) != 0)
			return err_wrap(arg, "'%s'", k->name);
		mem_free_secret(*dsn);
		*dsn = whole;
	}
	return 0;
}

int
config_resolve(struct config *c, struct err *e)
{
	return walk(c, resolve, e);
}

/* Printing. */

static int
print(enum config_section s, const char *name, void *target, void *arg)
{
	FILE *out = arg;

	fprintf(out, "%s[%s%s%s]\n", s != SECTION_AIRLOCK ? "\n" : "",
	    section_name[s], name != NULL ? " " : "", name != NULL ? name : "");
	for (size_t i = 0; i < config_nkeys; i++) {
		const struct config_key *k = &config_keys[i];
		struct text t = { 0 };

		if (k->section != s)
			continue;
		k->type->show(k, target, &t);
		if (t.len > 0)
			fprintf(out, "%s = %s\n", k->name, t.s);
		text_release(&t);
	}
	return 0;
}

void
config_print(const struct config *c, FILE *out)
{
	struct config lent = *c; /* walk lends fields that it could change */

	(void)walk(&lent, print, out);
}

/* Reloading. */

struct reload {
	struct config *running, *read;
	struct text *waits;
	int taken;
};

/* The same section of another config; NULL where it has none. */
static void *
twin(struct config *c, enum config_section s, const char *name)
{
	struct gate_options *g = &c->gate;

	if (s == SECTION_AIRLOCK ||
	    (s == SECTION_DATABASE && g->database.name != NULL &&
		strcmp(g->database.name, name) == 0))
		return c;
	for (size_t i = 0; s == SECTION_AGENT && i < g->nagents; i++)
		if (strcmp(g->agents[i].name, name) == 0)
			return &g->agents[i];
	for (size_t i = 0; s == SECTION_OPERATOR && i < g->noperators; i++)
		if (strcmp(g->operators[i].name, name) == 0)
			return &g->operators[i];
	return NULL;
}

/* what: "'access' in", "new" or "removed"; the section follows. */
static void
wait_for(struct reload *r, const char *what, enum config_section s,
    const char *name)
{
	text_addf(r->waits, "%s%s [%s%s%s]", r->waits->len > 0 ? ", " : "",
	    what, section_name[s], name != NULL ? " " : "",
	    name != NULL ? name : "");
}

/* What a key is in a file; a secret is compared as it is, not as shown. */
static void
render(const struct config_key *k, void *target, struct text *out)
{
	char **dsn = (char **)(void *)((char *)target + k->offset);

	if (!config_key_is_dsn(k))
		k->type->show(k, target, out);
	else if (*dsn != NULL)
		text_add(out, *dsn);
}

static void
wait_for_key(struct reload *r, const struct config_key *k, const char *name)
{
	char *what = mem_printf("'%s' in", k->name);

	wait_for(r, what, k->section, name);
	free(what);
}

static void
take_key(struct reload *r, const struct config_key *k, const char *name,
    void *fresh, void *old)
{
	struct text now = { 0 }, was = { 0 };
	struct err e = ERR_INIT;

	render(k, fresh, &now);
	render(k, old, &was);
	if (strcmp(text_str(&now), text_str(&was)) == 0)
		goto out;
	if (k->reloadable && k->section == SECTION_AIRLOCK && now.len > 0 &&
	    k->type->parse(k, r->read, now.s, &e) == 0 &&
	    k->type->parse(k, r->running, now.s, &e) == 0)
		r->taken++;
	else
		wait_for_key(r, k, name);
out:
	if (config_key_is_dsn(k) && now.len > 0)
		mem_wipe(now.s, now.len);
	if (config_key_is_dsn(k) && was.len > 0)
		mem_wipe(was.s, was.len);
	text_release(&now);
	text_release(&was);
}

static int
take_section(enum config_section s, const char *name, void *target, void *arg)
{
	struct reload *r = arg;
	void *old = twin(r->read, s, name);

	if (old == NULL) {
		wait_for(r, "new", s, name);
		return 0;
	}
	for (size_t i = 0; i < config_nkeys; i++)
		if (config_keys[i].section == s)
			take_key(r, &config_keys[i], name, target, old);
	return 0;
}

static int
find_removed(enum config_section s, const char *name, void *target UNUSED,
    void *arg)
{
	struct reload *r = ((void **)arg)[0];
	struct config *fresh = ((void **)arg)[1];

	if (twin(fresh, s, name) == NULL)
		wait_for(r, "removed", s, name);
	return 0;
}

int
config_reload(struct config *running, struct config *read,
    const struct config *fresh, struct text *waits)
{
	struct reload r = { .running = running, .read = read, .waits = waits };
	struct config lent = *fresh;
	void *both[] = { &r, &lent };

	(void)walk(&lent, take_section, &r);
	(void)walk(read, find_removed, both);
	return r.taken;
}
