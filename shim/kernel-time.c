/*
 * kernel-time.c: see kernel-time.h.
 */
#include "shim/real.h"

#include "shim/kernel-time.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shim/capture.h"
#include "shim/launch.h"
#include "shim/state.h"

/* Of a kernel that is known, one launch in so many is measured: two events take the GPU 2 us. */
#define LAUNCHES_A_SAMPLE 64

/* Samples are looked at so often. */
#define LAUNCHES_A_LOOK 16

/* A longer time counts so much less than a shorter one. */
#define LONGER_PART 8

/* Places where an entry may be. */
#define PROBES 4

static uint64_t mix(uint64_t h, uint64_t value) {
	h = (h ^ value) * 0x9E3779B97F4A7C15ull;
	return h ^ h >> 32;
}

static uint64_t key_of(const struct launch *l) {
	uint64_t h = mix(0, (uintptr_t)l->function);

	h = mix(h, launch_blocks(l));
	h = mix(h, launch_threads(l));
	return mix(h, l->shared_bytes) | 1;
}

/* Where @key is, or a free place, or one that something else has to leave. */
static struct kernel_time *slot_of(struct kernel_times *t, uint64_t key) {
	size_t first = key >> 32;
	struct kernel_time *slot;

	for (size_t i = 0; i < PROBES; i++) {
		slot = &t->known[(first + i) % KERNEL_TIMES];
		if (slot->key == key || slot->key == 0) {
			return slot;
		}
	}
	return &t->known[first % KERNEL_TIMES];
}

struct kernel_time *kernel_time_find(struct kernel_times *t, const struct launch *launch) {
	uint64_t key = key_of(launch);
	struct kernel_time *time = slot_of(t, key);

	if (time->key != key) {
		*time = (struct kernel_time){.key = key};
	}
	return time;
}

/* ---- samples ---- */

static void learn(struct kernel_times *t, uint64_t key, float ms) {
	struct kernel_time *time = slot_of(t, key);
	uint32_t ns = ms > 0 && ms < 4000 ? (uint32_t)(ms * 1e6f) : 0;

	if (time->key != key || ns == 0) {
		return;
	}
	if (time->ns > 0 && ns > time->ns) {
		ns = time->ns + (ns - time->ns) / LONGER_PART;
	}
	time->ns = ns;
}

static bool can_measure(const struct real *real) {
	return real->cuEventCreate && real->cuEventRecord && real->cuEventElapsedTime;
}

/* Those that are done tell what they have measured. */
static void look(struct kernel_times *t) {
	const struct real *real = real_get();
	float ms;

	t->launches = 0;
	for (size_t i = 0; i < KERNEL_SAMPLES; i++) {
		struct kernel_sample *s = &t->samples[i];
		CUresult rc = s->key ? real->cuEventElapsedTime(&ms, s->begin, s->end)
				     : CUDA_ERROR_NOT_READY;

		if (rc == CUDA_ERROR_NOT_READY) {
			continue;
		}
		if (rc == CUDA_SUCCESS) {
			learn(t, s->key, ms);
		}
		s->key = 0;
		t->n_flying--;
	}
}

/* The thread's events belong to one context: it measures nothing in others. */
static bool is_own_context(struct kernel_times *t, CUcontext context) {
	CUcontext own = atomic_load(&t->context);

	if (!own) {
		memset(t->samples, 0, sizeof(t->samples));
		t->n_flying = 0;
		atomic_store(&t->context, context);
	}
	return !own || own == context;
}

static struct kernel_sample *free_sample(struct kernel_times *t) {
	for (size_t i = 0; i < KERNEL_SAMPLES; i++) {
		if (!t->samples[i].key) {
			return &t->samples[i];
		}
	}
	return NULL;
}

static bool has_events(struct kernel_sample *s) {
	const struct real *real = real_get();

	return (s->begin || real->cuEventCreate(&s->begin, CU_EVENT_DEFAULT) == CUDA_SUCCESS) &&
	       (s->end || real->cuEventCreate(&s->end, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
}

/* Inside state_enter(). */
static struct kernel_sample *begin(struct kernel_times *t, CUstream stream) {
	struct kernel_sample *s;

	if (t->n_flying > 0 && t->launches >= LAUNCHES_A_LOOK) {
		look(t);
	}
	s = t->n_flying < KERNEL_SAMPLES ? free_sample(t) : NULL;
	if (!s || !has_events(s) || real_get()->cuEventRecord(s->begin, stream) != CUDA_SUCCESS) {
		return NULL;
	}
	s->stream = stream;
	t->n_flying++;
	return s;
}

static bool is_due(struct kernel_time *time) {
	uint32_t pause = time->ns > 0 ? LAUNCHES_A_SAMPLE : LAUNCHES_A_LOOK;

	return time->launches == 0 || ++time->launches > pause;
}

struct kernel_sample *kernel_time_begin(struct kernel_times *t, struct kernel_time *time,
					CUcontext context, CUstream stream) {
	struct kernel_sample *s;
	int token;

	t->launches++;
	if (!is_due(time) || capture_any() ||
	    (t->n_flying == KERNEL_SAMPLES && t->launches < LAUNCHES_A_LOOK) ||
	    !can_measure(real_get()) || !is_own_context(t, context)) {
		return NULL;
	}
	token = state_enter();
	s = begin(t, stream);
	state_leave(token);
	if (s) {
		s->key = time->key;
		time->launches = 1;
	}
	return s;
}

void kernel_time_end(struct kernel_times *t, struct kernel_sample *sample, CUresult rc) {
	int token = state_enter();

	if (rc != CUDA_SUCCESS || capture_any() ||
	    real_get()->cuEventRecord(sample->end, sample->stream) != CUDA_SUCCESS) {
		sample->key = 0;
		t->n_flying--;
	}
	state_leave(token);
}

void kernel_time_forget(struct kernel_times *t, CUcontext context) {
	atomic_compare_exchange_strong(&t->context, &context, NULL);
}
