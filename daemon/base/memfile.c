/*
 * memfile.c: see memfile.h.
 */
#include "daemon/base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/util.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

static int seal(int fd, bool writable) {
	int seals = F_SEAL_SHRINK | F_SEAL_GROW;

	if (!writable && fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0) {
		return 0;
	}
	return fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL) < 0 ? -errno : 0;
}

int memfile_new(const char *name, size_t size, bool writable, void **ret_map) {
	_cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *map;
	int r;

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0) {
		return -errno;
	}
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		return -errno;
	}
	r = seal(fd, writable);
	if (r < 0) {
		munmap(map, size);
		return r;
	}
	*ret_map = map;
	return TAKE_FD(fd);
}
