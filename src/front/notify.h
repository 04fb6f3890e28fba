/* notify: tells the service manager that started us how it goes */
#ifndef AIRLOCK_FRONT_NOTIFY_H
#define AIRLOCK_FRONT_NOTIFY_H

/* Takes $NOTIFY_SOCKET out of the environment; children do not get it. */
void notify_init(void);
/* Sends "READY=1" and the like; nothing where no one waits for it. */
void notify(const char *state);

#endif
