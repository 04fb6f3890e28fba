/* deferred: constraints that an earlier statement's examination made immediate
 * are deferred again before a statement is added */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/run.h"

/* Those that begin deferred, and no others: one that begins immediate fails its
 * own statement.  Named, for the statement knows no oids; ALL where a name is
 * another's too that does not defer, or cannot be named by this login. */
static const char names_sql[] =
    "SELECT CASE WHEN pg_catalog.bool_or(x.ambiguous) THEN 'ALL'"
    " ELSE pg_catalog.string_agg(x.name, ', ') END FROM (SELECT DISTINCT"
    " pg_catalog.quote_ident(n.nspname) || '.' ||"
    "  pg_catalog.quote_ident(c.conname) AS name,"
    " NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE') OR EXISTS"
    "  (SELECT FROM pg_catalog.pg_constraint o WHERE o.conname = c.conname"
    "   AND o.connamespace = c.connamespace AND NOT o.condeferred) AS ambiguous"
    " FROM pg_catalog.pg_constraint c"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.connamespace"
    " WHERE c.condeferred AND c.conparentid = '0') x";

static void
told(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct run *r = arg;
	const char *names = NULL;

	if (batch_is_lost(b)) {
		(void)run_refuse(r, REASON_DATABASE_DOWN, "%s",
		    batch_err(b)->text);
		return;
	}
	/* Not told: all of them, as a failure is then known all the same. */
	names = batch_is_ok(b) ? batch_cell(b, 0, 0, 0) : "ALL";
	free(r->deferrable);
	r->deferrable = names != NULL
	                    ? mem_printf("SET CONSTRAINTS %s DEFERRED", names)
	                    : NULL;
	run_go(r);
}

enum run_next
run_deferrable(struct run *r)
{
	struct batch *b;

	if (!r->adding)
		return RUN_GO;
	b = batch_new();
	batch_add_kept(b, names_sql, 0, NULL);
	pool_ask(r->change->login->pool, b, told, r);
	return RUN_WAIT;
}
