/* dsn: connection strings of both forms to one, by libpq's own parser */
#include "front/dsn.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define MASK "********"
#define PERCENT_HINT                                                           \
	"in a URL, write the characters / @ : %% ? & # and space of user, "    \
	"password and socket directory percent-encoded (%% as %%25, @ as %%40)"

/* What libpq says, by how it begins, and what we say instead. */
static const struct said {
	const char *libpq, *ours;
} said[] = {
	{ "invalid percent-encoded token", "percent-encoding is wrong" },
	{ "forbidden value %00 in percent-encoded value",
	    "percent-encoding of a NUL" },
	{ "invalid connection option", "there is an option that libpq does "
				       "not know" },
	{ "invalid URI query parameter", "behind the '?' is a parameter that "
					 "libpq does not know" },
	{ "missing \"=\"", "there is a word without '=' (and it does not "
			   "begin with postgresql://)" },
	{ "unterminated quoted string", "a quoted value is not closed" },
};

static int
refuse(const char *libpq, struct err *e)
{
	const char *why = "libpq does not accept it";

	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		if (libpq != NULL && text_starts_with(libpq, said[i].libpq))
			why = said[i].ours;
	return err_set(e, ERR_INPUT,
	    "not a connection string: %s; write postgresql://USER@HOST/DATABASE"
	    " or 'host=HOST dbname=DATABASE user=USER'; " PERCENT_HINT,
	    why);
}

/* Secrets are what libpq itself would show as stars or not at all. */
static bool
is_secret(const PQconninfoOption *o)
{
	return o->dispchar[0] == '*';
}

static bool
is_port_list(const char *s)
{
	long n = 0;

	for (; *s != '\0'; s++) {
		if (*s == ',') {
			n = 0;
			continue;
		}
		if (*s < '0' || *s > '9' || (n = n * 10 + (*s - '0')) > 65535)
			return false;
	}
	return true;
}

static int
check_option(const PQconninfoOption *o, struct err *e)
{
	if (!text_is_utf8(o->val, strlen(o->val)))
		return err_set(e, ERR_INPUT,
		    "the connection string's '%s' is not UTF-8", o->keyword);
	if (strcmp(o->keyword, "host") == 0 && o->val[0] != '/' &&
	    strpbrk(o->val, "@?# ") != NULL)
		return err_set(e, ERR_INPUT,
		    "the connection string's host holds characters that no "
		    "host name has; " PERCENT_HINT);
	if (strcmp(o->keyword, "port") == 0 && !is_port_list(o->val))
		return err_set(e, ERR_INPUT,
		    "the connection string's port is not a number from 1 to "
		    "65535; " PERCENT_HINT);
	if (strcmp(o->keyword, "replication") == 0)
		return err_set(e, ERR_INPUT,
		    "a connection for replication is of no use here");
	for (const char *p = o->val; *p != '\0' && !is_secret(o); p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return err_set(e, ERR_INPUT,
			    "the connection string's '%s' holds a control "
			    "character",
			    o->keyword);
	return 0;
}

/* NULL with *e filled; the caller frees with PQconninfoFree. */
static PQconninfoOption *
parse(const char *dsn, struct err *e)
{
	char *message = NULL;
	PQconninfoOption *o = PQconninfoParse(dsn, &message);

	if (o == NULL) {
		refuse(message, e);
		if (message != NULL)
			mem_wipe(message, strlen(message));
		PQfreemem(message);
		return NULL;
	}
	for (PQconninfoOption *p = o; p->keyword != NULL; p++) {
		if (p->val != NULL && check_option(p, e) != 0) {
			PQconninfoFree(o);
			return NULL;
		}
	}
	return o;
}

void
dsn_add(struct text *t, const char *keyword, const char *value)
{
	text_addf(t, "%s%s=", t->len > 0 ? " " : "", keyword);
	if (*value != '\0' && strpbrk(value, " '\\\t\r\n\v\f") == NULL) {
		text_add(t, value);
		return;
	}
	text_addc(t, '\'');
	for (; *value != '\0'; value++) {
		if (*value == '\'' || *value == '\\')
			text_addc(t, '\\');
		text_addc(t, *value);
	}
	text_addc(t, '\'');
}

static const char *
value_in(const PQconninfoOption *all, const char *keyword)
{
	for (; all->keyword != NULL; all++)
		if (strcmp(all->keyword, keyword) == 0)
			return all->val;
	return NULL;
}

static bool
same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* libpq's defaults as they would be with (NULL: without) a service. */
static PQconninfoOption *
defaults_with(const char *service)
{
	const char *now = getenv("PGSERVICE");
	char *saved = now != NULL ? mem_strdup(now) : NULL;
	PQconninfoOption *o;

	if (service != NULL)
		setenv("PGSERVICE", service, 1);
	else
		unsetenv("PGSERVICE");
	o = PQconndefaults();
	if (saved != NULL)
		setenv("PGSERVICE", saved, 1);
	else
		unsetenv("PGSERVICE");
	free(saved);
	return o;
}

/* PQconndefaults passes over a service that is not there; we do not. */
static PQconninfoOption *
defaults(const char *service, struct err *e)
{
	PQconninfoOption *with = NULL, *without = defaults_with(NULL);
	bool found = service == NULL;

	if (without != NULL && service != NULL)
		with = defaults_with(service);
	if (without == NULL || (service != NULL && with == NULL)) {
		PQconninfoFree(without);
		err_set(e, ERR_SYSTEM, "cannot get libpq's defaults");
		return NULL;
	}
	if (service == NULL)
		return without;
	for (PQconninfoOption *p = with; p->keyword != NULL; p++)
		if (strcmp(p->keyword, "service") != 0 &&
		    !same(p->val, value_in(without, p->keyword)))
			found = true;
	PQconninfoFree(without);
	if (found)
		return with;
	PQconninfoFree(with);
	err_set(e, ERR_INPUT,
	    "service '%.60s' is not in pg_service.conf, or sets nothing",
	    service);
	return NULL;
}

int
dsn_parse(const char *dsn, char **out, struct err *e)
{
	PQconninfoOption *o = parse(dsn, e);
	struct text t = { 0 };

	if (o == NULL)
		return -1;
	for (PQconninfoOption *p = o; p->keyword != NULL; p++)
		if (p->val != NULL)
			dsn_add(&t, p->keyword, p->val);
	PQconninfoFree(o);
	*out = text_take(&t);
	return 0;
}

/* What the service says has been put in: libpq need not read it again, and
 * could not once the environment is scrubbed. */
static bool
is_spent(const char *keyword)
{
	return strcmp(keyword, "service") == 0 ||
	       strcmp(keyword, "servicefile") == 0;
}

int
dsn_resolve(const char *dsn, char **out, struct err *e)
{
	PQconninfoOption *o = parse(dsn, e), *base;
	const char *service;
	struct text t = { 0 };

	if (o == NULL)
		return -1;
	service = value_in(o, "service");
	if (service == NULL)
		service = getenv("PGSERVICE");
	base = defaults(service, e);
	if (base == NULL) {
		PQconninfoFree(o);
		return -1;
	}
	for (PQconninfoOption *p = o; p->keyword != NULL; p++) {
		const char *v = value_in(base, p->keyword);

		if (is_spent(p->keyword))
			continue;
		if (p->val != NULL)
			dsn_add(&t, p->keyword, p->val);
		else if (v != NULL && !same(v, p->compiled))
			dsn_add(&t, p->keyword, v);
	}
	PQconninfoFree(o);
	PQconninfoFree(base);
	*out = text_take(&t);
	return 0;
}

bool
dsn_has_password(const char *dsn)
{
	PQconninfoOption *o = PQconninfoParse(dsn, NULL);
	bool found = o == NULL;

	for (PQconninfoOption *p = o; p != NULL && p->keyword != NULL; p++)
		if (p->val != NULL && is_secret(p))
			found = true;
	PQconninfoFree(o);
	return found;
}

char *
dsn_masked(const char *dsn)
{
	PQconninfoOption *o = PQconninfoParse(dsn, NULL);
	struct text t = { 0 };

	if (o == NULL)
		return mem_strdup(MASK);
	for (PQconninfoOption *p = o; p->keyword != NULL; p++)
		if (p->val != NULL)
			dsn_add(&t, p->keyword, is_secret(p) ? MASK : p->val);
	PQconninfoFree(o);
	return text_take(&t);
}
