/*
 * exec.c: what the device models leave to others: running blocks in the interpreter, moving bytes,
 * and telling the client what happened.
 *
 * Cost model. An SM issues up to four warp instructions a cycle, and one warp one in four cycles,
 * so sixteen resident warps fill it; above that they share it evenly. A block of w warps on an SM
 * with W resident ones needs cycles * max(16, W) / (4 * w) cycles for what the interpreter counted.
 */
#include <cuda.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/server.h"

#define EXEC_WARPS_TO_FILL 16
#define EXEC_ISSUE	   4

struct op *op_free(struct op *op) {
	if (op) {
		mark_unref(op->mark);
		module_unref(op->module);
		free(op);
	}
	return NULL;
}

uint8_t *exec_resolve(struct context *c, uint64_t addr, uint64_t size, bool write) {
	const struct client *client = c->client;

	(void)write;
	if (addr >= WIRE_DEVICE_BASE(0)) {
		return memory_resolve(&c->gpu->memory, addr, size, c, NULL, NULL);
	}
	for (size_t i = 0; i < client->n_pinned; i++) {
		const struct pinned *p = &client->pinned[i];

		if (addr >= p->start && addr - p->start < p->size &&
		    size <= p->size - (addr - p->start)) {
			return p->host + (addr - p->start);
		}
	}
	return NULL;
}

/* ---- what the interpreter asks for ---- */

static uint8_t *exec_memory(void *userdata, uint64_t addr, size_t size, bool write,
			    uint64_t *ret_start, uint64_t *ret_end) {
	struct context *c = userdata;
	uint8_t *host;

	if (addr >= WIRE_DEVICE_BASE(0)) {
		return memory_resolve(&c->gpu->memory, addr, size, c, ret_start, ret_end);
	}
	host = exec_resolve(c, addr, size, write);
	for (size_t i = 0; host && i < c->client->n_pinned; i++) {
		const struct pinned *p = &c->client->pinned[i];

		if (addr >= p->start && addr - p->start < p->size) {
			*ret_start = p->start;
			*ret_end = p->start + p->size;
		}
	}
	return host;
}

static uint64_t exec_globaltimer(void *userdata) {
	struct context *c = userdata;

	return device_now_ns(c->gpu->device);
}

static void exec_print(void *userdata, const char *text, size_t n) {
	struct context *c = userdata;
	struct wire_print head = {.h = {.type = WIRE_PRINT}};

	while (n > 0 && c->client->out_bytes < SERVER_PRINT_MAX) {
		size_t part = n < WIRE_INLINE_MAX ? n : WIRE_INLINE_MAX;

		client_send2(c->client, &head, sizeof(head), text, part);
		text += part;
		n -= part;
	}
}

void exec_context_init(struct context *c) {
	c->machine = (struct interp_machine){
		.memory = {.userdata = c, .resolve = exec_memory},
		.userdata = c,
		.globaltimer_ns = exec_globaltimer,
		.print = exec_print,
	};
}

/* ---- blocks ---- */

/* A block on an SM. */
struct exec_block {
	struct interp_block *interp; /* owned */
	unsigned row;		     /* in the trace */
	struct ahead_block ahead;    /* of an independent kernel */
};

static int exec_block_start(void *userdata, struct device_block *b) {
	struct gpu *gpu = userdata;
	struct op *op = (struct op *)b->op;
	const uint32_t *grid = op->launch.grid;
	uint64_t plane = (uint64_t)grid[0] * grid[1];
	const uint32_t ctaid[3] = {
		(uint32_t)(b->index % grid[0]),
		(uint32_t)(b->index / grid[0] % grid[1]),
		(uint32_t)(b->index / plane),
	};
	struct interp_place place = {.smid = b->smid, .nsmid = gpu->config->device.n_sms};
	struct exec_block *eb = calloc(1, sizeof(*eb));
	int r = -ENOMEM;

	if (eb) {
		r = interp_block_new(&eb->interp, &op->launch, ctaid, place, &op->context->machine);
	}
	if (r < 0) {
		free(eb);
		op->context->fault =
			r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_LAUNCH_FAILED;
		snprintf(op->context->fault_text, sizeof(op->context->fault_text),
			 "kernel %s: block %llu could not be started: %s", op->kernel.name,
			 (unsigned long long)b->index, strerror(-r));
		return r;
	}
	eb->row = gpu->server->trace ? trace_take_row(gpu->server->trace, gpu->index, b->sm) : 0;
	b->state = eb;
	if (op->kernel.independent) {
		eb->ahead.interp = eb->interp;
		ahead_add(gpu->server->ahead, &eb->ahead);
	}
	return 0;
}

static int exec_fault_result(enum interp_fault_kind kind) {
	switch (kind) {
	case INTERP_FAULT_ADDRESS:
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	case INTERP_FAULT_ALIGNMENT:
		return CUDA_ERROR_MISALIGNED_ADDRESS;
	case INTERP_FAULT_INSTRUCTION:
		return CUDA_ERROR_ILLEGAL_INSTRUCTION;
	case INTERP_FAULT_ASSERT:
		return CUDA_ERROR_ASSERT;
	case INTERP_FAULT_HANG:
		return CUDA_ERROR_LAUNCH_TIMEOUT;
	case INTERP_FAULT_UNINITIALISED:
	case INTERP_FAULT_UNDEFINED:
	case INTERP_FAULT_NONE:
		break;
	}
	return CUDA_ERROR_LAUNCH_FAILED;
}

static enum device_result exec_block_run(void *userdata, struct device_block *b, uint64_t now_ns,
					 unsigned sm_threads, uint64_t *ret_ns) {
	struct gpu *gpu = userdata;
	struct op *op = (struct op *)b->op;
	struct context *c = op->context;
	struct exec_block *eb = b->state;
	uint64_t instructions, warps = op->base.kernel.threads / 32, sm_warps = sm_threads / 32;
	struct ahead_slice s;
	const char *text = "";

	(void)now_ns;
	if (op->kernel.independent) {
		s = ahead_take(gpu->server->ahead, &eb->ahead);
	} else {
		s.result = interp_block_run(eb->interp, SERVER_SLICE_INSTRUCTIONS, &instructions,
					    &s.cycles);
	}
	if (sm_warps < EXEC_WARPS_TO_FILL) {
		sm_warps = EXEC_WARPS_TO_FILL;
	}
	*ret_ns = s.cycles * sm_warps * 1000000 / (EXEC_ISSUE * warps * gpu->config->sm_clock_khz);
	if (s.result == INTERP_DONE) {
		return DEVICE_DONE;
	}
	if (s.result == INTERP_MORE) {
		return DEVICE_MORE;
	}
	c->fault = exec_fault_result(interp_block_fault(eb->interp, &text));
	snprintf(c->fault_text, sizeof(c->fault_text), "%s", text);
	gpu->faulty = c;
	return DEVICE_FAULT;
}

static void exec_block_end(void *userdata, struct device_block *b, uint64_t end_ns) {
	struct gpu *gpu = userdata;
	struct op *op = (struct op *)b->op;
	struct trace *trace = gpu->server->trace;
	struct exec_block *eb = b->state;

	if (trace && end_ns != DEVICE_NEVER) {
		trace_write(trace, &(struct trace_block){.gpu = gpu->index,
							 .pid = op->context->client->pid,
							 .kernel = op->kernel.name,
							 .launch = op->base.seq,
							 .block = b,
							 .row = eb->row,
							 .end_ns = end_ns});
	}
	if (trace) {
		trace_give_row(trace, gpu->index, b->sm, eb->row);
	}
	if (op->kernel.independent) {
		ahead_remove(gpu->server->ahead, &eb->ahead);
	}
	interp_block_free(eb->interp);
	free(eb);
	b->state = NULL;
}

/* ---- the other operations ---- */

/* The host address of row @y of one side of a copy; NULL if it is not there any more. */
static uint8_t *exec_copy_row(struct op *op, bool source, uint64_t y) {
	const struct wire_copy *w = &op->copy;
	enum wire_place place = source ? w->from : w->to;
	uint64_t addr = source ? w->source : w->target;
	uint64_t pitch = source ? w->source_pitch : w->target_pitch;

	if (place == WIRE_INLINE) {
		return op->data + y * w->width;
	}
	return exec_resolve(op->context, addr + y * pitch, w->width, !source);
}

static int exec_copy(struct op *op) {
	for (uint64_t y = 0; y < op->copy.height; y++) {
		const uint8_t *source = exec_copy_row(op, true, y);
		uint8_t *target = exec_copy_row(op, false, y);

		if (!source || !target) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		memmove(target, source, op->copy.width);
	}
	return CUDA_SUCCESS;
}

static int exec_fill(struct op *op) {
	const struct wire_fill *w = &op->fill;
	uint64_t bytes = w->width * w->element;

	for (uint64_t y = 0; y < w->height; y++) {
		uint8_t *row = exec_resolve(op->context, w->target + y * w->pitch, bytes, true);

		if (!row) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		if (w->element == 1) {
			memset(row, (int)w->value, bytes);
			continue;
		}
		for (uint64_t x = 0; x < w->width; x++) {
			memcpy(row + x * w->element, &w->value, w->element);
		}
	}
	return CUDA_SUCCESS;
}

static void exec_reply(struct op *op, int result) {
	struct wire_reply reply = {.h = {.type = WIRE_REPLY, .id = op->reply_id}, .result = result};
	bool data = result == CUDA_SUCCESS && op->base.kind == DEVICE_COPY_OUT &&
		    op->copy.to == WIRE_INLINE;

	client_send2(op->context->client, &reply, sizeof(reply), op->data,
		     data ? op->copy.width * op->copy.height : 0);
}

static void exec_op_done(void *userdata, struct device_op *base, bool ok) {
	struct gpu *gpu = userdata;
	struct op *op = (struct op *)base;
	int result = CUDA_SUCCESS;

	if (!ok) {
		result = op->context->fault ? op->context->fault : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	} else if (op->fill.element) {
		result = exec_fill(op);
	} else if (base->kind >= DEVICE_COPY_IN && base->kind <= DEVICE_COPY_LOCAL) {
		result = exec_copy(op);
	} else if (base->kind == DEVICE_ACTION) {
		ahead_pause(gpu->server->ahead);
		(void)memory_free(&gpu->memory, op->value, op->context);
		ahead_resume(gpu->server->ahead);
	}
	if (op->reply_id) {
		exec_reply(op, result);
	}
	if (base->kind == DEVICE_HOST && !ok) {
		struct client *c = op->context->client;

		for (struct op **p = &c->host_due; *p; p = &(*p)->next) {
			if (*p == op) {
				*p = op->next;
				break;
			}
		}
		c->host_last = &c->host_due;
		while (*c->host_last) {
			c->host_last = &(*c->host_last)->next;
		}
		if (c->host_running == op) {
			c->host_running = NULL;
		}
	}
	gpu->server->moved = true;
	op_free(op);
}

/* As the flags of cuStreamWaitValue32() say. Memory that is gone holds nobody up. */
static bool exec_value_reached(void *userdata, const struct device_op *base) {
	const struct op *op = (const struct op *)base;
	const uint8_t *at = exec_resolve(op->context, op->value, sizeof(uint32_t), false);
	uint32_t wanted = op->wanted, is;

	(void)userdata;
	if (!at) {
		return true;
	}
	is = __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);
	switch (op->compare) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return (int32_t)(is - wanted) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return is == wanted;
	case CU_STREAM_WAIT_VALUE_AND:
		return (is & wanted) != 0;
	default:
		return ~(is | wanted) != 0;
	}
}

static void exec_host_due(void *userdata, struct device_op *base) {
	struct op *op = (struct op *)base;
	struct client *c = op->context->client;

	(void)userdata;
	op->next = NULL;
	*c->host_last = op;
	c->host_last = &op->next;
	session_hand_host(c);
}

static void exec_space_failed(void *userdata, struct device_space *space) {
	struct context *c = device_space_owner(space);
	struct wire_fault head = {.h = {.type = WIRE_FAULT}, .context = c->id};

	(void)userdata;
	if (!c->fault) {
		c->fault = CUDA_ERROR_OUT_OF_MEMORY;
		snprintf(c->fault_text, sizeof(c->fault_text), "simgpud is out of memory");
	}
	head.result = c->fault;
	client_send2(c->client, &head, sizeof(head), c->fault_text, strlen(c->fault_text) + 1);
}

void exec_fail(struct context *c, int result, const char *text) {
	c->fault = result;
	snprintf(c->fault_text, sizeof(c->fault_text), "%s", text);
	device_space_stop(c->space);
	c->gpu->server->moved = true;
}

void exec_spread(struct context *c, int result, const char *text) {
	struct server *s = c->gpu->server;

	for (struct client *o = s->contained ? NULL : s->clients; o; o = o->next) {
		for (size_t i = 0; i < o->n_objects; i++) {
			struct context *other = o->objects[i].p;

			if (o->objects[i].type == OBJECT_CONTEXT && other != c &&
			    other->gpu == c->gpu && !other->fault) {
				exec_fail(other, result, text);
			}
		}
	}
}

void exec_settle_faults(struct gpu *gpu) {
	struct context *c = gpu->faulty;
	char text[sizeof(c->fault_text) + 32];

	gpu->faulty = NULL;
	if (c && gpu->config->device.shared) {
		snprintf(text, sizeof(text), "a fault of process %d: %s", c->client->pid,
			 c->fault_text);
		exec_spread(c, c->fault, text);
	}
}

const struct device_backend exec_backend = {
	.block_start = exec_block_start,
	.block_run = exec_block_run,
	.block_end = exec_block_end,
	.value_reached = exec_value_reached,
	.host_due = exec_host_due,
	.op_done = exec_op_done,
	.space_failed = exec_space_failed,
};
