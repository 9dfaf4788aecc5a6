/*
 * fake.c: what the fake driver does where it is more than nothing: do_NAME for the function NAME.
 * The functions themselves are in exports.c.
 */
#include "tests/fake/fake.h"

#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake/exports.h"

#define N_DEVICES 2

struct CUctx_st {
	CUdevice device;
};

struct CUstream_st {
	_Atomic int capturing;
	_Atomic bool launched; /* there are kernels on it: copies alone are never held up */
	unsigned flags;
	CUcontext owner;
	CUstream next; /* of all streams */
};

struct CUevent_st {
	int unused;
};

static struct CUctx_st primaries[N_DEVICES] = {{0}, {1}};
static unsigned retained[N_DEVICES]; /* under the lock, as the streams */
static CUstream streams;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local CUcontext stack[16];
static _Thread_local int depth;
static _Atomic bool is_held;
static _Atomic unsigned spoiled, questions, event_questions, events;

/* Of one thread, so that threads which launch side by side don't meet here; never freed. */
struct tally {
	struct tally *next;
	_Atomic unsigned launches, twin_launches;
};
static _Atomic(struct tally *) tallies;
static _Thread_local struct tally *tally;
static _Atomic unsigned twin_registers, dependent_launches, careless_launches;
static _Atomic bool waits_first, refuses_waits, refuses_dependent;
static _Atomic int varies = -1;
static _Atomic bool gate_closed;
static _Atomic unsigned at_gate, trampled;

void fake_hold(bool held) {
	atomic_store(&is_held, held);
}

unsigned fake_launches(void) {
	unsigned n = 0;

	for (struct tally *t = atomic_load(&tallies); t; t = t->next) {
		n += atomic_load(&t->launches);
	}
	return n;
}

unsigned fake_spoiled(void) {
	return atomic_load(&spoiled);
}

unsigned fake_twin_launches(void) {
	unsigned n = 0;

	for (struct tally *t = atomic_load(&tallies); t; t = t->next) {
		n += atomic_load(&t->twin_launches);
	}
	return n;
}

unsigned fake_dependent_launches(void) {
	return atomic_load(&dependent_launches);
}

unsigned fake_careless_launches(void) {
	return atomic_load(&careless_launches);
}

void fake_refuse(bool waits, bool dependent) {
	atomic_store(&refuses_waits, waits);
	atomic_store(&refuses_dependent, dependent);
}

unsigned fake_twin_registers(void) {
	return atomic_load(&twin_registers);
}

unsigned fake_questions(void) {
	return atomic_load(&questions);
}

unsigned fake_trampled(void) {
	return atomic_load(&trampled);
}

static void nap(void) {
	const struct timespec pause = {.tv_nsec = 100000};

	nanosleep(&pause, NULL);
}

void fake_gate(bool closed) {
	atomic_store(&gate_closed, closed);
}

void fake_gate_wait(void) {
	while (!atomic_load(&at_gate)) {
		nap();
	}
}

void fake_events_wait(void) {
	while (!atomic_load(&event_questions)) {
		nap();
	}
}

unsigned fake_events(void) {
	return atomic_load(&events);
}

static void pass_gate(void) {
	atomic_fetch_add(&at_gate, 1);
	while (atomic_load(&gate_closed)) {
		nap();
	}
	atomic_fetch_sub(&at_gate, 1);
}

static bool is_stream(CUstream s) {
	return s && s != CU_STREAM_LEGACY && s != CU_STREAM_PER_THREAD;
}

/* To be called where the driver would spoil a capture. */
static void touch(CUstream s) {
	if (is_stream(s) && atomic_load(&s->capturing)) {
		atomic_fetch_add(&spoiled, 1);
	}
}

/* Whether anything that can be held up has been handed to @s. */
static bool has_work(CUstream s) {
	return !is_stream(s) || atomic_load(&s->launched);
}

static CUresult wait_released(void) {
	while (atomic_load(&is_held)) {
		nap();
	}
	return CUDA_SUCCESS;
}

static CUresult query(void) {
	atomic_fetch_add(&questions, 1);
	return atomic_load(&is_held) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* ---- start ---- */

CUresult do_cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags) {
	return exports_find(symbol, function, version, flags);
}

CUresult do_cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
				CUdriverProcAddressQueryResult *status) {
	return exports_find(symbol, function, version, flags);
}

CUresult do_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
	*uuid = (CUuuid){.bytes = {(char)(device + 1)}};
	return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetCount(int *n) {
	*n = N_DEVICES;
	return CUDA_SUCCESS;
}

CUresult do_cuDeviceGet(CUdevice *device, int n) {
	*device = n;
	return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
	switch (which) {
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*value = device == 0 ? 80 : 40;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = 9;
		break;
	default:
		*value = 0;
		break;
	}
	return CUDA_SUCCESS;
}

/* ---- contexts ---- */

CUresult do_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
	if (device < 0 || device >= N_DEVICES || !context) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&lock);
	retained[device]++;
	pthread_mutex_unlock(&lock);
	*context = &primaries[device];
	return CUDA_SUCCESS;
}

/* Frees the stream @wanted, or, if that is NULL, those of the context, which takes them with it.
 * Return: whether there was one. Under the lock. */
static bool streams_drop(CUcontext owner, CUstream wanted) {
	bool any = false;

	for (CUstream *p = &streams; *p;) {
		CUstream s = *p;

		if (wanted ? s == wanted : s->owner == owner) {
			*p = s->next;
			free(s);
			any = true;
		} else {
			p = &s->next;
		}
	}
	return any;
}

static CUresult context_ends(CUcontext context) {
	atomic_fetch_add(&trampled, atomic_load(&at_gate) > 0);
	pthread_mutex_lock(&lock);
	if (context) {
		streams_drop(context, NULL);
	}
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult do_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
	bool last;

	if (device < 0 || device >= N_DEVICES) {
		return context_ends(NULL);
	}
	pthread_mutex_lock(&lock);
	last = retained[device] > 0 && --retained[device] == 0;
	pthread_mutex_unlock(&lock);
	return context_ends(last ? &primaries[device] : NULL);
}

CUresult do_cuDevicePrimaryCtxReset_v2(CUdevice device) {
	return context_ends(device < 0 || device >= N_DEVICES ? NULL : &primaries[device]);
}

CUresult do_cuCtxDestroy_v2(CUcontext context) {
	return context_ends(context);
}

/* Of one context: no test has more. */
static unsigned attached;

CUresult do_cuCtxAttach(CUcontext *context, unsigned flags) {
	if (!context) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*context = stack[depth];
	pthread_mutex_lock(&lock);
	attached++;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult do_cuCtxDetach(CUcontext context) {
	bool last;

	pthread_mutex_lock(&lock);
	last = attached == 0;
	attached -= !last;
	pthread_mutex_unlock(&lock);
	return last ? context_ends(context) : CUDA_SUCCESS;
}

CUresult do_cuCtxGetCurrent(CUcontext *context) {
	*context = stack[depth];
	return CUDA_SUCCESS;
}

CUresult do_cuCtxSetCurrent(CUcontext context) {
	stack[depth] = context;
	return CUDA_SUCCESS;
}

CUresult do_cuCtxPushCurrent_v2(CUcontext context) {
	stack[++depth] = context;
	return CUDA_SUCCESS;
}

CUresult do_cuCtxPopCurrent_v2(CUcontext *context) {
	*context = stack[depth--];
	return CUDA_SUCCESS;
}

CUresult do_cuCtxGetDevice(CUdevice *device) {
	if (!stack[depth]) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	*device = stack[depth]->device;
	return CUDA_SUCCESS;
}

/* ---- waits and questions ---- */

CUresult do_cuCtxSynchronize(void) {
	return wait_released();
}

CUresult do_cuStreamSynchronize(CUstream stream) {
	touch(stream);
	return has_work(stream) ? wait_released() : CUDA_SUCCESS;
}

CUresult do_cuStreamQuery(CUstream stream) {
	touch(stream);
	return query();
}

CUresult do_cuEventSynchronize(CUevent event) {
	return wait_released();
}

CUresult do_cuEventQuery(CUevent event) {
	atomic_fetch_add(&event_questions, 1);
	return query();
}

CUresult do_cuEventRecord(CUevent event, CUstream stream) {
	touch(stream);
	return CUDA_SUCCESS;
}

CUresult do_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n) {
	pass_gate();
	return wait_released();
}

/* ---- memory: the host's ---- */

/* Given out once: in a test nobody needs more. */
static char device_memory[4 << 20] __attribute__((aligned(256)));
static _Atomic size_t device_used;

CUresult do_cuMemAlloc_v2(CUdeviceptr *ret, size_t n) {
	size_t at = atomic_fetch_add(&device_used, (n + 255) / 256 * 256);

	if (n > sizeof(device_memory) || at > sizeof(device_memory) - n) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUdeviceptr)(uintptr_t)(device_memory + at);
	return CUDA_SUCCESS;
}

CUresult do_cuMemFree_v2(CUdeviceptr p) {
	return CUDA_SUCCESS;
}

CUresult do_cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream) {
	if (dst) {
		memset((void *)(uintptr_t)dst, value, n);
	}
	return CUDA_SUCCESS;
}

CUresult do_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream stream) {
	if (dst) {
		memcpy((void *)(uintptr_t)dst, src, n);
	}
	return CUDA_SUCCESS;
}

CUresult do_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream stream) {
	pass_gate();
	if (dst) {
		memcpy(dst, (void *)(uintptr_t)src, n);
	}
	return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

CUresult do_cuStreamCreate(CUstream *stream, unsigned flags) {
	CUstream s = calloc(1, sizeof(*s));

	if (!s) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	s->flags = flags;
	s->owner = stack[depth];
	pthread_mutex_lock(&lock);
	s->next = streams;
	streams = s;
	pthread_mutex_unlock(&lock);
	*stream = s;
	return CUDA_SUCCESS;
}

CUresult do_cuStreamDestroy_v2(CUstream stream) {
	bool known;

	if (!is_stream(stream)) {
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&lock);
	known = streams_drop(NULL, stream);
	pthread_mutex_unlock(&lock);
	return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult do_cuStreamGetFlags(CUstream stream, unsigned *flags) {
	*flags = is_stream(stream) ? stream->flags : 0;
	return CUDA_SUCCESS;
}

CUresult do_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
	*status = is_stream(stream) && atomic_load(&stream->capturing)
			  ? CU_STREAM_CAPTURE_STATUS_ACTIVE
			  : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult do_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
	if (is_stream(stream)) {
		atomic_store(&stream->capturing, 1);
	}
	return CUDA_SUCCESS;
}

CUresult do_cuStreamEndCapture(CUstream stream, CUgraph *graph) {
	if (is_stream(stream)) {
		atomic_store(&stream->capturing, 0);
	}
	return CUDA_SUCCESS;
}

CUresult do_cuEventCreate(CUevent *event, unsigned flags) {
	pass_gate();
	atomic_fetch_add(&events, 1);
	*event = calloc(1, sizeof(**event));
	return CUDA_SUCCESS;
}

CUresult do_cuEventDestroy_v2(CUevent event) {
	atomic_fetch_sub(&events, event != NULL);
	free(event);
	return CUDA_SUCCESS;
}

/* ---- code ---- */

/* Machine code of one kernel: whether it waits, anywhere. */
static bool code_waits(const char *image) {
	static const uint64_t wait_insn = 0x782E;
	Elf64_Ehdr h;

	memcpy(&h, image, sizeof(h));
	return memmem(image, h.e_shoff, &wait_insn, sizeof(wait_insn));
}

static bool is_code(const char *image) {
	return !strncmp(image, ELFMAG, SELFMAG);
}

static bool has_wait(const char *image) {
	return is_code(image) ? code_waits(image) : strstr(image, "griddepcontrol.wait;") != NULL;
}

void fake_vary(int attribute) {
	atomic_store(&varies, attribute);
}

CUresult do_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
	static _Atomic int n;

	*value = (int)attribute == atomic_load(&varies) ? atomic_fetch_add(&n, 1) : 1024;
	return CUDA_SUCCESS;
}

CUresult do_cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
				 CUdevice device) {
	return do_cuFuncGetAttribute(value, attribute, (CUfunction)kernel);
}

static bool text_waits_first(const char *text) {
	const char *wait = strstr(text, "griddepcontrol.wait;"), *body = strchr(text, '{');

	return wait && body && strspn(body + 1, " \t\n") == (size_t)(wait - body - 1);
}

/* Looks into images only. */
static CUresult read_image(const char *image) {
	if (has_wait(image) && atomic_load(&refuses_waits)) {
		return CUDA_ERROR_INVALID_PTX;
	}
	atomic_store(&waits_first, is_code(image) ? code_waits(image) : text_waits_first(image));
	return CUDA_SUCCESS;
}

CUresult do_cuModuleLoadData(CUmodule *module, const void *image) {
	CUresult rc;

	if (!module || !image) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	rc = read_image(image);
	*module = (CUmodule)0x100;
	return rc;
}

CUresult do_cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit_options,
			      void **jit_values, unsigned n_jit, CUlibraryOption *options,
			      void **values, unsigned n) {
	if (!library || !image) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* One that only the shim has, and may free at once. */
	for (unsigned i = 0; i < n && options; i++) {
		if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED && has_wait(image)) {
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	*library = (CUlibrary)0x120;
	return strstr(image, "sbeet_twin") ? CUDA_SUCCESS : read_image(image);
}

CUresult do_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
	if (!kernel) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*kernel = (CUkernel)(strstr(name, "sbeet_twin") ? FAKE_TWIN : FAKE_KERNEL);
	return CUDA_SUCCESS;
}

/* The shim loads twins by this, and asks for a log of errors first. */
CUresult do_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n,
			       CUjit_option *options, void **values) {
	bool twins = n > 0 && options && options[0] == CU_JIT_ERROR_LOG_BUFFER;

	if (!module) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (twins) {
		atomic_store(&twin_registers, 0);
	}
	for (unsigned i = 0; twins && i < n; i++) {
		if (options[i] == CU_JIT_MAX_REGISTERS) {
			atomic_store(&twin_registers, (unsigned)(uintptr_t)values[i]);
		}
	}
	*module = twins ? (CUmodule)0x110 : (CUmodule)0x100;
	if (twins || !image) {
		return CUDA_SUCCESS;
	}
	/* As the driver: how much of a log it has written, whatever comes of it. */
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) {
			values[i] = (void *)((uintptr_t)values[i] / 2);
		}
	}
	return read_image(image);
}

CUresult do_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
	if (!function) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*function = module == (CUmodule)0x110 ? FAKE_TWIN : FAKE_KERNEL;
	return CUDA_SUCCESS;
}

CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction function, int threads,
							size_t shared) {
	*n = 2;
	return CUDA_SUCCESS;
}

static struct tally *tally_new(void) {
	struct tally *t = aligned_alloc(64, 64);

	if (!t) {
		abort();
	}
	*t = (struct tally){.next = atomic_load(&tallies)};
	while (!atomic_compare_exchange_weak(&tallies, &t->next, t)) {
	}
	return t;
}

/* No locked instruction: this is the launch that benchmarks compare with. */
static void count(_Atomic unsigned *n) {
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

CUresult do_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			   unsigned by, unsigned bz, unsigned shared, CUstream stream,
			   void **params, void **extra) {
	if (is_stream(stream) && !atomic_load_explicit(&stream->launched, memory_order_relaxed)) {
		atomic_store(&stream->launched, true);
	}
	tally = tally ? tally : tally_new();
	count(f == FAKE_TWIN ? &tally->twin_launches : &tally->launches);
	return CUDA_SUCCESS;
}

static bool is_dependent(const CUlaunchConfig *config) {
	for (unsigned i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
		    config->attrs[i].value.programmaticStreamSerializationAllowed) {
			return true;
		}
	}
	return false;
}

CUresult do_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
			     void **extra) {
	if (!config) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (is_dependent(config)) {
		if (atomic_load(&refuses_dependent)) {
			return CUDA_ERROR_NOT_SUPPORTED;
		}
		atomic_fetch_add(&dependent_launches, 1);
		atomic_fetch_add(&careless_launches, !atomic_load(&waits_first));
	}
	return do_cuLaunchKernel(f, config->gridDimX, config->gridDimY, config->gridDimZ,
				 config->blockDimX, config->blockDimY, config->blockDimZ,
				 config->sharedMemBytes, config->hStream, params, extra);
}
