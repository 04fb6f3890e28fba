/* notify: tells the service manager that started us how it goes */
#include "front/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

static struct sockaddr_un manager = { .sun_family = AF_UNIX };
static socklen_t manager_len; /* 0: nobody */

void
notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t n = path != NULL ? strlen(path) : 0;

	if (n >= 2 && n < sizeof(manager.sun_path) &&
	    (path[0] == '/' || path[0] == '@')) {
		memcpy(manager.sun_path, path, n);
		if (path[0] == '@')
			manager.sun_path[0] = '\0'; /* an abstract name */
		manager_len =
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	}
	unsetenv("NOTIFY_SOCKET");
}

void
notify(const char *state)
{
	int fd;

	if (manager_len == 0)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1 ||
	    sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		(const struct sockaddr *)&manager, manager_len) == -1)
		log_warn("cannot tell the service manager '%s'", state);
	if (fd != -1)
		close(fd);
}
