/* judge: what the catalog says of what a statement would run */
#ifndef AIRLOCK_CORE_JUDGE_H
#define AIRLOCK_CORE_JUDGE_H

#include "core/options.h"
#include "core/reply.h"
#include "pg/reach.h"

/* Looks at definitions that change between two of them. */
#define JUDGE_LOOKS_MAX 3

/* The lists of rule/functions.h, as the catalog is asked with them. */
const struct reach_rules *judge_rules(void);
/* Adds what is deeper, or names more, than the limits allow. */
void judge_bounds(const struct facts *f, const struct limits *l,
    struct verdict *v);
/* Adds what must not be called; `f` tells where in the text it stands. */
void judge_reached(const struct reach *r, const struct facts *f,
    struct verdict *v);
/* Why the catalog gave no answer. */
void judge_unanswered(struct reply *reply, const struct err *e);

#endif
