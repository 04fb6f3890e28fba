/* sweep_visible: rows of a large leaf found in the pages that its visibility
 * map does not call all-visible, by the extension pg_visibility */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/sweep_narrow.h"

/*
 * Who inserts, updates or deletes a row clears the bit of its page, of both
 * where an UPDATE moves the row, and VACUUM sets none while a row in the page
 * is one that not all see alike: as long as our transaction runs, that is so of
 * each that it wrote.  So the map, read when the statement is over, shows every
 * page in which a row of ours can be.  (A row that was only locked keeps the
 * bit; it is not one that is looked for.)  The map may be wrong all the same,
 * after a crash of the disk say: it is believed where the counters agree.
 *
 * The map of a relation has a byte for each page in the server's memory; what
 * leaves it are runs of pages, so many at most.
 */
#define RUNS_MAX "16384" /* with more the smallest gaps are read too */
#define GAP_MAX "8"      /* a gap of less than that is */

static sweep_answer learnt, mapped;

/* The function is called by its name, so it must be what the extension made:
 * only a superuser makes one in C, or adds one to this extension. */
static const char function_sql[] =
    "SELECT pg_catalog.quote_ident(n.nspname),"
    " pg_catalog.current_setting('block_size')"
    " FROM pg_catalog.pg_extension e"
    " JOIN pg_catalog.pg_depend d ON d.refobjid = e.oid AND d.deptype = 'e'"
    "  AND d.refclassid ="
    "   'pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid"
    "  AND d.classid ="
    "   'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid"
    " JOIN pg_catalog.pg_proc p ON p.oid = d.objid"
    " JOIN pg_catalog.pg_language l ON l.oid = p.prolang AND l.lanname = 'c'"
    " JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace"
    " WHERE e.extname = 'pg_visibility' AND p.proname = 'pg_visibility_map'"
    "  AND p.probin IN ('$libdir/pg_visibility', 'pg_visibility')"
    "  AND p.prosrc = 'pg_visibility_map_rel' AND p.proretset"
    "  AND p.pronargs = 1 AND p.proargtypes[0] ="
    "   'pg_catalog.regclass'::pg_catalog.regtype::pg_catalog.oid"
    "  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')"
    "  AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')";

/* $1 the leaf, $2 how many pages are too many to go on counting them. */
static const char map_sql[] =
    "WITH m AS (SELECT (f.m).blkno AS page FROM ("
    "  SELECT %s.pg_visibility_map($1::pg_catalog.oid::pg_catalog.regclass)"
    "   AS m OFFSET 0) AS f"
    " WHERE NOT (f.m).all_visible LIMIT $2::pg_catalog.int8), "
    "g AS (SELECT m.page, m.page - pg_catalog.lag(m.page) OVER ("
    "  ORDER BY m.page) AS gap FROM m), "
    "b AS (SELECT g.page, g.gap IS NULL OR g.gap > " GAP_MAX
    "  AND pg_catalog.row_number() OVER (ORDER BY g.gap DESC NULLS FIRST)"
    "   <= " RUNS_MAX " AS begins FROM g), "
    "n AS (SELECT b.page, pg_catalog.count(*) FILTER (WHERE b.begins) OVER ("
    "  ORDER BY b.page ROWS UNBOUNDED PRECEDING) AS run FROM b), "
    "r AS (SELECT pg_catalog.min(n.page) AS first,"
    "  pg_catalog.max(n.page) + 1 AS past FROM n GROUP BY n.run) "
    "SELECT pg_catalog.sum(r.past - r.first),"
    " pg_catalog.array_agg(pg_catalog.format('(%%s,0)', r.first)"
    "  ORDER BY r.first),"
    " pg_catalog.array_agg(pg_catalog.format('(%%s,0)', r.past)"
    "  ORDER BY r.first) FROM r";

/* --- the map --- */

static void
ask_function(struct sweep *s)
{
	struct batch *b = sweep_narrow_batch();

	batch_add(b, function_sql, 0, NULL);
	sweep_add_back(b);
	sweep_ask(s, false, b, learnt);
}

/* Pages that may be read: where a scan is allowed too, no more than make it
 * worth while. */
static uint64_t
most_pages(const struct sweep *s, uint64_t block)
{
	uint64_t limit = s->run->gate->o->limits.sweep_limit;

	return (s->size > limit ? limit : s->size / 2) / block;
}

static void
learnt(struct sweep *s, struct batch *b)
{
	const char *schema = batch_cell(b, 2, 0, 0);
	const char *block = batch_cell(b, 2, 0, 1);
	char oid[16], most[24], *sql;
	const char *values[] = { oid, most };

	if (!sweep_is_back(b, 4)) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the observer could not be asked about a table");
		return;
	}
	if (schema == NULL || block == NULL) {
		s->no_map = true;
		sweep_no_way(s);
		return;
	}
	s->narrow->blocks = most_pages(s, strtoull(block, NULL, 10));
	snprintf(oid, sizeof(oid), "%u", s->leaf->oid);
	snprintf(most, sizeof(most), "%" PRIu64, s->narrow->blocks + 1);
	sql = mem_printf(map_sql, schema);
	b = sweep_narrow_batch();
	batch_add(b, sql, 2, values);
	sweep_add_back(b);
	sweep_ask(s, false, b, mapped);
	free(sql);
}

/* --- rows --- */

/* Parameters first and first + 1 are the runs. */
static void
add_sql(const struct sweep *s, int first, const char *where, struct text *sql)
{
	text_addf(sql,
	    "SELECT airlock_x.* FROM ROWS FROM ("
	    "pg_catalog.unnest($%d::pg_catalog.tid[]), "
	    "pg_catalog.unnest($%d::pg_catalog.tid[])) AS airlock_u(a, z) "
	    "CROSS JOIN LATERAL (SELECT ",
	    first, first + 1);
	sweep_add_columns(s->leaf, sql);
	text_addf(sql,
	    " FROM ONLY %s AS airlock_s WHERE airlock_s.ctid >= airlock_u.a "
	    "AND airlock_s.ctid < airlock_u.z AND %s OFFSET 0) AS airlock_x",
	    s->leaf->name, where);
}

static void
ask_old(struct sweep *s)
{
	const struct change *c = s->run->change;
	const char *values[] = { c->xid, c->multixact, s->span_text,
		s->narrow->first, s->narrow->past };
	struct batch *b = sweep_narrow_batch();
	struct text sql = { 0 };

	add_sql(s, 4, SWEEP_OLD, &sql);
	batch_add(b, text_str(&sql), 5, values);
	sweep_ask_old(s, b);
	text_release(&sql);
}

void
sweep_visible_new(struct sweep *s)
{
	bool any = sweep_most_new(s) > 0;
	const char *values[] = { any ? s->narrow->first : "{}",
		any ? s->narrow->past : "{}" };
	struct batch *b = sweep_narrow_batch();
	struct text sql = { 0 };

	add_sql(s, 1, SWEEP_NEW, &sql);
	batch_add(b, text_str(&sql), 2, values);
	sweep_ask_new(s, b);
	text_release(&sql);
}

static void
mapped(struct sweep *s, struct batch *b)
{
	struct narrow *w = s->narrow;
	const char *pages = batch_cell(b, 2, 0, 0);
	const char *first = batch_cell(b, 2, 0, 1);
	const char *past = batch_cell(b, 2, 0, 2);

	if (!sweep_is_back(b, 4)) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the observer could not be asked about a table");
		return;
	}
	/* No page, or too many, or the function is gone. */
	if (pages == NULL || first == NULL || past == NULL ||
	    strtoull(pages, NULL, 10) > w->blocks) {
		sweep_no_way(s);
		return;
	}
	w->first = mem_strdup(first);
	w->past = mem_strdup(past);
	if (!sweep_open_spools(s))
		return;
	if (w->many || sweep_most_old(s) == 0)
		text_add(&w->old, "{}"); /* that are looked for again */
	if (sweep_most_old(s) == 0)
		sweep_visible_new(s);
	else
		ask_old(s);
}

/* --- the beginning --- */

bool
sweep_visible(struct sweep *s)
{
	const struct limits *l = &s->run->gate->o->limits;
	bool many = sweep_most_new(s) + sweep_most_old(s) > ROWS_MAX;

	/* With row security its conditions come first, and each run of pages
	 * would be a scan of the whole. */
	if (s->mapped || s->no_map || s->doubt != NULL ||
	    s->size <= l->narrow_above || (many && s->size <= l->sweep_limit))
		return false;
	s->mapped = true;
	s->narrow = mem_new(sizeof(*s->narrow));
	s->narrow->many = many;
	ask_function(s);
	return true;
}
