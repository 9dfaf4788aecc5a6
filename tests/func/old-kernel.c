/*
 * old-kernel.c: linked into an sbeetd for tests, which then finds a kernel before 6.5: no pidfd of
 * a socket's peer, and pidfds without inodes of their own.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int fstatfs(int fd, struct statfs *buf) {
	errno = ENOSYS;
	return -1;
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size) {
	if (level == SOL_SOCKET && name == SO_PEERPIDFD) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, size);
}
