/* facts: what one statement is and touches, read from its parse tree alone */
#ifndef AIRLOCK_SQL_FACTS_H
#define AIRLOCK_SQL_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

enum stmt_kind {
	STMT_EMPTY,  /* nothing but white space, comments, semicolons */
	STMT_SELECT, /* SELECT, VALUES, TABLE, WITH ... SELECT */
	STMT_INSERT,
	STMT_UPDATE,
	STMT_DELETE,
	STMT_MERGE,
	STMT_EXPLAIN, /* see explain_kind */
	STMT_SHOW,
	STMT_COPY,
	STMT_CALL,
	STMT_DO,
	STMT_TRANSACTION, /* BEGIN COMMIT ROLLBACK SAVEPOINT PREPARE TRANSACTION
	                   */
	STMT_SESSION, /* SET RESET DISCARD PREPARE EXECUTE DEALLOCATE DECLARE
	                 FETCH MOVE CLOSE LISTEN NOTIFY UNLISTEN LOAD
	                 CHECKPOINT SET CONSTRAINTS */
	STMT_LOCK,
	STMT_TRUNCATE,
	STMT_DDL, /* CREATE ALTER DROP COMMENT RENAME REFRESH SECURITY LABEL */
	STMT_GRANT, /* GRANT REVOKE ALTER DEFAULT PRIVILEGES REASSIGN/DROP OWNED
	             */
	STMT_SYSTEM, /* ALTER SYSTEM; roles, databases, tablespaces, extensions,
	                languages, publications, subscriptions, foreign
	                servers and user mappings, event triggers */
	STMT_MAINTENANCE, /* VACUUM ANALYZE CLUSTER REINDEX and what cannot run
	                     in a transaction: CREATE/DROP INDEX CONCURRENTLY,
	                     ... */
	STMT_OTHER,       /* a node this program does not know: refused */
	STMT_NKINDS
};

enum conflict_kind { CONFLICT_NONE, CONFLICT_NOTHING, CONFLICT_UPDATE };

/* A relation or a function as the text names it; position is the byte offset
 * in the agent's text, -1 where the tree does not know. */
struct facts_name {
	char *schema; /* NULL where unqualified */
	char *name;
	char op;     /* relations: 'r' read, 'i' insert, 'u' update, 'd' delete,
	                'm' merge, 'x' named by a statement of another kind
	                (all of those are among the writes); functions: 'f',
	                or 'o' for an operator with a schema of its own;
	                what may run a function without calling it: 'o' a
	                bare operator, 't' a type, 'a' a name behind a dot,
	                which may be a function of the row before it, 's' a
	                method of TABLESAMPLE */
	bool nested; /* a write inside a CTE, not the statement's own target */
	int nargs;   /* functions: as written; -1 where not known */
	long position;
};

struct facts_names {
	struct facts_name *v;
	size_t n;
};

struct facts_texts {
	char **v;
	size_t n;
};

struct facts {
	enum stmt_kind kind;
	long position;        /* where the statement begins */
	char *tag;            /* "DROP TABLE", "SELECT", for people */
	char *node;           /* protobuf name of the statement node */
	size_t statements;    /* in the text; only the first is described */
	long second_position; /* where the second begins, -1 */
	int depth;            /* of all the text's trees, see sql/parse.h */
	bool explain;
	bool explain_analyze;
	enum stmt_kind explain_kind; /* what is explained */
	struct facts_names reads;  /* CTE names left out, scoping done right */
	struct facts_names writes; /* own target first */
	struct facts_names careless;  /* UPDATEs and DELETEs in CTEs that choose
	                                 no rows; op is 'n' without a condition,
	                                 'v' with a vacuous one, 'g' with one
	                                 that never mentions the target */
	struct facts_names functions; /* wherever they stand */
	struct facts_names implied;   /* see facts_name.op */
	bool locking;                 /* FOR UPDATE and its kin, anywhere */
	long locking_position;
	bool into; /* SELECT INTO, anywhere; CREATE TABLE AS under EXPLAIN */
	long into_position;
	bool opaque;       /* holds a node the walk does not know */
	char *opaque_node; /* its name */
	int params;        /* the highest $n, 0 where none */
	/* of the own target of INSERT, UPDATE, DELETE, MERGE */
	char *target_ref; /* alias, else relation name, as the query refers to
	                     it */
	bool target_has_alias;
	long target_position; /* of its name; -1 where there is no target */
	bool only;            /* ONLY was said */
	bool current_of;
	bool has_where;
	bool where_vacuous; /* constant, or true for every row by its form:
	                       TRUE, 1=1, id = id, x OR true */
	bool where_ignores_target; /* never mentions the target's columns */
	struct facts_texts not_null_any; /* columns: see sql/nulls.h */
	struct facts_texts not_null_all;
	struct facts_texts given, made; /* columns: see sql/given.h */
	bool has_returning;
	enum conflict_kind conflict;
	struct facts_texts set_columns; /* UPDATE's SET, or ON CONFLICT's */
};

extern const char *const stmt_kind_name[STMT_NKINDS];

/* Reads the parse tree (see sql/parse.h) into *f, which the caller releases.
 * ERR_LIMIT where the tree is deeper than the walk allows. */
struct parse;
int facts_read(const struct parse *p, struct facts *f,
    struct err *e) MUST_CHECK;
void facts_release(struct facts *f);
void facts_copy(struct facts *to, const struct facts *from);
/* Appends the names of relations to an array literal, each as SQL writes it. */
void facts_add_relations(struct text *array, const struct facts_names *v);
/* Frees the names; none are left. */
void facts_forget(struct facts_names *v);
/* Copies what the name lends. */
void facts_add_name(struct facts_names *v, const struct facts_name *n);
/* Whether s is among them; copies it behind them. */
bool facts_has_text(const struct facts_texts *v, const char *s);
void facts_add_text(struct facts_texts *v, const char *s);

/* The form in which facts cross from the child.  facts_pack() appends it; false
 * where a name is not UTF-8 (no fact may get lost on the way).  facts_unpack()
 * checks every member (the child is not trusted blindly); *f is set on success
 * alone, and is the caller's to release. */
struct parcel;
bool facts_pack(struct text *out, const struct facts *f);
int facts_unpack(struct parcel *in, struct facts *f, struct err *e) MUST_CHECK;

#endif
