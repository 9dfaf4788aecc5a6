/*
 * session-memory.c: requests about memory and modules.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/simgpu/session-internal.h"

/* Touching a mapping beyond its file kills: the file must be long enough, and stay so. */
static bool fd_holds(int fd, uint64_t size) {
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && size > 0 && fstat(fd, &st) == 0 &&
	       (uint64_t)st.st_size >= size;
}

/* ---- memory ---- */

void session_memory_alloc(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = session_object(c, q->object, OBJECT_CONTEXT);
	uint64_t addr = 0;
	int r = ctx ? memory_alloc(&ctx->gpu->memory, q->value, ctx, &addr) : -EINVAL;

	if (r < 0) {
		client_reply(c, q->h.id,
			     r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE);
		return;
	}
	session_reply_values(c, q->h.id, addr, 0, 0);
}

void session_memory_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = session_object(c, q->object, OBJECT_CONTEXT);
	struct stream *st = session_object(c, q->other, OBJECT_STREAM);
	struct op *op;

	if (!ctx) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	if (!st) {
		int r = memory_free(&ctx->gpu->memory, q->value, ctx);

		client_reply(c, q->h.id, r < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
		return;
	}
	if (st->context != ctx) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	op = session_op_new(ctx, DEVICE_ACTION, 0);
	if (!op) {
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	op->value = q->value;
	client_reply(c, q->h.id, CUDA_SUCCESS);
	device_submit(st->device, &op->base);
}

void session_memory_range(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;

	for (unsigned i = 0; i < c->server->config.n_gpus; i++) {
		const struct memory_alloc *a = memory_find(&c->server->gpus[i].memory, q->value);
		const struct context *ctx = a ? a->owner : NULL;

		if (ctx && ctx->client == c) {
			session_reply_values(c, q->h.id, a->start, a->size, ctx->id);
			return;
		}
	}
	client_reply(c, q->h.id, CUDA_ERROR_INVALID_VALUE);
}

void session_host_map(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct pinned *more;
	void *host;

	if (!fd_holds(fd, q->value2)) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	more = realloc(c->pinned, (c->n_pinned + 1) * sizeof(*more));
	host = more ? mmap(NULL, q->value2, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	c->pinned = more ? more : c->pinned;
	if (host == MAP_FAILED) {
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	c->pinned[c->n_pinned++] =
		(struct pinned){.start = q->value, .size = q->value2, .host = host};
	client_reply(c, q->h.id, CUDA_SUCCESS);
}

void session_host_unmap(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;

	for (size_t i = 0; i < c->n_pinned; i++) {
		if (c->pinned[i].start == q->value) {
			munmap(c->pinned[i].host, c->pinned[i].size);
			c->pinned[i] = c->pinned[--c->n_pinned];
			client_reply(c, q->h.id, CUDA_SUCCESS);
			return;
		}
	}
	client_reply(c, q->h.id, CUDA_ERROR_INVALID_VALUE);
}

/* ---- modules ---- */

/* Gives the module's variables their places and first values. */
static int module_place_vars(struct module *m) {
	size_t n = interp_module_n_vars(m->interp);

	m->vars = calloc(n ? n : 1, sizeof(*m->vars));
	if (!m->vars) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		size_t size, align;
		int r;

		(void)interp_module_var(m->interp, i, &size, &align);
		r = memory_alloc(&m->context->gpu->memory, size ? size : 1, m->context,
				 &m->vars[i]);
		if (r < 0) {
			return r;
		}
		interp_module_set_var_addr(m->interp, i, m->vars[i]);
	}
	return interp_module_init_vars(m->interp, &m->context->machine.memory);
}

void session_module_load(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct wire_reply head = {.h = {.type = WIRE_REPLY, .id = q->h.id}};
	struct context *ctx = session_object(c, q->object, OBJECT_CONTEXT);
	struct module *m = ctx ? calloc(1, sizeof(*m)) : NULL;
	char error[512] = "simgpud is out of memory";
	uint32_t handle = 0;
	void *text;
	int r;

	text = m && fd_holds(fd, q->value) ? mmap(NULL, q->value, PROT_READ, MAP_PRIVATE, fd, 0)
					   : MAP_FAILED;
	if (text == MAP_FAILED) {
		free(m);
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_IMAGE);
		return;
	}
	m->n_refs = 1;
	m->context = ctx;
	m->regs_max = q->other;
	r = interp_module_new(&m->interp, text, q->value, error, sizeof(error));
	munmap(text, q->value);
	if (r == 0) {
		r = module_place_vars(m);
	}
	if (r == 0) {
		handle = session_add(c, OBJECT_MODULE, m);
		r = handle ? 0 : -ENOMEM;
	}
	if (r < 0) {
		module_unref(m);
		head.result = r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
		client_send2(c, &head, sizeof(head), error, strlen(error) + 1);
		return;
	}
	session_reply_values(c, q->h.id, handle, interp_module_n_kernels(m->interp), 0);
}

void session_module_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct module *m = session_object(c, q->object, OBJECT_MODULE);

	if (!m) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	session_drop(c, q->object);
	module_unref(m);
	client_reply(c, q->h.id, CUDA_SUCCESS);
}

void module_kernel_info(const struct module *m, const struct interp_kernel *kernel,
			struct interp_kernel_info *ret) {
	interp_kernel_get_info(kernel, ret);
	if (m->regs_max && ret->regs_per_thread > m->regs_max) {
		ret->regs_per_thread = m->regs_max;
	}
}

static void reply_kernel(struct client *c, uint32_t id, const struct module *m, uint32_t index) {
	struct interp_kernel_info info;
	struct wire_kernel_reply *reply;
	size_t size;

	module_kernel_info(m, interp_module_kernel(m->interp, index), &info);
	size = sizeof(*reply) + info.n_params * sizeof(reply->params[0]);
	reply = calloc(1, size);
	if (!reply || info.n_params > WIRE_KERNEL_PARAMS_MAX ||
	    strlen(info.name) >= sizeof(reply->name)) {
		free(reply);
		client_reply(c, id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	reply->r.h = (struct wire_header){.type = WIRE_REPLY, .id = id};
	reply->kernel = index;
	reply->n_kernels = (uint32_t)interp_module_n_kernels(m->interp);
	reply->n_params = (uint32_t)info.n_params;
	reply->params_size = (uint32_t)info.params_size;
	reply->regs_per_thread = info.regs_per_thread;
	reply->static_shared_bytes = (uint32_t)info.static_shared_bytes;
	reply->local_bytes = (uint32_t)info.local_bytes;
	reply->max_threads = info.max_threads;
	strcpy(reply->name, info.name);
	for (size_t i = 0; i < info.n_params; i++) {
		reply->params[i].offset = (uint32_t)info.param_offsets[i];
		reply->params[i].size = (uint32_t)info.param_sizes[i];
	}
	client_send(c, reply, size);
	free(reply);
}

void session_kernel_find(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_find *q = packet;
	const struct module *m = session_object(c, q->module, OBJECT_MODULE);

	if (!m) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	for (uint32_t i = 0; i < interp_module_n_kernels(m->interp); i++) {
		struct interp_kernel_info info;

		interp_kernel_get_info(interp_module_kernel(m->interp, i), &info);
		if (q->name[0] ? strcmp(info.name, q->name) == 0 : i == q->index) {
			reply_kernel(c, q->h.id, m, i);
			return;
		}
	}
	client_reply(c, q->h.id, CUDA_ERROR_NOT_FOUND);
}

void session_global_find(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_find *q = packet;
	const struct module *m = session_object(c, q->module, OBJECT_MODULE);

	if (!m) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	for (size_t i = 0; i < interp_module_n_vars(m->interp); i++) {
		size_t size, align;

		if (strcmp(interp_module_var(m->interp, i, &size, &align), q->name) == 0) {
			session_reply_values(c, q->h.id, m->vars[i], size, 0);
			return;
		}
	}
	client_reply(c, q->h.id, CUDA_ERROR_NOT_FOUND);
}
