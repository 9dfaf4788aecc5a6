/* mapfile.c: see mapfile.h. */
#include "daemon/base/mapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/util.h"

/* All its blocks now: a write into a hole on a full disk would be a SIGBUS. Return: NULL with
 * errno. */
static void *map(const char *path, size_t size, int flags) {
	_cleanup_close_ int fd =
		open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0) {
		return NULL;
	}
	errno = EINVAL;
	if (!S_ISREG(st.st_mode) || (!(flags & O_CREAT) && st.st_size != (off_t)size)) {
		return NULL;
	}
	errno = posix_fallocate(fd, 0, (off_t)size);
	p = errno ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

int mapfile_open(const char *path, size_t size, bool (*judge)(void *map), void **ret_map) {
	void *p = map(path, size, 0);

	if (p && !judge(p)) {
		munmap(p, size);
		p = NULL;
	}
	if (!p) {
		unlink(path);
		p = map(path, size, O_CREAT | O_EXCL);
	}
	if (!p) {
		int r = -errno;

		unlink(path);
		return r;
	}
	*ret_map = p;
	return 0;
}
