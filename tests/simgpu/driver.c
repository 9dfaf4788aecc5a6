/* driver.c: see driver.h. */
#include "tests/simgpu/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct driver driver = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.list_lock = PTHREAD_MUTEX_INITIALIZER,
};

static void driver_on_fault(uint32_t context, int result, const char *text) {
	fprintf(stderr, "simgpu: %s\n", text);
	pthread_mutex_lock(&driver.list_lock);
	for (CUcontext c = driver.contexts; c; c = c->next) {
		if (c->id == context) {
			__atomic_store_n(&c->fault, result, __ATOMIC_RELAXED);
		}
	}
	pthread_mutex_unlock(&driver.list_lock);
}

static void driver_on_print(const char *text, size_t n) {
	fwrite(text, 1, n, stdout);
	fflush(stdout);
}

static const struct client_listener driver_listener = {
	.fault = driver_on_fault,
	.print = driver_on_print,
};

/* The child finds every function answering CUDA_ERROR_NOT_INITIALIZED; none may block there. */
static void driver_forked(void) {
	pthread_mutex_init(&driver.lock, NULL);
	pthread_mutex_init(&driver.list_lock, NULL);
}

/* The devices that this process sees, by GPU. */
#define VISIBLE_MAX 8
static unsigned visible[VISIBLE_MAX], n_visible;

/* The GPU that a word of $CUDA_VISIBLE_DEVICES names: its number or the beginning of its UUID. -1:
 * none. */
static int find_gpu(const char *word) {
	const struct wire_hello_reply *all = client_gpus();
	char uuid[64], *end;
	unsigned long n = strtoul(word, &end, 10);

	if (end > word && !*end) {
		return n < all->n_gpus ? (int)n : -1;
	}
	for (unsigned i = 0; i < all->n_gpus; i++) {
		const uint8_t *b = all->gpus[i].uuid;

		snprintf(uuid, sizeof(uuid),
			 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
			 b[12], b[13], b[14], b[15]);
		if (strlen(word) > 4 && strncmp(uuid, word, strlen(word)) == 0) {
			return (int)i;
		}
	}
	return -1;
}

/* As the CUDA programming guide says: the list ends before the first word that names nothing. */
static void find_visible(void) {
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	char *copy = list ? strdup(list) : NULL, *rest = copy, *word;
	int gpu;

	for (unsigned i = 0; !list && i < client_gpus()->n_gpus; i++) {
		visible[n_visible++] = i;
	}
	while (rest && (word = strsep(&rest, ",")) && n_visible < VISIBLE_MAX &&
	       (gpu = find_gpu(word)) >= 0) {
		visible[n_visible++] = (unsigned)gpu;
	}
	free(copy);
}

unsigned driver_gpu_index(CUdevice device) {
	return visible[device];
}

unsigned driver_n_devices(void) {
	return n_visible;
}

static void driver_at_first(void) {
	find_visible();
	pthread_atfork(NULL, NULL, driver_forked);
}

EXPORT CUresult CUDAAPI cuInit(unsigned int Flags) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int r;

	if (Flags != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	client_listen(&driver_listener);
	r = client_connect();
	switch (r) {
	case 0:
		break;
	case -ECHILD:
		return CUDA_ERROR_NOT_INITIALIZED;
	case -EBUSY:
		return CUDA_ERROR_SYSTEM_NOT_READY;
	default:
		return CUDA_ERROR_NO_DEVICE;
	}
	pthread_once(&once, driver_at_first);
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDriverGetVersion(int *driverVersion) {
	if (!driverVersion) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*driverVersion = DRIVER_VERSION;
	return CUDA_SUCCESS;
}

CUresult driver_ready(void) {
	return client_state() == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult driver_device(CUdevice device, const struct wire_gpu **ret_gpu) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (device < 0 || (unsigned)device >= n_visible) {
		return CUDA_ERROR_INVALID_DEVICE;
	}
	*ret_gpu = &client_gpus()->gpus[visible[device]];
	return CUDA_SUCCESS;
}

CUresult context_check(CUcontext context) {
	int fault;

	if (!context || context->tag != DRIVER_CONTEXT) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	fault = __atomic_load_n(&context->fault, __ATOMIC_RELAXED);
	return (CUresult)fault;
}

CUresult driver_current(CUcontext *ret) {
	CUresult r = driver_ready();
	CUcontext context;

	if (r != CUDA_SUCCESS) {
		return r;
	}
	context = *context_slot();
	r = context_check(context);
	if (r == CUDA_SUCCESS) {
		*ret = context;
	}
	return r;
}

const struct wire_gpu *context_gpu(CUcontext context) {
	return &client_gpus()->gpus[visible[context->device]];
}

CUresult driver_call2(const struct client_message *request, int fd,
		      const struct client_message *reply) {
	if (client_call(request, fd, reply) < 0) {
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	}
	return (CUresult)((struct wire_reply *)reply->head)->result;
}

CUresult driver_call(void *request, size_t size, int fd, void *reply, size_t reply_size) {
	return driver_call2(&(struct client_message){.head = request, .head_size = size}, fd,
			    &(struct client_message){.head = reply, .head_size = reply_size});
}

CUresult driver_post(void *request, size_t size) {
	struct client_message m = {.head = request, .head_size = size};

	return client_post(&m) < 0 ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_SUCCESS;
}

CUresult driver_ask(enum wire_type type, uint32_t object, uint32_t other, uint64_t value,
		    struct wire_value_reply *ret) {
	struct wire_object q = {
		.h = {.type = type}, .object = object, .other = other, .value = value};
	struct wire_value_reply unused;

	ret = ret ? ret : &unused;
	return driver_call(&q, sizeof(q), -1, ret, sizeof(*ret));
}

CUresult context_note(CUcontext context, CUresult result) {
	switch (result) {
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_DEVICE_UNAVAILABLE:
		__atomic_store_n(&context->fault, (int)result, __ATOMIC_RELAXED);
		break;
	default:
		break;
	}
	return result;
}

int driver_memfd(const void *text, size_t size) {
	int fd = memfd_create("simgpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/* simgpud maps no file that could be cut short under it. */
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) {
		goto fail;
	}
	for (size_t done = 0; text && done < size;) {
		ssize_t n = pwrite(fd, (const char *)text + done, size - done, (off_t)done);

		if (n < 0 && errno != EINTR) {
			goto fail;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	return fd;
fail:
	if (fd >= 0) {
		close(fd);
	}
	return -1;
}
