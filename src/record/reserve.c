/* reserve: disk space kept for the records that must be written on a full disk
 */
#include "record/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define RESERVE "reserve"

/* posix_fallocate writes zeros where the file system cannot reserve. */
static int
occupy(int fd, uint64_t bytes)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return errno;
	if ((uint64_t)st.st_size >= bytes &&
	    (uint64_t)st.st_blocks * 512 >= bytes)
		return 0;
	return posix_fallocate(fd, 0, (off_t)bytes);
}

int
reserve_make(int dirfd, uint64_t bytes, struct err *e)
{
	int fd, error;

	if (bytes == 0)
		return 0;
	fd = openat(dirfd, RESERVE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	if (fd == -1)
		return err_sys(e, "cannot make 'journal/" RESERVE "'");
	do
		error = occupy(fd, bytes);
	while (error == EINTR);
	close(fd);
	if (error == 0)
		return 0;
	reserve_give_up(dirfd);
	errno = error;
	return err_sys(e, "cannot reserve %llu bytes for the journal",
	    (unsigned long long)bytes);
}

void
reserve_give_up(int dirfd)
{
	if (unlinkat(dirfd, RESERVE, 0) == -1 && errno != ENOENT)
		log_warn("cannot remove 'journal/" RESERVE "'");
}
