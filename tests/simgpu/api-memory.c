/*
 * api-memory.c: device memory, and host memory that simgpud shares (pinned, managed).
 *
 * A pinned allocation is a memfd mapped here and in simgpud; kernels and copies reach it by its
 * address in this process. Managed memory is the same: both sides see it at once. Memory that the
 * program registers becomes one, in the place of its pages, until it is unregistered.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simgpu/driver.h"

struct pinned {
	struct pinned *next;
	uint8_t *addr;
	size_t size;
	CUcontext context;
	unsigned flags;
	bool managed, registered;
};

static struct pinned *pinned_list;
static pthread_rwlock_t pinned_lock = PTHREAD_RWLOCK_INITIALIZER;

/* With the lock held. */
static struct pinned *pinned_find(const void *addr) {
	for (struct pinned *p = pinned_list; p; p = p->next) {
		if ((const uint8_t *)addr >= p->addr && (const uint8_t *)addr < p->addr + p->size) {
			return p;
		}
	}
	return NULL;
}

bool memory_is_pinned(const void *addr, size_t size) {
	const struct pinned *p;
	bool is;

	pthread_rwlock_rdlock(&pinned_lock);
	p = pinned_find(addr);
	is = p && size <= p->size - (size_t)((const uint8_t *)addr - p->addr);
	pthread_rwlock_unlock(&pinned_lock);
	return is;
}

/* ---- device memory ---- */

EXPORT CUresult CUDAAPI cuMemGetInfo(size_t *free, size_t *total) {
	struct wire_object q = {.h = {.type = WIRE_GPU_STATE}};
	struct wire_gpu_state_reply reply;
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS || !free || !total) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	q.object = (uint32_t)c->device;
	r = driver_call(&q, sizeof(q), -1, &reply, sizeof(reply));
	if (r == CUDA_SUCCESS) {
		*total = context_gpu(c)->memory_bytes;
		*free = *total - reply.memory_used_bytes;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuMemAlloc(CUdeviceptr *dptr, size_t bytesize) {
	struct wire_value_reply reply;
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r == CUDA_SUCCESS) {
		r = capture_check_thread();
	}
	if (r != CUDA_SUCCESS || !dptr) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	r = driver_ask(WIRE_MEMORY_ALLOC, c->id, 0, bytesize, &reply);
	if (r == CUDA_SUCCESS) {
		*dptr = reply.value;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
					size_t Height, unsigned int ElementSizeBytes) {
	size_t pitch = (WidthInBytes + 511) / 512 * 512, size;
	CUresult r;

	if (!pPitch || (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) ||
	    __builtin_mul_overflow(pitch, Height, &size)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = cuMemAlloc(dptr, size);
	if (r == CUDA_SUCCESS) {
		*pPitch = pitch;
	}
	return r;
}

static CUresult pinned_free(void *addr);

/* Waits for the work of the context, as CUDA does, so that no kernel loses what it uses. */
EXPORT CUresult CUDAAPI cuMemFree(CUdeviceptr dptr) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r == CUDA_SUCCESS) {
		r = capture_check_thread();
	}
	if (r != CUDA_SUCCESS || dptr == 0) {
		return r;
	}
	r = context_note(c, driver_ask(WIRE_CONTEXT_SYNC, c->id, 0, 0, NULL));
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!memory_is_device(dptr)) {
		return pinned_free((void *)(uintptr_t)dptr); /* managed memory */
	}
	return driver_ask(WIRE_MEMORY_FREE, c->id, 0, dptr, NULL);
}

static CUresult memory_free_async(CUdeviceptr dptr, CUstream stream, bool per_thread) {
	struct target t;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r == CUDA_SUCCESS) {
		r = capture_refuse(&t); /* no memory nodes are simulated */
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	return driver_ask(WIRE_MEMORY_FREE, t.context->id, t.stream, dptr, NULL);
}

/* The memory is there at once; only its end is ordered by the stream. */
EXPORT CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
	struct target t;
	CUresult r = stream_target(hStream, false, &t);

	if (r == CUDA_SUCCESS) {
		r = capture_refuse(&t);
	}
	return r == CUDA_SUCCESS ? cuMemAlloc(dptr, bytesize) : r;
}

EXPORT typeof(cuMemAllocAsync) cuMemAllocAsync_ptsz;
EXPORT CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
	return cuMemAllocAsync(dptr, bytesize, hStream);
}

EXPORT CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
	return memory_free_async(dptr, hStream, false);
}

EXPORT typeof(cuMemFreeAsync) cuMemFreeAsync_ptsz;
EXPORT CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
	return memory_free_async(dptr, hStream, true);
}

EXPORT CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
	struct wire_value_reply reply;
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r == CUDA_SUCCESS) {
		r = driver_ask(WIRE_MEMORY_RANGE, 0, 0, dptr, &reply);
	}
	if (r != CUDA_SUCCESS) {
		return r == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_NOT_FOUND : r;
	}
	if (pbase) {
		*pbase = reply.value;
	}
	if (psize) {
		*psize = reply.value2;
	}
	return CUDA_SUCCESS;
}

/* ---- host memory ---- */

CUresult memory_share(size_t size, void **ret) {
	struct wire_object q = {.h = {.type = WIRE_HOST_MAP}, .value2 = size};
	struct wire_value_reply reply;
	int fd = driver_memfd(NULL, size);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	void *addr = MAP_FAILED;

	if (fd >= 0) {
		addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (addr != MAP_FAILED) {
		q.value = (uint64_t)(uintptr_t)addr;
		r = driver_call(&q, sizeof(q), fd, &reply, sizeof(reply));
	}
	if (fd >= 0) {
		close(fd);
	}
	if (r == CUDA_SUCCESS) {
		*ret = addr;
	} else if (addr != MAP_FAILED) {
		munmap(addr, size);
	}
	return r;
}

void memory_unshare(void *addr, size_t size) {
	(void)driver_ask(WIRE_HOST_UNMAP, 0, 0, (uint64_t)(uintptr_t)addr, NULL);
	munmap(addr, size);
}

static void pinned_add(struct pinned *p) {
	pthread_rwlock_wrlock(&pinned_lock);
	p->next = pinned_list;
	pinned_list = p;
	pthread_rwlock_unlock(&pinned_lock);
}

static CUresult pinned_alloc(CUcontext c, size_t size, unsigned flags, bool managed, void **ret) {
	struct pinned *p = calloc(1, sizeof(*p));
	void *addr = NULL;
	CUresult r = p ? memory_share(size, &addr) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r != CUDA_SUCCESS) {
		free(p);
		return r;
	}
	*p = (struct pinned){
		.addr = addr, .size = size, .context = c, .flags = flags, .managed = managed};
	pinned_add(p);
	*ret = addr;
	return CUDA_SUCCESS;
}

/* NULL: nothing of that kind begins there. */
static struct pinned *pinned_take(const void *addr, bool registered) {
	struct pinned *p = NULL;

	pthread_rwlock_wrlock(&pinned_lock);
	for (struct pinned **at = &pinned_list; *at; at = &(*at)->next) {
		if ((*at)->addr == addr && (*at)->registered == registered) {
			p = *at;
			*at = p->next;
			break;
		}
	}
	pthread_rwlock_unlock(&pinned_lock);
	return p;
}

static CUresult pinned_free(void *addr) {
	struct pinned *p = pinned_take(addr, false);

	if (!p) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	memory_unshare(p->addr, p->size);
	free(p);
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS || !pp || bytesize == 0) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	return pinned_alloc(c, bytesize, Flags, false, pp);
}

EXPORT CUresult CUDAAPI cuMemAllocHost(void **pp, size_t bytesize) {
	return cuMemHostAlloc(pp, bytesize, 0);
}

EXPORT CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
	void *addr = NULL;
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS || !dptr || bytesize == 0) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	r = pinned_alloc(c, bytesize, flags, true, &addr);
	if (r == CUDA_SUCCESS) {
		*dptr = (CUdeviceptr)(uintptr_t)addr;
	}
	return r;
}

/* Waits for the context's work first: it may still use the memory. */
EXPORT CUresult CUDAAPI cuMemFreeHost(void *p) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	r = context_note(c, driver_ask(WIRE_CONTEXT_SYNC, c->id, 0, 0, NULL));
	return r == CUDA_SUCCESS ? pinned_free(p) : r;
}

/* ---- memory that the program registers ---- */

struct pages {
	uint8_t *start;
	size_t size;
};

static struct pages pages_of(const uint8_t *addr, size_t size) {
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr / page * page;
	uintptr_t end = ((uintptr_t)addr + size + page - 1) / page * page;

	return (struct pages){.start = (uint8_t *)start, .size = end - start};
}

/* Whether pages are shared with anything that is pinned: of those only one can take the place. */
static bool pages_are_pinned(struct pages pages) {
	bool are = false;

	pthread_rwlock_rdlock(&pinned_lock);
	for (const struct pinned *p = pinned_list; p && !are; p = p->next) {
		struct pages its = pages_of(p->addr, p->size);

		are = its.start < pages.start + pages.size && pages.start < its.start + its.size;
	}
	pthread_rwlock_unlock(&pinned_lock);
	return are;
}

static CUresult pages_share(struct pages pages) {
	struct wire_object q = {.h = {.type = WIRE_HOST_MAP},
				.value = (uint64_t)(uintptr_t)pages.start,
				.value2 = pages.size};
	struct wire_value_reply reply;
	int fd = driver_memfd(pages.start, pages.size);
	CUresult r = fd < 0 ? CUDA_ERROR_INVALID_VALUE
			    : driver_call(&q, sizeof(q), fd, &reply, sizeof(reply));

	if (r == CUDA_SUCCESS && mmap(pages.start, pages.size, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		(void)driver_ask(WIRE_HOST_UNMAP, 0, 0, q.value, NULL);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (fd >= 0) {
		close(fd);
	}
	return r;
}

/* The program keeps what is there. */
static CUresult pages_unshare(struct pages pages) {
	void *own =
		mmap(NULL, pages.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (own == MAP_FAILED) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(void)driver_ask(WIRE_HOST_UNMAP, 0, 0, (uint64_t)(uintptr_t)pages.start, NULL);
	memcpy(own, pages.start, pages.size);
	return mremap(own, pages.size, pages.size, MREMAP_MAYMOVE | MREMAP_FIXED, pages.start) ==
			       MAP_FAILED
		       ? CUDA_ERROR_OUT_OF_MEMORY
		       : CUDA_SUCCESS;
}

/* No thread may write to the memory meanwhile: its pages are taken away. */
EXPORT CUresult CUDAAPI cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags) {
	struct pinned *new;
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS || !p || bytesize == 0) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	if (pages_are_pinned(pages_of(p, bytesize))) {
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	}
	new = calloc(1, sizeof(*new));
	r = new ? pages_share(pages_of(p, bytesize)) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r != CUDA_SUCCESS) {
		free(new);
		return r;
	}
	*new = (struct pinned){
		.addr = p, .size = bytesize, .context = c, .flags = Flags, .registered = true};
	pinned_add(new);
	return CUDA_SUCCESS;
}

/* Waits as cuMemFreeHost() does. */
EXPORT CUresult CUDAAPI cuMemHostUnregister(void *p) {
	struct pinned *old;
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r == CUDA_SUCCESS) {
		r = context_note(c, driver_ask(WIRE_CONTEXT_SYNC, c->id, 0, 0, NULL));
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	old = pinned_take(p, true);
	if (!old) {
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	}
	r = pages_unshare(pages_of(old->addr, old->size));
	free(old);
	return r;
}

/* ---- what pinned memory is to the GPU ---- */

EXPORT CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr *pdptr, void *p, unsigned int Flags) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!pdptr || Flags != 0 || !memory_is_pinned(p, 1)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*pdptr = (CUdeviceptr)(uintptr_t)p;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemHostGetFlags(unsigned int *pFlags, void *p) {
	const struct pinned *found;
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS || !pFlags) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	pthread_rwlock_rdlock(&pinned_lock);
	found = pinned_find(p);
	if (found) {
		*pFlags = found->flags;
	}
	pthread_rwlock_unlock(&pinned_lock);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- what a pointer is ---- */

struct pointer_info {
	uint64_t start, size;
	CUmemorytype type;
	CUcontext context;
	int device;
	bool managed;
};

static CUresult pointer_info(CUdeviceptr ptr, struct pointer_info *ret) {
	struct wire_value_reply reply;
	const struct pinned *p;
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (memory_is_device(ptr)) {
		r = driver_ask(WIRE_MEMORY_RANGE, 0, 0, ptr, &reply);
		if (r != CUDA_SUCCESS) {
			return r;
		}
		*ret = (struct pointer_info){
			.start = reply.value,
			.size = reply.value2,
			.type = CU_MEMORYTYPE_DEVICE,
			.device = (int)((ptr - WIRE_DEVICE_BASE(0)) / WIRE_DEVICE_SPAN),
		};
		pthread_mutex_lock(&driver.list_lock);
		for (CUcontext c = driver.contexts; c; c = c->next) {
			if (c->id == reply.value3) {
				ret->context = c;
			}
		}
		pthread_mutex_unlock(&driver.list_lock);
		return CUDA_SUCCESS;
	}
	pthread_rwlock_rdlock(&pinned_lock);
	p = pinned_find((const void *)(uintptr_t)ptr);
	if (p) {
		*ret = (struct pointer_info){
			.start = (uint64_t)(uintptr_t)p->addr,
			.size = p->size,
			.type = p->managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
			.context = p->context,
			.device = p->context->device,
			.managed = p->managed,
		};
	}
	pthread_rwlock_unlock(&pinned_lock);
	return p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult pointer_attribute(const struct pointer_info *info, CUdeviceptr ptr,
				  CUpointer_attribute attribute, void *data) {
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = info->context;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = info->type;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (memory_is_device(ptr)) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		*(void **)data = (void *)(uintptr_t)ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)data = info->managed;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = info->device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = info->start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = info->size;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

EXPORT CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
					      CUdeviceptr ptr) {
	struct pointer_info info;
	CUresult r;

	if (!data) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = pointer_info(ptr, &info);
	return r == CUDA_SUCCESS ? pointer_attribute(&info, ptr, attribute, data) : r;
}

/* Unlike the single form, this one succeeds for any pointer and tells 0 for what is not known. */
EXPORT CUresult CUDAAPI cuPointerGetAttributes(unsigned int numAttributes,
					       CUpointer_attribute *attributes, void **data,
					       CUdeviceptr ptr) {
	struct pointer_info info = {0};
	CUresult r;

	if (!attributes || !data) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = pointer_info(ptr, &info);
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_INVALID_VALUE) {
		return r;
	}
	for (unsigned i = 0; i < numAttributes; i++) {
		CUdeviceptr told = r == CUDA_SUCCESS ? ptr : 0;

		(void)pointer_attribute(&info, told, attributes[i], data[i]);
	}
	return CUDA_SUCCESS;
}
