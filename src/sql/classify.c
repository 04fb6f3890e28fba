/* classify: which kind of statement a node is, and what people call it */
#include "sql/classify.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "sql/tree.h"

const char *const stmt_kind_name[STMT_NKINDS] = {
	[STMT_EMPTY] = "empty",
	[STMT_SELECT] = "select",
	[STMT_INSERT] = "insert",
	[STMT_UPDATE] = "update",
	[STMT_DELETE] = "delete",
	[STMT_MERGE] = "merge",
	[STMT_EXPLAIN] = "explain",
	[STMT_SHOW] = "show",
	[STMT_COPY] = "copy",
	[STMT_CALL] = "call",
	[STMT_DO] = "do",
	[STMT_TRANSACTION] = "transaction",
	[STMT_SESSION] = "session",
	[STMT_LOCK] = "lock",
	[STMT_TRUNCATE] = "truncate",
	[STMT_DDL] = "ddl",
	[STMT_GRANT] = "grant",
	[STMT_SYSTEM] = "system",
	[STMT_MAINTENANCE] = "maintenance",
	[STMT_OTHER] = "other",
};

/*
 * One row a statement node, found by name, so that it does not matter which
 * library has it.  The tag is put together from `tag` and, where `object` names
 * an enum field, that field's value; an object of the whole server makes it
 * STMT_SYSTEM.  Where the bool field `apart` is set, it cannot run in a
 * transaction.
 */
struct row {
	const char *node;
	enum stmt_kind kind;
	const char *tag;
	const char *object;
	const char *apart;
};

/* clang-format off */
static const struct row rows[] = {
	{ "SelectStmt", STMT_SELECT, "SELECT", NULL, NULL },
	{ "InsertStmt", STMT_INSERT, "INSERT", NULL, NULL },
	{ "UpdateStmt", STMT_UPDATE, "UPDATE", NULL, NULL },
	{ "DeleteStmt", STMT_DELETE, "DELETE", NULL, NULL },
	{ "MergeStmt", STMT_MERGE, "MERGE", NULL, NULL },
	{ "ExplainStmt", STMT_EXPLAIN, "EXPLAIN", NULL, NULL },
	{ "VariableShowStmt", STMT_SHOW, "SHOW", NULL, NULL },
	{ "CopyStmt", STMT_COPY, "COPY", NULL, NULL },
	{ "CallStmt", STMT_CALL, "CALL", NULL, NULL },
	{ "DoStmt", STMT_DO, "DO", NULL, NULL },
	{ "TransactionStmt", STMT_TRANSACTION, NULL, "kind", NULL },
	{ "VariableSetStmt", STMT_SESSION, "SET", NULL, NULL },
	{ "DiscardStmt", STMT_SESSION, "DISCARD", NULL, NULL },
	{ "PrepareStmt", STMT_SESSION, "PREPARE", NULL, NULL },
	{ "ExecuteStmt", STMT_SESSION, "EXECUTE", NULL, NULL },
	{ "DeallocateStmt", STMT_SESSION, "DEALLOCATE", NULL, NULL },
	{ "DeclareCursorStmt", STMT_SESSION, "DECLARE CURSOR", NULL, NULL },
	{ "FetchStmt", STMT_SESSION, "FETCH", NULL, NULL },
	{ "ClosePortalStmt", STMT_SESSION, "CLOSE", NULL, NULL },
	{ "ListenStmt", STMT_SESSION, "LISTEN", NULL, NULL },
	{ "UnlistenStmt", STMT_SESSION, "UNLISTEN", NULL, NULL },
	{ "NotifyStmt", STMT_SESSION, "NOTIFY", NULL, NULL },
	{ "LoadStmt", STMT_SESSION, "LOAD", NULL, NULL },
	{ "CheckPointStmt", STMT_SESSION, "CHECKPOINT", NULL, NULL },
	{ "ConstraintsSetStmt", STMT_SESSION, "SET CONSTRAINTS", NULL, NULL },
	{ "LockStmt", STMT_LOCK, "LOCK TABLE", NULL, NULL },
	{ "TruncateStmt", STMT_TRUNCATE, "TRUNCATE", NULL, NULL },

	{ "CreateStmt", STMT_DDL, "CREATE TABLE", NULL, NULL },
	{ "CreateTableAsStmt", STMT_DDL, "CREATE", "objtype", NULL },
	{ "CreateForeignTableStmt", STMT_DDL, "CREATE FOREIGN TABLE", NULL, NULL },
	{ "CreateSchemaStmt", STMT_DDL, "CREATE SCHEMA", NULL, NULL },
	{ "CreateSeqStmt", STMT_DDL, "CREATE SEQUENCE", NULL, NULL },
	{ "CreateDomainStmt", STMT_DDL, "CREATE DOMAIN", NULL, NULL },
	{ "CreateFunctionStmt", STMT_DDL, "CREATE FUNCTION", NULL, NULL },
	{ "CreateTrigStmt", STMT_DDL, "CREATE TRIGGER", NULL, NULL },
	{ "CreatePolicyStmt", STMT_DDL, "CREATE POLICY", NULL, NULL },
	{ "CreateStatsStmt", STMT_DDL, "CREATE STATISTICS", NULL, NULL },
	{ "CreateConversionStmt", STMT_DDL, "CREATE CONVERSION", NULL, NULL },
	{ "CreateCastStmt", STMT_DDL, "CREATE CAST", NULL, NULL },
	{ "CreateTransformStmt", STMT_DDL, "CREATE TRANSFORM", NULL, NULL },
	{ "CreateOpClassStmt", STMT_DDL, "CREATE OPERATOR CLASS", NULL, NULL },
	{ "CreateOpFamilyStmt", STMT_DDL, "CREATE OPERATOR FAMILY", NULL, NULL },
	{ "CreateEnumStmt", STMT_DDL, "CREATE TYPE", NULL, NULL },
	{ "CreateRangeStmt", STMT_DDL, "CREATE TYPE", NULL, NULL },
	{ "CompositeTypeStmt", STMT_DDL, "CREATE TYPE", NULL, NULL },
	{ "DefineStmt", STMT_DDL, "CREATE", "kind", NULL },
	{ "ViewStmt", STMT_DDL, "CREATE VIEW", NULL, NULL },
	{ "RuleStmt", STMT_DDL, "CREATE RULE", NULL, NULL },
	{ "IndexStmt", STMT_DDL, "CREATE INDEX", NULL, "concurrent" },
	{ "AlterTableStmt", STMT_DDL, "ALTER", "objtype", NULL },
	{ "AlterTableMoveAllStmt", STMT_DDL, "ALTER", "objtype", NULL },
	{ "AlterSeqStmt", STMT_DDL, "ALTER SEQUENCE", NULL, NULL },
	{ "AlterDomainStmt", STMT_DDL, "ALTER DOMAIN", NULL, NULL },
	{ "AlterFunctionStmt", STMT_DDL, "ALTER", "objtype", NULL },
	{ "AlterPolicyStmt", STMT_DDL, "ALTER POLICY", NULL, NULL },
	{ "AlterStatsStmt", STMT_DDL, "ALTER STATISTICS", NULL, NULL },
	{ "AlterOperatorStmt", STMT_DDL, "ALTER OPERATOR", NULL, NULL },
	{ "AlterOpFamilyStmt", STMT_DDL, "ALTER OPERATOR FAMILY", NULL, NULL },
	{ "AlterTypeStmt", STMT_DDL, "ALTER TYPE", NULL, NULL },
	{ "AlterEnumStmt", STMT_DDL, "ALTER TYPE", NULL, NULL },
	{ "AlterCollationStmt", STMT_DDL, "ALTER COLLATION", NULL, NULL },
	{ "AlterTSDictionaryStmt", STMT_DDL, "ALTER TEXT SEARCH DICTIONARY", NULL, NULL },
	{ "AlterTSConfigurationStmt", STMT_DDL, "ALTER TEXT SEARCH CONFIGURATION", NULL, NULL },
	{ "AlterObjectDependsStmt", STMT_DDL, "ALTER", "object_type", NULL },
	{ "AlterObjectSchemaStmt", STMT_DDL, "ALTER", "object_type", NULL },
	{ "AlterOwnerStmt", STMT_DDL, "ALTER", "object_type", NULL },
	{ "RenameStmt", STMT_DDL, "ALTER", "rename_type", NULL },
	{ "DropStmt", STMT_DDL, "DROP", "remove_type", "concurrent" },
	{ "CommentStmt", STMT_DDL, "COMMENT ON", "objtype", NULL },
	{ "SecLabelStmt", STMT_DDL, "SECURITY LABEL ON", "objtype", NULL },
	{ "RefreshMatViewStmt", STMT_DDL, "REFRESH MATERIALIZED VIEW", NULL, NULL },

	{ "GrantStmt", STMT_GRANT, "GRANT", NULL, NULL },
	{ "GrantRoleStmt", STMT_GRANT, "GRANT ROLE", NULL, NULL },
	{ "AlterDefaultPrivilegesStmt", STMT_GRANT, "ALTER DEFAULT PRIVILEGES", NULL, NULL },
	{ "ReassignOwnedStmt", STMT_GRANT, "REASSIGN OWNED", NULL, NULL },
	{ "DropOwnedStmt", STMT_GRANT, "DROP OWNED", NULL, NULL },

	{ "AlterSystemStmt", STMT_SYSTEM, "ALTER SYSTEM", NULL, NULL },
	{ "CreateRoleStmt", STMT_SYSTEM, "CREATE ROLE", NULL, NULL },
	{ "AlterRoleStmt", STMT_SYSTEM, "ALTER ROLE", NULL, NULL },
	{ "AlterRoleSetStmt", STMT_SYSTEM, "ALTER ROLE", NULL, NULL },
	{ "DropRoleStmt", STMT_SYSTEM, "DROP ROLE", NULL, NULL },
	{ "CreatedbStmt", STMT_SYSTEM, "CREATE DATABASE", NULL, NULL },
	{ "DropdbStmt", STMT_SYSTEM, "DROP DATABASE", NULL, NULL },
	{ "AlterDatabaseStmt", STMT_SYSTEM, "ALTER DATABASE", NULL, NULL },
	{ "AlterDatabaseSetStmt", STMT_SYSTEM, "ALTER DATABASE", NULL, NULL },
	{ "AlterDatabaseRefreshCollStmt", STMT_SYSTEM, "ALTER DATABASE", NULL, NULL },
	{ "CreateTableSpaceStmt", STMT_SYSTEM, "CREATE TABLESPACE", NULL, NULL },
	{ "DropTableSpaceStmt", STMT_SYSTEM, "DROP TABLESPACE", NULL, NULL },
	{ "AlterTableSpaceOptionsStmt", STMT_SYSTEM, "ALTER TABLESPACE", NULL, NULL },
	{ "CreateExtensionStmt", STMT_SYSTEM, "CREATE EXTENSION", NULL, NULL },
	{ "AlterExtensionStmt", STMT_SYSTEM, "ALTER EXTENSION", NULL, NULL },
	{ "AlterExtensionContentsStmt", STMT_SYSTEM, "ALTER EXTENSION", NULL, NULL },
	{ "CreatePLangStmt", STMT_SYSTEM, "CREATE LANGUAGE", NULL, NULL },
	{ "CreateAmStmt", STMT_SYSTEM, "CREATE ACCESS METHOD", NULL, NULL },
	{ "CreatePublicationStmt", STMT_SYSTEM, "CREATE PUBLICATION", NULL, NULL },
	{ "AlterPublicationStmt", STMT_SYSTEM, "ALTER PUBLICATION", NULL, NULL },
	{ "CreateSubscriptionStmt", STMT_SYSTEM, "CREATE SUBSCRIPTION", NULL, NULL },
	{ "AlterSubscriptionStmt", STMT_SYSTEM, "ALTER SUBSCRIPTION", NULL, NULL },
	{ "DropSubscriptionStmt", STMT_SYSTEM, "DROP SUBSCRIPTION", NULL, NULL },
	{ "CreateFdwStmt", STMT_SYSTEM, "CREATE FOREIGN DATA WRAPPER", NULL, NULL },
	{ "AlterFdwStmt", STMT_SYSTEM, "ALTER FOREIGN DATA WRAPPER", NULL, NULL },
	{ "CreateForeignServerStmt", STMT_SYSTEM, "CREATE SERVER", NULL, NULL },
	{ "AlterForeignServerStmt", STMT_SYSTEM, "ALTER SERVER", NULL, NULL },
	{ "ImportForeignSchemaStmt", STMT_SYSTEM, "IMPORT FOREIGN SCHEMA", NULL, NULL },
	{ "CreateUserMappingStmt", STMT_SYSTEM, "CREATE USER MAPPING", NULL, NULL },
	{ "AlterUserMappingStmt", STMT_SYSTEM, "ALTER USER MAPPING", NULL, NULL },
	{ "DropUserMappingStmt", STMT_SYSTEM, "DROP USER MAPPING", NULL, NULL },
	{ "CreateEventTrigStmt", STMT_SYSTEM, "CREATE EVENT TRIGGER", NULL, NULL },
	{ "AlterEventTrigStmt", STMT_SYSTEM, "ALTER EVENT TRIGGER", NULL, NULL },

	{ "VacuumStmt", STMT_MAINTENANCE, "VACUUM", NULL, NULL },
	{ "ClusterStmt", STMT_MAINTENANCE, "CLUSTER", NULL, NULL },
	{ "ReindexStmt", STMT_MAINTENANCE, "REINDEX", "kind", NULL },
};

/* Values of ObjectType that people know by another name, and those that
 * belong to the server rather than to the database's schema. */
static const struct {
	const char *value, *words;
	bool system;
} objects[] = {
	{ "OBJECT_ACCESS_METHOD", "ACCESS METHOD", true },
	{ "OBJECT_DATABASE", "DATABASE", true },
	{ "OBJECT_EVENT_TRIGGER", "EVENT TRIGGER", true },
	{ "OBJECT_EXTENSION", "EXTENSION", true },
	{ "OBJECT_FDW", "FOREIGN DATA WRAPPER", true },
	{ "OBJECT_FOREIGN_SERVER", "SERVER", true },
	{ "OBJECT_LANGUAGE", "LANGUAGE", true },
	{ "OBJECT_PARAMETER_ACL", "PARAMETER", true },
	{ "OBJECT_PUBLICATION", "PUBLICATION", true },
	{ "OBJECT_PUBLICATION_NAMESPACE", "PUBLICATION", true },
	{ "OBJECT_PUBLICATION_REL", "PUBLICATION", true },
	{ "OBJECT_ROLE", "ROLE", true },
	{ "OBJECT_SUBSCRIPTION", "SUBSCRIPTION", true },
	{ "OBJECT_TABLESPACE", "TABLESPACE", true },
	{ "OBJECT_USER_MAPPING", "USER MAPPING", true },
	{ "OBJECT_ATTRIBUTE", "TYPE", false },
	{ "OBJECT_COLUMN", "TABLE", false },
	{ "OBJECT_DOMCONSTRAINT", "DOMAIN", false },
	{ "OBJECT_LARGEOBJECT", "LARGE OBJECT", false },
	{ "OBJECT_MATVIEW", "MATERIALIZED VIEW", false },
	{ "OBJECT_OPCLASS", "OPERATOR CLASS", false },
	{ "OBJECT_OPFAMILY", "OPERATOR FAMILY", false },
	{ "OBJECT_STATISTIC_EXT", "STATISTICS", false },
	{ "OBJECT_TABCONSTRAINT", "TABLE", false },
	{ "OBJECT_TSCONFIGURATION", "TEXT SEARCH CONFIGURATION", false },
	{ "OBJECT_TSDICTIONARY", "TEXT SEARCH DICTIONARY", false },
	{ "OBJECT_TSPARSER", "TEXT SEARCH PARSER", false },
	{ "OBJECT_TSTEMPLATE", "TEXT SEARCH TEMPLATE", false },
};
/* clang-format on */

static const char *const prefixes[] = { "REINDEX_OBJECT_", "OBJECT_",
	"TRANS_STMT_" };

/* Appends "FOREIGN TABLE" for "OBJECT_FOREIGN_TABLE"; gives whether that is
 * an object of the whole server. */
static bool
add_object(struct text *t, const char *value)
{
	if (t->len > 0)
		text_addc(t, ' ');
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (strcmp(objects[i].value, value) == 0) {
			text_add(t, objects[i].words);
			return objects[i].system;
		}
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (text_starts_with(value, prefixes[i])) {
			value += strlen(prefixes[i]);
			break;
		}
	for (; *value != '\0'; value++)
		text_addc(t, *value == '_' ? ' ' : *value);
	return false;
}

/* ALTER TABLE ... DETACH PARTITION ... CONCURRENTLY runs on its own. */
static bool
detaches_concurrently(const ProtobufCMessage *m)
{
	const PgQuery__AlterTableStmt *s = (const void *)m;

	if (m->descriptor != &pg_query__alter_table_stmt__descriptor)
		return false;
	for (size_t i = 0; i < s->n_cmds; i++) {
		const PgQuery__AlterTableCmd *c =
		    tree_as(s->cmds[i], &pg_query__alter_table_cmd__descriptor);
		const ProtobufCMessage *def =
		    c != NULL ? tree_inner(c->def) : NULL;

		if (def != NULL && tree_bool(def, "concurrent"))
			return true;
	}
	return false;
}

/* Where one node serves two commands. */
static const char *
plain_tag(const ProtobufCMessage *m, const struct row *r)
{
	const char *kind;

	if (strcmp(r->node, "VacuumStmt") == 0 && !tree_bool(m, "is_vacuumcmd"))
		return "ANALYZE";
	if (strcmp(r->node, "GrantStmt") == 0 && !tree_bool(m, "is_grant"))
		return "REVOKE";
	if (strcmp(r->node, "GrantRoleStmt") == 0 && !tree_bool(m, "is_grant"))
		return "REVOKE ROLE";
	if (strcmp(r->node, "FetchStmt") == 0 && tree_bool(m, "ismove"))
		return "MOVE";
	if (strcmp(r->node, "VariableSetStmt") == 0 &&
	    (kind = tree_enum(m, "kind")) != NULL &&
	    text_starts_with(kind, "VAR_RESET"))
		return "RESET";
	return r->tag;
}

enum stmt_kind
classify(const ProtobufCMessage *m, char **tag)
{
	const struct row *r = NULL;
	enum stmt_kind kind;
	struct text t = { 0 };
	const char *value;

	for (size_t i = 0; m != NULL && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].node, m->descriptor->short_name) == 0)
			r = &rows[i];
	if (r == NULL) {
		*tag = mem_strdup(m != NULL ? m->descriptor->short_name : "");
		return STMT_OTHER;
	}
	kind = r->kind;
	if (r->tag != NULL)
		text_add(&t, plain_tag(m, r));
	if (r->object != NULL && (value = tree_enum(m, r->object)) != NULL &&
	    add_object(&t, value) && kind == STMT_DDL)
		kind = STMT_SYSTEM;
	if ((r->apart != NULL && tree_bool(m, r->apart)) ||
	    detaches_concurrently(m))
		kind = STMT_MAINTENANCE;
	*tag = text_take(&t);
	return kind;
}
