/*
 * input.c: see input.h.
 */
#include "client/base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map(struct input *ret, int fd, size_t size) {
	void *bytes;

	if (size == 0) {
		return -ENODATA;
	}
	if (size > INPUT_FILE_MAX) {
		return -EFBIG;
	}
	bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED) {
		return -errno;
	}
	*ret = (struct input){.bytes = bytes, .size = size, .mapped = true};
	return 0;
}

static int read_all(struct input *ret, int fd) {
	size_t size = 0, allocated = 0;
	uint8_t *bytes = NULL;
	ssize_t n;

	for (;;) {
		if (size == allocated) {
			size_t more = allocated ? allocated * 2 : 64 * 1024;
			uint8_t *longer = more > INPUT_STREAM_MAX ? NULL : realloc(bytes, more);

			if (!longer) {
				free(bytes);
				return more > INPUT_STREAM_MAX ? -EFBIG : -ENOMEM;
			}
			bytes = longer;
			allocated = more;
		}
		n = read(fd, bytes + size, allocated - size);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			break;
		}
		size += (size_t)n;
	}
	if (n < 0 || size == 0) {
		int r = n < 0 ? -errno : -ENODATA;

		free(bytes);
		return r;
	}
	*ret = (struct input){.bytes = bytes, .size = size};
	return 0;
}

int input_init(struct input *ret, const char *path) {
	struct stat st;
	int fd, r;

	/* Opening a FIFO waits for its writer, as cat(1) does. */
	fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	if (fstat(fd, &st) < 0) {
		r = -errno;
	} else if (S_ISDIR(st.st_mode)) {
		r = -EISDIR;
	} else if (S_ISREG(st.st_mode)) {
		r = map(ret, fd, (size_t)st.st_size);
	} else {
		r = read_all(ret, fd);
	}
	close(fd);
	return r;
}

void input_deinit(struct input *in) {
	if (in->mapped) {
		munmap((void *)in->bytes, in->size);
	} else {
		free((void *)in->bytes);
	}
	*in = (struct input){0};
}
