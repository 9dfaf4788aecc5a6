/*
 * server.c: simgpud's loop: clients' packets in, slices of simulated work, replies out.
 *
 * Pacing: virtual time is the monotonic clock, except that a busy GPU may fall behind it (the
 * interpreter is slower than a GPU) and never gets ahead of it: an event that is due later is
 * waited for. Unpaced, time starts at 0 and passes only by work.
 */
#include "tests/simgpu/server.h"

#include <cuda.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/simgpu/place.h"

/* How long simgpud stays when nobody is connected. */
#define SERVER_LINGER_NS 3000000000ull
/* Nobody came at all. */
#define SERVER_FIRST_NS 20000000000ull
/* How often it looks at values in memory that streams wait for. */
#define SERVER_LOOK_NS 1000000ull
/* Packets of one client in one round; then the others have their turn. */
#define SERVER_BURST 16

struct packet {
	struct packet *next;
	size_t n;
	uint8_t bytes[];
};

static uint64_t server_clock_ns(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* ---- sending ---- */

static void client_drop_output(struct client *c) {
	while (c->out) {
		struct packet *p = c->out;

		c->out = p->next;
		free(p);
	}
	c->out_last = &c->out;
	c->out_bytes = 0;
}

/* Return: whether it was sent. */
static bool client_try_send(struct client *c, const void *bytes, size_t n) {
	if (send(c->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
		return true;
	}
	if (errno != EAGAIN && errno != EINTR) {
		c->broken = true;
	}
	return false;
}

static void client_flush(struct client *c) {
	while (c->out && client_try_send(c, c->out->bytes, c->out->n)) {
		struct packet *p = c->out;

		c->out = p->next;
		c->out_bytes -= p->n;
		free(p);
	}
	if (!c->out) {
		c->out_last = &c->out;
	}
}

void client_send2(struct client *c, const void *head, size_t n, const void *data, size_t size) {
	struct packet *p;

	if (c->broken) {
		return;
	}
	p = c->out_bytes + n + size <= WIRE_UNREAD_MAX ? malloc(sizeof(*p) + n + size) : NULL;
	if (!p) {
		c->broken = true;
		return;
	}
	p->next = NULL;
	p->n = n + size;
	memcpy(p->bytes, head, n);
	if (size > 0) {
		memcpy(p->bytes + n, data, size);
	}
	*c->out_last = p;
	c->out_last = &p->next;
	c->out_bytes += p->n;
	client_flush(c);
}

void client_send(struct client *c, const void *packet, size_t n) {
	client_send2(c, packet, n, NULL, 0);
}

void client_reply(struct client *c, uint32_t id, int result) {
	struct wire_reply reply = {.h = {.type = WIRE_REPLY, .id = id}, .result = result};

	if (id) {
		client_send(c, &reply, sizeof(reply));
	} else if (result) {
		c->unasked = result;
	}
}

/* ---- receiving ---- */

/* Return: the connection, or -1. */
static int server_accept_from(int listen_fd, int *ret_pid) {
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0) {
		close(fd);
		return -1;
	}
	*ret_pid = cred.pid;
	return fd;
}

static void server_accept(struct server *s) {
	struct client *c;
	int pid, fd = server_accept_from(s->listen_fd, &pid);

	if (fd < 0) {
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->server = s;
	c->fd = fd;
	c->pid = pid;
	c->out_last = &c->out;
	c->host_last = &c->host_due;
	c->next = s->clients;
	s->clients = c;
	s->had_client = true;
}

/* Return: a packet was handled. */
static bool client_receive(struct client *c) {
	static _Alignas(16) uint8_t bytes[WIRE_PACKET_MAX];
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *h;
	ssize_t n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	int fd = -1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return false;
	}
	h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
		memcpy(&fd, CMSG_DATA(h), sizeof(fd));
	}
	if (n <= 0 || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		c->broken = true;
		if (fd >= 0) {
			close(fd);
		}
		return false;
	}
	ahead_pause(c->server->ahead);
	session_handle(c, bytes, (size_t)n, fd);
	ahead_resume(c->server->ahead);
	return true;
}

static bool client_is_heard(const struct client *c) {
	return !c->broken && c->out_bytes <= WIRE_UNREAD_PAUSE;
}

static void client_receive_burst(struct client *c) {
	for (int i = 0; i < SERVER_BURST && client_is_heard(c) && client_receive(c); i++) {
	}
}

static void server_accept_control(struct server *s) {
	int pid, fd = server_accept_from(s->control_fd, &pid);

	if (fd >= 0) {
		control_open(s, fd, pid);
	}
}

/* ---- the loop ---- */

static void server_drop_broken(struct server *s) {
	for (struct client **p = &s->clients; *p;) {
		struct client *c = *p;

		if (c->broken) {
			*p = c->next;
			client_drop_output(c);
			ahead_pause(s->ahead);
			client_free(c);
			ahead_resume(s->ahead);
			s->moved = true;
			s->alone_since_ns = server_clock_ns();
		} else {
			p = &c->next;
		}
	}
	for (struct control_file **p = &s->files; *p;) {
		struct control_file *f = *p;

		if (f->broken) {
			*p = f->next;
			ahead_pause(s->ahead);
			control_free(f);
			ahead_resume(s->ahead);
			s->alone_since_ns = server_clock_ns();
		} else {
			p = &f->next;
		}
	}
}

static bool server_awaits_value(const struct server *s) {
	for (unsigned i = 0; i < s->config.n_gpus; i++) {
		if (device_awaits_value(s->gpus[i].device)) {
			return true;
		}
	}
	return false;
}

/* After operations were done: waits that are over, streams that waited for events elsewhere. Values
 * in memory may have changed at any time. */
static void server_settle(struct server *s) {
	s->moved |= server_awaits_value(s);
	while (s->moved) {
		s->moved = false;
		for (unsigned i = 0; i < s->config.n_gpus; i++) {
			device_poke(s->gpus[i].device);
		}
		for (struct client *c = s->clients; c; c = c->next) {
			session_settle(c);
		}
	}
}

/* When the next simulated event is due, on the monotonic clock. */
static uint64_t server_next_ns(const struct server *s) {
	uint64_t next = DEVICE_NEVER;

	for (unsigned i = 0; i < s->config.n_gpus; i++) {
		uint64_t ns = device_next_ns(s->gpus[i].device);

		next = ns < next ? ns : next;
	}
	return next;
}

/* One event of each GPU that has one due. */
static void server_work(struct server *s) {
	uint64_t now = s->paced ? server_clock_ns() : DEVICE_NEVER - 1;

	for (unsigned i = 0; i < s->config.n_gpus; i++) {
		struct device *d = s->gpus[i].device;

		if (s->paced) {
			device_pass(d, now);
		}
		if (device_next_ns(d) <= now) {
			device_step(d);
			if (s->gpus[i].faulty) {
				ahead_pause(s->ahead);
				exec_settle_faults(&s->gpus[i]);
				ahead_resume(s->ahead);
			}
		}
	}
}

/* Milliseconds that poll() may sleep; 0: there is work. */
static int server_timeout_ms(struct server *s) {
	uint64_t now = server_clock_ns(), next = server_next_ns(s), until;

	if (next != DEVICE_NEVER && (!s->paced || next <= now)) {
		return 0;
	}
	until = s->alone_since_ns + (s->had_client ? SERVER_LINGER_NS : SERVER_FIRST_NS);
	if (!s->clients && !s->files && now >= until) {
		s->stop = true;
		return 0;
	}
	if (s->clients || s->files) {
		until = DEVICE_NEVER;
	}
	if (server_awaits_value(s) && now + SERVER_LOOK_NS < until) {
		until = now + SERVER_LOOK_NS;
	}
	until = next < until ? next : until;
	if (until == DEVICE_NEVER) {
		return -1;
	}
	/* Below a millisecond poll() cannot wait: the rest is spent looking. */
	return (int)((until - now) / 1000000);
}

/* Before anybody is heard: who asks or submits does so now, not when the last event was. */
static void server_pass(struct server *s) {
	for (unsigned i = 0; s->paced && i < s->config.n_gpus; i++) {
		device_pass(s->gpus[i].device, server_clock_ns());
	}
}

/* Reads what has come: @fds as server_poll() made it. What clients sent before an ioctl comes
 * before it. So files take one packet: one that poll() did not see may have come behind a client's.
 */
static void server_hear(struct server *s, const struct pollfd *fds, size_t n_files) {
	const struct pollfd *file = fds + 2, *client = file + n_files;

	for (struct client *c = s->clients; c; c = c->next, client++) {
		if (client->revents & POLLOUT) {
			client_flush(c);
		}
		if (client->revents & (POLLIN | POLLHUP | POLLERR)) {
			client_receive_burst(c);
		}
	}
	for (struct control_file *f = s->files; f; f = f->next, file++) {
		if (file->revents) {
			control_receive(f);
		}
	}
	if (fds[0].revents & POLLIN) {
		server_accept(s);
	}
	if (fds[1].revents & POLLIN) {
		server_accept_control(s);
	}
}

/* Waits for clients or the next event, and reads what has come. Return: 0 or negative errno. */
static int server_poll(struct server *s) {
	struct pollfd *fds;
	size_t n = 2, n_files = 0;
	int r;

	for (struct client *c = s->clients; c; c = c->next) {
		n++;
	}
	for (struct control_file *f = s->files; f; f = f->next) {
		n_files++;
	}
	n += n_files;
	fds = calloc(n, sizeof(*fds));
	if (!fds) {
		return -ENOMEM;
	}
	fds[0] = (struct pollfd){.fd = s->listen_fd, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = s->control_fd, .events = POLLIN};
	n = 2;
	/* poll() looks at one after the other, and may be held up in between: files first, so that
	 * a launch is seen if the ioctl that was sent after it is. */
	for (struct control_file *f = s->files; f; f = f->next) {
		fds[n++] = (struct pollfd){.fd = f->fd, .events = POLLIN};
	}
	for (struct client *c = s->clients; c; c = c->next) {
		fds[n++] = (struct pollfd){.fd = c->fd,
					   .events = (short)((client_is_heard(c) ? POLLIN : 0) |
							     (c->out ? POLLOUT : 0))};
	}
	r = poll(fds, n, server_timeout_ms(s));
	server_pass(s);
	if (r > 0) {
		server_hear(s, fds, n_files);
	}
	free(fds);
	return 0;
}

int server_run(struct server *s) {
	int r = ahead_new(&s->ahead, s->n_threads > 1 ? s->n_threads - 1 : 0,
			  SERVER_SLICE_INSTRUCTIONS);

	s->alone_since_ns = server_clock_ns();
	while (r >= 0 && !s->stop) {
		r = server_poll(s);
		if (r == 0) {
			server_drop_broken(s);
			server_work(s);
			server_settle(s);
		}
	}
	return r;
}

/* ---- beginning and end ---- */

/* @ret: also on errors, to be closed if it is not -1. */
static int server_listen(const char *path, int *ret) {
	struct sockaddr_un addr = place_address(path);

	*ret = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*ret < 0) {
		return -errno;
	}
	/* Who starts simgpud holds the lock beside the socket: one that is left over is dead. */
	(void)unlink(path);
	if (bind(*ret, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(*ret, 128) < 0) {
		return -errno;
	}
	return 0;
}

static int server_add_gpu(struct server *s, unsigned i) {
	struct gpu *g = &s->gpus[i];
	int r;

	g->server = s;
	g->index = i;
	g->config = &s->config.gpus[i];
	r = memory_init(&g->memory, WIRE_DEVICE_BASE(i), g->config->memory_bytes);
	if (r < 0) {
		return r;
	}
	return device_new(&g->device, &g->config->device, s->paced ? server_clock_ns() : 0,
			  &exec_backend, g);
}

/* Return: 0 or negative errno with @error. */
static int server_configure(struct server *s, const struct server_options *o, char *error,
			    size_t error_size) {
	int r = config_parse(o->gpus, &s->config, error, error_size);

	if (r < 0) {
		return r;
	}
	if (config_parse_place(o->place ? o->place : "", &s->config) < 0) {
		snprintf(error, error_size,
			 "SIMGPU_PLACE: '%s' is no placement: expected adversarial:SEED with a "
			 "seed from 1 on",
			 o->place);
		return -EINVAL;
	}
	if (config_parse_slice(o->slice ? o->slice : "", &s->config) < 0) {
		snprintf(error, error_size,
			 "SIMGPU_SLICE: '%s' is no time slice: expected microseconds from %d to %d",
			 o->slice, CONFIG_SLICE_MIN_US, CONFIG_SLICE_MAX_US);
		return -EINVAL;
	}
	if (config_parse_host_rate(o->host_rate ? o->host_rate : "", &s->config) < 0) {
		snprintf(
			error, error_size,
			"SIMGPU_HOST_RATE: '%s' is no rate: expected bytes a millisecond from 1 to "
			"%d",
			o->host_rate, CONFIG_HOST_RATE_MAX);
		return -EINVAL;
	}
	snprintf(s->config_text, sizeof(s->config_text), "%s", o->gpus);
	return 0;
}

int server_init(struct server *s, const struct server_options *o, char *error, size_t error_size) {
	int r;

	*s = (struct server){.listen_fd = -1, .control_fd = -1, .paced = o->paced};
	r = server_configure(s, o, error, error_size);
	if (r < 0) {
		return r;
	}
	if (o->trace_path) {
		r = trace_new(&s->trace, o->trace_path, &s->config);
		if (r < 0) {
			snprintf(error, error_size, "SIMGPU_TRACE: cannot open %s: %s",
				 o->trace_path, strerror(-r));
			return r;
		}
	}
	for (unsigned i = 0; i < s->config.n_gpus; i++) {
		r = server_add_gpu(s, i);
		if (r < 0) {
			snprintf(error, error_size, "cannot make GPU %u: %s", i, strerror(-r));
			return r;
		}
	}
	/* The one that clients wait for comes last. */
	r = server_listen(o->control_path, &s->control_fd);
	if (r == 0) {
		r = server_listen(o->socket_path, &s->listen_fd);
	}
	if (r < 0) {
		snprintf(error, error_size, "cannot listen beside %s: %s", o->socket_path,
			 strerror(-r));
	}
	return r;
}

void server_deinit(struct server *s) {
	/* The end of its connection tells --stop that all is done. */
	s->trace = trace_free(s->trace);
	for (struct client *c = s->clients; c; c = c->next) {
		c->broken = true;
	}
	for (struct control_file *f = s->files; f; f = f->next) {
		f->broken = true;
	}
	server_drop_broken(s);
	for (unsigned i = 0; i < s->config.n_gpus; i++) {
		device_free(s->gpus[i].device);
		memory_deinit(&s->gpus[i].memory);
	}
	if (s->listen_fd >= 0) {
		close(s->listen_fd);
	}
	if (s->control_fd >= 0) {
		close(s->control_fd);
	}
	s->ahead = ahead_free(s->ahead);
}
