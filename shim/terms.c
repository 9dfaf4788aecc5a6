/*
 * terms.c: see terms.h.
 */
#include "shim/base/hot.h"
#include "shim/real.h"

#include "shim/terms.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/log.h"
#include "shim/enforce/green.h"
#include "shim/gpu-uuid.h"
#include "shim/graph.h"
#include "shim/groups.h"
#include "shim/lane.h"
#include "shim/place.h"

/* NULL: there never was one. Set once. */
HOT_DATA static _Atomic(const struct terms_page *) page;
HOT_DATA static _Atomic bool held;

/* What is known of a device. */
HOT_DATA static struct gpu {
	_Atomic int place;	    /* in the page, from 1; 0: not looked for */
	_Atomic(CUcontext) context; /* that can be cut, of the last job; NULL: none yet */

	/* words; changed under the lock */
	_Atomic uint64_t prepared; /* all is there that its jobs need, or can't be had */
	_Atomic uint64_t refused;  /* whose partition can't be had */
} gpus[LANE_DEVICES_MAX];

/* Counts contexts that are about to go: what was found in them is not there any more. */
HOT_DATA static _Atomic uint32_t epoch;

/* Held while partitions are made: a context stays there meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the page ---- */

/* A page that could shrink would kill the program which reads it. */
static bool is_page(int fd) {
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && seals & F_SEAL_SHRINK && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size >= (off_t)sizeof(struct terms_page);
}

/* Puts @fd, or an empty page (-1), where the last one was. Return: 0 or negative errno. */
static int map(int fd) {
	const struct terms_page *last = atomic_load(&page);
	void *p = mmap((void *)(uintptr_t)last, sizeof(*last), PROT_READ,
		       (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | (last ? MAP_FIXED : 0),
		       fd, 0);

	if (p == MAP_FAILED) {
		return -errno;
	}
	atomic_store_explicit(&page, p, memory_order_release);
	return 0;
}

void terms_lapse(void) {
	if (atomic_load(&held)) {
		atomic_store(&held, false);
		map(-1);
	}
}

void terms_take(int fd) {
	int r;

	if (fd < 0) {
		terms_lapse();
		return;
	}
	r = is_page(fd) ? map(fd) : -EINVAL;
	close(fd);
	if (r < 0) {
		log_once(LOG_LEVEL_WARN,
			 "The page of terms that sbeetd has sent can't be used (%s): jobs are "
			 "asked for",
			 strerror(-r));
		terms_lapse();
		return;
	}
	atomic_store(&held, true);
}

HOT_CODE bool terms_held(void) {
	return atomic_load_explicit(&held, memory_order_relaxed);
}

HOT_CODE bool terms_steer_any(void) {
	const struct terms_page *p = atomic_load_explicit(&page, memory_order_acquire);

	for (unsigned i = 0; p && i < PROTO_TERMS_GPUS_MAX; i++) {
		if (terms_unpack(atomic_load(&p->gpu[i].word)).steered) {
			return true;
		}
	}
	return false;
}

HOT_CODE bool terms_record_ops(void) {
	const struct terms_page *p = atomic_load_explicit(&page, memory_order_acquire);

	return p && atomic_load_explicit(&p->record_ops, memory_order_relaxed) != 0;
}

/* A page that came since may have the GPU elsewhere: where it was found it must still be. */
static struct terms read_page(CUdevice device, const uint8_t *uuid) {
	const struct terms_page *p = atomic_load_explicit(&page, memory_order_acquire);
	struct gpu *g = &gpus[device];
	int place = atomic_load_explicit(&g->place, memory_order_relaxed) - 1;
	struct terms t = {.steered = false};

	if (p) {
		t = terms_read(p, uuid, &place);
	}
	if (t.steered && memcmp(p->gpu[place].uuid, uuid, PROTO_UUID_BYTES) != 0) {
		place = -1;
		t = terms_read(p, uuid, &place);
	}
	atomic_store_explicit(&g->place, place + 1, memory_order_relaxed);
	return t;
}

/* The page says @word of the GPU that was found there before. */
static bool still_says(CUdevice device, const uint8_t *uuid, uint64_t word) {
	const struct terms_page *p = atomic_load_explicit(&page, memory_order_acquire);
	int place = atomic_load_explicit(&gpus[device].place, memory_order_relaxed) - 1;

	return p && place >= 0 && p->magic == PROTO_TERMS_MAGIC &&
	       p->version == PROTO_TERMS_VERSION &&
	       memcmp(p->gpu[place].uuid, uuid, PROTO_UUID_BYTES) == 0 &&
	       atomic_load_explicit(&p->gpu[place].word, memory_order_acquire) == word;
}

/* Whether the terms @word hold for this program. */
static bool hold(uint64_t word) {
	if (!terms_are_sliced(word) || groups_known()) {
		return true;
	}
	log_once(LOG_LEVEL_INFO,
		 "This program can't be preempted for more urgent ones (its driver shows no "
		 "channel groups, or those of several GPUs): jobs are asked for");
	return false;
}

HOT_CODE uint64_t terms_now(CUdevice device, uint64_t known) {
	const uint8_t *uuid = terms_held() ? gpu_uuid(device) : NULL;
	struct terms t;
	uint64_t word;

	if (!uuid) {
		return 0;
	}
	if (known && still_says(device, uuid, known)) {
		return hold(known) ? known : 0;
	}
	t = read_page(device, uuid);
	word = terms_pack(&t);
	return hold(word) ? word : 0;
}

HOT_CODE bool terms_place(CUdevice device, unsigned *ret_place) {
	int place = atomic_load_explicit(&gpus[device].place, memory_order_relaxed) - 1;

	if (!atomic_load_explicit(&page, memory_order_acquire) || place < 0 ||
	    place >= PROTO_TERMS_GPUS_MAX) {
		return false;
	}
	*ret_place = (unsigned)place;
	return true;
}

/* The page, and the place of @device in it; NULL: that is not known. */
HOT_CODE static const struct terms_page *page_of(CUdevice device, unsigned *ret_place) {
	return terms_place(device, ret_place) ? atomic_load(&page) : NULL;
}

#define get(where) atomic_load_explicit(&(where), memory_order_acquire)

HOT_CODE nsec_t terms_copy_due(CUdevice device) {
	unsigned place;
	const struct terms_page *p = page_of(device, &place);

	return p ? get(p->gpu[place].copy_due_ns) : 0;
}

nsec_t terms_copy_late_due(CUdevice device) {
	unsigned place;
	const struct terms_page *p = page_of(device, &place);

	return p ? get(p->copy_late_due_ns[place]) : 0;
}

HOT_CODE nsec_t terms_deadline(CUdevice device) {
	unsigned place;
	const struct terms_page *p = page_of(device, &place);

	return p ? get(p->deadline_ns[place]) : 0;
}

nsec_t terms_kernel_ns(CUdevice device) {
	unsigned place;
	const struct terms_page *p = page_of(device, &place);

	return p ? get(p->kernel_ns[place]) : 0;
}

HOT_CODE bool terms_next(CUdevice device, struct terms_next *ret) {
	unsigned place;
	const struct terms_page *p = page_of(device, &place);
	nsec_t due;

	if (!p) {
		return false;
	}
	ret->period = get(p->period_ns[place]);
	ret->lead = get(p->lead_ns[place]);
	due = get(p->gpu[place].copy_due_ns);
	ret->spare = due == 0 ? ret->period : due > ret->lead ? due - ret->lead : 0;
	return ret->period > 0;
}

/* ---- partitions ---- */

/* Work stays in the program's own streams. */
static bool is_own(const struct terms *t) {
	return t->n == 0 && t->level == 0;
}

/* The set of @t, empty for the whole GPU. Return: whether it can be cut out here. */
static bool find_set(const struct green *g, const struct terms *t, struct smset *ret) {
	*ret = (struct smset){0};
	return t->n == 0 || terms_sms(t, green_sms(g), ret) == 0;
}

/* Whether graphs can run as @word says. */
static bool is_prepared(CUdevice device, uint64_t word) {
	return !graph_any() || atomic_load(&gpus[device].prepared) == word;
}

/* What is not there yet is not to be remembered. */
static bool find_partition(CUdevice device, CUcontext context, uint64_t word,
			   struct partition **ret) {
	const struct terms t = terms_unpack(word);
	const struct green *g = green_get(context);
	struct smset set;

	*ret = NULL;
	if (!g) {
		return false;
	}
	if (atomic_load_explicit(&gpus[device].context, memory_order_relaxed) != context) {
		atomic_store(&gpus[device].context, context);
	}
	if (is_own(&t)) {
		return true;
	}
	*ret = find_set(g, &t, &set) ? green_find(g, &set, t.level) : NULL;
	return *ret;
}

HOT_CODE struct partition *terms_partition(CUdevice device, CUcontext context, uint64_t *word,
					   struct lane_found *found) {
	uint32_t now = atomic_load(&epoch);
	bool valid = found->word && found->context == context && found->epoch == now;
	struct partition *p;

	if (valid && found->word == *word) {
		return found->partition;
	}
	if ((!valid || is_prepared(device, *word)) && find_partition(device, context, *word, &p)) {
		*found = (struct lane_found){*word, context, now, p};
		return p;
	}
	if (!valid || atomic_load(&gpus[device].refused) == *word) {
		found->word = 0;
		return NULL;
	}
	*word = found->word;
	return found->partition;
}

/* With the lock held. NULL: the program's own streams, or it can't be had. */
static struct partition *make(CUcontext context, const struct terms *t) {
	struct green *g = green_get(context);
	struct smset set;
	int r;

	if (!g || is_own(t)) {
		return NULL;
	}
	r = find_set(g, t, &set) ? 0 : -EINVAL;
	/* All levels at once: beside the green context of the set they cost next to nothing. */
	for (unsigned level = 0; r >= 0 && level <= PROTO_TERMS_LEVEL_MAX; level++) {
		r = green_make(g, &set, level, green_sms(g));
	}
	if (r < 0) {
		log_once(LOG_LEVEL_WARN,
			 "The SMs that sbeetd wants this program to keep to can't be had as a "
			 "green context: it runs on the whole GPU");
		return NULL;
	}
	return green_find(g, &set, t->level);
}

static void prepare(CUdevice device) {
	struct gpu *g = &gpus[device];
	CUcontext context = atomic_load(&g->context);
	uint64_t word = context ? terms_now(device, g->prepared) : 0;
	struct partition *p;
	struct terms t;

	if (word && word != g->prepared) {
		t = terms_unpack(word);
		p = make(context, &t);
		if (p) {
			place_make_ahead(context, p);
		}
		g->refused = is_own(&t) || p ? 0 : word;
		if (!p || graph_prepare(context, p)) {
			g->prepared = word;
		}
	}
}

void terms_prepare(void) {
	if (!terms_held()) {
		return;
	}
	pthread_mutex_lock(&lock);
	for (CUdevice d = 0; d < LANE_DEVICES_MAX; d++) {
		prepare(d);
	}
	pthread_mutex_unlock(&lock);
}

void terms_follow(CUdevice device, CUcontext context, uint64_t word,
		  _Atomic(struct partition *) *where) {
	struct gpu *g = &gpus[device];
	uint64_t now = terms_now(device, word);
	struct terms wanted = terms_unpack(now);
	struct partition *p;

	if (!now) {
		atomic_store(where, NULL); /* they have lapsed */
		return;
	}
	pthread_mutex_lock(&lock);
	if (atomic_load(&g->context) == context && now != g->refused && is_prepared(device, now)) {
		wanted.level = terms_unpack(word).level;
		p = make(context, &wanted);
		if (p != atomic_load(where)) {
			atomic_store(where, p);
		}
	}
	pthread_mutex_unlock(&lock);
}

static void forget_partition(struct lane *lane, void *context) {
	if (atomic_load(&lane->context) == context) {
		atomic_store(&lane->steered_to, NULL);
	}
}

void terms_context_destroying(CUcontext context) {
	atomic_fetch_add(&epoch, 1);
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < LANE_DEVICES_MAX; i++) {
		if (atomic_load(&gpus[i].context) == context) {
			atomic_store(&gpus[i].context, NULL);
			gpus[i].prepared = 0;
			gpus[i].refused = 0;
		}
	}
	pthread_mutex_unlock(&lock);
	lane_for_each(forget_partition, context);
}

void terms_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	memset(gpus, 0, sizeof(gpus));
	terms_lapse();
}
