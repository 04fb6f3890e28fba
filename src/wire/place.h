/* place: where airlockd's sockets are, and whose they must be */
#ifndef AIRLOCK_WIRE_PLACE_H
#define AIRLOCK_WIRE_PLACE_H

/* For those who connect.  Both strings are owned. */
struct place {
	char *socket;
	char *owner_dir; /* its owner is who airlockd must run as */
};

/*
 * name: "control" or "agent-NAME".  state_dir and socket are what options say,
 * NULL where they say nothing.  The first of these decides:
 *   socket     itself; owned as state_dir, or the directory that holds it
 *   state_dir  DIR/run/NAME.sock
 *   AIRLOCK_STATE_DIR, $XDG_STATE_HOME/airlock, ~/.local/state/airlock
 *              the same; the last two where there is such a directory
 *   the machine's  /var/lib/airlock/run/NAME.sock if that can be seen, else
 *              /run/airlock/NAME.sock; owned as /var/lib/airlock
 */
void place_find(struct place *p, const char *state_dir, const char *socket,
    const char *name);
void place_release(struct place *p);
/* Gives the directory that holds path. */
char *place_directory_of(const char *path);

#endif
