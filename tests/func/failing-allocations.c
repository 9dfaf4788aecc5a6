/*
 * failing-allocations.c: preloaded into sbeetd by test-daemon-memory: one allocation fails, the one
 * whose number the test writes into the shared page.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "failing-allocations.h"

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static struct failing_page *page;

__attribute__((constructor)) static void attach(void) {
	const char *path = getenv(FAILING_PAGE);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p;

	if (fd >= 0) {
		p = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		page = p == MAP_FAILED ? NULL : p;
	}
}

static int fails(void) {
	if (!page || atomic_load(&page->countdown) == 0 ||
	    atomic_fetch_sub(&page->countdown, 1) != 1) {
		return 0;
	}
	errno = ENOMEM;
	return 1;
}

EXPORT void *malloc(size_t size) {
	return fails() ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size) {
	return fails() ? NULL : __libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size) {
	return fails() ? NULL : __libc_realloc(p, size);
}
