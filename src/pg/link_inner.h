/* link_inner: what the files of a link share */
#ifndef AIRLOCK_PG_LINK_INNER_H
#define AIRLOCK_PG_LINK_INNER_H

#include "pg/link.h"
#include "pg/resolve.h"

enum link_state {
	LINK_RESOLVING,
	LINK_CONNECTING,
	LINK_IDLE,
	LINK_BUSY,
	LINK_DEAD, /* down is told, or about to be */
};

/* A text that is prepared, as "airlock_kept_<number>". */
struct kept {
	const char *sql;
	unsigned number;
};

struct link {
	struct event_base *base;
	enum link_state state;
	char *conninfo, *options, *application_name;
	int connect_timeout_ms;
	size_t row_bytes_max, row_bytes; /* read since the last whole message */
	struct resolve *resolve;
	PGconn *conn;
	bool keeps;
	struct kept *kept;
	size_t nkept;
	unsigned numbers;    /* given so far */
	struct event *io;    /* the socket */
	struct event *timer; /* connect deadline; then "tell down now" */
	short io_what;
	struct batch *batch;
	size_t at; /* the step whose answer is awaited */
	link_done *done;
	void *done_arg;
	struct link_events events;
	void *arg;
	bool held;  /* rows wait, here and in the socket */
	bool going; /* not any more, and those that wait here come first */
	bool telling, freed; /* freed by a callback that is told a loss */
	struct err why;
	char warning[256];
};

/* link.c: ends the link; down is told from the loop. */
void link_die(struct link *l, enum err_code code, const char *why);
/* What the socket is watched for from now on. */
void link_watch(struct link *l, short what);

/* link_batch.c: the socket takes more, and has more. */
void link_flush(struct link *l);
void link_readable(struct link *l);

#endif
