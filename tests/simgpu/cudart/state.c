/*
 * state.c: see state.h.
 */
#include "state.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define DEVICES_MAX 16

struct state_binary {
	struct state_binary *next;
	const void *fatbin;
	CUlibrary library; /* NULL: not loaded yet */
};

struct entry {
	struct entry *next;
	struct state_binary *binary;
	const void *host;
	const char *name;
	bool is_kernel;
	CUkernel kernel; /* NULL: not asked for yet */
};

/* Guards everything below it. Held while a binary is loaded: two threads must not load it twice. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct state_binary *binaries;
static struct entry *entries;
static CUcontext contexts[DEVICES_MAX];

static _Thread_local int thread_device;
static _Thread_local cudaError_t thread_error;

cudaError_t state_error(cudaError_t e) {
	if (e != cudaSuccess) {
		thread_error = e;
	}
	return e;
}

cudaError_t state_last_error(int forget) {
	cudaError_t e = thread_error;

	if (forget) {
		thread_error = cudaSuccess;
	}
	return e;
}

int state_device(void) {
	return thread_device;
}

cudaError_t state_driver(const struct cudart_driver **ret) {
	CUresult r = cudart_driver_get(ret);

	return r == CUDA_ERROR_NOT_FOUND ? cudaErrorInsufficientDriver : state_error_of(r);
}

cudaError_t state_context(const struct cudart_driver **ret) {
	const struct cudart_driver *d;
	CUcontext current;
	CUresult r;
	cudaError_t e;

	e = state_driver(&d);
	if (e != cudaSuccess) {
		return e;
	}
	r = d->cuCtxGetCurrent(&current);
	if (r != CUDA_SUCCESS) {
		return state_error_of(r);
	}
	pthread_mutex_lock(&lock);
	if (!contexts[thread_device]) {
		r = d->cuDevicePrimaryCtxRetain(&contexts[thread_device], thread_device);
	}
	if (r == CUDA_SUCCESS && current != contexts[thread_device]) {
		r = d->cuCtxSetCurrent(contexts[thread_device]);
	}
	pthread_mutex_unlock(&lock);
	if (r == CUDA_SUCCESS) {
		*ret = d;
	}
	return state_error_of(r);
}

cudaError_t state_set_device(int device) {
	const struct cudart_driver *d;
	cudaError_t e;
	int n;

	e = state_driver(&d);
	if (e != cudaSuccess) {
		return e;
	}
	if (d->cuDeviceGetCount(&n) != CUDA_SUCCESS || device < 0 || device >= n ||
	    device >= DEVICES_MAX) {
		return cudaErrorInvalidDevice;
	}
	thread_device = device;
	return state_context(&d);
}

/* A program's constructors run before main() and have nobody to report to. */
static void *allocate(size_t size) {
	void *p = calloc(1, size);

	if (!p) {
		fprintf(stderr, "cudart stand-in: out of memory while kernels are registered\n");
		abort();
	}
	return p;
}

struct state_binary *state_binary_new(const void *fatbin) {
	struct state_binary *b = allocate(sizeof(*b));

	b->fatbin = fatbin;
	pthread_mutex_lock(&lock);
	b->next = binaries;
	binaries = b;
	pthread_mutex_unlock(&lock);
	return b;
}

void state_binary_free(struct state_binary *binary) {
	const struct cudart_driver *d;
	struct state_binary **b;
	struct entry **e;

	pthread_mutex_lock(&lock);
	for (e = &entries; *e;) {
		struct entry *gone = *e;

		if (gone->binary != binary) {
			e = &gone->next;
			continue;
		}
		*e = gone->next;
		free(gone);
	}
	for (b = &binaries; *b && *b != binary; b = &(*b)->next) {
	}
	if (*b) {
		*b = binary->next;
	}
	pthread_mutex_unlock(&lock);
	if (binary->library && cudart_driver_get(&d) == CUDA_SUCCESS) {
		d->cuLibraryUnload(binary->library);
	}
	free(binary);
}

static void add(struct state_binary *binary, const void *host, const char *name, bool is_kernel) {
	struct entry *e = allocate(sizeof(*e));

	e->binary = binary;
	e->host = host;
	e->name = name;
	e->is_kernel = is_kernel;
	pthread_mutex_lock(&lock);
	e->next = entries;
	entries = e;
	pthread_mutex_unlock(&lock);
}

void state_add_kernel(struct state_binary *binary, const void *host, const char *name) {
	add(binary, host, name, true);
}

void state_add_variable(struct state_binary *binary, const void *host, const char *name) {
	add(binary, host, name, false);
}

/* Under the lock. NULL if @host names none. */
static struct entry *find(const void *host, bool is_kernel) {
	for (struct entry *e = entries; e; e = e->next) {
		if (e->host == host && e->is_kernel == is_kernel) {
			return e;
		}
	}
	return NULL;
}

/* Under the lock. */
static CUresult load(const struct cudart_driver *d, struct state_binary *binary) {
	if (binary->library) {
		return CUDA_SUCCESS;
	}
	return d->cuLibraryLoadData(&binary->library, binary->fatbin, NULL, NULL, 0, NULL, NULL, 0);
}

cudaError_t state_find_kernel(const struct cudart_driver *d, const void *host, CUkernel *ret) {
	CUresult r = CUDA_SUCCESS;
	struct entry *e;

	pthread_mutex_lock(&lock);
	e = find(host, true);
	if (e && !e->kernel) {
		r = load(d, e->binary);
		if (r == CUDA_SUCCESS) {
			r = d->cuLibraryGetKernel(&e->kernel, e->binary->library, e->name);
		}
	}
	if (e && r == CUDA_SUCCESS) {
		*ret = e->kernel;
	}
	pthread_mutex_unlock(&lock);
	return e ? state_error_of(r) : cudaErrorInvalidDeviceFunction;
}

cudaError_t state_find_variable(const struct cudart_driver *d, const void *host, CUdeviceptr *ret,
				size_t *ret_size) {
	CUresult r = CUDA_SUCCESS;
	struct entry *e;

	pthread_mutex_lock(&lock);
	e = find(host, false);
	if (e) {
		r = load(d, e->binary);
	}
	if (e && r == CUDA_SUCCESS) {
		r = d->cuLibraryGetGlobal(ret, ret_size, e->binary->library, e->name);
	}
	pthread_mutex_unlock(&lock);
	return e ? state_error_of(r) : cudaErrorInvalidSymbol;
}
