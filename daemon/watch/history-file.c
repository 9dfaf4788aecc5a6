/* history-file.c: see history-file.h. */
#include "daemon/watch/history-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/base/boot.h"
#include "daemon/base/mapfile.h"
#include "daemon/base/util.h"
#include "daemon/watch/history.h"
#include "proto/validate.h"

#define FILE_NAME "sbeetd.history"
#define COPY_NAME "history"

struct image {
	char magic[8];
	uint32_t version, run_bytes;
	char boot[BOOT_ID_BYTES]; /* process ids of another boot mean nothing */
	struct history_run runs[HISTORY_RUNS];
};

static const char magic[8] = "sbeethis";

struct history_file {
	struct image *image; /* mapped, or private memory */
	bool mapped;
	char copy[PROTO_PATH_MAX]; /* empty: none is kept */
	struct history history;
};

static bool is_name(const char *text, size_t size) {
	return memchr(text, '\0', size) && validate_name(text) == 0;
}

static bool is_sound(const struct history_run *run) {
	return run->number < UINT64_MAX / 2 && run->end < _HISTORY_END_N && run->started >= 0 &&
	       run->ended >= 0 && run->task_class <= 1 && is_name(run->task, sizeof(run->task)) &&
	       is_name(run->program, sizeof(run->program)) &&
	       (!*run->run || is_name(run->run, sizeof(run->run)));
}

/* What is not sound is dropped. Return: whether it is a file of ours at all. */
static bool judge(void *map) {
	struct image *image = map;
	char boot[BOOT_ID_BYTES];
	bool same = boot_read_id(boot) && memcmp(boot, image->boot, sizeof(boot)) == 0;

	if (memcmp(image->magic, magic, sizeof(magic)) != 0 ||
	    image->version != HISTORY_FILE_VERSION ||
	    image->run_bytes != sizeof(struct history_run)) {
		return false;
	}
	for (size_t i = 0; i < HISTORY_RUNS; i++) {
		struct history_run *run = &image->runs[i];

		if (run->number > 0 && !is_sound(run)) {
			memset(run, 0, sizeof(*run));
		} else if (!same) {
			memset(&run->identity, 0, sizeof(run->identity));
		}
	}
	return true;
}

/* Return: whether there was one, and it is of use. */
static bool read_copy(const char *path, struct image *ret) {
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return fd >= 0 && pread(fd, ret, sizeof(*ret), 0) == sizeof(*ret) && judge(ret);
}

/* Nothing waits for the disk: programs wait for the next sbeetd. Return: 0 or negative errno. */
static int write_copy(const char *path, const struct image *image) {
	char next[PROTO_PATH_MAX + 8];
	_cleanup_close_ int fd = -1;
	ssize_t n;
	int r;

	snprintf(next, sizeof(next), "%s.new", path);
	fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	n = fd < 0 ? -1 : write(fd, image, sizeof(*image));
	if (n == (ssize_t)sizeof(*image) && rename(next, path) == 0) {
		return 0;
	}
	r = n >= 0 && n < (ssize_t)sizeof(*image) ? -ENOSPC : -errno;
	unlink(next);
	return r;
}

static void begin_image(struct image *image) {
	memcpy(image->magic, magic, sizeof(magic));
	image->version = HISTORY_FILE_VERSION;
	image->run_bytes = sizeof(struct history_run);
	boot_read_id(image->boot);
}

int history_file_open(struct history_file **ret, const char *runtime, const char *state, char *why,
		      size_t why_size) {
	struct history_file *file = calloc(1, sizeof(*file));
	char path[PROTO_PATH_MAX + sizeof(FILE_NAME) + 1];
	void *map = NULL;
	int r;

	if (!file) {
		return -ENOMEM;
	}
	*why = '\0';
	snprintf(path, sizeof(path), "%s/" FILE_NAME, runtime);
	r = mapfile_open(path, sizeof(*file->image), judge, &map);
	file->image = map;
	file->mapped = r == 0;
	if (r < 0) {
		snprintf(why, why_size,
			 "Can't keep the history of tasks in '%s': %s; it is lost when sbeetd ends",
			 runtime, strerror(-r));
		file->image = calloc(1, sizeof(*file->image));
	}
	if (!file->image) {
		free(file);
		return -ENOMEM;
	}
	if (state && snprintf(file->copy, sizeof(file->copy), "%s/" COPY_NAME, state) >=
			     (int)sizeof(file->copy)) {
		file->copy[0] = '\0';
	}
	if (!*file->image->magic && *file->copy && !read_copy(file->copy, file->image)) {
		memset(file->image, 0, sizeof(*file->image));
	}
	begin_image(file->image);
	history_init(&file->history, file->image->runs);
	*ret = file;
	return 0;
}

struct history *history_file_get(struct history_file *file) {
	return &file->history;
}

int history_file_close(struct history_file *file) {
	int r = 0;

	if (!file) {
		return 0;
	}
	if (*file->copy) {
		r = write_copy(file->copy, file->image);
	}
	if (file->mapped) {
		munmap(file->image, sizeof(*file->image));
	} else {
		free(file->image);
	}
	free(file);
	return r;
}
