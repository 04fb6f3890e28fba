/* talk: an agent's and an operator's end of airlockd, blocking, one at a time
 */
#ifndef AIRLOCK_BENCH_TALK_H
#define AIRLOCK_BENCH_TALK_H

#include <jansson.h>

/*
 * The benchmark's own few lines of protocol, so that what it measures is not
 * also what it measures with.  Whatever goes wrong ends the program.
 */
struct talk {
	int in, out;
	char *buf;
	size_t len, size;
	char nonce[64];
	int id;
	double came; /* when the last line was here */
};

double now_us(void);

/* An agent: on its socket, or through airlock-mcp as a child. */
struct talk *agent_connect(const char *socket);
struct talk *agent_bridge(const char *program, const char *state_dir);
/* A call's text, made before so that only the way there and back counts.
 * params ends in NULL, or is NULL. */
char *agent_line(struct talk *t, const char *tool, const char *sql,
    const char *const *params);
/* Gives what the tool answered; ends the program where it refused. */
json_t *agent_call(struct talk *t, const char *line, double *us);

struct talk *operator_connect(const char *socket);
/* Gives the first thing answered: a datum where there is one, or the end. */
json_t *operator_ask(struct talk *t, const char *verb, json_t *args_new,
    double *us);

#endif
