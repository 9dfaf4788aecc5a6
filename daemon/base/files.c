/*
 * files.c: see files.h.
 */
#include "daemon/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/util.h"

int files_read(int directory, const char *name, size_t max, char **ret, size_t *ret_n) {
	/* Without O_NONBLOCK a FIFO would hold us up. */
	_cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t n = 0;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st) < 0) {
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		return -EINVAL;
	}
	if (st.st_size > (off_t)max) {
		return -EFBIG;
	}
	text = malloc((size_t)st.st_size + 1);
	if (!text) {
		return -ENOMEM;
	}
	while (n < (size_t)st.st_size && (got = read(fd, text + n, (size_t)st.st_size - n)) != 0) {
		if (got < 0) {
			return -errno;
		}
		n += (size_t)got;
	}
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	*ret_n = n;
	return 0;
}

static int write_all(int fd, const char *text, size_t n) {
	while (n > 0) {
		ssize_t r = write(fd, text, n);

		if (r < 0 && errno != EINTR) {
			return -errno;
		}
		text += r > 0 ? r : 0;
		n -= r > 0 ? (size_t)r : 0;
	}
	return 0;
}

int files_replace(int directory, const char *name, unsigned mode, const char *text, size_t n) {
	_cleanup_close_ int fd = -1;
	char new[NAME_MAX + 1];
	int r;

	if (snprintf(new, sizeof(new), "%s.new", name) >= (int)sizeof(new)) {
		return -ENAMETOOLONG;
	}
	fd = openat(directory, new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	r = fd < 0 ? -errno : write_all(fd, text, n);
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 ||
		       renameat(directory, new, directory, name) < 0 || fsync(directory) < 0)) {
		r = -errno;
	}
	if (r < 0 && fd >= 0) {
		unlinkat(directory, new, 0); /* what there is of it only takes room */
	}
	return r;
}

/* NULL if it is not set, or empty. */
static const char *variable(const char *name) {
	const char *value = name ? getenv(name) : NULL;

	return value && *value ? value : NULL;
}

int files_choose(const struct files_places *places, char *directory, size_t size) {
	const char *s;
	int n;

	if ((s = variable(places->variable)) || (s = places->option)) {
		n = snprintf(directory, size, "%s", s);
	} else if ((s = variable(places->systemd))) {
		n = snprintf(directory, size, "%.*s", (int)strcspn(s, ":"), s);
	} else if (geteuid() == 0) {
		n = snprintf(directory, size, "%s", places->root);
	} else if ((s = variable(places->user))) {
		n = snprintf(directory, size, "%s/sbeet", s);
	} else if (places->home && (s = variable("HOME"))) {
		n = snprintf(directory, size, "%s/%s", s, places->home);
	} else {
		return -ENOENT;
	}
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}
