/* nearest: names that an agent may have meant, of those that it may see */
#include "core/nearest.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"

#define NAME_MAX_BYTES 64
#define SHOWN 3

struct nearest {
	struct pool *pool;
	char name[NAME_MAX_BYTES];
	nearest_done *done;
	void *arg;
};

/* clang-format off */
static const char relations_sql[] =
    "SELECT c.relname, pg_catalog.quote_ident(n.nspname) || '.' ||"
    "  pg_catalog.quote_ident(c.relname)"
    " FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition"
    "  AND c.oid >= '16384'"
    "  AND n.nspname !~ '^pg_(temp|toast)'::pg_catalog.text"
    "  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')"
    "  AND (pg_catalog.has_table_privilege(c.oid,"
    "    'SELECT, INSERT, UPDATE, DELETE')"
    "   OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'))"
    " ORDER BY n.nspname, c.relname LIMIT 2000";

static const char columns_sql[] =
    "SELECT a.attname, pg_catalog.quote_ident(c.relname) || '.' ||"
    "  pg_catalog.quote_ident(a.attname)"
    " FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY"
    "  AS r(name, i)"
    " JOIN pg_catalog.pg_class c"
    "  ON c.oid = pg_catalog.to_regclass(r.name)::pg_catalog.oid"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
    "  AND NOT a.attisdropped"
    " WHERE pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')"
    " ORDER BY r.i, a.attnum LIMIT 2000";
/* clang-format on */

bool
nearest_fits(const char *state)
{
	return strcmp(state, "42P01") == 0 || strcmp(state, "42703") == 0;
}

static int
least(int a, int b)
{
	return a < b ? a : b;
}

int
nearest_distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	int rows[3][NAME_MAX_BYTES + 1], *old = rows[0], *last = rows[1],
					 *now = rows[2], *free_row;

	if (la > NAME_MAX_BYTES || lb > NAME_MAX_BYTES ||
	    (la > lb ? la - lb : lb - la) >= NEAREST_FAR)
		return NEAREST_FAR;
	memset(rows, 0, sizeof(rows));
	for (size_t j = 0; j <= lb; j++)
		last[j] = (int)j;
	for (size_t i = 1; i <= la; i++) {
		now[0] = (int)i;
		for (size_t j = 1; j <= lb; j++) {
			bool same = tolower((unsigned char)a[i - 1]) ==
			            tolower((unsigned char)b[j - 1]);

			now[j] = least(last[j - 1] + !same,
			    1 + least(last[j], now[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				now[j] = least(now[j], old[j - 2] + 1);
		}
		free_row = old;
		old = last;
		last = now;
		now = free_row;
	}
	return least(last[lb], NEAREST_FAR);
}

/* How far a name is; one that holds the other whole is not far. */
static int
rank(const char *asked, const char *name)
{
	size_t len = strlen(asked);
	int d = nearest_distance(asked, name);

	if (d < NEAREST_FAR && (size_t)d * 2 < len)
		return d;
	if (len >= 3 && strlen(name) >= 3 &&
	    (strcasestr(name, asked) != NULL ||
		strcasestr(asked, name) != NULL))
		return NEAREST_FAR;
	return -1;
}

/* The last part of the name that begins here: schema.table, t.column. */
static void
last_part(const char *s, char name[NAME_MAX_BYTES])
{
	size_t n = 0;

	for (bool more = true; more;) {
		bool quoted = *s == '"';

		n = 0;
		for (s += quoted; *s != '\0'; s++) {
			unsigned char c = (unsigned char)*s;

			if (quoted ? c == '"'
				   : c < 0x80 && !isalnum(c) && c != '_' &&
					 c != '$')
				break;
			if (n < NAME_MAX_BYTES - 1)
				name[n++] = (char)(quoted ? c : tolower(c));
		}
		s += quoted && *s == '"';
		more = *s == '.' && s[1] != '*';
		s += more;
	}
	name[n] = '\0';
}

static void
add_best(struct text *t, const struct nearest *n, const struct batch *b)
{
	int shown = 0;

	for (int far = 0; far <= NEAREST_FAR && shown < SHOWN; far++)
		for (int i = 0; i < batch_ntuples(b, 0) && shown < SHOWN; i++) {
			const char *name = batch_cell(b, 0, i, 0);
			const char *full = batch_cell(b, 0, i, 1);

			if (name == NULL || full == NULL ||
			    rank(n->name, name) != far)
				continue;
			text_add(t, shown++ > 0 ? ", " : "");
			text_quote(t, full, strlen(full));
		}
}

static void
told(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct nearest *n = arg;
	struct text t = { 0 };

	if (!batch_is_lost(b) && batch_is_ok(b))
		add_best(&t, n, b);
	n->done(n->arg, text_str(&t));
	text_release(&t);
	free(n);
}

struct nearest *
nearest_ask(struct pool *p, const char *state, const char *name,
    const struct facts *f, nearest_done *done, void *arg)
{
	struct nearest *n = mem_new(sizeof(*n));
	struct batch *b = batch_new();
	struct text relations = { 0 };
	const char *values[1];

	n->pool = p;
	n->done = done;
	n->arg = arg;
	last_part(name, n->name);
	if (strcmp(state, "42P01") == 0) {
		batch_add(b, relations_sql, 0, NULL);
	} else {
		facts_add_relations(&relations, &f->writes);
		facts_add_relations(&relations, &f->reads);
		text_end_items(&relations);
		values[0] = text_str(&relations);
		batch_add(b, columns_sql, 1, values);
	}
	pool_ask(p, b, told, n);
	text_release(&relations);
	return n;
}

void
nearest_cancel(struct nearest *n)
{
	if (n == NULL)
		return;
	pool_forget(n->pool, n);
	free(n);
}
