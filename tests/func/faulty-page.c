/*
 * faulty-page.c: see faulty-page.h.
 */
#include "faulty-page.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct faulty_page *faulty_prepare(struct harness *h) {
	struct faulty_page *page;
	char path[128];
	int fd;

	harness_prepare(h);
	snprintf(path, sizeof(path), "%s/page", h->directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(*page)), 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	close(fd);
	setenv(FAULTY_PAGE, path, 1);
	return page;
}

struct faulty_page *faulty_clean(struct faulty_page *page) {
	unsetenv(FAULTY_PAGE);
	if (page) {
		munmap(page, sizeof(*page));
	}
	return NULL;
}

bool faulty_try_start(struct harness *h, const char *const *args) {
	bool started;

	setenv("LD_PRELOAD", FAULTY_LIBRARY, 1);
	started = harness_try_start(h, args);
	unsetenv("LD_PRELOAD");
	return started;
}
