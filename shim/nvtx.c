/*
 * nvtx.c: see nvtx.h.
 */
#include "shim/nvtx.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/base/env.h"
#include "shim/base/log.h"
#include "shim/lane.h"
#include "shim/marks.h"
#include "shim/nvtx-abi.h"
#include "shim/real.h"
#include "shim/state.h"
#include "shim/worker.h"

SBEET_EXPORT int InitializeInjectionNvtx2(nvtx_abi_get_table get_table);

/* ---- what was seen ---- */

static _Atomic bool used, seen; /* NVTX by the program; a range that is a job */
static atomic_flag other_is_kept = ATOMIC_FLAG_INIT;
static char other[64]; /* the first other range */

static void keep_other(const char *name) {
	if (!atomic_flag_test_and_set(&other_is_kept)) {
		snprintf(other, sizeof(other), "%s", name);
	}
}

/* A child that was forked has done nothing, until it begins to work itself. */
static void at_exit(void) {
	if (atomic_load(&seen) || !atomic_load(&worker_list)) {
		return;
	}
	log_line(LOG_LEVEL_WARN,
		 "No NVTX range was seen that SBEET_MARK='%s' names, so this program had no "
		 "jobs%s%s%s",
		 env_get()->mark_text,
		 !atomic_load(&used) ? ": it does not use NVTX 3"
		 : *other	     ? "; its first range was '"
				     : "",
		 other, *other ? "'" : "");
}

static void watch_exit(void) {
	atexit(at_exit);
}

void nvtx_start(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (env_get()->mark) {
		pthread_once(&once, watch_exit);
	}
}

/* ---- names ---- */

static bool is_job(const char *name) {
	if (!name) {
		return false;
	}
	if (range_name_is(env_get()->mark, name)) {
		return true;
	}
	keep_other(name);
	return false;
}

static bool is_job_wide(const wchar_t *name) {
	return name && range_name_is_wide(env_get()->mark, name);
}

/* Of strings that are registered only this is of interest. */
static const char registered_job, registered_other;

static const void *on_register(void *domain, const char *name) {
	return is_job(name) ? &registered_job : &registered_other;
}

static const void *on_register_wide(void *domain, const wchar_t *name) {
	return is_job_wide(name) ? &registered_job : &registered_other;
}

static bool is_job_by_attributes(const struct nvtx_abi_attributes *a) {
	if (!a || a->size < sizeof(*a)) {
		return false;
	}
	switch (a->name_type) {
	case NVTX_ABI_NAME_NARROW:
		return is_job(a->name.narrow);
	case NVTX_ABI_NAME_WIDE:
		return is_job_wide(a->name.wide);
	case NVTX_ABI_NAME_REGISTERED:
		return a->name.registered == &registered_job;
	default:
		return false;
	}
}

/* ---- domains ---- */

/* A domain's handle is made of its name alone: nothing is kept, however many a program makes. The
 * lowest bit says whether its ranges may be jobs, the next one that it is not NULL. */
#define DOMAIN_JOBS  1
#define DOMAIN_NAMED 2
#define FNV_BASIS    14695981039346656037u
#define FNV_PRIME    1099511628211u

static void *domain_handle(uint64_t hash, bool jobs) {
	return (void *)(uintptr_t)(hash << 2 | DOMAIN_NAMED | (jobs ? DOMAIN_JOBS : 0));
}

static void *on_domain(const char *name) {
	uint64_t hash = FNV_BASIS;

	for (const char *p = name; p && *p; p++) {
		hash = (hash ^ (unsigned char)*p) * FNV_PRIME;
	}
	return name ? domain_handle(hash, range_name_has_domain(env_get()->mark, name)) : NULL;
}

static void *on_domain_wide(const wchar_t *name) {
	uint64_t hash = FNV_BASIS;

	for (const wchar_t *p = name; p && *p; p++) {
		hash = (hash ^ (uint32_t)*p) * FNV_PRIME;
	}
	return name ? domain_handle(hash, range_name_has_domain_wide(env_get()->mark, name)) : NULL;
}

static bool has_jobs(void *domain) {
	const struct range_name *r = env_get()->mark;

	return domain ? (uintptr_t)domain & DOMAIN_JOBS : r->any_domain || !*r->domain;
}

/* ---- begin and end ---- */

/* Ranges of the process that are jobs and are open (start and end), by the id that the program got.
 */
#define STARTED_MAX 64
#define FILLING	    UINT64_MAX

static struct {
	_Atomic(struct mark *) mark;
	_Atomic uint64_t id; /* 0: free */
} started[STARTED_MAX];
static _Atomic uint64_t last_id;

/* Of the thread. */
static STATE_TLS struct {
	struct mark *mark; /* what it begins: see marks_begin_job(); NULL: it has begun nothing */
	/* Push and pop: the outermost range that is a job, and how deep the thread is in ranges of
	 * its domain from there on. Further ones within it are no jobs of their own. */
	void *domain;
	uint64_t depth; /* 0: none is open */
} own;

static pthread_key_t exit_key;
static bool has_key;

static void drain_marked(struct lane *lane, void *mark) {
	if (lane->mark == mark) {
		lane_drain(lane);
	}
}

/* Nobody else can pop what it has pushed. */
static void end_process_job(struct mark *process) {
	bool held = mark_holds(process);

	if (mark_end(process) && held) {
		lane_for_each(drain_marked, process);
	}
}

/* In thread scope its jobs are gone with it, see lane_thread_gone(): no end may count any more. */
static void forget_started(const struct mark *m) {
	for (unsigned i = 0; i < STARTED_MAX; i++) {
		uint64_t id = atomic_load(&started[i].id);

		if (id != 0 && id != FILLING && atomic_load(&started[i].mark) == m) {
			atomic_compare_exchange_strong(&started[i].id, &id, 0);
		}
	}
}

static void on_thread_exit(void *unused) {
	if (own.mark != lane_mark(NULL)) {
		forget_started(own.mark);
	} else if (own.depth > 0) {
		end_process_job(own.mark);
	}
	own.depth = 0;
}

static void make_key(void) {
	has_key = pthread_key_create(&exit_key, on_thread_exit) == 0;
}

static struct mark *begin(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct mark *m = marks_begin_job(0, 0);

	if (m && !own.mark) {
		own.mark = m;
		pthread_once(&once, make_key);
		if (has_key) {
			pthread_setspecific(exit_key, &own);
		}
	}
	if (m) {
		atomic_store_explicit(&seen, true, memory_order_relaxed);
	}
	return m;
}

/* ---- ranges of one thread: push and pop ---- */

static int push(void *domain, bool job) {
	if (own.depth > 0) {
		own.depth += own.domain == domain;
	} else if (job && has_jobs(domain) && begin()) {
		own.domain = domain;
		own.depth = 1;
	}
	return NVTX_ABI_NO_LEVELS;
}

static int on_domain_pop(void *domain) {
	if (own.depth > 0 && own.domain == domain && --own.depth == 0) {
		marks_end_job(own.mark);
	}
	return NVTX_ABI_NO_LEVELS;
}

static int on_pop(void) {
	return on_domain_pop(NULL);
}

static int on_push(const char *name) {
	return push(NULL, is_job(name));
}

static int on_push_wide(const wchar_t *name) {
	return push(NULL, is_job_wide(name));
}

static int on_push_ex(const struct nvtx_abi_attributes *a) {
	return push(NULL, is_job_by_attributes(a));
}

static int on_domain_push_ex(void *domain, const struct nvtx_abi_attributes *a) {
	return push(domain, is_job_by_attributes(a));
}

/* ---- ranges of the process: start and end ---- */

/* Return: its id; 0, as without a tool: it is no job. */
static uint64_t start(void *domain, bool job) {
	struct mark *m;
	uint64_t id;

	if (!job || !has_jobs(domain)) {
		return 0;
	}
	for (unsigned i = 0; i < STARTED_MAX; i++) {
		uint64_t empty = 0;

		if (!atomic_compare_exchange_strong(&started[i].id, &empty, FILLING)) {
			continue;
		}
		m = begin();
		id = m ? atomic_fetch_add(&last_id, 1) + 1 : 0;
		atomic_store(&started[i].mark, m);
		atomic_store(&started[i].id, id);
		return id;
	}
	log_once(LOG_LEVEL_WARN,
		 "More than %d NVTX ranges that are jobs were started and not ended, ignoring the "
		 "others",
		 STARTED_MAX);
	return 0;
}

static void on_domain_end(void *domain, uint64_t id) {
	if (id == 0 || id == FILLING) {
		return;
	}
	for (unsigned i = 0; i < STARTED_MAX; i++) {
		struct mark *m = atomic_load(&started[i].mark);
		uint64_t found = id;

		/* An id is used once: if it is here now, the mark above is its own. */
		if (atomic_load(&started[i].id) == id &&
		    atomic_compare_exchange_strong(&started[i].id, &found, 0)) {
			marks_end_job(m);
			return;
		}
	}
}

static void on_end(uint64_t id) {
	on_domain_end(NULL, id);
}

static uint64_t on_start(const char *name) {
	return start(NULL, is_job(name));
}

static uint64_t on_start_wide(const wchar_t *name) {
	return start(NULL, is_job_wide(name));
}

static uint64_t on_start_ex(const struct nvtx_abi_attributes *a) {
	return start(NULL, is_job_by_attributes(a));
}

static uint64_t on_domain_start_ex(void *domain, const struct nvtx_abi_attributes *a) {
	return start(domain, is_job_by_attributes(a));
}

/* ---- NVTX comes ---- */

struct slot {
	enum nvtx_abi_module module;
	unsigned number;
	nvtx_abi_function function;
};

#define SLOT(module, number, function) \
	{ NVTX_ABI_##module, NVTX_ABI_##number, (nvtx_abi_function)(function) }

static const struct slot slots[] = {
	SLOT(CORE, RANGE_START_EX, on_start_ex),
	SLOT(CORE, RANGE_START_A, on_start),
	SLOT(CORE, RANGE_START_W, on_start_wide),
	SLOT(CORE, RANGE_END, on_end),
	SLOT(CORE, RANGE_PUSH_EX, on_push_ex),
	SLOT(CORE, RANGE_PUSH_A, on_push),
	SLOT(CORE, RANGE_PUSH_W, on_push_wide),
	SLOT(CORE, RANGE_POP, on_pop),
	SLOT(CORE2, DOMAIN_RANGE_START_EX, on_domain_start_ex),
	SLOT(CORE2, DOMAIN_RANGE_END, on_domain_end),
	SLOT(CORE2, DOMAIN_RANGE_PUSH_EX, on_domain_push_ex),
	SLOT(CORE2, DOMAIN_RANGE_POP, on_domain_pop),
	SLOT(CORE2, DOMAIN_REGISTER_STRING_A, on_register),
	SLOT(CORE2, DOMAIN_REGISTER_STRING_W, on_register_wide),
	SLOT(CORE2, DOMAIN_CREATE_A, on_domain),
	SLOT(CORE2, DOMAIN_CREATE_W, on_domain_wide),
};

static void fill_in(const struct nvtx_abi_callbacks *callbacks, const struct slot *slot) {
	nvtx_abi_function **table = NULL;
	unsigned n = 0;

	if (callbacks->get_slots(slot->module, &table, &n) && table && slot->number < n &&
	    table[slot->number]) {
		*table[slot->number] = slot->function;
	}
}

/* By each library of the program that uses NVTX, at its first call. Return: whether we take its
 * ranges; if not, it goes on as without a tool. */
int InitializeInjectionNvtx2(nvtx_abi_get_table get_table) {
	const struct nvtx_abi_callbacks *callbacks =
		get_table ? get_table(NVTX_ABI_CALLBACKS) : NULL;

	if (!marks_are_found() || state_bypass() || !env_get()->mark || !callbacks ||
	    callbacks->size < sizeof(*callbacks)) {
		return 0;
	}
	atomic_store(&used, true);
	for (unsigned i = 0; i < sizeof(slots) / sizeof(*slots); i++) {
		fill_in(callbacks, &slots[i]);
	}
	return 1;
}

void nvtx_after_fork(void) {
	own.mark = NULL;
	own.depth = 0;
	for (unsigned i = 0; i < STARTED_MAX; i++) {
		atomic_store(&started[i].id, 0);
	}
}
