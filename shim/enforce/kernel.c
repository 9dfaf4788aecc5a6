/*
 * kernel.c: the program's modules, libraries and kernels. See kernel.h.
 *
 * Who owns what: `owners` maps CUmodule and CUlibrary handles to struct owner, `kernels` maps
 * CUfunction and CUkernel handles to struct kernel. An owner owns its kernels and remembers all
 * keys under which it or they can be found (a library's kernel has a CUkernel and, in each context,
 * a CUfunction). Work that calls the driver is done on objects that nobody else can see yet; then
 * they are put into the tables under the lock.
 */
#include "shim/enforce/kernel.h"
#include "shim/base/hot.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/enforcement.h"
#include "proto/limits.h"
#include "sbeet.pb-c.h"
#include "shim/base/table.h"
#include "shim/enforce/build.h"
#include "shim/enforce/context.h"
#include "shim/enforce/image.h"
#include "shim/enforce/twin.h"
#include "shim/real.h"
#include "shim/state.h"

/* Different compute capabilities in one machine for which a library's twins are built. */
#define OWNER_BUILDS_MAX 4

struct kernel {
	uint32_t id;
	char *name; /* owned */
	struct owner *owner;
	_Atomic(const char *) needs_whole; /* why; NULL: no launch did so far */
	bool waits;			   /* its blocks may wait for each other */
	_Atomic(uint64_t) wave; /* of the last shape asked for: see kernel_waits_at_once() */
	struct kernel *next;	/* of the owner's */
	unsigned n_twins;
	struct twin twins[]; /* one for each of the owner's builds */
};

/* One way to find an owner or a kernel. */
struct key {
	struct table *table;
	uintptr_t handle;
	void *value; /* what it finds, as long as the driver does not give the handle away anew */
	CUcontext context; /* with which the driver forgets it; NULL: with the owner */
	struct key *next;
};

struct owner {
	void *handle; /* CUmodule or CUlibrary */
	bool is_library;
	bool waits_first;	/* see dependent.h; set before there are kernels */
	CUcontext context;	/* a module's */
	struct kernel *kernels; /* owned */
	struct key *keys;	/* owned */
	struct owner *next;
	unsigned n_builds;
	struct build builds[OWNER_BUILDS_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HOT_DATA static struct table owners; /* changed under the lock, as is all below */
HOT_DATA static struct table kernels;
static struct owner *owner_list;

static _Atomic(uint32_t) last_id;
HOT_LAUNCH _Atomic uint32_t kernel_epoch = 1;
HOT_LAUNCH _Atomic bool kernel_any_waits_first;

static struct kernel *kernel_free(struct kernel *k) {
	if (!k) {
		return NULL;
	}
	for (unsigned i = 0; i < k->n_twins; i++) {
		twin_deinit(&k->twins[i]);
	}
	free(k->name);
	free(k);
	return NULL;
}

static struct owner *owner_free(struct owner *o, bool in_driver) {
	struct kernel *k;
	struct key *key;

	while ((k = o->kernels)) {
		o->kernels = k->next;
		kernel_free(k);
	}
	while ((key = o->keys)) {
		o->keys = key->next;
		free(key);
	}
	for (unsigned i = 0; i < o->n_builds; i++) {
		build_deinit(&o->builds[i], in_driver);
	}
	free(o);
	return NULL;
}

/* Makes @value be found in @table by @handle as long as @o and, unless it is NULL, @context live.
 * Under the lock. */
static bool owner_add_key(struct owner *o, struct table *table, void *handle, void *value,
			  CUcontext context) {
	struct key *key = malloc(sizeof(*key));

	atomic_fetch_add(&kernel_epoch, 1);
	if (!key || table_put(table, (uintptr_t)handle, value)) {
		free(key);
		return false;
	}
	*key = (struct key){.table = table,
			    .handle = (uintptr_t)handle,
			    .value = value,
			    .context = context,
			    .next = o->keys};
	o->keys = key;
	return true;
}

static struct owner *owner_new(void *handle, bool is_library) {
	struct owner *o = calloc(1, sizeof(*o));

	if (o) {
		o->handle = handle;
		o->is_library = is_library;
	}
	return o;
}

/* @handle finds nothing any more. Under the lock. */
static void hide(struct table *table, uintptr_t handle) {
	atomic_fetch_add(&kernel_epoch, 1);
	table_take(table, handle);
}

/* The handle may find something newer by now. Under the lock. */
static void key_hide(const struct key *key) {
	if (table_get(key->table, key->handle) == key->value) {
		hide(key->table, key->handle);
	}
}

/* Nobody finds @o or anything of it any more. Under the lock. */
static void owner_hide(struct owner *o) {
	for (struct owner **at = &owner_list; *at; at = &(*at)->next) {
		if (*at == o) {
			*at = o->next;
			break;
		}
	}
	for (const struct key *key = o->keys; key; key = key->next) {
		key_hide(key);
	}
}

/* The driver may give to something else what it used for @o in @context. Under the lock. */
static void owner_forget_context(struct owner *o, CUcontext context) {
	struct key **at = &o->keys, *key;

	while ((key = *at)) {
		if (key->context != context) {
			at = &key->next;
			continue;
		}
		key_hide(key);
		*at = key->next;
		free(key);
	}
	for (unsigned i = 0; i < o->n_builds; i++) {
		build_forget_context(&o->builds[i], context);
	}
}

static void owner_publish(struct owner *o) {
	struct owner *old;
	bool ok;

	pthread_mutex_lock(&lock);
	/* One that went without a word, as with a context that the driver took down. */
	old = table_get(&owners, (uintptr_t)o->handle);
	if (old && old->handle != o->handle) {
		old = NULL; /* a library by what was its module in a context that is gone */
	}
	if (old) {
		owner_hide(old);
	}
	ok = owner_add_key(o, &owners, o->handle, o, NULL);
	if (ok) {
		o->next = owner_list;
		owner_list = o;
	}
	pthread_mutex_unlock(&lock);
	if (old) {
		owner_free(old, false);
	}
	if (!ok) {
		owner_free(o, true);
	}
}

static void owner_build(struct owner *o, const void *image, const char *path, const struct jit *jit,
			unsigned sm) {
	static const struct jit none;

	for (unsigned i = 0; i < o->n_builds; i++) {
		if (o->builds[i].sm == sm) {
			return;
		}
	}
	if (o->n_builds < OWNER_BUILDS_MAX) {
		build_init(&o->builds[o->n_builds++], o->is_library, o->handle, image, path,
			   jit ? jit : &none, sm);
	}
}

void kernel_module_loaded(CUmodule module, const void *image, const char *path,
			  const struct jit *jit) {
	struct context *c = context_current();
	struct owner *o;

	if (!c) {
		return;
	}
	o = owner_new(module, false);
	if (!o) {
		return;
	}
	o->context = context_handle(c);
	owner_build(o, image, path, jit, context_sm(c));
	/* Now, so that launches find all done. What can't be filled in is asked for again then. */
	build_make_ready(&o->builds[0], c);
	owner_publish(o);
}

void kernel_library_loaded(CUlibrary library, const void *image, const char *path,
			   const struct jit *jit) {
	unsigned sms[CONTEXT_GPUS_MAX], n;
	struct context *c;
	struct owner *o;

	o = real_get() ? owner_new(library, true) : NULL;
	if (!o) {
		return;
	}
	/* A library belongs to no context: whichever GPU there is may run it. */
	n = context_all_sms(sms);
	for (unsigned i = 0; i < n; i++) {
		if (sms[i] > 0) {
			owner_build(o, image, path, jit, sms[i]);
		}
	}
	c = context_current();
	for (unsigned i = 0; c && i < o->n_builds; i++) {
		if (o->builds[i].sm == context_sm(c)) {
			build_make_ready(&o->builds[i], c);
		}
	}
	owner_publish(o);
}

static void set_waits_first(void *handle) {
	struct owner *o;

	pthread_mutex_lock(&lock);
	o = table_get(&owners, (uintptr_t)handle);
	if (o) {
		o->waits_first = true;
		/* Before kernel_epoch changes as its kernels are found. */
		atomic_store(&kernel_any_waits_first, true);
	}
	pthread_mutex_unlock(&lock);
}

void kernel_module_waits_first(CUmodule module) {
	set_waits_first(module);
}

void kernel_library_waits_first(CUlibrary library) {
	set_waits_first(library);
}

static void unloading(void *handle) {
	struct owner *o;

	pthread_mutex_lock(&lock);
	o = table_get(&owners, (uintptr_t)handle);
	if (o) {
		owner_hide(o);
	}
	pthread_mutex_unlock(&lock);
	if (o) {
		owner_free(o, true);
	}
}

void kernel_module_unloading(CUmodule module) {
	unloading(module);
}

void kernel_library_unloading(CUlibrary library) {
	unloading(library);
}

/* With which context the driver will forget a handle that it has just given away. */
static CUcontext context_of_handle(void) {
	const struct real *real = real_get();
	CUcontext context = NULL;

	return real && real->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

void kernel_library_module_found(CUlibrary library, CUmodule module) {
	CUcontext context = context_of_handle();
	struct owner *o;

	pthread_mutex_lock(&lock);
	o = table_get(&owners, (uintptr_t)library);
	if (o && table_get(&owners, (uintptr_t)module) != o) {
		owner_add_key(o, &owners, module, o, context);
	}
	pthread_mutex_unlock(&lock);
}

static struct kernel *kernel_new(struct owner *o, const char *name) {
	struct kernel *k = calloc(1, sizeof(*k) + o->n_builds * sizeof(k->twins[0]));

	if (!k) {
		return NULL;
	}
	k->name = strdup(name);
	if (!k->name) {
		return kernel_free(k);
	}
	k->owner = o;
	k->n_twins = o->n_builds;
	for (unsigned i = 0; i < o->n_builds; i++) {
		twin_init(&k->twins[i], &o->builds[i], name);
		k->waits |= k->twins[i].info && k->twins[i].info->waits;
	}
	return k;
}

/* Under the lock. */
static struct kernel *owner_kernel(const struct owner *o, const char *name) {
	for (struct kernel *k = o->kernels; k; k = k->next) {
		if (!strcmp(k->name, name)) {
			return k;
		}
	}
	return NULL;
}

/* The kernel that @handle is known to be. If that is not @name of @o, the driver has given away
 * anew the handle of something that is gone: then nobody finds that by it any more. Under the lock.
 */
static struct kernel *kernel_known(const struct owner *o, const void *handle, const char *name) {
	struct kernel *k = table_get(&kernels, (uintptr_t)handle);

	if (k && (k->owner != o || strcmp(k->name, name) != 0)) {
		hide(&kernels, (uintptr_t)handle);
		k = NULL;
	}
	return k;
}

/* @handle is the kernel @name of the module or library @of; a library's until @context ends. */
static void found(void *of, void *handle, const char *name, CUcontext context) {
	struct kernel *k, *known;
	struct owner *o;

	pthread_mutex_lock(&lock);
	o = table_get(&owners, (uintptr_t)of);
	known = kernel_known(o, handle, name);
	/* Another handle of a library's kernel; a module gives the same handle for the same name.
	 */
	if (!known && o && o->is_library) {
		known = owner_kernel(o, name);
		if (known) {
			owner_add_key(o, &kernels, handle, known, context);
		}
	}
	pthread_mutex_unlock(&lock);
	if (!o || known) {
		return;
	}
	/* The program holds the module while it asks for its functions, so @o stays. */
	k = kernel_new(o, name);
	if (!k) {
		return;
	}
	pthread_mutex_lock(&lock);
	if (!table_get(&kernels, (uintptr_t)handle)) {
		k->id = atomic_fetch_add(&last_id, 1) + 1;
		if (owner_add_key(o, &kernels, handle, k, context)) {
			k->next = o->kernels;
			o->kernels = k;
			k = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
	kernel_free(k);
}

void kernel_function_found(CUmodule module, CUfunction function, const char *name) {
	found(module, function, name, context_of_handle());
}

void kernel_library_kernel_found(CUlibrary library, CUkernel kernel, const char *name) {
	found(library, kernel, name, NULL);
}

HOT_CODE bool kernel_function_is_known(CUkernel kernel, CUfunction function) {
	return table_get(&kernels, (uintptr_t)kernel) == table_get(&kernels, (uintptr_t)function);
}

void kernel_kernel_function_found(CUkernel kernel, CUfunction function) {
	CUcontext context = context_of_handle();
	struct kernel *k;

	pthread_mutex_lock(&lock);
	k = table_get(&kernels, (uintptr_t)kernel);
	if (k && table_get(&kernels, (uintptr_t)function) != k) {
		owner_add_key(k->owner, &kernels, function, k, context);
	} else if (!k) {
		hide(&kernels, (uintptr_t)function);
	}
	pthread_mutex_unlock(&lock);
}

/* On every GPU for which there is a twin: which one the program means is not told, and more than it
 * asked for changes nothing but how its own launches are placed. */
static void library_twin_set(const struct real *real, const struct twin *t,
			     CUfunction_attribute attribute, int value,
			     const CUfunc_cache *config) {
	CUkernel kernel = (CUkernel)t->handle;
	CUdevice device;
	int n = 0;

	if (real->cuDeviceGetCount(&n) != CUDA_SUCCESS) {
		return;
	}
	for (int i = 0; i < n; i++) {
		if (real->cuDeviceGet(&device, i) != CUDA_SUCCESS) {
			continue;
		}
		if (config && real->cuKernelSetCacheConfig) {
			real->cuKernelSetCacheConfig(kernel, *config, device);
		} else if (!config && real->cuKernelSetAttribute) {
			real->cuKernelSetAttribute(attribute, value, kernel, device);
		}
	}
}

static bool has_twin(const struct kernel *k) {
	for (unsigned i = 0; i < k->n_twins; i++) {
		if (k->twins[i].handle) {
			return true;
		}
	}
	return false;
}

/* Libraries set attributes before each launch: where there is no twin this must cost nothing. */
static void set(CUfunction function, CUfunction_attribute attribute, int value,
		const CUfunc_cache *config) {
	struct kernel *k = kernel_find(function);
	const struct real *real = real_get();
	int token;

	if (!k || !real || !(has_twin(k) || k->waits)) {
		return;
	}
	token = state_enter();
	atomic_store(&k->wave, 0);
	for (unsigned i = 0; i < k->n_twins; i++) {
		struct twin *t = &k->twins[i];

		if (!t->handle) {
			continue;
		}
		if (k->owner->is_library) {
			library_twin_set(real, t, attribute, value, config);
		} else if (config) {
			real->cuFuncSetCacheConfig(t->handle, *config);
		} else {
			real->cuFuncSetAttribute(t->handle, attribute, value);
		}
		twin_forget_shapes(t);
	}
	state_leave(token);
}

void kernel_attribute_set(CUfunction function, CUfunction_attribute attribute, int value) {
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
	    attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
		set(function, attribute, value, NULL);
	}
}

void kernel_cache_config_set(CUfunction function, CUfunc_cache config) {
	set(function, 0, 0, &config);
}

void kernel_context_destroying(CUcontext context) {
	struct owner *o, *next, *gone = NULL;

	pthread_mutex_lock(&lock);
	for (o = owner_list; o; o = next) {
		next = o->next;
		if (o->is_library) {
			owner_forget_context(o, context);
		} else if (o->context == context) {
			owner_hide(o);
			o->next = gone;
			gone = o;
		}
	}
	pthread_mutex_unlock(&lock);
	while ((o = gone)) {
		gone = o->next;
		owner_free(o, false); /* the twins' modules go with the context */
	}
}

void kernel_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	owners = TABLE_NULL;
	kernels = TABLE_NULL;
	owner_list = NULL;
}

HOT_CODE struct kernel *kernel_find(CUfunction function) {
	return table_get(&kernels, (uintptr_t)function);
}

HOT_CODE bool kernel_waits_first(const struct kernel *k) {
	return k->owner->waits_first;
}

HOT_CODE uint32_t kernel_id(const struct kernel *k) {
	return k->id;
}

const char *kernel_name(const struct kernel *k) {
	return k->name;
}

/* The twin for the GPU of @c; may have no handle. NULL: none was built. */
static struct twin *find_twin(const struct kernel *k, const struct context *c) {
	unsigned sm = context_sm(c);

	for (unsigned i = 0; i < k->n_twins; i++) {
		if (k->twins[i].build->sm == sm) {
			return (struct twin *)&k->twins[i];
		}
	}
	return NULL;
}

uint32_t kernel_enforcement_mask(const struct kernel *k, const struct launch *l, CUcontext context,
				 struct kernel_use *ret) {
	struct context *c = k ? context_of(context) : NULL;
	struct twin *t = c ? find_twin(k, c) : NULL;
	/* A set has no place for SMs from PROTO_SMS_MAX on. */
	bool fits = t && context_n_sms(c) <= PROTO_SMS_MAX && twin_allows(t, c, l);
	unsigned occupancy = fits ? twin_occupancy(t, c, l) : 0;

	*ret = (struct kernel_use){
		.context = c, .twin = occupancy ? t : NULL, .occupancy = occupancy};
	return ENFORCEMENT_BIT(WHOLE) | (occupancy ? ENFORCEMENT_WITH(ENFORCEMENT_BY_TWIN) : 0);
}

const char *kernel_refusal(const struct kernel *k) {
	const char *first = NULL;

	for (unsigned i = 0; i < k->n_twins; i++) {
		const struct twin *t = &k->twins[i];

		if (t->refusal) {
			first = first ? first : t->refusal;
		} else if (build_misses_variable(t->build, t->info)) {
			first = first ? first : "a variable that it uses has no address";
		} else {
			return NULL;
		}
	}
	return first ? first : "there is no GPU that it was made for";
}

void kernel_need_whole(struct kernel *k, const char *why) {
	atomic_store(&k->needs_whole, why);
}

const char *kernel_needs_whole(const struct kernel *k) {
	return atomic_load(&k->needs_whole);
}

uint64_t kernel_wave_blocks(const struct launch *l) {
	uint64_t threads = launch_threads(l);
	const struct real *real = real_get();
	struct context *c = context_current();
	int n = 0;

	if (!c || threads == 0 || threads > INT_MAX ||
	    !real->cuOccupancyMaxActiveBlocksPerMultiprocessor ||
	    real->cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, l->function, (int)threads,
							      l->shared_bytes) != CUDA_SUCCESS ||
	    n < 0) {
		return 0;
	}
	return (uint64_t)n * context_n_sms(c);
}

/* A wave's blocks above, the launch's shape below: 11 bits threads, 21 bits shared memory, 8 bits
 * device. */
#define WAVE_SHAPE_BITS 40

/* Blocks of the launch's shape that all SMs hold at once; the driver is asked when the shape is
 * another one than last time. */
static uint64_t wave_of(struct kernel *k, const struct launch *l) {
	uint64_t threads = launch_threads(l), shape, blocks;
	struct context *c = context_current();
	uint64_t known = atomic_load_explicit(&k->wave, memory_order_relaxed);

	if (!c || threads == 0 || threads >= 1u << 11 || l->shared_bytes >= 1u << 21) {
		return kernel_wave_blocks(l);
	}
	shape = threads | (uint64_t)l->shared_bytes << 11 |
		(uint64_t)(context_device(c) & 0xFF) << 32;
	if (known && (known & ((1ull << WAVE_SHAPE_BITS) - 1)) == shape) {
		return known >> WAVE_SHAPE_BITS;
	}
	blocks = kernel_wave_blocks(l);
	if (blocks < 1u << 24) {
		atomic_store_explicit(&k->wave, blocks << WAVE_SHAPE_BITS | shape,
				      memory_order_relaxed);
	}
	return blocks;
}

bool kernel_may_wait(const struct kernel *k) {
	return k->waits;
}

HOT_CODE bool kernel_waits_at_once(struct kernel *k, const struct launch *l) {
	uint64_t blocks;

	if (!k->waits) {
		return false;
	}
	blocks = launch_blocks(l);
	return blocks > 1 && blocks <= wave_of(k, l);
}
