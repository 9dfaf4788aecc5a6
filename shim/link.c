/*
 * link.c: see link.h. Not on any fast path: one lock, one list.
 */
#include "shim/link.h"
#include "shim/state.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct link {
	struct link *next;
	CUlinkState state;
	char *ptx;	   /* owned; the single input, with a final NUL */
	struct jit jit;	   /* what it is compiled with */
	bool mixed;	   /* something else went in */
	const void *cubin; /* the driver's, valid as long as the state */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct link *links; /* owned */

static struct link *find(CUlinkState state) {
	struct link *l = links;

	while (l && l->state != state) {
		l = l->next;
	}
	return l;
}

void link_created(CUlinkState state, const struct jit *jit) {
	struct link *l = calloc(1, sizeof(*l));

	if (!l) {
		return; /* then its cubin has no source */
	}
	l->state = state;
	l->jit = *jit;
	pthread_mutex_lock(&lock);
	l->next = links;
	links = l;
	pthread_mutex_unlock(&lock);
}

void link_added(CUlinkState state, const void *ptx, size_t size, const struct jit *jit) {
	char *copy = ptx ? malloc(size + 1) : NULL;
	struct link *l;

	if (copy) {
		memcpy(copy, ptx, size);
		copy[size] = '\0';
	}
	pthread_mutex_lock(&lock);
	l = find(state);
	if (l && copy && !l->mixed && !l->ptx) {
		l->ptx = copy;
		copy = NULL;
		if (jit) {
			jit_add(&l->jit, jit->n, jit->options, jit->values);
		}
	} else if (l) {
		l->mixed = true;
	}
	pthread_mutex_unlock(&lock);
	free(copy);
}

void link_completed(CUlinkState state, const void *cubin) {
	struct link *l;

	pthread_mutex_lock(&lock);
	l = find(state);
	if (l) {
		l->cubin = cubin;
	}
	pthread_mutex_unlock(&lock);
}

void link_destroyed(CUlinkState state) {
	struct link *gone = NULL;

	pthread_mutex_lock(&lock);
	for (struct link **l = &links; *l; l = &(*l)->next) {
		if ((*l)->state == state) {
			gone = *l;
			*l = gone->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	if (gone) {
		free(gone->ptx);
		free(gone);
	}
}

char *link_source_of(const void *image, struct jit *ret_jit) {
	char *ptx = NULL;

	pthread_mutex_lock(&lock);
	for (struct link *l = links; image && l; l = l->next) {
		if (l->cubin == image && l->ptx && !l->mixed) {
			ptx = strdup(l->ptx);
			if (ptx) {
				*ret_jit = l->jit;
			}
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return ptx;
}

void link_source_free(char *ptx) {
	free(ptx);
}

void link_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	links = NULL;
}
