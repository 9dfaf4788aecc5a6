/*
 * groups.c: see groups.h.
 */
#include "shim/groups.h"
#include "shim/base/high-fd.h"
#include "shim/base/hot.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/rm.h"
#include "shim/base/log.h"
#include "shim/wake.h"

/* A context has one group that computes, and a process one device object for each GPU and client.
 */
#define GROUPS_MAX  64
#define DEVICES_MAX 64

/* A group that computes has some for each context. */
#define CHANNELS_MAX 512

#define NUMBER_UNKNOWN UINT32_MAX

/* A device object: what says on which GPU a group is. */
struct device {
	uint32_t client, object; /* client 0: free */
	uint32_t number;	 /* the driver's, of the GPU */
	uint32_t subdevice;	 /* below it; 0: none is known */
};

struct group {
	uint32_t client, object; /* client 0: free */
	uint32_t parent;
	uint32_t number; /* as in struct device */
	int fd;		 /* the driver library's */
	struct stat file;
	unsigned told; /* the want that it was told for; 0: it was not */
	bool gone;     /* and is to be told so */
};

/* A channel of one of the groups. */
struct channel {
	uint32_t client, object; /* client 0: free */
	uint32_t group, device;	 /* what it is below of */
	bool disabled;		 /* by us */
};

static struct {
	pthread_mutex_t lock;
	struct device devices[DEVICES_MAX];
	struct group groups[GROUPS_MAX];
	struct channel channels[CHANNELS_MAX];
	bool channels_lost;  /* there are more */
	unsigned wants;	     /* how often sbeetd has asked */
	uint32_t connection; /* over which it did; 0: it has not */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic bool changed;	    /* there may be something to tell */
HOT_DATA static _Atomic bool known; /* see groups_known() */
static _Atomic bool off;	    /* for good */

bool groups_concern(unsigned long request) {
	return _IOC_TYPE(request) == RM_TYPE &&
	       (_IOC_NR(request) == RM_ALLOC_NR || _IOC_NR(request) == RM_FREE_NR) &&
	       !atomic_load_explicit(&off, memory_order_relaxed);
}

/* With the lock held: whether the groups are on one GPU. */
static bool on_one_gpu(void) {
	const struct group *first = NULL;

	for (unsigned i = 0; i < GROUPS_MAX; i++) {
		const struct group *g = &table.groups[i];

		if (g->client && !g->gone) {
			first = first ? first : g;
			if (g->number != first->number) {
				log_once(
					LOG_LEVEL_WARN,
					"This program uses several GPUs, and sbeetd can't tell its "
					"channel groups apart: without MPS it asks for each job");
				return false;
			}
		}
	}
	return first != NULL;
}

bool groups_known(void) {
	return atomic_load_explicit(&known, memory_order_relaxed);
}

/* With the lock held. */
static void note_change(void) {
	atomic_store(&known, on_one_gpu());
	atomic_store(&changed, true);
}

/* With the lock held. Groups that sbeetd knows of are still to be told as gone. */
static void forget_all(void) {
	memset(table.devices, 0, sizeof(table.devices));
	for (unsigned i = 0; i < GROUPS_MAX; i++) {
		table.groups[i].gone = table.groups[i].client != 0;
	}
	note_change();
}

/* With the lock held. Return: whether all are as wanted. */
static bool put_all(enum groups_place place);

/* With the lock held. */
static void give_up(const char *why) {
	put_all(GROUPS_ON); /* while we know them */
	forget_all();
	if (!atomic_exchange(&off, true)) {
		log_once(LOG_LEVEL_WARN,
			 "%s: sbeetd can't preempt this program for more urgent ones without MPS",
			 why);
	}
}

/* ---- what the driver frees ---- */

/* With the lock held. Frees of @object, and of all below it; the client itself is below nothing. */
static void forget(uint32_t client, uint32_t object) {
	bool any = false;

	for (unsigned i = 0; i < DEVICES_MAX; i++) {
		struct device *d = &table.devices[i];

		if (d->client == client && (d->object == object || object == client)) {
			d->client = 0;
		} else if (d->client == client && d->subdevice == object) {
			d->subdevice = 0;
		}
	}
	for (unsigned i = 0; i < CHANNELS_MAX; i++) {
		struct channel *c = &table.channels[i];

		if (c->client == client && (c->object == object || c->group == object ||
					    c->device == object || object == client)) {
			c->client = 0;
		}
	}
	for (unsigned i = 0; i < GROUPS_MAX; i++) {
		struct group *g = &table.groups[i];

		if (g->client == client &&
		    (g->object == object || g->parent == object || object == client)) {
			any |= !g->gone;
			g->gone = true;
		}
	}
	if (any) {
		note_change();
		wake_tracker();
	}
}

void groups_before(unsigned long request, const void *arg) {
	const struct rm_free *f = arg;
	int saved_errno = errno;

	if (_IOC_NR(request) != RM_FREE_NR || !arg) {
		return;
	}
	pthread_mutex_lock(&table.lock);
	if (_IOC_SIZE(request) == sizeof(*f)) {
		forget(f->client, f->object);
	} else {
		give_up("The driver frees objects in a way that libsbeet.so does not know");
	}
	pthread_mutex_unlock(&table.lock);
	errno = saved_errno;
}

/* ---- what it allocates ---- */

/* With the lock held. NULL: there are too many. */
static struct device *take_device(uint32_t client, uint32_t object) {
	struct device *free = NULL;

	for (unsigned i = 0; i < DEVICES_MAX; i++) {
		struct device *d = &table.devices[i];

		if (d->client == client && d->object == object) {
			return d;
		}
		free = d->client == 0 ? d : free;
	}
	return free;
}

static const struct device *find_device(uint32_t client, uint32_t object) {
	const struct device *d = take_device(client, object);

	return d && d->client ? d : NULL;
}

static struct group *free_group(void) {
	for (unsigned i = 0; i < GROUPS_MAX; i++) {
		if (table.groups[i].client == 0) {
			return &table.groups[i];
		}
	}
	return NULL;
}

static void add_device(const struct rm_alloc *a, const struct rm_device_params *p) {
	struct device *d = take_device(a->client, a->object);

	if (d) {
		*d = (struct device){
			.client = a->client, .object = a->object, .number = p ? p->device : 0};
	}
}

static void add_group(int fd, const struct rm_alloc *a, const struct rm_group_params *p) {
	const struct device *d = find_device(a->client, a->parent);
	struct group *g = free_group();

	if (!p) {
		give_up("The driver allocates channel groups in a way that libsbeet.so does not "
			"know");
		return;
	}
	if (p->engine < RM_ENGINE_COMPUTE_FIRST || p->engine > RM_ENGINE_COMPUTE_LAST) {
		return; /* copies have groups of their own */
	}
	if (!g) {
		give_up("This program has too many channel groups");
		return;
	}
	*g = (struct group){
		.client = a->client,
		.object = a->object,
		.parent = a->parent,
		.number = d ? d->number : NUMBER_UNKNOWN,
		.fd = fd,
	};
	if (fstat(fd, &g->file) < 0) {
		g->client = 0;
	}
	note_change();
}

static void add_subdevice(const struct rm_alloc *a) {
	struct device *d = take_device(a->client, a->parent);

	if (d && d->client) {
		d->subdevice = a->object;
	}
}

/* Of a group that computes. */
static void add_channel(const struct rm_alloc *a) {
	const struct group *g = NULL;

	for (unsigned i = 0; !g && i < GROUPS_MAX; i++) {
		const struct group *other = &table.groups[i];

		if (other->client == a->client && other->object == a->parent && !other->gone) {
			g = other;
		}
	}
	for (unsigned i = 0; g && i < CHANNELS_MAX; i++) {
		if (table.channels[i].client == 0) {
			table.channels[i] = (struct channel){.client = a->client,
							     .object = a->object,
							     .group = g->object,
							     .device = g->parent};
			return;
		}
	}
	table.channels_lost |= g != NULL;
}

/* Return: whether the form is known; @ret_status: what came of it. */
static bool read_status(unsigned long request, const struct rm_alloc *a, uint32_t *ret_status) {
	const struct rm_alloc_short *s = (const struct rm_alloc_short *)a;

	switch (_IOC_SIZE(request)) {
	case sizeof(*a):
		*ret_status = a->status;
		return true;
	case sizeof(*s):
		*ret_status = s->status;
		return true;
	default:
		return false;
	}
}

void groups_after(int fd, unsigned long request, const void *arg) {
	const struct rm_alloc *a = arg;
	int saved_errno = errno;
	uint32_t status;

	if (_IOC_NR(request) != RM_ALLOC_NR || !arg) {
		return;
	}
	pthread_mutex_lock(&table.lock);
	if (!read_status(request, a, &status)) {
		give_up("The driver allocates objects in a way that libsbeet.so does not know");
	} else if (status == 0 && a->class == RM_CLASS_DEVICE) {
		add_device(a, (const struct rm_device_params *)(uintptr_t)a->params);
	} else if (status == 0 && a->class == RM_CLASS_CHANNEL_GROUP) {
		add_group(fd, a, (const struct rm_group_params *)(uintptr_t)a->params);
	} else if (status == 0 && a->class == RM_CLASS_SUBDEVICE) {
		add_subdevice(a);
	} else if (status == 0 && RM_CLASS_IS_CHANNEL(a->class)) {
		add_channel(a);
	}
	pthread_mutex_unlock(&table.lock);
	errno = saved_errno;
}

/* ---- what sbeetd is told ---- */

void groups_wanted(uint32_t connection) {
	pthread_mutex_lock(&table.lock);
	table.wants++;
	table.connection = connection;
	pthread_mutex_unlock(&table.lock);
	atomic_store(&changed, true);
}

void groups_unwanted(uint32_t connection) {
	pthread_mutex_lock(&table.lock);
	if (table.connection == connection) {
		table.connection = 0;
	}
	pthread_mutex_unlock(&table.lock);
}

bool groups_have_news(void) {
	return atomic_exchange(&changed, false);
}

void groups_look_again(void) {
	atomic_store(&changed, true);
}

/* With the lock held. Return: a descriptor of the caller's of the very file that the driver had
 * when it allocated the group: its number may be the program's by now. -1: there is none. */
static int take_file(const struct group *g) {
	int fd = high_fd_dup(g->fd);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == g->file.st_dev &&
	    st.st_ino == g->file.st_ino && st.st_rdev == g->file.st_rdev) {
		return fd;
	}
	if (fd >= 0) {
		close(fd);
	}
	return -1;
}

/* ---- off the GPU ---- */

/* Some channels of @g, as many as one call takes, through its file @fd. Return: 0: there are none
 * any more; 1: there may be; or -1. */
static int put_some(const struct group *g, int fd, enum groups_place place) {
	bool disable = place != GROUPS_ON;
	const struct device *d = find_device(g->client, g->parent);
	struct rm_disable_channels params = {.disable = disable,
					     .only_scheduling = place == GROUPS_OFF_LATER};
	struct channel *found[RM_DISABLE_CHANNELS_MAX];
	struct rm_control control = {.client = g->client,
				     .object = d ? d->subdevice : 0,
				     .command = RM_COMMAND_DISABLE_CHANNELS,
				     .params = (uintptr_t)&params,
				     .params_size = sizeof(params)};

	for (unsigned i = 0; i < CHANNELS_MAX && params.n < RM_DISABLE_CHANNELS_MAX; i++) {
		struct channel *c = &table.channels[i];

		if (c->client == g->client && c->group == g->object && c->disabled != disable) {
			params.clients[params.n] = c->client;
			params.channels[params.n] = c->object;
			found[params.n++] = c;
		}
	}
	if (params.n == 0) {
		return 0;
	}
	if (control.object == 0 ||
	    ioctl(fd, _IOWR(RM_TYPE, RM_CONTROL_NR, struct rm_control), &control) < 0 ||
	    control.status != 0) {
		return -1;
	}
	for (unsigned i = 0; i < params.n; i++) {
		found[i]->disabled = disable;
	}
	return 1;
}

static int put_group(const struct group *g, enum groups_place place) {
	bool any = false;
	int fd, r;

	for (unsigned i = 0; !any && i < CHANNELS_MAX; i++) {
		const struct channel *c = &table.channels[i];

		any = c->client == g->client && c->group == g->object &&
		      c->disabled != (place != GROUPS_ON);
	}
	if (!any) {
		return 0;
	}
	fd = take_file(g);
	if (fd < 0) {
		return -1;
	}
	while ((r = put_some(g, fd, place)) > 0) {
	}
	close(fd);
	return r;
}

static bool put_all(enum groups_place place) {
	bool done = true;

	for (unsigned i = 0; i < GROUPS_MAX; i++) {
		const struct group *g = &table.groups[i];

		if (g->client && !g->gone) {
			done &= put_group(g, place) == 0;
		}
	}
	return done;
}

static bool has_channels(void) {
	for (unsigned i = 0; i < CHANNELS_MAX; i++) {
		if (table.channels[i].client) {
			return true;
		}
	}
	return false;
}

/* The lock is held meanwhile: no handle can come to name another channel. */
int groups_put(enum groups_place place) {
	bool done = false;

	pthread_mutex_lock(&table.lock);
	if (place == GROUPS_ON || (has_channels() && !table.channels_lost)) {
		done = put_all(place);
	}
	pthread_mutex_unlock(&table.lock);
	return done ? 0 : GROUPS_E_REFUSED;
}

/* With the lock held. Return: whether there is something to say of @g. */
static bool is_news(struct group *g) {
	if (g->gone && (table.connection == 0 || g->told != table.wants)) {
		g->client = 0; /* nobody knows of it */
	}
	return g->client && (g->gone || (table.connection != 0 && g->told != table.wants));
}

bool groups_next(unsigned *at, struct groups_news *ret) {
	bool found = false;

	pthread_mutex_lock(&table.lock);
	/* First those that are gone: the driver may have used their handles again. */
	for (; !found && *at < 2 * GROUPS_MAX; ++*at) {
		struct group *g = &table.groups[*at % GROUPS_MAX];

		if (!is_news(g) || g->gone != (*at < GROUPS_MAX)) {
			continue;
		}
		*ret = (struct groups_news){.connection = table.connection,
					    .client = g->client,
					    .object = g->object,
					    .gone = g->gone,
					    .fd = g->gone ? -1 : take_file(g),
					    .index = *at % GROUPS_MAX,
					    .want = table.wants};
		found = g->gone || ret->fd >= 0;
		g->client = found ? g->client : 0;
	}
	pthread_mutex_unlock(&table.lock);
	return found;
}

void groups_told(const struct groups_news *news) {
	struct group *g = &table.groups[news->index];

	pthread_mutex_lock(&table.lock);
	if (g->client == news->client && g->object == news->object) {
		g->told = news->want;
		g->client = news->gone ? 0 : g->client;
	}
	pthread_mutex_unlock(&table.lock);
}

void groups_after_fork(void) {
	pthread_mutex_init(&table.lock, NULL);
	memset(table.devices, 0, sizeof(table.devices));
	memset(table.groups, 0, sizeof(table.groups));
	memset(table.channels, 0, sizeof(table.channels));
	table.connection = 0;
	atomic_store(&known, false);
}
