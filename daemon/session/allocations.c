/* allocations.c: see allocations.h. */
#include "daemon/session/allocations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/base/boot.h"
#include "daemon/base/cgroup.h"
#include "daemon/base/mapfile.h"
#include "daemon/base/util.h"
#include "daemon/core/allocated.h"
#include "daemon/engine/engine.h"
#include "proto/validate.h"

#define FILE_NAME "sbeetd.allocations"

/* Raised when the meaning of the file changes. */
#define FILE_VERSION 1

struct image {
	char magic[8];
	uint32_t version, bytes;
	char boot[BOOT_ID_BYTES]; /* cgroups of another boot are others */
	struct allocation list[SCHED_ALLOCATIONS_MAX];
};

static const char magic[8] = "sbeetall";

struct allocations {
	struct engine *engine; /* borrowed, outlives us */
	struct image *image;   /* mapped, or private memory */
	bool mapped;
	unsigned n_sessions[SCHED_ALLOCATIONS_MAX];
	char text[CGROUP_TEXT_MAX];
};

static struct allocation *at(const struct allocations *a, unsigned id) {
	return &a->image->list[id - 1];
}

static bool is_sound(const struct allocation *l) {
	return memchr(l->name, '\0', sizeof(l->name)) && validate_name(l->name) == 0 &&
	       memchr(l->cgroup, '\0', sizeof(l->cgroup)) && *l->cgroup == '/' &&
	       l->n_sms <= PROTO_SMS_MAX;
}

static bool judge(void *map) {
	struct image *image = map;
	char boot[BOOT_ID_BYTES];

	if (memcmp(image->magic, magic, sizeof(magic)) != 0 || image->version != FILE_VERSION ||
	    image->bytes != sizeof(*image) || !boot_read_id(boot) ||
	    memcmp(boot, image->boot, sizeof(boot)) != 0) {
		return false;
	}
	for (size_t i = 0; i < SCHED_ALLOCATIONS_MAX; i++) {
		if (!is_sound(&image->list[i])) {
			memset(&image->list[i], 0, sizeof(image->list[i]));
		}
	}
	return true;
}

static void begin_image(struct image *image) {
	memcpy(image->magic, magic, sizeof(magic));
	image->version = FILE_VERSION;
	image->bytes = sizeof(*image);
	boot_read_id(image->boot);
}

/* ---- SMs ---- */

static void set_sms(struct allocations *a, unsigned id, size_t gpu, struct smset sms) {
	at(a, id)->sms[gpu] = sms;
	engine_set_allocation(a->engine, id, gpu, &sms);
}

/* SMs of GPU @gpu that are nobody's. */
static struct smset unallocated(const struct allocations *a, size_t gpu) {
	struct smset left = smset_range(0, sched_gpu(engine_sched(a->engine), gpu)->model.limit);

	for (unsigned id = 1; id <= SCHED_ALLOCATIONS_MAX; id++) {
		if (!at(a, id)->removed) {
			left = smset_minus(&left, &at(a, id)->sms[gpu]);
		}
	}
	return left;
}

/* Its job is over, as far as can be seen. */
static bool is_over(const struct allocations *a, unsigned id) {
	return *at(a, id)->name && a->n_sessions[id - 1] == 0 && !cgroup_exists(at(a, id)->cgroup);
}

/* Takes the SMs of GPU @gpu from those whose job is over. */
static void reclaim(struct allocations *a, size_t gpu, unsigned but) {
	for (unsigned id = 1; id <= SCHED_ALLOCATIONS_MAX; id++) {
		if (id != but && !smset_empty(&at(a, id)->sms[gpu]) && is_over(a, id)) {
			set_sms(a, id, gpu, SMSET_EMPTY);
		}
	}
}

/* Return: false if it has to share them. */
static bool place_on(struct allocations *a, unsigned id, size_t gpu) {
	const struct sched_gpu *g = sched_gpu(engine_sched(a->engine), gpu);
	unsigned n = sched_most_sms(&g->model, at(a, id)->n_sms);
	struct smset left, picked;

	set_sms(a, id, gpu, SMSET_EMPTY);
	left = unallocated(a, gpu);
	if (smset_count(&left) < n) {
		reclaim(a, gpu, id);
		left = unallocated(a, gpu);
	}
	picked = allocated_pick(&g->model, &left, n);
	if (n == g->model.limit && smset_count(&picked) >= n) {
		picked = smset_range(0, g->n_sms);
	}
	if (smset_count(&left) < n) {
		left = smset_range(0, g->model.limit);
		set_sms(a, id, gpu, allocated_pick(&g->model, &left, n));
		return false;
	}
	set_sms(a, id, gpu, picked);
	return true;
}

/* Return: whether it has all SMs for itself. */
static bool place(struct allocations *a, unsigned id) {
	size_t n_gpus = sched_n_gpus(engine_sched(a->engine));
	bool alone = true;

	for (size_t gpu = 0; gpu < n_gpus; gpu++) {
		if (at(a, id)->n_sms > 0 && allocations_may_use(a, id, gpu)) {
			alone &= place_on(a, id, gpu);
		} else {
			set_sms(a, id, gpu, SMSET_EMPTY);
		}
	}
	return alone;
}

/* Whether its SMs were reclaimed. */
static bool has_lost_sms(const struct allocations *a, unsigned id) {
	size_t n_gpus = sched_n_gpus(engine_sched(a->engine));
	bool lost = false;

	for (size_t gpu = 0; gpu < n_gpus; gpu++) {
		lost |= at(a, id)->n_sms > 0 && allocations_may_use(a, id, gpu) &&
			smset_empty(&at(a, id)->sms[gpu]);
	}
	return lost;
}

/* Whether these are SMs that could have been picked on GPU @gpu. */
static bool fits_gpu(const struct allocations *a, size_t gpu, const struct smset *sms) {
	const struct sched_gpu *g = sched_gpu(engine_sched(a->engine), gpu);
	struct smset all = g ? smset_range(0, g->n_sms) : SMSET_EMPTY, same;

	if (!g || smset_equal(sms, &all)) {
		return g;
	}
	same = allocated_pick(&g->model, sms, smset_count(sms));
	return smset_equal(&same, sms);
}

/* On the SMs that it had, if they can still be had: GPUs may be divided otherwise by now. */
static void place_again(struct allocations *a, unsigned id) {
	for (size_t gpu = 0; gpu < SCHED_GPUS_MAX; gpu++) {
		struct smset sms = at(a, id)->sms[gpu];

		if (!smset_empty(&sms) && fits_gpu(a, gpu, &sms)) {
			set_sms(a, id, gpu, sms);
		} else {
			at(a, id)->sms[gpu] = SMSET_EMPTY;
		}
	}
	if (*at(a, id)->name && !at(a, id)->removed && has_lost_sms(a, id)) {
		place(a, id);
	}
}

void allocations_gpus_changed(struct allocations *a) {
	for (unsigned id = 1; id <= SCHED_ALLOCATIONS_MAX; id++) {
		place_again(a, id);
	}
}

/* ---- the list ---- */

int allocations_new(struct allocations **ret, struct engine *engine, const char *runtime, char *why,
		    size_t why_size) {
	struct allocations *a = calloc(1, sizeof(*a));
	char path[PROTO_PATH_MAX + sizeof(FILE_NAME) + 1];
	void *map = NULL;
	int r;

	if (!a) {
		return -ENOMEM;
	}
	*why = '\0';
	a->engine = engine;
	snprintf(path, sizeof(path), "%s/" FILE_NAME, runtime);
	r = mapfile_open(path, sizeof(*a->image), judge, &map);
	a->mapped = r == 0;
	if (r < 0) {
		snprintf(why, why_size,
			 "Can't keep allocations in '%s': %s; they are lost when sbeetd ends",
			 runtime, strerror(-r));
		map = calloc(1, sizeof(*a->image));
	}
	a->image = map;
	if (!a->image) {
		free(a);
		return -ENOMEM;
	}
	begin_image(a->image);
	allocations_gpus_changed(a);
	*ret = a;
	return 0;
}

struct allocations *allocations_free(struct allocations *a) {
	if (a) {
		if (a->mapped) {
			munmap(a->image, sizeof(*a->image));
		} else {
			free(a->image);
		}
		free(a);
	}
	return NULL;
}

static void drop(struct allocations *a, unsigned id) {
	for (size_t gpu = 0; gpu < SCHED_GPUS_MAX; gpu++) {
		set_sms(a, id, gpu, SMSET_EMPTY);
	}
	memset(at(a, id), 0, sizeof(*at(a, id)));
}

void allocations_remove(struct allocations *a, unsigned id) {
	if (a->n_sessions[id - 1] == 0) {
		drop(a, id);
	} else {
		at(a, id)->removed = 1;
	}
}

/* One that is not in use, or whose job is over; 0: there is none. */
static unsigned find_room(struct allocations *a) {
	unsigned oldest = 0;

	for (unsigned id = 1; id <= SCHED_ALLOCATIONS_MAX; id++) {
		if (!*at(a, id)->name || (at(a, id)->removed && !a->n_sessions[id - 1])) {
			return id;
		}
	}
	for (unsigned id = 1; id <= SCHED_ALLOCATIONS_MAX; id++) {
		if ((!oldest || at(a, id)->started < at(a, oldest)->started) && is_over(a, id)) {
			oldest = id;
		}
	}
	return oldest;
}

int allocations_add(struct allocations *a, const struct allocation *wanted, int64_t now,
		    bool *ret_shared) {
	unsigned id = allocations_find(a, wanted->name);

	if (id > 0) {
		allocations_remove(a, id);
	}
	id = find_room(a);
	if (id == 0) {
		return ALLOCATIONS_E_FULL;
	}
	drop(a, id);
	at(a, id)->started = now;
	at(a, id)->n_sms = wanted->n_sms;
	at(a, id)->gpus = wanted->gpus;
	snprintf(at(a, id)->cgroup, sizeof(at(a, id)->cgroup), "%s", wanted->cgroup);
	snprintf(at(a, id)->name, sizeof(at(a, id)->name), "%s", wanted->name);
	*ret_shared = !place(a, id);
	return 0;
}

unsigned allocations_find(const struct allocations *a, const char *name) {
	for (unsigned id = 1; id <= SCHED_ALLOCATIONS_MAX; id++) {
		if (strcmp(at(a, id)->name, name) == 0 && !at(a, id)->removed) {
			return id;
		}
	}
	return 0;
}

unsigned allocations_attach(struct allocations *a, pid_t pid) {
	unsigned found = 0;

	for (unsigned id = 1; id <= SCHED_ALLOCATIONS_MAX; id++) {
		if (!*at(a, id)->name) {
			continue;
		}
		if (found == 0 && !*a->text) {
			cgroup_read(pid, a->text, sizeof(a->text));
		}
		/* One that was removed counts only if no other has its cgroup, or one above. */
		if (cgroup_is_within(a->text, at(a, id)->cgroup) &&
		    (found == 0 || at(a, found)->removed)) {
			found = id;
		}
	}
	a->text[0] = '\0';
	if (found > 0) {
		a->n_sessions[found - 1]++;
		if (has_lost_sms(a, found)) {
			place(a, found);
		}
	}
	return found;
}

void allocations_detach(struct allocations *a, unsigned id) {
	if (id > 0 && --a->n_sessions[id - 1] == 0 && at(a, id)->removed) {
		drop(a, id);
	}
}

const struct allocation *allocations_get(const struct allocations *a, unsigned id) {
	return id > 0 && *at(a, id)->name ? at(a, id) : NULL;
}

unsigned allocations_sessions(const struct allocations *a, unsigned id) {
	return a->n_sessions[id - 1];
}

const struct smset *allocations_sms(const struct allocations *a, unsigned id, size_t gpu) {
	return id > 0 && !smset_empty(&at(a, id)->sms[gpu]) ? &at(a, id)->sms[gpu] : NULL;
}

bool allocations_may_use(const struct allocations *a, unsigned id, size_t gpu) {
	return id == 0 || at(a, id)->gpus == 0 || (at(a, id)->gpus >> gpu & 1);
}

struct allocation_totals *allocations_totals(struct allocations *a, unsigned id) {
	return id > 0 ? &at(a, id)->totals : NULL;
}
