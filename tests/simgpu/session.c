/*
 * session.c: one client process's requests. A table says for each type how long its packet must be
 * and who handles it; handlers look up what the packet names in the client's own objects, so no
 * client can reach what another one has. Bad requests get a result, never more.
 */
#include <cuda.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/simgpu/server.h"

/* ---- objects ---- */

static void *client_object(const struct client *c, uint32_t handle, enum object_type type) {
	if (handle == 0 || handle > c->n_objects || c->objects[handle - 1].type != type) {
		return NULL;
	}
	return c->objects[handle - 1].p;
}

/* Return: the handle, or 0 when out of memory. */
static uint32_t client_add(struct client *c, enum object_type type, void *p) {
	struct object *more;
	size_t i;

	for (i = 0; i < c->n_objects; i++) {
		if (c->objects[i].type == OBJECT_NONE) {
			break;
		}
	}
	if (i == c->n_objects) {
		size_t n = c->n_objects ? c->n_objects * 2 : 32;

		more = realloc(c->objects, n * sizeof(*more));
		if (!more) {
			return 0;
		}
		memset(more + c->n_objects, 0, (n - c->n_objects) * sizeof(*more));
		c->objects = more;
		c->n_objects = n;
	}
	c->objects[i] = (struct object){.type = type, .p = p};
	return (uint32_t)i + 1;
}

static void client_drop(struct client *c, uint32_t handle) {
	c->objects[handle - 1] = (struct object){0};
}

struct event *event_unref(struct event *e) {
	if (e && --e->n_refs == 0) {
		free(e);
	}
	return NULL;
}

struct module *module_unref(struct module *m) {
	if (m && --m->n_refs == 0) {
		for (size_t i = 0; m->vars && i < interp_module_n_vars(m->interp); i++) {
			if (m->vars[i]) {
				(void)memory_free(&m->context->gpu->memory, m->vars[i], m->context);
			}
		}
		interp_module_free(m->interp);
		free(m->vars);
		free(m);
	}
	return NULL;
}

static void stream_drop(struct client *c, uint32_t handle) {
	struct stream *st = client_object(c, handle, OBJECT_STREAM);

	for (struct wait *w = c->waits; w; w = w->next) {
		if (w->stream == st->device) {
			w->stream = NULL; /* then the whole context is waited for */
		}
	}
	device_stream_free(st->device);
	free(st);
	client_drop(c, handle);
}

/* Ends all that the context runs and owns. */
static void context_drop(struct client *c, uint32_t handle) {
	struct context *ctx = client_object(c, handle, OBJECT_CONTEXT);

	for (struct wait **p = &c->waits; *p;) {
		struct wait *w = *p;

		if (w->context == ctx) {
			client_reply(c, w->id, CUDA_ERROR_CONTEXT_IS_DESTROYED);
			*p = w->next;
			event_unref(w->event);
			free(w);
		} else {
			p = &w->next;
		}
	}
	for (uint32_t i = 1; i <= c->n_objects; i++) {
		struct object *o = &c->objects[i - 1];

		if (o->type == OBJECT_STREAM && ((struct stream *)o->p)->context == ctx) {
			free(o->p); /* its device stream goes with the space */
			client_drop(c, i);
		} else if (o->type == OBJECT_EVENT && ((struct event *)o->p)->context == ctx) {
			((struct event *)o->p)->context = NULL;
			event_unref(o->p);
			client_drop(c, i);
		}
	}
	device_space_free(ctx->space);
	for (uint32_t i = 1; i <= c->n_objects; i++) {
		struct object *o = &c->objects[i - 1];

		if (o->type == OBJECT_MODULE && ((struct module *)o->p)->context == ctx) {
			module_unref(o->p);
			client_drop(c, i);
		}
	}
	memory_free_owner(&ctx->gpu->memory, ctx);
	ctx->gpu->n_contexts--;
	free(ctx);
	client_drop(c, handle);
}

struct client *client_free(struct client *c) {
	if (!c) {
		return NULL;
	}
	for (uint32_t i = 1; i <= c->n_objects; i++) {
		if (c->objects[i - 1].type == OBJECT_CONTEXT) {
			context_drop(c, i);
		}
	}
	for (size_t i = 0; i < c->n_pinned; i++) {
		munmap(c->pinned[i].host, c->pinned[i].size);
	}
	free(c->pinned);
	free(c->objects);
	close(c->fd);
	free(c);
	return NULL;
}

/* ---- waits ---- */

static bool wait_is_over(const struct wait *w) {
	if (w->event) {
		return w->event->device.done >= w->event_number;
	}
	return w->stream ? device_stream_passed(w->stream, w->seq)
			 : device_space_passed(w->context->space, w->seq);
}

void session_settle(struct client *c) {
	for (struct wait **p = &c->waits; *p;) {
		struct wait *w = *p;

		if (w->context->fault || wait_is_over(w)) {
			client_reply(c, w->id, w->context->fault);
			*p = w->next;
			event_unref(w->event);
			free(w);
		} else {
			p = &w->next;
		}
	}
}

/* Takes the reference of @template->event. */
static void client_wait(struct client *c, const struct wait *template) {
	struct wait *w;

	if (template->context->fault || wait_is_over(template)) {
		client_reply(c, template->id, template->context->fault);
		event_unref(template->event);
		return;
	}
	w = malloc(sizeof(*w));
	if (!w) {
		client_reply(c, template->id, CUDA_ERROR_OUT_OF_MEMORY);
		event_unref(template->event);
		return;
	}
	*w = *template;
	w->next = c->waits;
	c->waits = w;
}

/* ---- replies ---- */

static void reply_values(struct client *c, uint32_t id, uint64_t a, uint64_t b, uint64_t d) {
	struct wire_value_reply reply = {.r = {.h = {.type = WIRE_REPLY, .id = id}},
					 .value = a,
					 .value2 = b,
					 .value3 = d};

	client_send(c, &reply, sizeof(reply));
}

/* Touching a mapping beyond its file kills. */
static bool fd_holds(int fd, uint64_t size) {
	struct stat st;

	return fd >= 0 && size > 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size >= size;
}

/* ---- GPUs and contexts ---- */

static void describe_gpu(const struct config_gpu *g, struct wire_gpu *ret) {
	*ret = (struct wire_gpu){
		.memory_bytes = g->memory_bytes,
		.cc_major = g->cc_major,
		.cc_minor = g->cc_minor,
		.n_sms = g->device.n_sms,
		.cores_per_sm = g->cores_per_sm,
		.sm_threads = g->device.sm_threads,
		.sm_blocks = g->device.sm_blocks,
		.sm_regs = g->device.sm_regs,
		.sm_shared_bytes = g->device.sm_shared_bytes,
		.block_threads_max = g->block_threads_max,
		.block_shared_max = g->block_shared_max,
		.block_shared_optin_max = g->block_shared_optin_max,
		.block_shared_reserved = g->block_shared_reserved,
		.sm_clock_khz = g->sm_clock_khz,
		.memory_clock_khz = g->memory_clock_khz,
		.bus_width_bits = g->bus_width_bits,
		.l2_bytes = g->l2_bytes,
		.copy_engines = g->device.copy_engines,
		.shared = g->device.shared,
	};
	memcpy(ret->name, g->name, sizeof(ret->name));
	memcpy(ret->uuid, g->uuid, sizeof(ret->uuid));
}

static void handle_hello(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_hello *q = packet;
	struct wire_hello_reply reply = {.r = {.h = {.type = WIRE_REPLY, .id = q->h.id}}};

	memcpy(reply.config, c->server->config_text, sizeof(reply.config));
	if (q->version != WIRE_VERSION) {
		reply.r.result = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	} else if (q->config[0] && strncmp(q->config, c->server->config_text,
					   sizeof(q->config)) != 0) {
		reply.r.result = CUDA_ERROR_SYSTEM_NOT_READY;
	} else {
		c->said_hello = true;
	}
	reply.n_gpus = c->server->config.n_gpus;
	for (unsigned i = 0; i < reply.n_gpus; i++) {
		describe_gpu(&c->server->config.gpus[i], &reply.gpus[i]);
	}
	client_send(c, &reply, sizeof(reply));
}

static void handle_stop(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_header *q = packet;

	c->server->stop = true;
	client_reply(c, q->id, CUDA_SUCCESS);
}

static void handle_gpu_state(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct wire_gpu_state_reply reply = {.r = {.h = {.type = WIRE_REPLY, .id = q->h.id}}};
	const struct gpu *g;

	if (q->object >= c->server->config.n_gpus) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_DEVICE);
		return;
	}
	g = &c->server->gpus[q->object];
	reply.power_mw = power_now_mw(device_power(g->device));
	reply.energy_mj = power_energy_mj(device_power(g->device));
	reply.utilization = device_power(g->device)->utilization;
	reply.memory_used_bytes = g->memory.used;
	reply.n_processes = g->n_contexts;
	client_send(c, &reply, sizeof(reply));
}

static void handle_context_new(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = NULL;
	struct stream *st = NULL;
	uint32_t null_stream = 0;

	if (q->object >= c->server->config.n_gpus) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_DEVICE);
		return;
	}
	ctx = calloc(1, sizeof(*ctx));
	st = calloc(1, sizeof(*st));
	if (!ctx || !st) {
		goto fail;
	}
	ctx->client = c;
	ctx->gpu = &c->server->gpus[q->object];
	exec_context_init(ctx);
	if (device_space_new(&ctx->space, ctx->gpu->device, ctx) < 0) {
		goto fail;
	}
	st->context = ctx;
	if (device_stream_new(&st->device, ctx->space, DEVICE_STREAM_NULL, 0) < 0) {
		goto fail;
	}
	null_stream = client_add(c, OBJECT_STREAM, st);
	ctx->id = null_stream ? client_add(c, OBJECT_CONTEXT, ctx) : 0;
	if (!ctx->id) {
		goto fail;
	}
	ctx->gpu->n_contexts++;
	reply_values(c, q->h.id, ctx->id, null_stream, 0);
	return;
fail:
	if (null_stream) {
		client_drop(c, null_stream);
	}
	if (ctx) {
		device_space_free(ctx->space);
	}
	free(ctx);
	free(st);
	client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
}

static void handle_context_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;

	if (!client_object(c, q->object, OBJECT_CONTEXT)) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	context_drop(c, q->object);
	client_reply(c, q->h.id, CUDA_SUCCESS);
}

static void handle_context_sync(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = client_object(c, q->object, OBJECT_CONTEXT);

	if (!ctx) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	client_wait(c, &(struct wait){.id = q->h.id,
				      .context = ctx,
				      .seq = device_last_seq(ctx->gpu->device)});
}

/* ---- memory ---- */

static void handle_memory_alloc(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = client_object(c, q->object, OBJECT_CONTEXT);
	uint64_t addr = 0;
	int r = ctx ? memory_alloc(&ctx->gpu->memory, q->value, ctx, &addr) : -EINVAL;

	if (r < 0) {
		client_reply(c, q->h.id,
			     r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE);
		return;
	}
	reply_values(c, q->h.id, addr, 0, 0);
}

static struct op *op_new(struct context *ctx, enum device_op_kind kind, size_t data_size) {
	struct op *op = calloc(1, sizeof(*op) + data_size);

	if (op) {
		op->context = ctx;
		op->base.kind = kind;
	}
	return op;
}

static void handle_memory_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = client_object(c, q->object, OBJECT_CONTEXT);
	struct stream *st = client_object(c, q->other, OBJECT_STREAM);
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
	op = op_new(ctx, DEVICE_ACTION, 0);
	if (!op) {
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	op->value = q->value;
	client_reply(c, q->h.id, CUDA_SUCCESS);
	device_submit(st->device, &op->base);
}

static void handle_memory_range(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;

	for (unsigned i = 0; i < c->server->config.n_gpus; i++) {
		const struct memory_alloc *a = memory_find(&c->server->gpus[i].memory, q->value);
		const struct context *ctx = a ? a->owner : NULL;

		if (ctx && ctx->client == c) {
			reply_values(c, q->h.id, a->start, a->size, ctx->id);
			return;
		}
	}
	client_reply(c, q->h.id, CUDA_ERROR_INVALID_VALUE);
}

static void handle_host_map(struct client *c, const void *packet, size_t n, int fd) {
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

static void handle_host_unmap(struct client *c, const void *packet, size_t n, int fd) {
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

static void handle_module_load(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct wire_reply head = {.h = {.type = WIRE_REPLY, .id = q->h.id}};
	struct context *ctx = client_object(c, q->object, OBJECT_CONTEXT);
	struct module *m = ctx ? calloc(1, sizeof(*m)) : NULL;
	char error[512] = "simgpud is out of memory";
	uint32_t handle = 0;
	void *text;
	int r;

	text = m && fd_holds(fd, q->value)
		       ? mmap(NULL, q->value, PROT_READ, MAP_PRIVATE, fd, 0)
		       : MAP_FAILED;
	if (text == MAP_FAILED) {
		free(m);
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_IMAGE);
		return;
	}
	m->n_refs = 1;
	m->context = ctx;
	r = interp_module_new(&m->interp, text, q->value, error, sizeof(error));
	munmap(text, q->value);
	if (r == 0) {
		r = module_place_vars(m);
	}
	if (r == 0) {
		handle = client_add(c, OBJECT_MODULE, m);
		r = handle ? 0 : -ENOMEM;
	}
	if (r < 0) {
		module_unref(m);
		head.result = r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
		client_send2(c, &head, sizeof(head), error, strlen(error) + 1);
		return;
	}
	reply_values(c, q->h.id, handle, interp_module_n_kernels(m->interp), 0);
}

static void handle_module_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct module *m = client_object(c, q->object, OBJECT_MODULE);

	if (!m) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	client_drop(c, q->object);
	module_unref(m);
	client_reply(c, q->h.id, CUDA_SUCCESS);
}

static void reply_kernel(struct client *c, uint32_t id, const struct module *m, uint32_t index) {
	struct interp_kernel_info info;
	struct wire_kernel_reply *reply;
	size_t size;

	interp_kernel_get_info(interp_module_kernel(m->interp, index), &info);
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

static void handle_kernel_find(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_find *q = packet;
	const struct module *m = client_object(c, q->module, OBJECT_MODULE);

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

static void handle_global_find(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_find *q = packet;
	const struct module *m = client_object(c, q->module, OBJECT_MODULE);

	if (!m) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	for (size_t i = 0; i < interp_module_n_vars(m->interp); i++) {
		size_t size, align;

		if (strcmp(interp_module_var(m->interp, i, &size, &align), q->name) == 0) {
			reply_values(c, q->h.id, m->vars[i], size, 0);
			return;
		}
	}
	client_reply(c, q->h.id, CUDA_ERROR_NOT_FOUND);
}

/* ---- streams and events ---- */

static void handle_stream_new(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = client_object(c, q->object, OBJECT_CONTEXT);
	struct stream *st = calloc(1, sizeof(*st));
	uint32_t handle = 0;

	if (!ctx || q->other > DEVICE_STREAM_NON_BLOCKING) {
		free(st);
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	if (st && device_stream_new(&st->device, ctx->space, q->other, (unsigned)q->value) == 0) {
		st->context = ctx;
		handle = client_add(c, OBJECT_STREAM, st);
		if (!handle) {
			device_stream_free(st->device);
		}
	}
	if (!handle) {
		free(st);
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	reply_values(c, q->h.id, handle, 0, 0);
}

static void handle_stream_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;

	if (!client_object(c, q->object, OBJECT_STREAM)) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	stream_drop(c, q->object);
	client_reply(c, q->h.id, CUDA_SUCCESS);
}

static void handle_stream_sync(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct stream *st = client_object(c, q->object, OBJECT_STREAM);

	if (!st) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	client_wait(c, &(struct wait){.id = q->h.id,
				      .context = st->context,
				      .stream = st->device,
				      .seq = device_last_seq(st->context->gpu->device)});
}

static void handle_stream_query(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	const struct stream *st = client_object(c, q->object, OBJECT_STREAM);
	int result = CUDA_ERROR_INVALID_HANDLE;

	if (st) {
		result = st->context->fault;
		if (!result && !device_stream_passed(st->device, UINT64_MAX)) {
			result = CUDA_ERROR_NOT_READY;
		}
	}
	client_reply(c, q->h.id, result);
}

static void handle_event_new(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = client_object(c, q->object, OBJECT_CONTEXT);
	struct event *e = ctx ? calloc(1, sizeof(*e)) : NULL;
	uint32_t handle = e ? client_add(c, OBJECT_EVENT, e) : 0;

	if (!handle) {
		free(e);
		client_reply(c, q->h.id,
			     ctx ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	e->context = ctx;
	e->n_refs = 1;
	reply_values(c, q->h.id, handle, 0, 0);
}

static void handle_event_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct event *e = client_object(c, q->object, OBJECT_EVENT);

	if (!e) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	client_drop(c, q->object);
	event_unref(e);
	client_reply(c, q->h.id, CUDA_SUCCESS);
}

/* Records, or lets a stream wait: object = event, other = stream. */
static void event_submit(struct client *c, const struct wire_object *q, enum device_op_kind kind) {
	struct event *e = client_object(c, q->object, OBJECT_EVENT);
	struct stream *st = client_object(c, q->other, OBJECT_STREAM);
	struct op *op;

	if (!e || !st || (kind == DEVICE_EVENT && e->context != st->context)) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	op = op_new(st->context, kind, 0);
	if (!op) {
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	op->event = e;
	e->n_refs++;
	op->base.event = &e->device;
	op->base.event_number = kind == DEVICE_EVENT ? ++e->device.recorded : e->device.recorded;
	client_reply(c, q->h.id, st->context->fault);
	device_submit(st->device, &op->base);
}

static void handle_event_record(struct client *c, const void *packet, size_t n, int fd) {
	event_submit(c, packet, DEVICE_EVENT);
}

static void handle_event_wait(struct client *c, const void *packet, size_t n, int fd) {
	event_submit(c, packet, DEVICE_WAIT);
}

static void handle_event_sync(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct event *e = client_object(c, q->object, OBJECT_EVENT);

	if (!e) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	e->n_refs++;
	client_wait(c, &(struct wait){.id = q->h.id,
				      .context = e->context,
				      .event = e,
				      .event_number = e->device.recorded});
}

/* Reply: the time of the last record that was reached, and whether there is one. */
static void handle_event_query(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	const struct event *e = client_object(c, q->object, OBJECT_EVENT);

	if (!e || e->context->fault) {
		client_reply(c, q->h.id, e ? e->context->fault : CUDA_ERROR_INVALID_HANDLE);
	} else if (e->device.done < e->device.recorded) {
		client_reply(c, q->h.id, CUDA_ERROR_NOT_READY);
	} else {
		reply_values(c, q->h.id, e->device.done_ns, e->device.recorded, 0);
	}
}

/* ---- work ---- */

static void handle_launch(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_launch *q = packet;
	struct stream *st = client_object(c, q->stream, OBJECT_STREAM);
	struct module *m = client_object(c, q->module, OBJECT_MODULE);
	struct op *op;
	const struct interp_kernel *kernel;
	uint64_t threads, blocks;
	unsigned shared;

	if (!st || !m || q->params_size > n - sizeof(*q)) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	kernel = q->kernel < interp_module_n_kernels(m->interp)
			 ? interp_module_kernel(m->interp, q->kernel)
			 : NULL;
	op = kernel ? op_new(st->context, DEVICE_KERNEL, q->params_size) : NULL;
	if (!op) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	interp_kernel_get_info(kernel, &op->kernel);
	memcpy(op->data, q->params, q->params_size);
	op->launch = (struct interp_launch){
		.kernel = kernel,
		.grid = {q->grid[0], q->grid[1], q->grid[2]},
		.block = {q->block[0], q->block[1], q->block[2]},
		.dynamic_shared_bytes = q->shared_bytes,
		.params = op->data,
		.params_size = q->params_size,
		.grid_id = device_last_seq(st->context->gpu->device) + 1,
	};
	threads = (uint64_t)q->block[0] * q->block[1] * q->block[2];
	blocks = (uint64_t)q->grid[0] * q->grid[1] * q->grid[2];
	shared = (unsigned)op->kernel.static_shared_bytes + q->shared_bytes;
	if (threads > 0 && threads <= 1024 && q->params_size == op->kernel.params_size) {
		op->base.kernel = config_block_needs(st->context->gpu->config, (unsigned)threads,
						     op->kernel.regs_per_thread, shared);
	}
	op->base.kernel.n_blocks = blocks;
	/* The client has checked all this against its own copy; a kernel that never fits would
	 * stop the queue. */
	if (blocks == 0 || op->base.kernel.threads == 0 ||
	    device_occupancy(&st->context->gpu->config->device, &op->base.kernel) == 0) {
		op_free(op);
		client_reply(c, q->h.id, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
		return;
	}
	op->module = m;
	m->n_refs++;
	client_reply(c, q->h.id, st->context->fault);
	device_submit(st->device, &op->base);
}

/* One side of a copy: the rows lie inside what the client may touch. */
static bool copy_side_ok(struct context *ctx, enum wire_place place, uint64_t addr, uint64_t pitch,
			 uint64_t width, uint64_t height, bool write) {
	uint64_t size;

	if (place == WIRE_INLINE) {
		return true;
	}
	if (__builtin_mul_overflow(pitch, height - 1, &size) ||
	    __builtin_add_overflow(size, width, &size)) {
		return false;
	}
	return (place == WIRE_DEVICE) == (addr >= WIRE_DEVICE_BASE(0)) &&
	       exec_resolve(ctx, addr, size, write);
}

static void handle_copy(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_copy *q = packet;
	struct stream *st = client_object(c, q->stream, OBJECT_STREAM);
	struct op *op = NULL;
	uint64_t bytes;
	size_t inline_bytes;
	bool ok;

	ok = st && q->width > 0 && q->height > 0 && q->from <= WIRE_DEVICE && q->to <= WIRE_DEVICE &&
	     !__builtin_mul_overflow(q->width, q->height, &bytes);
	ok = ok && (q->from != WIRE_INLINE || bytes == n - sizeof(*q)) &&
	     (q->to != WIRE_INLINE || bytes <= WIRE_INLINE_MAX);
	ok = ok &&
	     copy_side_ok(st->context, q->from, q->source, q->source_pitch, q->width, q->height,
			  false) &&
	     copy_side_ok(st->context, q->to, q->target, q->target_pitch, q->width, q->height, true);
	if (!ok) {
		client_reply(c, q->h.id, st ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	inline_bytes = q->from == WIRE_INLINE || q->to == WIRE_INLINE ? bytes : 0;
	op = op_new(st->context,
		    q->to != WIRE_DEVICE	? DEVICE_COPY_OUT
		    : q->from == WIRE_DEVICE ? DEVICE_COPY_LOCAL
					     : DEVICE_COPY_IN,
		    inline_bytes);
	if (!op) {
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	op->copy = *q;
	op->base.bytes = bytes;
	if (q->from == WIRE_INLINE) {
		memcpy(op->data, q->data, inline_bytes);
	}
	if (q->wait) {
		op->reply_id = q->h.id;
	} else {
		client_reply(c, q->h.id, st->context->fault);
	}
	device_submit(st->device, &op->base);
}

static void handle_fill(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_fill *q = packet;
	struct stream *st = client_object(c, q->stream, OBJECT_STREAM);
	struct op *op = NULL;
	uint64_t row, bytes;
	bool ok;

	ok = st && q->width > 0 && q->height > 0 &&
	     (q->element == 1 || q->element == 2 || q->element == 4) &&
	     !__builtin_mul_overflow(q->width, q->element, &row) &&
	     !__builtin_mul_overflow(row, q->height, &bytes) &&
	     copy_side_ok(st->context, WIRE_DEVICE, q->target, q->pitch, row, q->height, true);
	if (!ok) {
		client_reply(c, q->h.id, st ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	op = op_new(st->context, DEVICE_COPY_LOCAL, 0);
	if (!op) {
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	op->fill = *q;
	op->base.bytes = bytes;
	if (q->wait) {
		op->reply_id = q->h.id;
	} else {
		client_reply(c, q->h.id, st->context->fault);
	}
	device_submit(st->device, &op->base);
}

/* ---- host functions ---- */

void session_hand_host(struct client *c) {
	struct op *op = c->host_due;

	if (!op || !c->host_next_id) {
		return;
	}
	c->host_due = op->next;
	if (!c->host_due) {
		c->host_last = &c->host_due;
	}
	c->host_running = op;
	reply_values(c, c->host_next_id, op->value, 0, 0);
	c->host_next_id = 0;
}

static void handle_host_function(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct stream *st = client_object(c, q->object, OBJECT_STREAM);
	struct op *op = st ? op_new(st->context, DEVICE_HOST, 0) : NULL;

	if (!op) {
		client_reply(c, q->h.id,
			     st ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	op->value = q->value;
	client_reply(c, q->h.id, st->context->fault);
	device_submit(st->device, &op->base);
}

static void handle_host_next(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;

	c->host_next_id = q->h.id;
	session_hand_host(c);
}

static void handle_host_done(struct client *c, const void *packet, size_t n, int fd) {
	struct op *op = c->host_running;

	/* NULL: its context has failed in the meantime, and dropped it. */
	c->host_running = NULL;
	if (op) {
		device_op_complete(&op->base);
	}
}

/* ---- the table ---- */

static const struct {
	size_t size; /* at least */
	bool text;   /* what follows is a string that must be terminated */
	void (*handle)(struct client *c, const void *packet, size_t n, int fd);
} session_handlers[_WIRE_REQUEST_N] = {
	[WIRE_HELLO] = {sizeof(struct wire_hello), false, handle_hello},
	[WIRE_STOP] = {sizeof(struct wire_header), false, handle_stop},
	[WIRE_GPU_STATE] = {sizeof(struct wire_object), false, handle_gpu_state},
	[WIRE_CONTEXT_NEW] = {sizeof(struct wire_object), false, handle_context_new},
	[WIRE_CONTEXT_FREE] = {sizeof(struct wire_object), false, handle_context_free},
	[WIRE_CONTEXT_SYNC] = {sizeof(struct wire_object), false, handle_context_sync},
	[WIRE_MEMORY_ALLOC] = {sizeof(struct wire_object), false, handle_memory_alloc},
	[WIRE_MEMORY_FREE] = {sizeof(struct wire_object), false, handle_memory_free},
	[WIRE_MEMORY_RANGE] = {sizeof(struct wire_object), false, handle_memory_range},
	[WIRE_HOST_MAP] = {sizeof(struct wire_object), false, handle_host_map},
	[WIRE_HOST_UNMAP] = {sizeof(struct wire_object), false, handle_host_unmap},
	[WIRE_MODULE_LOAD] = {sizeof(struct wire_object), false, handle_module_load},
	[WIRE_MODULE_FREE] = {sizeof(struct wire_object), false, handle_module_free},
	[WIRE_KERNEL_FIND] = {sizeof(struct wire_find) + 1, true, handle_kernel_find},
	[WIRE_GLOBAL_FIND] = {sizeof(struct wire_find) + 1, true, handle_global_find},
	[WIRE_STREAM_NEW] = {sizeof(struct wire_object), false, handle_stream_new},
	[WIRE_STREAM_FREE] = {sizeof(struct wire_object), false, handle_stream_free},
	[WIRE_STREAM_SYNC] = {sizeof(struct wire_object), false, handle_stream_sync},
	[WIRE_STREAM_QUERY] = {sizeof(struct wire_object), false, handle_stream_query},
	[WIRE_EVENT_NEW] = {sizeof(struct wire_object), false, handle_event_new},
	[WIRE_EVENT_FREE] = {sizeof(struct wire_object), false, handle_event_free},
	[WIRE_EVENT_RECORD] = {sizeof(struct wire_object), false, handle_event_record},
	[WIRE_EVENT_WAIT] = {sizeof(struct wire_object), false, handle_event_wait},
	[WIRE_EVENT_SYNC] = {sizeof(struct wire_object), false, handle_event_sync},
	[WIRE_EVENT_QUERY] = {sizeof(struct wire_object), false, handle_event_query},
	[WIRE_LAUNCH] = {sizeof(struct wire_launch), false, handle_launch},
	[WIRE_COPY] = {sizeof(struct wire_copy), false, handle_copy},
	[WIRE_FILL] = {sizeof(struct wire_fill), false, handle_fill},
	[WIRE_HOST_FUNCTION] = {sizeof(struct wire_object), false, handle_host_function},
	[WIRE_HOST_NEXT] = {sizeof(struct wire_object), false, handle_host_next},
	[WIRE_HOST_DONE] = {sizeof(struct wire_object), false, handle_host_done},
};

void session_handle(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_header *h = packet;
	const char *bytes = packet;

	if (n < sizeof(*h) || h->type >= _WIRE_REQUEST_N || n < session_handlers[h->type].size ||
	    (session_handlers[h->type].text && bytes[n - 1] != '\0') ||
	    (!c->said_hello && h->type > WIRE_STOP)) {
		c->broken = true;
	} else {
		session_handlers[h->type].handle(c, packet, n, fd);
	}
	if (fd >= 0) {
		close(fd);
	}
}
