/* config: airlockd.conf and flags to one checked struct, and back to text */
#include "front/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "front/config_keys.h"

#define AGENTS_MAX 64
#define OPERATORS_MAX 64
#define NAME_SIZE_MAX 32

void
config_init(struct config *c)
{
	memset(c, 0, sizeof(*c));
	limits_init(&c->gate.limits);
	c->gate.state_fd = -1;
	config_keys_init(SECTION_AIRLOCK, c);
	config_keys_init(SECTION_DATABASE, c);
}

void
config_release(struct config *c)
{
	struct gate_options *g = &c->gate;

	for (size_t i = 0; i < g->nagents; i++) {
		config_keys_release(SECTION_AGENT, &g->agents[i]);
		free(g->agents[i].name);
	}
	for (size_t i = 0; i < g->noperators; i++) {
		config_keys_release(SECTION_OPERATOR, &g->operators[i]);
		free(g->operators[i].name);
	}
	free(g->agents);
	free(g->operators);
	free(g->database.name);
	config_keys_release(SECTION_DATABASE, c);
	config_keys_release(SECTION_AIRLOCK, c);
	memset(c, 0, sizeof(*c));
}

/* Sections. */

static int
check_name(const char *name, struct err *e)
{
	size_t n = strlen(name);

	if (n >= 1 && n <= NAME_SIZE_MAX &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == n)
		return 0;
	return err_set(e, ERR_INPUT,
	    "'%.40s' is not a name: write 1 to %d of a-z, 0-9, _ and -", name,
	    NAME_SIZE_MAX);
}

static int
find_database(struct config *c, const char *name, void **target, struct err *e)
{
	if (c->gate.database.name == NULL)
		c->gate.database.name = mem_strdup(name);
	if (strcmp(c->gate.database.name, name) != 0)
		return err_set(e, ERR_INPUT,
		    "[database %s] beside [database %s]: one daemon serves one "
		    "database for now; run another with its own state "
		    "directory",
		    name, c->gate.database.name);
	*target = c;
	return 0;
}

static int
find_agent(struct config *c, const char *name, void **target, struct err *e)
{
	struct gate_options *g = &c->gate;
	struct agent_options *a;

	for (size_t i = 0; i < g->nagents; i++)
		if (strcmp(g->agents[i].name, name) == 0) {
			*target = &g->agents[i];
			return 0;
		}
	if (g->nagents == AGENTS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d agents", AGENTS_MAX);
	g->agents = mem_grow(g->agents, g->nagents + 1, sizeof(*g->agents));
	a = &g->agents[g->nagents++];
	*a = (struct agent_options){ .name = mem_strdup(name),
		.gid = (gid_t)-1 };
	config_keys_init(SECTION_AGENT, a);
	*target = a;
	return 0;
}

static int
find_operator(struct config *c, const char *name, void **target, struct err *e)
{
	struct gate_options *g = &c->gate;
	struct operator_options *o;

	for (size_t i = 0; i < g->noperators; i++)
		if (strcmp(g->operators[i].name, name) == 0) {
			*target = &g->operators[i];
			return 0;
		}
	if (g->noperators == OPERATORS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d operators",
		    OPERATORS_MAX);
	g->operators =
	    mem_grow(g->operators, g->noperators + 1, sizeof(*g->operators));
	o = &g->operators[g->noperators++];
	*o = (struct operator_options){ .name = mem_strdup(name),
		.uid = (uid_t)-1,
		.gid = (gid_t)-1 };
	config_keys_init(SECTION_OPERATOR, o);
	*target = o;
	return 0;
}

static int
find_airlock(struct config *c, const char *name UNUSED, void **target,
    struct err *e UNUSED)
{
	*target = c;
	return 0;
}

static int
find_table(struct config *c UNUSED, const char *name, void **target UNUSED,
    struct err *e)
{
	return err_set(e, ERR_INPUT,
	    "[table %s]: there is no setting for a single table yet", name);
}

/* Finds or makes what a section of this kind and name is about. */
typedef int find_target(struct config *c, const char *name, void **target,
    struct err *e);
static find_target *const finders[SECTION_N] = {
	[SECTION_AIRLOCK] = find_airlock,
	[SECTION_DATABASE] = find_database,
	[SECTION_AGENT] = find_agent,
	[SECTION_OPERATOR] = find_operator,
	[SECTION_TABLE] = find_table,
};

int
config_find(struct config *c, const char *kind, const char *name,
    enum config_section *section, void **target, struct err *e)
{
	const char *near = NULL;
	enum config_section s = config_section_by_name(kind, &near);

	if (s == SECTION_N)
		return err_set(e, ERR_INPUT, "unknown section [%.40s]; %s%s%s",
		    kind,
		    near != NULL ? "did you mean [" : "there are [airlock], ",
		    near != NULL ? near
				 : "[database NAME], [agent NAME], [operator "
				   "NAME",
		    near != NULL ? "]?" : "]");
	if (s == SECTION_AIRLOCK && name != NULL)
		return err_set(e, ERR_INPUT, "[airlock] takes no name");
	if (s != SECTION_AIRLOCK && name == NULL)
		return err_set(e, ERR_INPUT, "[%s] needs a name: [%s NAME]",
		    kind, kind);
	if (s != SECTION_AIRLOCK && s != SECTION_TABLE &&
	    check_name(name, e) != 0)
		return -1;
	*section = s;
	return finders[s](c, name, target, e);
}

static int
unknown_key(enum config_section s, const char *key, const char *near,
    struct err *e)
{
	struct text t = { 0 };

	if (near == NULL) {
		for (size_t i = 0; i < config_nkeys; i++)
			if (config_keys[i].section == s)
				text_addf(&t, "%s%s", t.len > 0 ? ", " : "",
				    config_keys[i].name);
		err_set(e, ERR_INPUT, "unknown key '%.40s' in [%s]; %s%.300s",
		    key, section_name[s],
		    s == SECTION_AIRLOCK ? "see airlockd.conf(5)"
					 : "there are ",
		    s == SECTION_AIRLOCK ? "" : text_str(&t));
		text_release(&t);
		return -1;
	}
	return err_set(e, ERR_INPUT,
	    "unknown key '%.40s' in [%s]; did you mean '%s'?", key,
	    section_name[s], near);
}

static int
set(enum config_section s, void *target, const char *key, const char *value,
    struct err *e)
{
	const char *near = NULL;
	const struct config_key *k = config_key_by_name(s, key, &near);

	if (k == NULL)
		return unknown_key(s, key, near, e);
	if (k->type->parse(k, target, value, e) != 0)
		return err_wrap(e, "'%s'", key);
	return 0;
}

int
config_set(struct config *c, const char *section, const char *name,
    const char *key, const char *value, struct err *e)
{
	enum config_section s = SECTION_N;
	void *target = NULL;

	if (config_find(c, section, name, &s, &target, e) != 0)
		return -1;
	return set(s, target, key, value, e);
}
