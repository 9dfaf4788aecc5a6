/* learn-store.c: see learn-store.h. */
#include "daemon/gpu/learn-store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/files.h"
#include "daemon/base/log.h"
#include "daemon/base/timer.h"
#include "daemon/base/util.h"
#include "daemon/gpu/learn.h"
#include "proto/limits.h"
#include "proto/thread.h"

#define FILE_NAME "learned-times"
#define FILE_BAD  FILE_NAME ".bad"

/* Between two writings. */
#define WRITE_EVERY (5 * NSEC_PER_SEC)

struct learn_store {
	struct learn *learn; /* owned */
	struct timer timer;
	int directory;		/* owned */
	uint64_t written;	/* learn_count() of what the file has */
	uint64_t writing_count; /* of what is being written */

	/* The thread's while it runs, and read after it was joined. */
	pthread_t thread;
	bool writing;
	char *text;
	int result;
	bool complained;
};

static void *thread_main(void *data) {
	struct learn_store *store = data;

	store->result =
		files_replace(store->directory, FILE_NAME, 0600, store->text, strlen(store->text));
	return NULL;
}

static void finish_writing(struct learn_store *store) {
	if (store->writing) {
		pthread_join(store->thread, NULL);
		store->writing = false;
		free(store->text);
		store->text = NULL;
		if (store->result == 0) {
			store->written = store->writing_count;
		}
	}
	if (store->result < 0 && !store->complained) {
		store->complained = true;
		log_warning(
			"Can't keep learnt times in '%s': %s; trying again every %d s, and "
			"they are lost if sbeetd ends before",
			FILE_NAME, strerror(-store->result), (int)(WRITE_EVERY / NSEC_PER_SEC));
	} else if (store->result == 0 && store->complained) {
		store->complained = false;
		log_info("Learnt times are kept in '%s' again", FILE_NAME);
	}
}

static void begin_writing(struct learn_store *store) {
	json_t *document;
	int r;

	if (learn_count(store->learn) == store->written) {
		return;
	}
	store->writing_count = learn_count(store->learn);
	document = learn_json(store->learn);
	store->text = document ? json_dumps(document, JSON_COMPACT) : NULL;
	json_decref(document);
	r = store->text ? thread_start(&store->thread, 0, thread_main, store) : -ENOMEM;
	store->writing = r == 0;
	if (!store->writing) {
		store->result = r;
		free(store->text);
		store->text = NULL;
	}
}

/* The last writing began five seconds ago: to join its thread takes no time, but on a disk that
 * hangs. */
static void on_timer(evutil_socket_t fd, short what, void *userdata) {
	struct learn_store *store = userdata;

	timer_set(&store->timer, WRITE_EVERY);
	finish_writing(store);
	begin_writing(store);
}

/* Return: 0 (also if there is no file), -EINVAL with a line in @why, or a negative errno. */
static int read_file(struct learn_store *store, char *why, size_t size) {
	struct reader r = {.file = FILE_NAME, .error = why, .error_size = size};
	_cleanup_close_ int fd =
		openat(store->directory, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct reader_node root = {0};
	json_error_t error;
	struct stat st;
	int e;

	if (fd < 0) {
		return errno == ENOENT ? 0 : -errno;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)READER_SIZE_MAX) {
		snprintf(why, size, "%s: no file of a sensible size", FILE_NAME);
		return -EINVAL;
	}
	root.value = json_loadfd(fd, JSON_REJECT_DUPLICATES, &error);
	if (!root.value) {
		snprintf(why, size, "%s:%d: %s", FILE_NAME, error.line, error.text);
		return -EINVAL;
	}
	e = learn_read(store->learn, &r, &root);
	json_decref(root.value);
	return e;
}

static int load(struct learn_store *store) {
	char why[PROTO_TEXT_MAX];
	int r = read_file(store, why, sizeof(why));

	if (r == -EINVAL) {
		log_warning("%s: what was learnt is put aside as '%s'", why, FILE_BAD);
		renameat(store->directory, FILE_NAME, store->directory, FILE_BAD);
		learn_free(store->learn);
		store->learn = learn_new();
		r = store->learn ? 0 : -ENOMEM;
	}
	return r;
}

int learn_store_new(struct learn_store **ret, struct event_base *base, const char *directory) {
	struct learn_store *store = calloc(1, sizeof(*store));
	int r;

	if (!store) {
		return -ENOMEM;
	}
	store->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = store->directory < 0 ? -errno : 0;
	if (r == 0) {
		store->learn = learn_new();
		r = store->learn ? load(store) : -ENOMEM;
	}
	if (r < 0) {
		learn_store_free(store);
		return r;
	}
	store->written = learn_count(store->learn);
	timer_init(&store->timer, base, on_timer, store);
	timer_set(&store->timer, WRITE_EVERY);
	*ret = store;
	return 0;
}

struct learn_store *learn_store_free(struct learn_store *store) {
	if (store) {
		if (store->learn) {
			finish_writing(store);
			begin_writing(store);
			finish_writing(store);
		}
		timer_stop(&store->timer);
		if (store->directory >= 0) {
			close(store->directory);
		}
		learn_free(store->learn);
		free(store);
	}
	return NULL;
}

struct learn *learn_store_get(struct learn_store *store) {
	return store->learn;
}
