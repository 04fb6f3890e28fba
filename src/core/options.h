/* options: what start-up decided, one struct a room, as the core takes it */
#ifndef AIRLOCK_CORE_OPTIONS_H
#define AIRLOCK_CORE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/guard.h"
#include "core/parser.h"
#include "record/journal.h"
#include "wire/ctl.h"

enum access { ACCESS_READ, ACCESS_DATA, ACCESS_SCHEMA, ACCESS_N };
extern const char *const access_name[ACCESS_N];

struct agent_options {
	char *name; /* [a-z0-9_-], 1 to 32 */
	enum access access;
	char *writer_dsn; /* conninfo strings; NULL: the database's */
	char *reader_dsn;
	char *search_path; /* NULL: the database's */
	uid_t *uids;       /* who may connect, besides airlockd's own uid */
	size_t nuids;
	gid_t gid; /* group of the socket, (gid_t)-1 none */
};

struct operator_options {
	char *name;
	uid_t uid; /* (uid_t)-1: by gid */
	gid_t gid;
	enum role role;
};

struct database_options {
	char *name;
	char *writer_dsn, *reader_dsn,
	    *observer_dsn; /* the last two may be NULL */
	char *search_path; /* "\"$user\", public" */
};

struct limits {
	int64_t ttl_ms;          /* 600000 */
	int changes_max;         /* 8 held at once in all */
	int agent_changes_max;   /* 8 */
	int reads_max;           /* reader links, 4 */
	int agent_calls_max;     /* waiting calls per agent, 32 */
	int lock_timeout_ms;     /* 2000 */
	int read_timeout_ms;     /* 10000 */
	int write_timeout_ms;    /* 30000 */
	int connect_timeout_ms;  /* 10000 */
	size_t result_bytes_max; /* of one tool result, 40000 */
	size_t cell_bytes_max;   /* of one value in a result, 4000 */
	long rows_max;           /* most that max_rows may ask, 500 */
	long rows_default;       /* 50 */
	long sample_rows;        /* rows of the diff in an agent's answer, 5 */
	size_t param_bytes_max;  /* all parameters of a call, 1 MiB */
	int params_max;          /* 1000 */
	uint64_t diff_bytes_max; /* 4 GiB */
	uint64_t sweep_limit;    /* bytes of a table, 1 GiB */
	uint64_t narrow_above;   /* bytes of a table, 1 MiB */
	uint64_t fold_rows_max;  /* 200000 */
	int64_t count_rows_max;  /* 10000 */
	size_t statement_bytes_max; /* 65536 */
	int statement_depth_max;    /* 500, of PARSE_DEPTH_MAX at most */
	int statement_names_max;    /* 1000 */
	size_t row_bytes_max;       /* one row that the server sends, 64 MiB */
	/* an agent that keeps being refused, see core/cooloff.h */
	int refusals_max;           /* 60, 0: never */
	int64_t refusals_window_ms; /* 60000 */
	int64_t cool_off_ms;        /* 30000 */
};

struct gate_options {
	struct database_options database;
	struct agent_options *agents;
	size_t nagents;
	struct operator_options *operators;
	size_t noperators;
	struct limits limits;
	struct guard_options guard;
	struct parser_options parser;
	struct journal_options journal;
	const char *state_dir;
	const char *runtime_dir; /* where the sockets are */
	int state_fd;            /* the locked state directory */
};

/* Every limit at its default. */
void limits_init(struct limits *l);

#endif
