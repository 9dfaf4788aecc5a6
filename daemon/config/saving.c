/* saving.c: see saving.h. */
#include "daemon/config/saving.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/files.h"
#include "daemon/base/util.h"
#include "proto/thread.h"

struct saving {
	struct event *event; /* owned; at done */
	saving_fn on_done;
	void *userdata;
	bool running; /* the thread */

	/* The thread's while it runs, and read after it was joined. */
	pthread_t thread;
	char *directory, *name, *text; /* owned */
	size_t n;
	int done; /* owned: an eventfd */
	int result;
};

static int save(const struct saving *saving) {
	_cleanup_close_ int directory = -1;

	if (mkdir(saving->directory, 0755) < 0 && errno != EEXIST) {
		return -errno;
	}
	directory = open(saving->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0) {
		return -errno;
	}
	return files_replace(directory, saving->name, 0644, saving->text, saving->n);
}

static void *thread_main(void *data) {
	struct saving *saving = data;

	saving->result = save(saving);
	eventfd_write(saving->done, 1);
	return NULL;
}

static void join(struct saving *saving) {
	if (saving->running) {
		pthread_join(saving->thread, NULL);
		saving->running = false;
	}
}

static void on_event(evutil_socket_t fd, short what, void *userdata) {
	struct saving *saving = userdata;

	join(saving);
	saving->on_done(saving->userdata, saving->result);
}

/* Return: 0 or a negative errno. */
static int start(struct saving *saving) {
	int r = thread_start(&saving->thread, 0, thread_main, saving);

	saving->running = r == 0;
	return r;
}

int saving_new(struct saving **ret, struct event_base *base, const char *directory,
	       const char *name, const char *text, size_t n, saving_fn on_done, void *userdata) {
	struct saving *saving = calloc(1, sizeof(*saving));
	int r = -ENOMEM;

	if (!saving) {
		return r;
	}
	saving->on_done = on_done;
	saving->userdata = userdata;
	saving->directory = strdup(directory);
	saving->name = strdup(name);
	saving->text = malloc(n + 1);
	saving->n = n;
	saving->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	saving->event =
		saving->done < 0 ? NULL : event_new(base, saving->done, EV_READ, on_event, saving);
	if (saving->directory && saving->name && saving->text && saving->event &&
	    event_add(saving->event, NULL) == 0) {
		memcpy(saving->text, text, n);
		r = start(saving);
	}
	if (r < 0) {
		saving_free(saving);
		return r;
	}
	*ret = saving;
	return 0;
}

struct saving *saving_free(struct saving *saving) {
	if (saving) {
		join(saving);
		if (saving->event) {
			event_free(saving->event);
		}
		if (saving->done >= 0) {
			close(saving->done);
		}
		free(saving->text);
		free(saving->name);
		free(saving->directory);
		free(saving);
	}
	return NULL;
}
