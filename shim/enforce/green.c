/*
 * green.c: see green.h.
 */
#include "shim/enforce/green.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/table.h"
#include "shim/state.h"

/* The driver rounds up to what the GPU can: 8 on Hopper, 4 on Ampere. */
#define SMALLEST_GROUP 2

struct partition {
	struct smset set; /* empty: the whole GPU */
	unsigned level;
	CUgreenCtx handle;	 /* NULL: the whole GPU */
	struct partition *owner; /* which has the handle: the first one of its set */
	struct partition *next;	 /* of the context; only ever added to */
};

struct green {
	CUcontext context;
	CUdevice device;
	unsigned n_sms;
	unsigned step;
	unsigned n_groups; /* of `step` SMs; one more for what is left over, if there is any */
	unsigned n_left;
	CUdevResource groups[PROTO_SMS_MAX / SMALLEST_GROUP + 1];
	_Atomic(struct partition *) partitions; /* owned */
	unsigned n_made;			/* green contexts */
	_Atomic bool ahead; /* green_make_ahead() was here */
};

#define GPUS_MAX 16

/* What one takes of the GPU's memory, measured on an H200. */
#define PARTITION_BYTES (6u << 20)

/* group 0: none */
static struct expected {
	uint8_t uuid[PROTO_UUID_BYTES];
	struct green_rows rows; /* its uuid is not used */
} expected[GPUS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table greens; /* by context; of `uncut` where nothing can be cut */
static struct green uncut;
static _Atomic bool possible; /* any was cut */

/* Primary contexts are what the driver hands out for a device, and nothing else tells. */
static bool is_primary(const struct real *real, CUcontext context, CUdevice device) {
	CUcontext primary = NULL;
	unsigned flags;
	int active = 0;

	/* Without asking first, this would make one. */
	if (real->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active ||
	    real->cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) {
		return false;
	}
	real->cuDevicePrimaryCtxRelease_v2(device);
	return primary == context;
}

static bool driver_can(const struct real *real) {
	return real->cuDeviceGetDevResource && real->cuDevSmResourceSplitByCount &&
	       real->cuDevResourceGenerateDesc && real->cuGreenCtxCreate &&
	       real->cuGreenCtxDestroy && real->cuGreenCtxStreamCreate &&
	       real->cuStreamCreateWithPriority &&
	       real->cuDevicePrimaryCtxGetState && real->cuDevicePrimaryCtxRetain &&
	       real->cuDevicePrimaryCtxRelease_v2;
}

/* The groups, as small as they come without taking clusters apart. Return: 0 or -EIO. */
static int cut(const struct real *real, struct green *g) {
	unsigned n = PROTO_SMS_MAX / SMALLEST_GROUP;
	CUdevResource all, rest;

	if (real->cuDeviceGetDevResource(g->device, &all, CU_DEV_RESOURCE_TYPE_SM) !=
		    CUDA_SUCCESS ||
	    real->cuDevSmResourceSplitByCount(g->groups, &n, &all, &rest, 0, SMALLEST_GROUP) !=
		    CUDA_SUCCESS ||
	    n == 0) {
		return -EIO;
	}
	g->n_sms = all.sm.smCount;
	g->step = g->groups[0].sm.smCount;
	g->n_groups = n;
	g->n_left = rest.sm.smCount;
	g->groups[n] = rest;
	return g->step > 0 && n * g->step + g->n_left == g->n_sms ? 0 : -EIO;
}

/* NULL: nothing can be cut, or there is no memory. */
static struct green *green_new(const struct real *real, CUcontext context) {
	struct green *g;

	if (!driver_can(real)) {
		return NULL;
	}
	g = calloc(1, sizeof(*g));
	if (!g) {
		return NULL;
	}
	g->context = context;
	if (real->cuCtxGetDevice(&g->device) != CUDA_SUCCESS ||
	    !is_primary(real, context, g->device) || cut(real, g) < 0) {
		free(g);
		return NULL;
	}
	atomic_store(&possible, true);
	return g;
}

static struct green *green_meet(CUcontext context) {
	const struct real *real = real_get();
	int token = state_enter_locked(&lock);
	struct green *g;
	CUcontext popped;

	g = table_get(&greens, (uintptr_t)context);
	if (!g && real->cuCtxPushCurrent_v2(context) == CUDA_SUCCESS) {
		g = green_new(real, context);
		real->cuCtxPopCurrent_v2(&popped);
		g = g ? g : &uncut;
		if (table_put(&greens, (uintptr_t)context, g) < 0 && g != &uncut) {
			free(g);
			g = NULL;
		}
	}
	state_leave_locked(&lock, token);
	return g ? g : &uncut;
}

struct green *green_get(CUcontext context) {
	struct green *g = table_get(&greens, (uintptr_t)context);

	g = g ? g : green_meet(context);
	return g == &uncut ? NULL : g;
}

bool green_possible(void) {
	return atomic_load(&possible);
}

unsigned green_step(const struct green *g) {
	return g->step;
}

unsigned green_sms(const struct green *g) {
	return g->n_sms;
}

struct partition *green_find(const struct green *g, const struct smset *set, unsigned level) {
	struct partition *p = atomic_load_explicit(&g->partitions, memory_order_acquire);

	while (p && (p->level != level || !smset_equal(&p->set, set))) {
		p = p->next;
	}
	return p;
}

/* The one of @set, of any level, that has its green context. */
static struct partition *find_owner(const struct green *g, const struct smset *set) {
	struct partition *p = atomic_load_explicit(&g->partitions, memory_order_relaxed);

	while (p && !(p->owner == p && smset_equal(&p->set, set))) {
		p = p->next;
	}
	return p;
}

/* The groups of @set. Return: their number, -EINVAL if it takes a part of one. */
static int choose_groups(const struct green *g, const struct smset *set, CUdevResource *ret) {
	struct smset left = *set;
	int n = 0;

	for (unsigned i = 0; i <= g->n_groups; i++) {
		struct smset group =
			smset_range(i * g->step, i < g->n_groups ? g->step : g->n_left);

		if (!smset_empty(&group) && smset_within(&group, &left)) {
			left = smset_minus(&left, &group);
			ret[n++] = g->groups[i];
		}
	}
	return n > 0 && smset_empty(&left) ? n : -EINVAL;
}

/* Return: 0, -EINVAL, -ENOSPC, -EIO. */
static int make_handle(struct green *g, const struct smset *set, CUgreenCtx *ret) {
	CUdevResource groups[PROTO_SMS_MAX / SMALLEST_GROUP + 1];
	const struct real *real = real_get();
	int n = choose_groups(g, set, groups);
	CUdevResourceDesc desc;

	if (n < 0) {
		return n;
	}
	if (g->n_made >= GREEN_PARTITIONS_MAX) {
		return -ENOSPC;
	}
	if (real->cuDevResourceGenerateDesc(&desc, groups, (unsigned)n) != CUDA_SUCCESS ||
	    real->cuGreenCtxCreate(ret, desc, g->device, CU_GREEN_CTX_DEFAULT_STREAM) !=
		    CUDA_SUCCESS) {
		return -EIO;
	}
	g->n_made++;
	return 0;
}

/* With the lock held. */
static int partition_new(struct green *g, const struct smset *set, unsigned level) {
	struct partition *owner = find_owner(g, set), *p = calloc(1, sizeof(*p));
	int r = 0;

	if (!p) {
		return -ENOMEM;
	}
	p->owner = owner ? owner : p;
	p->handle = owner ? owner->handle : NULL;
	if (!owner && !smset_empty(set)) {
		r = make_handle(g, set, &p->handle);
	}
	if (r < 0) {
		free(p);
		return r;
	}
	p->set = *set;
	p->level = level;
	p->next = atomic_load_explicit(&g->partitions, memory_order_relaxed);
	atomic_store_explicit(&g->partitions, p, memory_order_release);
	return 0;
}

int green_make(struct green *g, const struct smset *set, unsigned level, unsigned gpu_sms) {
	int token, r;

	if (gpu_sms != g->n_sms) {
		return -EINVAL; /* the program sees a part of the GPU, whose order is another */
	}
	if (green_find(g, set, level)) {
		return 0;
	}
	token = state_enter_locked(&lock);
	r = green_find(g, set, level) ? 0 : partition_new(g, set, level);
	state_leave_locked(&lock, token);
	return r;
}

void green_expect(const struct green_rows *rows) {
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < GPUS_MAX; i++) {
		struct expected *e = &expected[i];

		if (e->rows.group == 0 || memcmp(e->uuid, rows->uuid, sizeof(e->uuid)) == 0) {
			e->rows = *rows;
			memcpy(e->uuid, rows->uuid, sizeof(e->uuid));
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

/* How many partitions may be made ahead. */
static unsigned afford(const struct real *real) {
	size_t n_free, total;

	if (!real->cuMemGetInfo_v2 || real->cuMemGetInfo_v2(&n_free, &total) != CUDA_SUCCESS) {
		return 0;
	}
	return (unsigned)(n_free / GREEN_AHEAD_PART / PARTITION_BYTES);
}

/* With the lock held. */
static void make_rows(struct green *g, const struct green_rows *rows, unsigned afforded) {
	unsigned n =
		rows->last_group <= g->n_sms ? (g->n_sms - rows->last_group) / rows->group + 1 : 0;

	/* The longest first: without them a job could only have fewer SMs. */
	for (unsigned length = n; length-- > 1;) {
		for (unsigned first = 0; first + length <= n; first++) {
			bool to_end = first + length == n;
			unsigned start = first * rows->group;
			struct smset set = smset_range(start, to_end ? g->n_sms - start
								     : length * rows->group);

			if (!rows->anywhere && first > 0 && !to_end) {
				continue;
			}
			if (g->n_made >= afforded ||
			    (!green_find(g, &set, 0) && partition_new(g, &set, 0) < 0)) {
				return;
			}
		}
	}
}

unsigned green_make_ahead(struct green *g, const uint8_t *uuid) {
	unsigned before, made;
	int token;

	if (atomic_load_explicit(&g->ahead, memory_order_relaxed)) {
		return 0;
	}
	token = state_enter_locked(&lock);
	before = g->n_made;
	if (!atomic_exchange(&g->ahead, true)) {
		unsigned afforded = afford(real_get());

		for (unsigned i = 0; i < GPUS_MAX; i++) {
			if (expected[i].rows.group > 0 &&
			    memcmp(expected[i].uuid, uuid, sizeof(expected[i].uuid)) == 0) {
				make_rows(g, &expected[i].rows, afforded);
			}
		}
	}
	made = g->n_made - before;
	state_leave_locked(&lock, token);
	return made;
}

CUstream green_stream_new(struct partition *p, int priority) {
	const struct real *real = real_get();
	int token = state_enter_locked(&lock);
	CUstream s = NULL;
	CUresult rc;

	priority -= (int)p->level; /* the driver takes the greatest it has for what is beyond */
	rc = p->handle ? real->cuGreenCtxStreamCreate(&s, p->handle, CU_STREAM_NON_BLOCKING,
						      priority)
		       : real->cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, priority);
	state_leave_locked(&lock, token);
	return rc == CUDA_SUCCESS ? s : NULL;
}

bool green_confines(const struct partition *p) {
	return p->handle;
}

unsigned green_level(const struct partition *p) {
	return p->level;
}

struct partition *green_owner(struct partition *p) {
	return p->owner;
}

CUcontext green_context(struct partition *p) {
	const struct real *real = real_get();
	CUcontext context;

	return p->handle && real->cuCtxFromGreenCtx &&
			       real->cuCtxFromGreenCtx(&context, p->handle) == CUDA_SUCCESS
		       ? context
		       : NULL;
}

void green_context_destroying(CUcontext context) {
	const struct real *real = real_get();
	struct partition *p, *next;
	struct green *g;
	int token;

	token = state_enter_locked(&lock);
	g = table_take(&greens, (uintptr_t)context);
	for (p = g ? atomic_load(&g->partitions) : NULL; p; p = next) {
		next = p->next;
		if (p->owner == p && p->handle) {
			real->cuGreenCtxDestroy(p->handle);
		}
		free(p);
	}
	if (g != &uncut) {
		free(g);
	}
	state_leave_locked(&lock, token);
}

void green_after_fork(void) {
	/* What the parent knows is left where it is: the driver is not there any more to give it
	 * back to. */
	pthread_mutex_init(&lock, NULL);
	greens = TABLE_NULL;
	atomic_store(&possible, false);
}
