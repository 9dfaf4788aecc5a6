/*
 * test-groups.c: contexts' channel groups and the ioctl that preempts them, from another process
 * than the programs whose they are, on their descriptor of nvidiactl.
 *
 * Arguments: the client program, simgpud, libsimgpu-ioctl.so, and maybe slow-poll.c's library: then
 * only the cases of who gets the GPU, several times. Each case has a simgpud of its own.
 * Nothing is timed. Where the order of turns counts, time slices last for ever, so that nobody gets
 * the GPU but by preemption.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote.h"
#include "tests/simgpu/client.h"
#include "tests/simgpu/place.h"
#include "tests/simgpu/rm.h"

#define GROUPS	 4
#define FOR_EVER "1000000000"
/* One time in five a slow simgpud has stood still where it does not matter. */
#define SLOW_TIMES 8

static const char *library, *simgpud_library;
static char dir[] = "/tmp/simgpu-groups-XXXXXX";
static char share_path[64];

/* A client, its descriptor and its groups as it tells them. */
struct owner {
	struct client c;
	int fd;
	uint32_t rm; /* client of the resource manager */
	struct {
		uint32_t object, engine, gpu;
	} groups[4 * GROUPS];
	unsigned n_groups;
};

/* ---- owners ---- */

static int receive_descriptor(int listen_fd) {
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int from = accept(listen_fd, NULL, NULL), fd = -1;

	assert_int_equal(recvmsg(from, &m, MSG_CMSG_CLOEXEC), 1);
	assert_non_null(CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	close(from);
	return fd;
}

static void owner_look(struct owner *o) {
	const char *text = client_ask(&o->c, "groups");
	uint32_t rm, object, engine, gpu;
	int n;

	for (o->n_groups = 0; sscanf(text, "%x %x %x %x%n", &rm, &object, &engine, &gpu, &n) == 4;
	     text += n) {
		assert_in_range(o->n_groups, 0, 4 * GROUPS - 1);
		o->rm = rm;
		o->groups[o->n_groups].object = object;
		o->groups[o->n_groups].engine = engine;
		o->groups[o->n_groups++].gpu = gpu;
	}
}

static void owner_start(struct owner *o) {
	struct sockaddr_un addr = place_address(share_path);
	int listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char command[128];

	setenv("LD_PRELOAD", library, 1);
	client_start(&o->c, NULL);
	unsetenv("LD_PRELOAD");
	assert_int_equal(bind(listen_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listen_fd, 1), 0);
	snprintf(command, sizeof(command), "share %s", share_path);
	assert_string_equal(client_ask(&o->c, command), "ok");
	o->fd = receive_descriptor(listen_fd);
	close(listen_fd);
	unlink(share_path);
	owner_look(o);
	assert_int_equal(o->n_groups, GROUPS);
}

static void owner_end(struct owner *o) {
	close(o->fd);
	client_end(&o->c, 0);
}

static uint32_t control(int fd, uint32_t client, uint32_t object, uint32_t command, void *params,
			uint32_t size) {
	struct rm_control q = {client, object, command, 0, (uintptr_t)params, size, 0xffff};

	assert_int_equal(ioctl(fd, _IOWR(RM_TYPE, RM_CONTROL_NR, struct rm_control), &q), 0);
	return q.status;
}

/* The channels of its first group. */
static uint32_t disable(struct owner *o, bool off, unsigned n_channels) {
	struct rm_disable_channels p = {.disable = off, .n = n_channels};
	uint32_t subdevice;

	assert_int_equal(sscanf(client_ask(&o->c, "channels"), "%x %x %x", &subdevice,
				&p.channels[0], &p.channels[1]),
			 3);
	p.clients[0] = p.clients[1] = o->rm;
	return control(o->fd, o->rm, subdevice, RM_DISABLE_CHANNELS, &p, sizeof(p));
}

static uint32_t preempt(const struct owner *o, uint32_t object) {
	struct rm_preempt p = {0};

	return control(o->fd, o->rm, object, RM_GROUP_PREEMPT, &p, sizeof(p));
}

/* Its first group, which computes. */
static void owner_preempt(const struct owner *o) {
	assert_int_equal(preempt(o, o->groups[0].object), RM_OK);
}

/* ---- simgpud ---- */

static void use_gpus(const char *simgpu, const char *slice) {
	setenv("SIMGPU", simgpu, 1);
	setenv("SIMGPU_SLICE", slice, 1);
	if (simgpud_library) {
		assert_int_equal(simgpud_start(simgpud_library), 0);
	}
}

static int end_case(void **state) {
	return simgpud_stop();
}

/* On a connection of its own, for each simgpud is another one. */
static struct wire_gpu_state_reply gpu_state(void) {
	struct wire_object q = {.h = {.type = WIRE_GPU_STATE, .id = 2}};
	struct wire_hello hello = {.h = {.type = WIRE_HELLO, .id = 1}, .version = WIRE_VERSION};
	struct wire_hello_reply hello_reply;
	struct wire_gpu_state_reply reply;
	struct sockaddr_un addr;
	char path[128];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(place_file(path, sizeof(path), dir, "simgpud.sock"), 0);
	addr = place_address(path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(send(fd, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(recv(fd, &hello_reply, sizeof(hello_reply), 0), sizeof(hello_reply));
	assert_int_equal(send(fd, &q, sizeof(q), 0), sizeof(q));
	assert_int_equal(recv(fd, &reply, sizeof(reply), 0), sizeof(reply));
	close(fd);
	return reply;
}

/* ---- allocation ---- */

static void a_context_has_four_groups(void **state) {
	static const uint32_t engines[GROUPS] = {1, 11, 12, 13};
	uint32_t further[GROUPS];
	struct owner o;
	struct stat st;

	use_gpus("4", FOR_EVER);
	owner_start(&o);
	assert_int_equal(fstat(o.fd, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(major(st.st_rdev), 195);
	assert_int_equal(minor(st.st_rdev), 255);
	for (unsigned i = 0; i < GROUPS; i++) {
		assert_int_equal(o.groups[i].engine, engines[i]);
		assert_int_equal(o.groups[i].gpu, 0);
	}
	client_ask(&o.c, "create");
	owner_look(&o);
	assert_int_equal(o.n_groups, 2 * GROUPS);
	for (unsigned i = 0; i < GROUPS; i++) {
		further[i] = o.groups[GROUPS + i].object;
		assert_int_equal(o.groups[GROUPS + i].engine, engines[i]);
	}
	client_ask(&o.c, "destroy");
	owner_look(&o);
	assert_int_equal(o.n_groups, GROUPS);
	for (unsigned i = 0; i < GROUPS; i++) {
		assert_int_equal(preempt(&o, further[i]), RM_NOT_FOUND);
	}
	client_ask(&o.c, "create");
	owner_look(&o);
	for (unsigned i = 0; i < GROUPS; i++) { /* the same numbers name new groups */
		assert_int_equal(o.groups[GROUPS + i].object, further[i]);
		assert_int_equal(preempt(&o, further[i]), RM_OK);
	}
	assert_string_equal(client_ask(&o.c, "add"), "right");
	owner_end(&o);
}

static void groups_tell_their_gpu(void **state) {
	struct owner o;

	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	use_gpus("4,2", FOR_EVER);
	owner_start(&o);
	unsetenv("CUDA_VISIBLE_DEVICES");
	assert_int_equal(o.groups[0].gpu, 1);
	owner_end(&o);
}

static void without_the_library_there_are_none(void **state) {
	struct client c;

	use_gpus("4", FOR_EVER);
	client_start(&c, NULL);
	assert_string_equal(client_ask(&c, "groups"), "");
	assert_string_equal(client_ask(&c, "add"), "right");
	client_end(&c, 0);
}

static void bad_controls_are_refused(void **state) {
	struct rm_schedule off = {0};
	struct rm_timeslice slice = {0};
	struct rm_control whole = {0};
	struct rm_info info = {0};
	struct rm_preempt p = {0};
	struct owner a, b;
	uint32_t group;

	use_gpus("4", "2050");
	owner_start(&a);
	owner_start(&b);
	assert_int_not_equal(a.rm, b.rm);
	group = a.groups[0].object;
	/* A client's handle is good on the file on which it was allocated, and on no other. */
	assert_int_equal(control(b.fd, a.rm, group, RM_GROUP_PREEMPT, &p, sizeof(p)),
			 RM_INVALID_CLIENT);
	assert_int_equal(control(a.fd, a.rm, a.rm, RM_GROUP_PREEMPT, &p, sizeof(p)),
			 RM_NOT_SUPPORTED);
	assert_int_equal(control(a.fd, a.rm, 0x1234, RM_GROUP_PREEMPT, &p, sizeof(p)),
			 RM_NOT_FOUND);
	assert_int_equal(control(a.fd, a.rm, group, RM_GROUP_PREEMPT, &p, 4),
			 RM_INVALID_PARAM_STRUCT);
	assert_int_equal(control(a.fd, a.rm, group, RM_GROUP_PREEMPT, NULL, 0),
			 RM_INVALID_PARAM_STRUCT);
	assert_int_equal(control(a.fd, a.rm, group, 0xa06c0199, &p, sizeof(p)), RM_NOT_SUPPORTED);
	assert_int_equal(control(a.fd, a.rm, group, RM_GROUP_SCHEDULE, &off, sizeof(off)),
			 RM_INVALID_ARGUMENT);
	assert_int_equal(control(a.fd, a.rm, group, RM_GROUP_GET_TIMESLICE, &slice, sizeof(slice)),
			 RM_OK);
	assert_int_equal(slice.us, 2050);
	slice.us = 1;
	assert_int_equal(control(a.fd, a.rm, group, RM_GROUP_SET_TIMESLICE, &slice, sizeof(slice)),
			 RM_OK);
	assert_int_equal(control(a.fd, a.rm, group, RM_GROUP_GET_INFO, &info, sizeof(info)), RM_OK);
	assert_int_not_equal(info.group, 0);
	/* Neither this size of a structure nor this number exists. */
	assert_int_equal(ioctl(a.fd, _IOWR(RM_TYPE, RM_CONTROL_NR, struct rm_free), &whole), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ioctl(a.fd, _IOWR(RM_TYPE, 0x7f, struct rm_preempt), &p), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(
		ioctl(STDIN_FILENO, _IOWR(RM_TYPE, RM_CONTROL_NR, struct rm_control), &whole), -1);
	owner_end(&a);
	owner_end(&b);
}

static uint32_t allocate(int fd, uint32_t client, uint32_t parent, uint32_t class, void *params,
			 uint32_t size) {
	struct rm_alloc_short a = {client, parent, 0, class, (uintptr_t)params, size, 0xffff};

	assert_int_equal(ioctl(fd, _IOWR(RM_TYPE, RM_ALLOC_NR, struct rm_alloc_short), &a), 0);
	assert_int_equal(a.status, RM_OK);
	return a.object;
}

static void release(int fd, uint32_t client, uint32_t object) {
	struct rm_free f = {client, client, object, 0xffff};

	assert_int_equal(ioctl(fd, _IOWR(RM_TYPE, RM_FREE_NR, struct rm_free), &f), 0);
	assert_int_equal(f.status, RM_OK);
}

/* A second client on the same file has none of the first one's objects, but its own. */
static void objects_form_a_tree_below_their_client(void **state) {
	struct rm_device_params device_params = {.device = 0};
	struct rm_group_params group_params = {.engine = RM_ENGINE_COPY2};
	uint32_t client, device, group;
	struct rm_preempt p = {0};
	struct owner a;

	use_gpus("4", FOR_EVER);
	owner_start(&a);
	client = allocate(a.fd, 0, 0, RM_CLASS_CLIENT, NULL, 0);
	assert_int_not_equal(client, a.rm);
	assert_int_equal(control(a.fd, client, a.groups[0].object, RM_GROUP_PREEMPT, &p, sizeof(p)),
			 RM_NOT_FOUND);
	/* Sizes of parameters that are left out are the class's. */
	device = allocate(a.fd, client, client, RM_CLASS_DEVICE, &device_params, 0);
	group = allocate(a.fd, client, device, RM_CLASS_CHANNEL_GROUP, &group_params, 0);
	assert_int_equal(control(a.fd, client, group, RM_GROUP_PREEMPT, &p, sizeof(p)), RM_OK);
	release(a.fd, client, device); /* with all below it */
	assert_int_equal(control(a.fd, client, group, RM_GROUP_PREEMPT, &p, sizeof(p)),
			 RM_NOT_FOUND);
	release(a.fd, client, client);
	assert_int_equal(control(a.fd, client, group, RM_GROUP_PREEMPT, &p, sizeof(p)),
			 RM_INVALID_CLIENT);
	release(a.fd, a.rm, a.rm);
	assert_int_equal(preempt(&a, a.groups[0].object), RM_INVALID_CLIENT);
	assert_string_equal(client_ask(&a.c, "add"), "right");
	owner_end(&a);
}

/* Return: the answer's status. */
static uint32_t exchange_raw(int fd, struct rm_packet *p) {
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} with = {0};
	struct iovec iov = {.iov_base = p, .iov_len = sizeof(*p)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &with,
			   .msg_controllen = sizeof(with)};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	with.head.cmsg_level = SOL_SOCKET;
	with.head.cmsg_type = SCM_RIGHTS;
	with.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&with.head), &pair[1], sizeof(pair[1]));
	assert_int_equal(sendmsg(fd, &m, 0), sizeof(*p));
	close(pair[1]);
	assert_int_equal(recv(pair[0], p, sizeof(*p), 0), sizeof(*p));
	close(pair[0]);
	assert_int_equal(p->error, 0);
	return ((struct rm_alloc *)(void *)p->arg)->status;
}

/* What no driver library sends. */
static void rude_packets_harm_nobody(void **state) {
	struct rm_alloc a = {.class = RM_CLASS_DEVICE};
	struct rm_packet packet = {.nr = RM_ALLOC_NR, .size = sizeof(a), .params_size = UINT32_MAX};
	struct owner o;
	int fd;

	use_gpus("4", FOR_EVER);
	owner_start(&o);
	fd = simgpu_control_open();
	assert_true(fd >= 0);
	a.client = a.parent = allocate(fd, 0, 0, RM_CLASS_CLIENT, NULL, 0);
	memcpy(packet.arg, &a, sizeof(a));
	for (size_t n = 1; n < sizeof(packet); n += 13) { /* too short, and nowhere to answer */
		assert_int_equal(send(fd, &packet, n, 0), n);
	}
	assert_int_equal(send(fd, &packet, sizeof(packet), 0), sizeof(packet));
	assert_int_equal(exchange_raw(fd, &packet), RM_INVALID_PARAM_STRUCT);
	assert_int_equal(send(fd, &packet, 0, 0), 0); /* as if it ended */
	close(fd);
	assert_string_equal(client_ask(&o.c, "add"), "right");
	assert_int_equal(preempt(&o, o.groups[0].object), RM_OK);
	owner_end(&o);
}

/* Whoever has no channel enabled has no turns, until one is. */
static void a_group_without_channels_stands_still(void **state) {
	struct owner a, b;

	use_gpus("1", "2050");
	owner_start(&a);
	owner_start(&b);
	client_ask(&a.c, "hold 2 1024");
	client_until(&a.c, "arrived", "2");
	assert_int_equal(disable(&a, true, 1), RM_OK); /* the other one is enabled */
	client_ask(&a.c, "release");
	assert_string_equal(client_ask(&a.c, "sync"), "0");
	assert_int_equal(disable(&a, true, 2), RM_OK);
	client_ask(&a.c, "hold 2 1024");
	client_ask(&b.c, "hold 2 1024");
	client_until(&b.c, "arrived", "2");
	assert_string_equal(client_ask(&a.c, "arrived"), "0");
	assert_int_equal(disable(&a, false, 2), RM_OK);
	client_until(&a.c, "arrived", "2");
	assert_int_equal(disable(&a, true, 2), RM_OK); /* in the middle of its kernel */
	client_ask(&b.c, "release");
	assert_string_equal(client_ask(&b.c, "sync"), "0");
	assert_int_equal(disable(&a, false, 2), RM_OK);
	client_ask(&a.c, "release");
	assert_string_equal(client_ask(&a.c, "sync"), "0");
	assert_string_equal(client_ask(&a.c, "add"), "right");
	owner_end(&b);
	assert_int_equal(disable(&a, true, 2), RM_OK);
	owner_end(&a);
}

static void bad_channels_are_refused(void **state) {
	struct rm_disable_channels p = {.disable = 1, .n = 1};
	uint32_t subdevice, channel;
	struct owner a;

	use_gpus("1", FOR_EVER);
	setenv("SIMGPU_DISABLE", "refused", 1);
	owner_start(&a);
	unsetenv("SIMGPU_DISABLE");
	assert_int_equal(disable(&a, true, 2), RM_NOT_SUPPORTED);
	owner_end(&a);
	assert_int_equal(simgpud_stop(), 0);
	owner_start(&a);
	sscanf(client_ask(&a.c, "channels"), "%x %x", &subdevice, &channel);
	p.clients[0] = a.rm;
	p.channels[0] = 0x1234;
	assert_int_equal(control(a.fd, a.rm, subdevice, RM_DISABLE_CHANNELS, &p, sizeof(p)),
			 RM_INVALID_ARGUMENT);
	p.channels[0] = channel;
	assert_int_equal(
		control(a.fd, a.rm, a.groups[0].object, RM_DISABLE_CHANNELS, &p, sizeof(p)),
		RM_NOT_SUPPORTED);
	assert_int_equal(control(a.fd, a.rm, subdevice, RM_DISABLE_CHANNELS, &p, 8),
			 RM_INVALID_PARAM_STRUCT);
	p.n = 65;
	assert_int_equal(control(a.fd, a.rm, subdevice, RM_DISABLE_CHANNELS, &p, sizeof(p)),
			 RM_INVALID_ARGUMENT);
	assert_string_equal(client_ask(&a.c, "add"), "right");
	owner_end(&a);
}

static void a_driver_may_refuse_to_preempt(void **state) {
	struct owner a;

	setenv("SIMGPU_PREEMPT", "refused", 1);
	use_gpus("1", FOR_EVER);
	owner_start(&a);
	unsetenv("SIMGPU_PREEMPT");
	client_ask(&a.c, "hold 1 32");
	client_until(&a.c, "arrived", "1");
	assert_int_equal(preempt(&a, a.groups[0].object), RM_NOT_SUPPORTED);
	assert_int_equal(gpu_state().preemptions, 0);
	client_ask(&a.c, "release");
	assert_string_equal(client_ask(&a.c, "sync"), "0");
	owner_end(&a);
}

/* ---- preemption ---- */

/* Both fill the GPU, and time slices never end. */
static void preempting_hands_the_gpu_over(void **state) {
	struct wire_gpu_state_reply g;
	struct owner a, b;

	use_gpus("1", FOR_EVER);
	owner_start(&a);
	owner_start(&b);
	client_ask(&a.c, "hold 2 1024");
	client_until(&a.c, "arrived", "2");
	client_ask(&b.c, "hold 2 1024");
	owner_preempt(&b); /* it is not its turn */
	assert_int_equal(preempt(&a, a.groups[1].object),
			 RM_OK); /* copies go on, and that is all */
	assert_string_equal(client_ask(&b.c, "arrived"), "0");
	assert_int_equal(gpu_state().preemptions, 0);

	owner_preempt(&a);
	client_until(&b.c, "arrived", "2");
	client_ask(&a.c, "release"); /* it cannot see that before its turn */
	assert_int_equal(gpu_state().turns, 2);
	owner_preempt(&b);
	assert_string_equal(client_ask(&a.c, "sync"), "0");
	client_ask(&b.c, "release");
	assert_string_equal(client_ask(&b.c, "sync"), "0");
	g = gpu_state();
	assert_int_equal(g.turns, 4);
	assert_int_equal(g.preemptions, 2);
	owner_end(&a);
	owner_end(&b);
}

/* A turn that never ends does once the group is scheduled with another time slice. */
static void a_time_slice_holds_once_scheduled(void **state) {
	struct rm_schedule on = {.enable = 1};
	struct rm_timeslice slice = {.us = 1000};
	struct owner a, b;
	uint32_t group;

	use_gpus("1", FOR_EVER);
	owner_start(&a);
	owner_start(&b);
	group = a.groups[0].object;
	client_ask(&a.c, "hold 2 1024");
	client_until(&a.c, "arrived", "2");
	client_ask(&b.c, "hold 2 1024");
	assert_int_equal(control(a.fd, a.rm, group, RM_GROUP_SET_TIMESLICE, &slice, sizeof(slice)),
			 RM_OK);
	slice.us = 0;
	assert_int_equal(control(a.fd, a.rm, group, RM_GROUP_GET_TIMESLICE, &slice, sizeof(slice)),
			 RM_OK);
	assert_int_equal(slice.us, 1000);
	assert_int_equal(gpu_state().turns, 1);
	assert_int_equal(control(a.fd, a.rm, group, RM_GROUP_SCHEDULE, &on, sizeof(on)), RM_OK);
	client_until(&b.c, "arrived", "2");
	client_ask(&b.c, "release");
	assert_string_equal(client_ask(&b.c, "sync"), "0");
	client_ask(&a.c, "release");
	assert_string_equal(client_ask(&a.c, "sync"), "0");
	assert_int_equal(gpu_state().preemptions, 0);
	owner_end(&a);
	owner_end(&b);
}

/* An urgent owner beside three that hold the GPU gets it after one preemption of each. */
static void preempting_all_below_lets_the_urgent_one_run(void **state) {
	struct owner low[3], urgent;

	use_gpus("2", FOR_EVER);
	for (unsigned i = 0; i < 3; i++) {
		owner_start(&low[i]);
		client_ask(&low[i].c, "hold 4 1024");
		if (i > 0) {
			owner_preempt(&low[i - 1]);
		}
		client_until(&low[i].c, "arrived", "4");
	}
	owner_start(&urgent);
	client_ask(&urgent.c, "hold 1 32");
	client_ask(&urgent.c, "release");
	owner_preempt(&low[2]); /* the urgent one's group is the next in the round */
	assert_string_equal(client_ask(&urgent.c, "sync"), "0");
	for (unsigned i = 0; i < 3; i++) { /* the first one has it, then the second, the third */
		client_ask(&low[i].c, "release");
		assert_string_equal(client_ask(&low[i].c, "sync"), "0");
		owner_end(&low[i]);
	}
	assert_int_equal(gpu_state().preemptions, 3);
	owner_end(&urgent);
}

static void preempting_under_mps_changes_nothing(void **state) {
	struct owner a;

	use_gpus("1:mps", FOR_EVER);
	owner_start(&a);
	client_ask(&a.c, "hold 1 32");
	client_until(&a.c, "arrived", "1");
	owner_preempt(&a);
	client_ask(&a.c, "release");
	assert_string_equal(client_ask(&a.c, "sync"), "0");
	assert_int_equal(gpu_state().preemptions, 0);
	owner_end(&a);
}

static bool has_answered(const struct client *c) {
	struct pollfd p = {.fd = fileno(c->out), .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* The calls that rm.h's library promises to be content with, and no other. */
static void enter_sandbox(void) {
#define ALLOW(number)                                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(number), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	static const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_newfstatat),
		ALLOW(SYS_sendmsg),
		ALLOW(SYS_recvmsg),
#ifdef SYS_poll
		ALLOW(SYS_poll),
#endif
		ALLOW(SYS_ppoll),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = {.len = sizeof(filter) / sizeof(*filter),
					   .filter = (struct sock_filter *)filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		_exit(2);
	}
}

/* In a child, which has the descriptor by fork; parent and child use it at once. */
static void a_sandbox_can_preempt(void **state) {
	struct wire_gpu_state_reply g;
	struct owner a;
	int status;
	pid_t pid;

	use_gpus("1", FOR_EVER);
	owner_start(&a);
	client_ask(&a.c, "hold 1 32");
	client_until(&a.c, "arrived", "1");
	pid = fork();
	if (pid == 0) {
		if (preempt(&a, a.groups[0].object) != RM_OK) {
			_exit(3);
		}
		enter_sandbox();
		for (unsigned i = 0; i < 200; i++) {
			if (preempt(&a, a.groups[0].object) != RM_OK) {
				_exit(4);
			}
		}
		syscall(SYS_exit_group, 0);
	}
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(preempt(&a, 0x1234), RM_NOT_FOUND);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	g = gpu_state();
	assert_true(g.preemptions > 0);
	client_ask(&a.c, "release");
	assert_string_equal(client_ask(&a.c, "sync"), "0");
	owner_end(&a);
}

/* Owners compute the same over and over, and whoever is not ready is preempted without a pause. */
static void storm(unsigned n) {
	char right[128], command[] = "churn 24";
	struct owner owners[4];

	use_gpus("2@5000khz", "2050"); /* slow: a kernel takes many turns */
	for (unsigned i = 0; i < n; i++) {
		owner_start(&owners[i]);
	}
	strcpy(right, client_ask(&owners[0].c, command));
	while (gpu_state().preemptions < 300) {
		unsigned ready = 0;

		for (unsigned i = 0; i < n; i++) {
			fprintf(owners[i].c.in, "%s\n", command);
			fflush(owners[i].c.in);
		}
		while (ready < n) {
			ready = 0;
			for (unsigned i = 0; i < n; i++) {
				ready += has_answered(&owners[i].c);
				owner_preempt(&owners[i]);
			}
		}
		for (unsigned i = 0; i < n; i++) {
			assert_string_equal(client_read(&owners[i].c), right);
			assert_string_equal(client_ask(&owners[i].c, "add"), "right");
		}
	}
	for (unsigned i = 0; i < n; i++) {
		owner_end(&owners[i]);
	}
	assert_int_equal(simgpud_stop(), 0);
}

static void results_are_exact_under_a_storm(void **state) {
	storm(1);
	storm(2);
	storm(4);
}

/* ---- death ---- */

static size_t free_bytes(struct client *c) {
	return strtoull(client_ask(c, "free"), NULL, 10);
}

/* One more group of the same context, whose number the test does not know. */
static uint32_t second_group(const struct owner *o) {
	struct rm_device_params device_params = {.device = 0};
	uint32_t device = allocate(o->fd, o->rm, o->rm, RM_CLASS_DEVICE, &device_params, 0);
	struct rm_group_params params = {.engine = RM_ENGINE_GRAPHICS};
	struct rm_alloc a = {.client = o->rm,
			     .parent = device,
			     .class = RM_CLASS_CHANNEL_GROUP,
			     .params = (uintptr_t)&params};

	do {
		params.va_space++;
		assert_int_equal(ioctl(o->fd, _IOWR(RM_TYPE, RM_ALLOC_NR, struct rm_alloc), &a), 0);
	} while (a.status == RM_INVALID_OBJECT_HANDLE);
	assert_int_equal(a.status, RM_OK);
	return a.object;
}

/* SMs come back by themselves; memory when the last descriptor is closed. */
static void a_held_descriptor_keeps_the_memory_of_the_dead(void **state) {
	struct owner a;
	struct client b;
	uint32_t second;
	size_t before;

	use_gpus("1", FOR_EVER);
	client_start(&b, NULL);
	before = free_bytes(&b);
	owner_start(&a);
	assert_string_equal(client_ask(&a.c, "alloc 1048576"), "0");
	client_ask(&a.c, "hold 2 1024");
	client_until(&a.c, "arrived", "2");
	second = second_group(&a);
	client_kill(&a.c);
	assert_string_equal(client_ask(&b, "add"), "right"); /* it has the SMs */
	owner_preempt(&a);				     /* both succeed, and do nothing */
	assert_int_equal(preempt(&a, second), RM_OK);
	assert_true(free_bytes(&b) <= before - 1048576);
	close(a.fd);
	while (free_bytes(&b) != before) {
	}
	client_end(&b, 0);
}

static void a_descriptor_is_useless_without_simgpud(void **state) {
	struct rm_control q = {0};
	struct owner a;

	use_gpus("1", FOR_EVER);
	owner_start(&a);
	assert_int_equal(simgpud_stop(), 0);
	assert_int_equal(ioctl(a.fd, _IOWR(RM_TYPE, RM_CONTROL_NR, struct rm_control), &q), -1);
	assert_int_equal(errno, EIO);
	owner_end(&a);
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_context_has_four_groups, end_case),
		cmocka_unit_test_teardown(groups_tell_their_gpu, end_case),
		cmocka_unit_test_teardown(without_the_library_there_are_none, end_case),
		cmocka_unit_test_teardown(bad_controls_are_refused, end_case),
		cmocka_unit_test_teardown(objects_form_a_tree_below_their_client, end_case),
		cmocka_unit_test_teardown(rude_packets_harm_nobody, end_case),
		cmocka_unit_test_teardown(a_driver_may_refuse_to_preempt, end_case),
		cmocka_unit_test_teardown(a_group_without_channels_stands_still, end_case),
		cmocka_unit_test_teardown(bad_channels_are_refused, end_case),
		cmocka_unit_test_teardown(preempting_hands_the_gpu_over, end_case),
		cmocka_unit_test_teardown(a_time_slice_holds_once_scheduled, end_case),
		cmocka_unit_test_teardown(preempting_all_below_lets_the_urgent_one_run, end_case),
		cmocka_unit_test_teardown(preempting_under_mps_changes_nothing, end_case),
		cmocka_unit_test_teardown(a_sandbox_can_preempt, end_case),
		cmocka_unit_test_teardown(results_are_exact_under_a_storm, end_case),
		cmocka_unit_test_teardown(a_held_descriptor_keeps_the_memory_of_the_dead, end_case),
		cmocka_unit_test_teardown(a_descriptor_is_useless_without_simgpud, end_case),
	};
	unsigned times = argc == 5 ? SLOW_TIMES : 1;
	char path[64];
	int r;

	if (argc < 4 || argc > 5 || !mkdtemp(dir)) {
		fprintf(stderr, "usage: test-groups CLIENT SIMGPUD LIBRARY [SIMGPUD-LIBRARY]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	/* The preloaded library comes before the sanitizer's, and calls nothing that it watches. */
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0);
	remote_init(argv[1], argv[2]);
	library = argv[3];
	simgpud_library = argv[4];
	if (simgpud_library) {
		cmocka_set_test_filter("preempting_*");
	}
	snprintf(share_path, sizeof(share_path), "%s/share", dir);
	setenv("SIMGPU_DIR", dir, 1);
	do {
		r = cmocka_run_group_tests_name("simgpu-groups", tests, NULL, NULL);
	} while (r == 0 && --times > 0);
	snprintf(path, sizeof(path), "%s/simgpud.lock", dir);
	unlink(path);
	rmdir(dir);
	return r;
}
