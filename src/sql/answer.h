/* answer: what crosses between the parser child and its keeper, both ways */
#ifndef AIRLOCK_SQL_ANSWER_H
#define AIRLOCK_SQL_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/text.h"
#include "sql/facts.h"
#include "sql/rewrite.h"

/*
 * A frame is its length, 4 bytes big-endian, and that many bytes of a parcel:
 *
 *   to the child     sql, whether it is to be rewritten, and if so the three
 *                    parts of the edit, each a text or none
 *   from the child   status, text, position, whether there are facts, the
 *                    facts, whether there is a rewriting, its text, the number
 *                    of inserts, and of each where it is and how long
 *
 * A child's first frame is an answer of status ready.
 */
#define FRAME_HEADER 4
#define ASK_BYTES_MAX ((size_t)16 << 20)
#define ANSWER_BYTES_MAX ((size_t)16 << 20)

struct ask {
	char *sql;
	bool rewrite; /* what edit says; else facts are asked for */
	struct rewrite_edit edit;
	char *texts[3]; /* what edit lends */
};

enum answer_status {
	ANSWER_OK,
	ANSWER_READY,    /* the child has started */
	ANSWER_SYNTAX,   /* text and position say what and where */
	ANSWER_COMPLEX,  /* deeper or larger than is read */
	ANSWER_UNPROVED, /* a rewrite that does not fit or is not proved */
	ANSWER_NSTATUS
};

struct answer {
	enum answer_status status;
	char text[512];
	long position; /* from 1, in characters; 0 unknown */
	bool has_facts;
	struct facts facts;
	bool has_rewrite;
	struct rewrite_result rewrite;
};

/* The length that a header gives; 0 where it is not from 1 to max. */
size_t frame_length(const unsigned char header[FRAME_HEADER], size_t max);

/* Appends a whole frame.  edit NULL asks for facts. */
void ask_pack(struct text *out, const char *sql, size_t len,
    const struct rewrite_edit *edit);
/* From a frame's bytes; *a is the caller's to release. */
int ask_unpack(const char *p, size_t n, struct ask *a,
    struct err *e) MUST_CHECK;
void ask_release(struct ask *a);

/* Parses, and reads or rewrites; never fails but by saying so in *a. */
void answer_make(const struct ask *ask, struct answer *a);
void answer_pack(struct text *out, const struct answer *a);
/* Checks every member: the child has parsed foreign text and may be foreign
 * itself by now. */
int answer_unpack(const char *p, size_t n, struct answer *a,
    struct err *e) MUST_CHECK;
void answer_release(struct answer *a);

#endif
