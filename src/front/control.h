/* control: the operator's socket: who calls and what they may, verb by verb */
#ifndef AIRLOCK_FRONT_CONTROL_H
#define AIRLOCK_FRONT_CONTROL_H

#include <event2/event.h>

#include "base/err.h"
#include "core/gate.h"

struct control;
int control_open(struct event_base *base, struct gate *g, struct control **out,
    struct err *e) MUST_CHECK;
void control_close(struct control *c);

#endif
