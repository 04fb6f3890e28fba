/* grants: the SQL that gives the three logins their least privileges */
#include "rule/grants.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ALL GRANTS_WRITER ", " GRANTS_READER

static const char logins[] =
    "-- Three logins, none a superuser, none the owner of a table.\n"
    "DO $do$\n"
    "DECLARE login text;\n"
    "BEGIN\n"
    "\tFOREACH login IN ARRAY ARRAY['" GRANTS_WRITER "', '" GRANTS_READER
    "', '" GRANTS_OBSERVER "'] LOOP\n"
    "\t\tIF NOT EXISTS (SELECT FROM pg_catalog.pg_roles\n"
    "\t\t    WHERE rolname = login) THEN\n"
    "\t\t\tEXECUTE format('CREATE ROLE %I LOGIN', login);\n"
    "\t\tEND IF;\n"
    "\t\tEXECUTE format('GRANT CONNECT ON DATABASE %I TO %I',\n"
    "\t\t    current_database(), login);\n"
    "\tEND LOOP;\n"
    "\t-- Agents make no objects, temporary ones included.\n"
    "\tEXECUTE format('REVOKE CREATE, TEMPORARY ON DATABASE %I FROM PUBLIC',\n"
    "\t    current_database());\n"
    "END\n"
    "$do$;\n"
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC;\n"
    "-- The observer sees what a change did, row security or not.  Only a\n"
    "-- superuser can grant BYPASSRLS; without it leave that line out.\n"
    "GRANT pg_read_all_data, pg_read_all_stats TO " GRANTS_OBSERVER ";\n"
    "ALTER ROLE " GRANTS_OBSERVER " BYPASSRLS;\n"
    "-- Optional: with the extension pg_visibility, which a superuser creates,\n"
    "-- the observer finds rows that others changed in a table above sweep_limit.\n"
    "DO $do$\n"
    "DECLARE f record;\n"
    "BEGIN\n"
    "\tFOR f IN SELECT n.nspname, p.oid::regprocedure AS name\n"
    "\t    FROM pg_catalog.pg_extension e\n"
    "\t    JOIN pg_catalog.pg_depend d ON d.refobjid = e.oid\n"
    "\t\tAND d.refclassid = 'pg_catalog.pg_extension'::regclass\n"
    "\t\tAND d.classid = 'pg_catalog.pg_proc'::regclass\n"
    "\t\tAND d.deptype = 'e'\n"
    "\t    JOIN pg_catalog.pg_proc p ON p.oid = d.objid\n"
    "\t\tAND p.prosrc = 'pg_visibility_map_rel'\n"
    "\t    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace\n"
    "\t    WHERE e.extname = 'pg_visibility' LOOP\n"
    "\t\tEXECUTE format('GRANT USAGE ON SCHEMA %I TO " GRANTS_OBSERVER "',\n"
    "\t\t    f.nspname);\n"
    "\t\tEXECUTE format('GRANT EXECUTE ON FUNCTION %s TO " GRANTS_OBSERVER
    "',\n"
    "\t\t    f.name);\n"
    "\tEND LOOP;\n"
    "EXCEPTION WHEN insufficient_privilege THEN\n"
    "\tRAISE NOTICE 'pg_visibility is not granted: %', SQLERRM;\n"
    "END\n"
    "$do$;\n"
    "-- Give each login its password with psql's \\password, or let pg_hba.conf\n"
    "-- admit it by certificate or peer.\n";

static const char everything[] =
    "SELECT format(g, nspname)\n"
    "FROM pg_catalog.pg_namespace, (VALUES\n"
    "    ('GRANT USAGE ON SCHEMA %I TO " ALL "'),\n"
    "    ('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO " GRANTS_READER "'),\n"
    "    ('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I '\n"
    "     'TO " GRANTS_WRITER "'),\n"
    "    ('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO " GRANTS_WRITER
    "'))\n"
    "    AS t (g)\n"
    "WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'\n"
    "\\gexec\n"
    "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO " GRANTS_READER ";\n"
    "ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES\n"
    "    TO " GRANTS_WRITER ";\n"
    "ALTER DEFAULT PRIVILEGES GRANT USAGE, SELECT ON SEQUENCES TO " GRANTS_WRITER
    ";\n"
    "ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO " ALL ";\n";

void
grants_add_logins(struct text *t)
{
	text_add(t, logins);
}

void
grants_add_everything(struct text *t)
{
	text_add(t, everything);
}

static void
add_line(struct text *t, const char *before, const char *name,
    const char *after)
{
	text_add(t, before);
	text_add(t, name);
	text_addf(t, " TO %s;\n", after);
}

static void
add_schema_tables(struct text *t, const char *schema)
{
	add_line(t, "GRANT SELECT ON ALL TABLES IN SCHEMA ", schema,
	    GRANTS_READER);
	add_line(t,
	    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN "
	    "SCHEMA ",
	    schema, GRANTS_WRITER);
	add_line(t, "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ", schema,
	    GRANTS_WRITER);
}

/* The sequences behind serial and identity columns are found by the server. */
static void
add_one_table(struct text *t, const char *whole)
{
	struct text literal = { 0 };

	for (const char *p = whole; *p != '\0'; p++)
		text_addf(&literal, *p == '\'' ? "''" : "%c", *p);
	add_line(t, "GRANT SELECT ON ", whole, GRANTS_READER);
	add_line(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON ", whole,
	    GRANTS_WRITER);
	text_addf(t,
	    "DO $do$\n"
	    "DECLARE seq regclass;\n"
	    "BEGIN\n"
	    "\tFOR seq IN SELECT s.oid FROM pg_catalog.pg_class s\n"
	    "\t    JOIN pg_catalog.pg_depend d ON d.objid = s.oid\n"
	    "\t\tAND d.classid = 'pg_catalog.pg_class'::regclass\n"
	    "\t    WHERE s.relkind = 'S' AND d.deptype IN ('a', 'i')\n"
	    "\t\tAND d.refobjid = '%s'::regclass LOOP\n"
	    "\t\tEXECUTE format('GRANT USAGE, SELECT ON SEQUENCE %%s TO " GRANTS_WRITER
	    "', seq);\n"
	    "\tEND LOOP;\n"
	    "END\n"
	    "$do$;\n",
	    text_str(&literal));
	text_release(&literal);
}

int
grants_add_table(struct text *t, const char *table, struct err *e)
{
	const char *dot = strchr(table, '.'), *name = dot ? dot + 1 : table;
	char *schema = dot != NULL ? mem_strndup(table, (size_t)(dot - table))
	                           : mem_strdup("public");
	struct text quoted = { 0 }, whole = { 0 };
	int r = -1;

	if (*schema == '\0' || *name == '\0' || strchr(name, '.') != NULL ||
	    !text_is_utf8(table, strlen(table)) ||
	    strstr(table, "$do$") != NULL) {
		err_set(e, ERR_INPUT,
		    "'%.60s' is not TABLE, SCHEMA.TABLE or SCHEMA.*", table);
		goto out;
	}
	text_add_ident(&quoted, schema);
	add_line(t, "GRANT USAGE ON SCHEMA ", quoted.s, ALL);
	if (strcmp(name, "*") == 0)
		add_schema_tables(t, quoted.s);
	else {
		text_addf(&whole, "%s.", quoted.s);
		text_add_ident(&whole, name);
		add_one_table(t, whole.s);
	}
	r = 0;
out:
	free(schema);
	text_release(&quoted);
	text_release(&whole);
	return r;
}

int
grants_add(struct text *t, size_t n, char *const *tables, struct err *e)
{
	grants_add_logins(t);
	if (n == 0)
		return grants_add_table(t, "public.*", e);
	for (size_t i = 0; i < n; i++)
		if (grants_add_table(t, tables[i], e) == -1)
			return -1;
	return 0;
}
