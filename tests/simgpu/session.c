/*
 * session.c: one client process's requests. A table says for each type how long its packet must be
 * and who handles it; handlers look up what the packet names in the client's own objects, so no
 * client can reach what another one has. Bad requests get a result, never more.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simgpu/session-internal.h"

/* ---- objects ---- */

void *session_object(const struct client *c, uint32_t handle, enum object_type type) {
	if (handle == 0 || handle > c->n_objects || c->objects[handle - 1].type != type) {
		return NULL;
	}
	return c->objects[handle - 1].p;
}

/* Return: the handle, or 0 when out of memory. */
uint32_t session_add(struct client *c, enum object_type type, void *p) {
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

void session_drop(struct client *c, uint32_t handle) {
	c->objects[handle - 1] = (struct object){0};
}

struct mark *mark_unref(struct mark *m) {
	if (m && --m->n_refs == 0) {
		free(m);
	}
	return NULL;
}

struct module *module_unref(struct module *m) {
	if (m && --m->n_refs == 0) {
		struct ahead *ahead = m->context->gpu->server->ahead;

		ahead_pause(ahead);
		for (size_t i = 0; m->vars && i < interp_module_n_vars(m->interp); i++) {
			if (m->vars[i]) {
				(void)memory_free(&m->context->gpu->memory, m->vars[i], m->context);
			}
		}
		ahead_resume(ahead);
		interp_module_free(m->interp);
		free(m->vars);
		free(m);
	}
	return NULL;
}

/* Ends all that the context runs and owns. @dies: with its process. */
static void context_drop(struct client *c, uint32_t handle, bool dies) {
	struct context *ctx = session_object(c, handle, OBJECT_CONTEXT);

	for (struct wait **p = &c->waits; *p;) {
		struct wait *w = *p;

		if (w->context == ctx) {
			client_reply(c, w->id, CUDA_ERROR_CONTEXT_IS_DESTROYED);
			*p = w->next;
			mark_unref(w->mark);
			free(w);
		} else {
			p = &w->next;
		}
	}
	for (uint32_t i = 1; i <= c->n_objects; i++) {
		struct object *o = &c->objects[i - 1];

		if (o->type == OBJECT_STREAM && ((struct stream *)o->p)->context == ctx) {
			free(o->p); /* its device stream goes with the space */
			session_drop(c, i);
		} else if (o->type == OBJECT_PART && ((struct part *)o->p)->context == ctx) {
			free(o->p); /* its SMs too */
			session_drop(c, i);
		} else if (o->type == OBJECT_EVENT && ((struct event *)o->p)->context == ctx) {
			mark_unref(((struct event *)o->p)->mark);
			free(o->p);
			session_drop(c, i);
		}
	}
	device_space_free(ctx->space);
	for (uint32_t i = 1; i <= c->n_objects; i++) {
		struct object *o = &c->objects[i - 1];

		if (o->type == OBJECT_MODULE && ((struct module *)o->p)->context == ctx) {
			module_unref(o->p);
			session_drop(c, i);
		}
	}
	ctx->gpu->n_contexts--;
	if (!dies || !control_adopt(c->server, ctx)) {
		control_forget(c->server, ctx);
		memory_free_owner(&ctx->gpu->memory, ctx);
		free(ctx);
	}
	session_drop(c, handle);
}

/* Whoever dies in the middle of a kernel takes its neighbours under MPS with it. */
static void client_harm(const struct client *c) {
	for (size_t i = 0; i < c->n_objects && !c->leaves; i++) {
		struct context *ctx = c->objects[i].p;

		if (c->objects[i].type == OBJECT_CONTEXT && ctx->gpu->config->device.shared &&
		    !ctx->fault && device_space_runs_kernel(ctx->space)) {
			exec_spread(ctx, CUDA_ERROR_ILLEGAL_ADDRESS,
				    "another client of MPS died in the middle of a kernel");
		}
	}
}

struct client *client_free(struct client *c) {
	if (!c) {
		return NULL;
	}
	client_harm(c);
	for (uint32_t i = 1; i <= c->n_objects; i++) {
		if (c->objects[i - 1].type == OBJECT_CONTEXT) {
			context_drop(c, i, true);
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
	if (w->mark) {
		return w->mark->device.done >= w->mark->device.recorded;
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
			mark_unref(w->mark);
			free(w);
		} else {
			p = &w->next;
		}
	}
}

/* Takes the reference of @template->mark. */
void session_wait(struct client *c, const struct wait *template) {
	struct wait *w;

	if (template->context->fault || wait_is_over(template)) {
		client_reply(c, template->id, template->context->fault);
		mark_unref(template->mark);
		return;
	}
	w = malloc(sizeof(*w));
	if (!w) {
		client_reply(c, template->id, CUDA_ERROR_OUT_OF_MEMORY);
		mark_unref(template->mark);
		return;
	}
	*w = *template;
	w->next = c->waits;
	c->waits = w;
}

/* ---- replies ---- */

void session_reply_values(struct client *c, uint32_t id, uint64_t a, uint64_t b, uint64_t d) {
	struct wire_value_reply reply = {
		.r = {.h = {.type = WIRE_REPLY, .id = id}}, .value = a, .value2 = b, .value3 = d};

	client_send(c, &reply, sizeof(reply));
}

struct op *session_op_new(struct context *ctx, enum device_op_kind kind, size_t data_size) {
	struct op *op = calloc(1, sizeof(*op) + data_size);

	if (op) {
		op->context = ctx;
		op->base.kind = kind;
	}
	return op;
}

/* ---- GPUs and contexts ---- */

static void describe_gpu(const struct config_gpu *g, struct wire_gpu *ret) {
	*ret = (struct wire_gpu){
		.memory_bytes = g->memory_bytes,
		.power_limit_mw = g->device.power.static_mw +
				  (uint64_t)g->device.power.busy_sm_uw * g->device.n_sms / 1000,
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
		.integrated = g->integrated,
	};
	memcpy(ret->name, g->name, sizeof(ret->name));
	memcpy(ret->uuid, g->uuid, sizeof(ret->uuid));
}

static void session_hello(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_hello *q = packet;
	struct wire_hello_reply reply = {.r = {.h = {.type = WIRE_REPLY, .id = q->h.id}}};

	memcpy(reply.config, c->server->config_text, sizeof(reply.config));
	if (q->version != WIRE_VERSION) {
		reply.r.result = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	} else if (q->config[0] &&
		   strncmp(q->config, c->server->config_text, sizeof(q->config)) != 0) {
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

static void session_stop(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_header *q = packet;

	c->server->stop = true;
	client_reply(c, q->id, CUDA_SUCCESS);
}

static void session_gpu_state(struct client *c, const void *packet, size_t n, int fd) {
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
	reply.turns = device_turns(g->device);
	reply.preemptions = device_preemptions(g->device);
	client_send(c, &reply, sizeof(reply));
}

static void session_context_new(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = NULL;
	struct stream *st = NULL;
	uint32_t null_stream = 0;

	if (q->object >= c->server->config.n_gpus) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_DEVICE);
		return;
	}
	if (c->server->gpus[q->object].config->device.shared &&
	    c->server->gpus[q->object].n_contexts >= SERVER_MPS_CONTEXTS_MAX) {
		client_reply(c, q->h.id, CUDA_ERROR_DEVICE_UNAVAILABLE); /* as driver 580 */
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
	null_stream = session_add(c, OBJECT_STREAM, st);
	ctx->id = null_stream ? session_add(c, OBJECT_CONTEXT, ctx) : 0;
	if (!ctx->id) {
		goto fail;
	}
	ctx->gpu->n_contexts++;
	session_reply_values(c, q->h.id, ctx->id, null_stream, 0);
	return;
fail:
	if (null_stream) {
		session_drop(c, null_stream);
	}
	if (ctx) {
		device_space_free(ctx->space);
	}
	free(ctx);
	free(st);
	client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
}

static void session_context_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;

	if (!session_object(c, q->object, OBJECT_CONTEXT)) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	context_drop(c, q->object, false);
	client_reply(c, q->h.id, CUDA_SUCCESS);
}

static void session_context_sync(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = session_object(c, q->object, OBJECT_CONTEXT);

	if (!ctx) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	session_wait(c, &(struct wait){.id = q->h.id,
				       .context = ctx,
				       .seq = device_last_seq(ctx->gpu->device)});
}

/* ---- MPS ---- */

static void session_leave(struct client *c, const void *packet, size_t n, int fd) {
	(void)packet;
	(void)n;
	(void)fd;
	c->leaves = true;
}

static bool is_mps_client(const struct client *c) {
	for (size_t i = 0; i < c->n_objects; i++) {
		if (c->objects[i].type == OBJECT_CONTEXT &&
		    ((struct context *)c->objects[i].p)->gpu->config->device.shared) {
			return true;
		}
	}
	return false;
}

static void session_mps_clients(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct wire_mps_reply reply = {.r = {.h = {.type = WIRE_REPLY, .id = q->h.id}},
				       .server = (uint32_t)getpid()};

	(void)n;
	(void)fd;
	for (const struct client *o = c->server->clients; o; o = o->next) {
		if (is_mps_client(o) && reply.n_clients < WIRE_MPS_CLIENTS_MAX) {
			reply.clients[reply.n_clients++] = (uint32_t)o->pid;
		}
	}
	client_send(c, &reply, sizeof(reply));
}

static void session_mps_terminate(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	uint64_t ended = 0;

	(void)n;
	(void)fd;
	for (struct client *o = c->server->clients; o; o = o->next) {
		for (size_t i = 0; (uint64_t)o->pid == q->value && i < o->n_objects; i++) {
			struct context *ctx = o->objects[i].p;

			if (o->objects[i].type == OBJECT_CONTEXT &&
			    ctx->gpu->config->device.shared && !ctx->fault) {
				exec_fail(ctx, CUDA_ERROR_MPS_CLIENT_TERMINATED,
					  "the MPS client has been terminated");
				ended++;
			}
		}
	}
	session_reply_values(c, q->h.id, (uint64_t)getpid(), ended, 0);
}

/* ---- the table ---- */

static const struct {
	size_t size; /* at least */
	bool text;   /* what follows is a string that must be terminated */
	void (*handle)(struct client *c, const void *packet, size_t n, int fd);
} session_handlers[_WIRE_REQUEST_N] = {
	[WIRE_HELLO] = {sizeof(struct wire_hello), false, session_hello},
	[WIRE_STOP] = {sizeof(struct wire_header), false, session_stop},
	[WIRE_GPU_STATE] = {sizeof(struct wire_object), false, session_gpu_state},
	[WIRE_CONTEXT_NEW] = {sizeof(struct wire_object), false, session_context_new},
	[WIRE_CONTEXT_FREE] = {sizeof(struct wire_object), false, session_context_free},
	[WIRE_CONTEXT_SYNC] = {sizeof(struct wire_object), false, session_context_sync},
	[WIRE_MEMORY_ALLOC] = {sizeof(struct wire_object), false, session_memory_alloc},
	[WIRE_MEMORY_FREE] = {sizeof(struct wire_object), false, session_memory_free},
	[WIRE_MEMORY_RANGE] = {sizeof(struct wire_object), false, session_memory_range},
	[WIRE_HOST_MAP] = {sizeof(struct wire_object), false, session_host_map},
	[WIRE_HOST_UNMAP] = {sizeof(struct wire_object), false, session_host_unmap},
	[WIRE_MODULE_LOAD] = {sizeof(struct wire_object), false, session_module_load},
	[WIRE_MODULE_FREE] = {sizeof(struct wire_object), false, session_module_free},
	[WIRE_KERNEL_FIND] = {sizeof(struct wire_find) + 1, true, session_kernel_find},
	[WIRE_GLOBAL_FIND] = {sizeof(struct wire_find) + 1, true, session_global_find},
	[WIRE_PART_NEW] = {sizeof(struct wire_part), false, session_part_new},
	[WIRE_PART_FREE] = {sizeof(struct wire_object), false, session_part_free},
	[WIRE_STREAM_NEW] = {sizeof(struct wire_object), false, session_stream_new},
	[WIRE_STREAM_FREE] = {sizeof(struct wire_object), false, session_stream_free},
	[WIRE_STREAM_SYNC] = {sizeof(struct wire_object), false, session_stream_sync},
	[WIRE_STREAM_QUERY] = {sizeof(struct wire_object), false, session_stream_query},
	[WIRE_EVENT_NEW] = {sizeof(struct wire_object), false, session_event_new},
	[WIRE_EVENT_FREE] = {sizeof(struct wire_object), false, session_event_free},
	[WIRE_EVENT_RECORD] = {sizeof(struct wire_object), false, session_event_record},
	[WIRE_EVENT_RECORD_ALL] = {sizeof(struct wire_object), false, session_event_record_all},
	[WIRE_EVENT_WAIT] = {sizeof(struct wire_object), false, session_event_wait},
	[WIRE_EVENT_SYNC] = {sizeof(struct wire_object), false, session_event_sync},
	[WIRE_EVENT_QUERY] = {sizeof(struct wire_object), false, session_event_query},
	[WIRE_VALUE_WAIT] = {sizeof(struct wire_object), false, session_value_wait},
	[WIRE_VALUE_WRITE] = {sizeof(struct wire_object), false, session_value_write},
	[WIRE_LAUNCH] = {sizeof(struct wire_launch), false, session_launch},
	[WIRE_COPY] = {sizeof(struct wire_copy), false, session_copy},
	[WIRE_FILL] = {sizeof(struct wire_fill), false, session_fill},
	[WIRE_BATCH] = {sizeof(struct wire_object), false, session_batch},
	[WIRE_HOST_FUNCTION] = {sizeof(struct wire_object), false, session_host_function},
	[WIRE_HOST_NEXT] = {sizeof(struct wire_object), false, session_host_next},
	[WIRE_HOST_DONE] = {sizeof(struct wire_object), false, session_host_done},
	[WIRE_LEAVE] = {sizeof(struct wire_header), false, session_leave},
	[WIRE_MPS_CLIENTS] = {sizeof(struct wire_object), false, session_mps_clients},
	[WIRE_MPS_TERMINATE] = {sizeof(struct wire_object), false, session_mps_terminate},
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
