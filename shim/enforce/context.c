/*
 * context.c: see context.h.
 *
 * Who owns what: `contexts` maps handles to struct context; a context owns its sets and all its
 * control blocks (`all`), which are either in use (in `streams`, by the stream's key), spare, or
 * left behind by a stream that is gone. The device memory goes with the CUDA context.
 */
#include "shim/enforce/context.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/table.h"
#include "shim/enforce/plan.h"
#include "shim/state.h"

/* Sets are allocated by the page: 64 of them. Each on its own 64 bytes, as one is 48. */
#define SETS_A_PAGE 64
#define SET_STRIDE  64
_Static_assert(sizeof(struct twin_set) <= SET_STRIDE, "a set fits into its place");

#define SET_BUCKETS 64

/* Where the driver does not say how many blocks fit on an SM: as many as on any GPU so far. */
#define BLOCKS_PER_SM_DEFAULT 32

/* Control blocks of gone streams that are looked at before a new one is allocated. */
#define LEFT_TRIES 4

struct set_node {
	struct smset sms;
	CUdeviceptr address;
	struct set_node *next;
};

struct context {
	CUcontext handle;
	uint64_t serial;
	CUdevice device;
	unsigned sm;
	unsigned n_sms;
	unsigned workers_max;
	_Atomic(CUstream) copy_stream;		      /* made on first use; NULL: not yet */
	_Atomic(struct set_node *) sets[SET_BUCKETS]; /* nodes owned; only ever added to */
	unsigned n_sets;
	CUdeviceptr page; /* where the next sets go */
	unsigned page_left;
	struct table streams;	       /* key of a stream -> struct control */
	_Atomic(struct control *) all; /* owned, linked by next_of_all; only ever added to */
	struct control *spare;
	struct control *left, **left_tail;
	struct context *next;
};

/* Thread numbers tell apart the threads' default streams. They are used again, so that a program
 * that makes and ends many threads does not fill the tables. */
struct thread_number {
	uintptr_t number; /* from 1 */
	struct thread_number *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table contexts; /* changed under the lock, as is all below */
static struct context *context_list;
static struct thread_number *free_numbers;
static uintptr_t last_number;
static _Atomic(uint64_t) last_serial;

static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static bool thread_key_made;
static STATE_TLS struct thread_number *thread_self;

/* Keys of streams, of three kinds that never meet. */
static uintptr_t key_explicit(CUstream s) {
	return (uintptr_t)s << 2 | 2;
}

static uintptr_t key_of_thread(const struct thread_number *t) {
	return t->number << 2 | 3;
}

#define KEY_LEGACY ((uintptr_t)1)

static void control_leave(struct context *c, uintptr_t key) {
	struct control *b = table_take(&c->streams, key);

	if (!b) {
		return;
	}
	b->next = NULL;
	*c->left_tail = b;
	c->left_tail = &b->next;
}

/* A thread ends: its default streams end with it. Calls nothing of the driver, which may have
 * cleaned up before us. */
static void thread_ended(void *p) {
	struct thread_number *t = p;

	/* What other destructors of the thread still launch must not meet its successor. */
	thread_self = NULL;
	pthread_mutex_lock(&lock);
	for (struct context *c = context_list; c; c = c->next) {
		control_leave(c, key_of_thread(t));
	}
	t->next = free_numbers;
	free_numbers = t;
	pthread_mutex_unlock(&lock);
}

static void thread_key_make(void) {
	thread_key_made = !pthread_key_create(&thread_key, thread_ended);
}

/* The calling thread's number. NULL: no memory. */
static struct thread_number *thread_find(void) {
	struct thread_number *t = thread_self;

	if (t) {
		return t;
	}
	pthread_once(&thread_once, thread_key_make);
	pthread_mutex_lock(&lock);
	t = free_numbers;
	if (t) {
		free_numbers = t->next;
	} else {
		t = calloc(1, sizeof(*t));
		if (t) {
			t->number = ++last_number;
		}
	}
	pthread_mutex_unlock(&lock);
	if (t && thread_key_made && !pthread_setspecific(thread_key, t)) {
		thread_self = t;
		return t;
	}
	if (t) {
		pthread_mutex_lock(&lock);
		t->next = free_numbers;
		free_numbers = t;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

CUstream context_stream(const struct launch *l) {
	if (l->stream) {
		return l->stream;
	}
	return l->per_thread_default ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

static uintptr_t launch_key(const struct launch *l) {
	CUstream s = context_stream(l);
	const struct thread_number *t;

	if (s == CU_STREAM_LEGACY) {
		return KEY_LEGACY;
	}
	if (s != CU_STREAM_PER_THREAD) {
		return key_explicit(s);
	}
	t = thread_find();
	return t ? key_of_thread(t) : 0;
}

static int attribute(const struct real *real, CUdevice device, CUdevice_attribute which) {
	int value = 0;

	return real->cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

/* Its compute capability: 90 for 9.0. */
static unsigned device_sm(const struct real *real, CUdevice device) {
	return (unsigned)(10 * attribute(real, device,
					 CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
			  attribute(real, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}

unsigned context_all_sms(unsigned *ret) {
	const struct real *real = real_get();
	unsigned found = 0;
	CUdevice device;
	int n = 0;

	if (!real || real->cuDeviceGetCount(&n) != CUDA_SUCCESS) {
		return 0;
	}
	for (int i = 0; i < n && i < CONTEXT_GPUS_MAX; i++) {
		if (real->cuDeviceGet(&device, i) == CUDA_SUCCESS) {
			ret[found++] = device_sm(real, device);
		}
	}
	return found;
}

static struct context *context_free(struct context *c) {
	struct control *b, *next_control;
	struct set_node *s, *next_set;

	if (!c) {
		return NULL;
	}
	for (b = atomic_load(&c->all); b; b = next_control) {
		next_control = b->next_of_all;
		free(b);
	}
	for (size_t i = 0; i < SET_BUCKETS; i++) {
		for (s = atomic_load(&c->sets[i]); s; s = next_set) {
			next_set = s->next;
			free(s);
		}
	}
	table_deinit(&c->streams);
	free(c);
	return NULL;
}

static struct context *context_new(const struct real *real, CUcontext handle) {
	struct context *c, *first;
	unsigned blocks_per_sm;

	c = calloc(1, sizeof(*c));
	if (!c) {
		return NULL;
	}
	c->handle = handle;
	c->serial = atomic_fetch_add(&last_serial, 1) + 1;
	c->left_tail = &c->left;
	if (real->cuCtxGetDevice(&c->device) != CUDA_SUCCESS) {
		return context_free(c);
	}
	c->n_sms = (unsigned)attribute(real, c->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	if (!c->n_sms) {
		return context_free(c);
	}
	c->sm = device_sm(real, c->device);
	blocks_per_sm = (unsigned)attribute(real, c->device,
					    CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
	c->workers_max =
		plan_workers_max(c->n_sms, blocks_per_sm ? blocks_per_sm : BLOCKS_PER_SM_DEFAULT);

	pthread_mutex_lock(&lock);
	first = table_get(&contexts, (uintptr_t)handle);
	if (!first && !table_put(&contexts, (uintptr_t)handle, c)) {
		c->next = context_list;
		context_list = c;
		first = c;
	}
	pthread_mutex_unlock(&lock);
	if (first != c) {
		context_free(c);
	}
	return first;
}

struct context *context_of(CUcontext current) {
	struct context *c = current ? table_get(&contexts, (uintptr_t)current) : NULL;
	const struct real *real = c ? NULL : real_get();

	return c || !current || !real ? c : context_new(real, current);
}

struct context *context_current(void) {
	const struct real *real = real_get();
	CUcontext handle = NULL;

	return real && real->cuCtxGetCurrent(&handle) == CUDA_SUCCESS ? context_of(handle) : NULL;
}

CUcontext context_handle(const struct context *c) {
	return c->handle;
}

uint64_t context_serial(const struct context *c) {
	return c->serial;
}

unsigned context_sm(const struct context *c) {
	return c->sm;
}

CUdevice context_device(const struct context *c) {
	return c->device;
}

unsigned context_n_sms(const struct context *c) {
	return c->n_sms;
}

unsigned context_workers_max(const struct context *c) {
	return c->workers_max;
}

/* The stream for our own copies. NULL if there is none to be had. Inside state_enter(). */
static CUstream copy_stream(struct context *c, const struct real *real) {
	CUstream s = atomic_load_explicit(&c->copy_stream, memory_order_acquire), first = NULL;

	if (s || real->cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
		return s;
	}
	if (!atomic_compare_exchange_strong(&c->copy_stream, &first, s)) {
		real->cuStreamDestroy_v2(s);
		return first;
	}
	return s;
}

int context_write(struct context *c, CUdeviceptr to, const void *from, size_t n) {
	const struct real *real = real_get();
	int token = state_enter();
	CUstream s = copy_stream(c, real);
	bool ok = s && real->cuMemcpyHtoDAsync_v2(to, from, n, s) == CUDA_SUCCESS &&
		  real->cuStreamSynchronize(s) == CUDA_SUCCESS;

	state_leave(token);
	return ok ? 0 : -EIO;
}

int context_read(struct context *c, void *to, CUdeviceptr from, size_t n) {
	const struct real *real = real_get();
	int token = state_enter();
	CUstream s = copy_stream(c, real);
	bool ok = s && real->cuMemcpyDtoHAsync_v2(to, from, n, s) == CUDA_SUCCESS &&
		  real->cuStreamSynchronize(s) == CUDA_SUCCESS;

	state_leave(token);
	return ok ? 0 : -EIO;
}

/* @n bytes of zeros. */
static int memory_new(struct context *c, size_t n, CUdeviceptr *ret) {
	const struct real *real = real_get();
	int token = state_enter();
	CUstream s = copy_stream(c, real);
	CUdeviceptr p = 0;
	int r = -ENOMEM;

	if (s && real->cuMemAlloc_v2(&p, n) == CUDA_SUCCESS) {
		if (real->cuMemsetD8Async(p, 0, n, s) == CUDA_SUCCESS &&
		    real->cuStreamSynchronize(s) == CUDA_SUCCESS) {
			*ret = p;
			r = 0;
		} else {
			real->cuMemFree_v2(p);
		}
	}
	state_leave(token);
	return r;
}

static size_t set_bucket(const struct smset *set) {
	uint64_t h = 0;

	for (size_t i = 0; i < SMSET_WORDS; i++) {
		h = (h ^ set->words[i]) * 0x9E3779B97F4A7C15ull;
		h ^= h >> 32;
	}
	return h % SET_BUCKETS;
}

CUdeviceptr context_find_set(const struct context *c, const struct smset *set) {
	struct set_node *s = atomic_load_explicit(&c->sets[set_bucket(set)], memory_order_acquire);

	for (; s; s = s->next) {
		if (!memcmp(&s->sms, set, sizeof(*set))) {
			return s->address;
		}
	}
	return 0;
}

/* A place in device memory for one more set. */
static int set_place(struct context *c, CUdeviceptr *ret) {
	CUdeviceptr page = 0;
	int r = 0;

	pthread_mutex_lock(&lock);
	if (c->n_sets >= CONTEXT_SETS_MAX) {
		r = -ENOSPC;
	}
	while (!c->page_left && !r) {
		pthread_mutex_unlock(&lock);
		r = memory_new(c, SETS_A_PAGE * SET_STRIDE, &page);
		pthread_mutex_lock(&lock);
		if (!r) {
			/* Two threads at once: the rest of one page stays unused. */
			c->page = page;
			c->page_left = SETS_A_PAGE;
		}
	}
	if (!r) {
		c->n_sets++;
		c->page_left--;
		*ret = c->page + c->page_left * SET_STRIDE;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

int context_prepare_set(struct context *c, const struct smset *set) {
	struct twin_set content = {0};
	struct set_node *s;
	size_t bucket = set_bucket(set);
	int r;

	if (context_find_set(c, set)) {
		return 0;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		return -ENOMEM;
	}
	s->sms = *set;
	memcpy(content.sms, set->words, sizeof(content.sms));
	r = set_place(c, &s->address);
	if (!r && context_write(c, s->address, &content, sizeof(content))) {
		r = -ENOMEM;
	}
	if (r < 0) {
		free(s);
		return r;
	}
	pthread_mutex_lock(&lock);
	s->next = atomic_load_explicit(&c->sets[bucket], memory_order_relaxed);
	atomic_store_explicit(&c->sets[bucket], s, memory_order_release);
	pthread_mutex_unlock(&lock);
	return 0;
}

/*
 * Are all launches on a control block complete? Looks twice: when the counters say so some thread
 * may be about to read what its block was told last, which takes it a few instructions; the second
 * look is a copy later.
 */
static bool control_is_idle(struct context *c, struct control *b) {
	struct twin_ctl ctl;

	for (unsigned look = 0; look < 2; look++) {
		if (context_read(c, &ctl, b->address, sizeof(ctl)) < 0 || ctl.next ||
		    ctl.launches + ctl.stops != atomic_load(&b->launches_begun)) {
			return false;
		}
	}
	return true;
}

/* One that a gone stream left behind, if all launches on it are complete. */
static struct control *control_reuse(struct context *c) {
	struct control *b;

	for (unsigned i = 0; i < LEFT_TRIES; i++) {
		pthread_mutex_lock(&lock);
		b = c->left;
		if (b) {
			c->left = b->next;
			if (!c->left) {
				c->left_tail = &c->left;
			}
		}
		pthread_mutex_unlock(&lock);
		if (!b) {
			return NULL;
		}
		if (control_is_idle(c, b)) {
			return b;
		}
		pthread_mutex_lock(&lock);
		b->next = NULL;
		*c->left_tail = b;
		c->left_tail = &b->next;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* A control block that no stream has: used before or new. */
static struct control *control_get(struct context *c) {
	struct control *b = control_reuse(c);

	if (b) {
		return b;
	}
	b = calloc(1, sizeof(*b));
	if (!b) {
		return NULL;
	}
	if (memory_new(c, twin_ctl_size(c->workers_max), &b->address) < 0) {
		free(b);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	b->next_of_all = atomic_load_explicit(&c->all, memory_order_relaxed);
	atomic_store_explicit(&c->all, b, memory_order_release);
	pthread_mutex_unlock(&lock);
	return b;
}

static void control_put_spare(struct context *c, struct control *b) {
	pthread_mutex_lock(&lock);
	b->next = c->spare;
	c->spare = b;
	pthread_mutex_unlock(&lock);
}

int context_prepare_control(struct context *c) {
	struct control *b;
	bool have;

	pthread_mutex_lock(&lock);
	have = c->spare != NULL;
	pthread_mutex_unlock(&lock);
	if (have) {
		return 0;
	}
	b = control_get(c);
	if (!b) {
		return -ENOMEM;
	}
	control_put_spare(c, b);
	return 0;
}

bool context_has_stream(struct context *c, const struct launch *l) {
	CUstream s = context_stream(l);
	const struct real *real = real_get();
	CUcontext of = NULL;

	/* The default streams are the current context's, and so is what has a control block. A
	 * driver that can't say has no libraries, whose kernels alone run in other contexts. */
	return s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD ||
	       table_get(&c->streams, key_explicit(s)) || !real->cuStreamGetCtx ||
	       (real->cuStreamGetCtx(s, &of) == CUDA_SUCCESS && of == c->handle);
}

struct control *context_find_control(struct context *c, const struct launch *l) {
	uintptr_t key = launch_key(l);
	struct control *b;

	if (!key) {
		return NULL;
	}
	b = table_get(&c->streams, key);
	if (b) {
		return b;
	}
	if (context_prepare_control(c) < 0) {
		return NULL;
	}
	pthread_mutex_lock(&lock);
	/* Another thread may have launched on this stream just now, or taken the spare one. */
	b = table_get(&c->streams, key);
	if (!b && c->spare) {
		b = c->spare;
		if (table_put(&c->streams, key, b)) {
			b = NULL;
		} else {
			c->spare = b->next;
			b->next = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
	return b;
}

uint64_t context_read_outside(struct context *c) {
	uint64_t sum = 0, before;
	struct twin_ctl ctl;

	for (struct control *b = atomic_load_explicit(&c->all, memory_order_acquire); b;
	     b = b->next_of_all) {
		/* Nothing new: no copy. */
		if (atomic_load(&b->launches_begun) == atomic_load(&b->launches_seen) ||
		    context_read(c, &ctl, b->address, sizeof(ctl)) < 0) {
			continue;
		}
		before = atomic_exchange(&b->outside_seen, ctl.outside);
		sum += ctl.outside > before ? ctl.outside - before : 0;
		atomic_store(&b->launches_seen, ctl.launches + ctl.stops);
	}
	return sum;
}

void context_stream_destroying(CUstream stream) {
	pthread_mutex_lock(&lock);
	for (struct context *c = context_list; c; c = c->next) {
		control_leave(c, key_explicit(stream));
	}
	pthread_mutex_unlock(&lock);
}

void context_destroying(CUcontext handle) {
	struct context *c, **at;

	pthread_mutex_lock(&lock);
	c = table_take(&contexts, (uintptr_t)handle);
	for (at = &context_list; c && *at; at = &(*at)->next) {
		if (*at == c) {
			*at = c->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	context_free(c);
}

void context_after_fork(void) {
	/* CUDA does not work in the child, and other threads may have stopped in the middle of
	 * anything: what there was is left where it is. */
	pthread_mutex_init(&lock, NULL);
	contexts = TABLE_NULL;
	context_list = NULL;
	free_numbers = NULL;
	thread_self = NULL;
	if (thread_key_made) {
		pthread_setspecific(thread_key, NULL);
	}
}
