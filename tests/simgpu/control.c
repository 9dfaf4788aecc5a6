/* control.c: see control.h. */
#include "tests/simgpu/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/simgpu/rm.h"
#include "tests/simgpu/session-internal.h"

/* Where the real driver's numbers begin. */
#define FIRST_CLIENT 0xc1d00000u
#define FIRST_OBJECT 0xcaf00000u

struct control_object {
	struct control_object *next;
	uint32_t client, parent, handle, class; /* a client is its own client and parent */
	uint32_t engine;			/* of a group */
	uint32_t group;				/* the hardware's number */
	struct gpu *gpu;			/* of devices and what is below them; borrowed */
	struct context *context; /* of a group of the graphics engine; NULL: it is gone */
	uint64_t slice_us;	 /* of a group, as it was last set; 0: it was not */
	bool disabled;		 /* a channel */
};

/* ---- objects ---- */

static struct control_object *object_find(const struct control_file *f, uint32_t client,
					  uint32_t handle) {
	for (struct control_object *o = f->objects; o; o = o->next) {
		if (o->client == client && o->handle == handle) {
			return o;
		}
	}
	return NULL;
}

/* Frees it and all below it. */
static void object_free(struct control_file *f, struct control_object *o) {
	uint32_t client = o->client, handle = o->handle;
	struct control_object **p = &f->objects;

	while (*p != o) {
		p = &(*p)->next;
	}
	*p = o->next;
	free(o);
	for (p = &f->objects; *p;) {
		if ((*p)->client == client && (*p)->parent == handle) {
			object_free(f, *p);
			p = &f->objects; /* others have gone with it */
		} else {
			p = &(*p)->next;
		}
	}
}

static bool client_is_taken(const struct server *s, uint32_t handle) {
	for (const struct control_file *f = s->files; f; f = f->next) {
		if (object_find(f, handle, handle)) {
			return true;
		}
	}
	return false;
}

/* The lowest free one: whoever relies on numbers that never come back is to be found out. */
static uint32_t choose_handle(const struct control_file *f, uint32_t client) {
	uint32_t handle = client ? FIRST_OBJECT : FIRST_CLIENT;

	while (client ? object_find(f, client, handle) != NULL
		      : client_is_taken(f->server, handle)) {
		handle++;
	}
	return handle;
}

/* ---- allocation ---- */

/* The simulated driver names a context by its number, in the place of an address space. */
static struct context *find_context(const struct control_file *f, uint32_t id,
				    const struct gpu *gpu) {
	for (const struct client *c = f->server->clients; c; c = c->next) {
		struct context *ctx =
			c->pid == f->pid ? session_object(c, id, OBJECT_CONTEXT) : NULL;

		if (ctx && ctx->gpu == gpu) {
			return ctx;
		}
	}
	return NULL;
}

static enum rm_status init_group(const struct control_file *f, const struct control_object *parent,
				 const struct rm_group_params *params, struct control_object *o) {
	if (parent->class != RM_CLASS_DEVICE) {
		return RM_INVALID_PARENT;
	}
	o->gpu = parent->gpu;
	o->engine = params->engine;
	o->group = ++f->server->n_groups;
	if (o->engine == RM_ENGINE_GRAPHICS) {
		o->context = find_context(f, params->va_space, o->gpu);
		return o->context ? RM_OK : RM_INVALID_OBJECT_HANDLE;
	}
	return RM_OK;
}

static enum rm_status init_device(const struct control_file *f, const struct control_object *parent,
				  const struct rm_device_params *params, struct control_object *o) {
	if (parent->class != RM_CLASS_CLIENT) {
		return RM_INVALID_PARENT;
	}
	if (params->device >= f->server->config.n_gpus) {
		return RM_INVALID_DEVICE;
	}
	o->gpu = &f->server->gpus[params->device];
	return RM_OK;
}

static enum rm_status init_below(const struct control_object *parent, enum rm_class wanted,
				 struct control_object *o) {
	o->gpu = parent->gpu;
	return parent->class == wanted ? RM_OK : RM_INVALID_PARENT;
}

static enum rm_status init_object(const struct control_file *f, const struct control_object *parent,
				  const struct rm_packet *p, struct control_object *o) {
	union {
		struct rm_device_params device;
		struct rm_group_params group;
	} params;

	if (o->class == RM_CLASS_CLIENT) {
		return RM_OK;
	}
	if (!object_find(f, o->client, o->client)) {
		return RM_INVALID_CLIENT;
	}
	if (!parent) {
		return RM_INVALID_PARENT;
	}
	if (object_find(f, o->client, o->handle)) {
		return RM_DUPLICATE;
	}
	if (p->params_size != rm_params_size(o->class)) {
		return RM_INVALID_PARAM_STRUCT;
	}
	memcpy(&params, p->params, p->params_size);
	switch (o->class) {
	case RM_CLASS_DEVICE:
		return init_device(f, parent, &params.device, o);
	case RM_CLASS_SUBDEVICE:
		return init_below(parent, RM_CLASS_DEVICE, o);
	case RM_CLASS_CHANNEL:
		return init_below(parent, RM_CLASS_CHANNEL_GROUP, o);
	default:
		return init_group(f, parent, &params.group, o);
	}
}

static enum rm_status control_alloc(struct control_file *f, const struct rm_packet *p,
				    struct rm_alloc *a) {
	bool is_client = a->class == RM_CLASS_CLIENT;
	struct control_object *o;
	enum rm_status status;

	if (!is_client && a->class != RM_CLASS_DEVICE && a->class != RM_CLASS_SUBDEVICE &&
	    a->class != RM_CLASS_CHANNEL_GROUP && a->class != RM_CLASS_CHANNEL) {
		return RM_INVALID_CLASS;
	}
	o = calloc(1, sizeof(*o));
	if (!o) {
		return RM_NO_RESOURCES;
	}
	o->class = a->class;
	o->handle = a->object ? a->object : choose_handle(f, is_client ? 0 : a->client);
	o->client = is_client ? o->handle : a->client;
	o->parent = is_client ? o->handle : a->parent;
	status = is_client && client_is_taken(f->server, o->handle)
			 ? RM_DUPLICATE
			 : init_object(f, object_find(f, o->client, o->parent), p, o);
	if (status != RM_OK) {
		free(o);
		return status;
	}
	a->object = o->handle;
	o->next = f->objects;
	f->objects = o;
	return RM_OK;
}

/* ---- controls of a group ---- */

static enum rm_status group_schedule(struct control_object *o, void *params) {
	const struct rm_schedule *q = params;

	if (!q->enable) {
		return RM_INVALID_ARGUMENT; /* as driver 580 */
	}
	if (o->context && o->slice_us > 0 && !o->gpu->server->ignores_slices) {
		device_space_set_slice(o->context->space, o->slice_us * 1000);
	}
	return RM_OK;
}

/* Success, and nothing changes before the group is scheduled again: as driver 580. */
static enum rm_status group_set_timeslice(struct control_object *o, void *params) {
	const struct rm_timeslice *q = params;

	if (o->gpu->server->no_slices) {
		return RM_NOT_SUPPORTED;
	}
	if (q->us == 0 || q->us > 1000000000) {
		return RM_INVALID_ARGUMENT;
	}
	o->slice_us = q->us;
	return RM_OK;
}

static enum rm_status group_get_timeslice(struct control_object *o, void *params) {
	((struct rm_timeslice *)params)->us =
		o->slice_us > 0 ? o->slice_us : o->gpu->config->device.slice_ns / 1000;
	return RM_OK;
}

static enum rm_status group_preempt(struct control_object *o, void *params) {
	(void)params;
	if (o->gpu->server->no_preempt) {
		return RM_NOT_SUPPORTED;
	}
	if (o->context && !o->gpu->server->ignores_preempt) {
		device_space_preempt(o->context->space);
	}
	return RM_OK;
}

static enum rm_status group_get_info(struct control_object *o, void *params) {
	*(struct rm_info *)params = (struct rm_info){.group = o->group};
	return RM_OK;
}

/* ---- channels ---- */

/* A group has turns if one of its channels is enabled, or it has none. @stays: else it is not taken
 * off the GPU. */
static void update_group(const struct control_file *f, const struct control_object *group,
			 bool stays) {
	unsigned all = 0, disabled = 0;

	for (const struct control_object *o = f->objects; o; o = o->next) {
		if (o->client == group->client && o->parent == group->handle &&
		    o->class == RM_CLASS_CHANNEL) {
			all++;
			disabled += o->disabled;
		}
	}
	if (group->context) {
		device_space_enable(group->context->space, all == 0 || disabled < all ? DEVICE_TURNS
							   : stays ? DEVICE_LAST_TURN
								   : DEVICE_NO_TURNS);
	}
}

static enum rm_status disable_channels(const struct control_file *f,
				       const struct control_object *subdevice,
				       const struct rm_disable_channels *q) {
	if (subdevice->gpu->server->no_disable) {
		return RM_NOT_SUPPORTED;
	}
	if (q->n > RM_DISABLE_CHANNELS_MAX || q->event != 0) {
		return RM_INVALID_ARGUMENT;
	}
	for (uint32_t i = 0; i < q->n; i++) {
		const struct control_object *o = object_find(f, q->clients[i], q->channels[i]);

		if (!o || o->class != RM_CLASS_CHANNEL || o->gpu != subdevice->gpu) {
			return RM_INVALID_ARGUMENT;
		}
	}
	for (uint32_t i = 0; i < q->n; i++) {
		struct control_object *o = object_find(f, q->clients[i], q->channels[i]);

		o->disabled = q->disable;
		update_group(f, object_find(f, o->client, o->parent), q->only_scheduling);
	}
	return RM_OK;
}

/* ---- controls ---- */

static const struct {
	enum rm_command command;
	uint32_t size;
	enum rm_status (*run)(struct control_object *o, void *params);
} group_commands[] = {
	{RM_GROUP_SCHEDULE, sizeof(struct rm_schedule), group_schedule},
	{RM_GROUP_SET_TIMESLICE, sizeof(struct rm_timeslice), group_set_timeslice},
	{RM_GROUP_GET_TIMESLICE, sizeof(struct rm_timeslice), group_get_timeslice},
	{RM_GROUP_PREEMPT, sizeof(struct rm_preempt), group_preempt},
	{RM_GROUP_GET_INFO, sizeof(struct rm_info), group_get_info},
};

static enum rm_status control_control(const struct control_file *f, const struct rm_control *q,
				      void *params) {
	struct control_object *o = object_find(f, q->client, q->object);

	if (!object_find(f, q->client, q->client)) {
		return RM_INVALID_CLIENT;
	}
	if (!o) {
		return RM_NOT_FOUND;
	}
	if (q->command == RM_DISABLE_CHANNELS && o->class == RM_CLASS_SUBDEVICE) {
		return q->params_size == sizeof(struct rm_disable_channels)
			       ? disable_channels(f, o, params)
			       : RM_INVALID_PARAM_STRUCT;
	}
	for (size_t i = 0; i < sizeof(group_commands) / sizeof(*group_commands); i++) {
		if (q->command != group_commands[i].command || o->class != RM_CLASS_CHANNEL_GROUP) {
			continue;
		}
		return q->params_size == group_commands[i].size ? group_commands[i].run(o, params)
								: RM_INVALID_PARAM_STRUCT;
	}
	return RM_NOT_SUPPORTED;
}

/* ---- ioctls ---- */

static void run_alloc(struct control_file *f, struct rm_packet *p) {
	struct rm_alloc a = {0};
	struct rm_alloc_short *brief = (void *)p->arg;

	memcpy(&a, p->arg, sizeof(*brief));
	a.status = control_alloc(f, p, &a);
	if (p->size == sizeof(a)) {
		struct rm_alloc *all = (void *)p->arg;

		all->object = a.object;
		all->status = a.status;
	} else {
		brief->object = a.object;
		brief->status = a.status;
	}
}

static void run_free(struct control_file *f, struct rm_packet *p) {
	struct rm_free *q = (void *)p->arg;
	struct control_object *o = object_find(f, q->client, q->object);

	q->status = o					   ? RM_OK
		    : object_find(f, q->client, q->client) ? RM_NOT_FOUND
							   : RM_INVALID_CLIENT;
	if (o) {
		object_free(f, o);
	}
}

static void run_ioctl(struct control_file *f, struct rm_packet *p) {
	struct rm_control *q = (void *)p->arg;

	p->error = 0;
	if (p->nr == RM_ALLOC_NR &&
	    (p->size == sizeof(struct rm_alloc) || p->size == sizeof(struct rm_alloc_short))) {
		run_alloc(f, p);
	} else if (p->nr == RM_FREE_NR && p->size == sizeof(struct rm_free)) {
		run_free(f, p);
	} else if (p->nr == RM_CONTROL_NR && p->size == sizeof(*q)) {
		q->status = q->params_size == p->params_size ? control_control(f, q, p->params)
							     : RM_INVALID_PARAM_STRUCT;
	} else {
		p->error = EINVAL;
	}
}

void control_receive(struct control_file *f) {
	static _Alignas(16) struct rm_packet packet;
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = &packet, .iov_len = sizeof(packet)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *h;
	ssize_t n = recvmsg(f->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	int answer = -1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
		memcpy(&answer, CMSG_DATA(h), sizeof(answer));
	}
	if (n == (ssize_t)sizeof(packet) && answer >= 0) {
		run_ioctl(f, &packet);
		(void)!send(answer, &packet, sizeof(packet), MSG_NOSIGNAL | MSG_DONTWAIT);
	} else if (n <= 0) {
		f->broken = true;
	}
	if (answer >= 0) {
		close(answer);
	}
}

/* ---- files ---- */

void control_open(struct server *s, int fd, int pid) {
	struct control_file *f = calloc(1, sizeof(*f));

	if (!f) {
		close(fd);
		return;
	}
	f->server = s;
	f->fd = fd;
	f->pid = pid;
	f->next = s->files;
	s->files = f;
}

struct control_file *control_free(struct control_file *f) {
	if (!f) {
		return NULL;
	}
	while (f->orphans) {
		struct context *ctx = f->orphans;

		f->orphans = ctx->next_orphan;
		memory_free_owner(&ctx->gpu->memory, ctx);
		free(ctx);
	}
	while (f->objects) {
		object_free(f, f->objects);
	}
	close(f->fd);
	free(f);
	return NULL;
}

void control_forget(struct server *s, const struct context *ctx) {
	for (struct control_file *f = s->files; f; f = f->next) {
		for (struct control_object *o = f->objects; o; o = o->next) {
			if (o->context == ctx) {
				o->context = NULL;
			}
		}
	}
}

bool control_adopt(struct server *s, struct context *ctx) {
	for (struct control_file *f = s->files; f; f = f->next) {
		for (struct control_object *o = f->objects; o; o = o->next) {
			if (o->context == ctx) {
				control_forget(s, ctx);
				ctx->next_orphan = f->orphans;
				f->orphans = ctx;
				return true;
			}
		}
	}
	return false;
}
