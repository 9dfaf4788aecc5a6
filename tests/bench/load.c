/*
 * load.c: see load.h.
 */
#include "load.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"

/* Grants that are read together, and so held together, before their jobs end. */
#define BATCH 64

static uint8_t buffer[PROTO_PACKET_MAX];

__attribute__((noreturn, format(printf, 1, 2))) static void wrong(const char *format, ...) {
	va_list args;

	va_start(args, format);
	fputs("load: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

bool load_raise_limit(size_t n) {
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
		return false;
	}
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= n;
}

void load_init(struct load *load, const char *const *args, size_t n, unsigned gpu, uint64_t most,
	       bool alone) {
	*load = (struct load){.n_clients = n,
			      .gpu = gpu,
			      .epoll = epoll_create1(EPOLL_CLOEXEC),
			      .most = most,
			      .alone = alone};
	load->clients = calloc(n, sizeof(*load->clients));
	load->seen = calloc(most + 1, 1);
	if (load->epoll < 0 || !load->clients || !load->seen) {
		bench_die("start");
	}
	bench_daemon_start(&load->daemon, args);
	for (size_t i = 0; i < n; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = &load->clients[i]};

		load->clients[i].fd = bench_session_open();
		if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, load->clients[i].fd, &event) < 0) {
			bench_die("epoll_ctl");
		}
	}
}

void load_deinit(struct load *load) {
	for (size_t i = 0; i < load->n_clients; i++) {
		struct load_client *client = &load->clients[i];

		if (client->n_asked != client->n_granted) {
			wrong("program %zu has asked %llu times and was granted %llu", i,
			      (unsigned long long)client->n_asked,
			      (unsigned long long)client->n_granted);
		}
		close(client->fd);
	}
	for (uint64_t i = 1; load->alone && i <= load->n_seen; i++) {
		if (!load->seen[i]) {
			wrong("no grant has the number %llu", (unsigned long long)i);
		}
	}
	close(load->epoll);
	free(load->clients);
	free(load->seen);
	bench_daemon_stop(&load->daemon);
}

static void send_message(const struct load_client *client, const Sbeet__ToDaemon *m) {
	uint8_t bytes[256];
	size_t n = protobuf_c_message_pack(&m->base, bytes);

	if (send(client->fd, bytes, n, MSG_NOSIGNAL) < 0) {
		bench_die("sending");
	}
}

static void ask(const struct load *load, struct load_client *client) {
	uint8_t uuid[PROTO_UUID_BYTES] = {(uint8_t)(load->gpu + 1)};
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	nsec_t now = nsec_now();

	request.job = ++client->n_asked;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = sizeof(uuid);
	request.release_ns = client->asked[request.job % LOAD_DEPTH] = now;
	request.enforcement_mask = BENCH_MASK;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	send_message(client, &m);
}

static void end(const struct load_client *client, uint64_t job) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	done.job = job;
	done.launches = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	send_message(client, &m);
}

/* The right one for this program, and one that nobody had before. */
static void check_grant(struct load *load, struct load_client *client, const Sbeet__Grant *grant,
			struct smset *held) {
	uint64_t number = grant->sequence;
	struct smset sms;

	if (grant->job != client->n_granted + 1 || grant->job > client->n_asked) {
		wrong("job %llu is granted after job %llu, of %llu asked for",
		      (unsigned long long)grant->job, (unsigned long long)client->n_granted,
		      (unsigned long long)client->n_asked);
	}
	if (number <= client->last) {
		wrong("grant %llu comes after grant %llu", (unsigned long long)number,
		      (unsigned long long)client->last);
	}
	if (load->alone && (number > load->most || load->seen[number]++)) {
		wrong("grant %llu is one too many", (unsigned long long)number);
	}
	if (smset_from_bytes(grant->sms.data, grant->sms.len, &sms) < 0 || smset_empty(&sms) ||
	    !smset_disjoint(&sms, held)) {
		wrong("grant %llu gives SMs that others hold, or none", (unsigned long long)number);
	}
	/* All wait all the time, and take turns. */
	if (load->passed_max && client->last && number - client->last > load->passed_max) {
		wrong("grant %llu comes to a program whose last one was grant %llu: it was passed "
		      "over",
		      (unsigned long long)number, (unsigned long long)client->last);
	}
	*held = smset_or(held, &sms);
	client->last = number;
}

/* Reads one grant. @held: SMs that jobs hold which have not ended, to which those of this one are
 * added. Return: from request to grant. */
static nsec_t take(struct load *load, struct load_client *client, struct smset *held) {
	int n = packet_receive(client->fd, buffer, NULL);
	ProtobufCMessage *m = NULL;

	if (n <= 0 || packet_unpack(&sbeet__to_shim__descriptor, buffer, (size_t)n, &m) < 0 ||
	    ((Sbeet__ToShim *)m)->body_case != SBEET__TO_SHIM__BODY_GRANT) {
		wrong("there is no grant where one should be");
	}
	check_grant(load, client, ((Sbeet__ToShim *)m)->grant, held);
	packet_free(m);
	load->n_seen++;
	client->n_granted++;
	return nsec_now() - client->asked[client->n_granted % LOAD_DEPTH];
}

/* Waits for grants, or the time of the next requests. Return: how many grants there are. */
static size_t wait_for_grants(struct load *load, struct load_client *granted[static BATCH]) {
	struct epoll_event events[BATCH];
	size_t n_granted = 0;
	uint64_t ticks;
	int n;

	do {
		n = epoll_wait(load->epoll, events, BATCH, -1);
	} while (n < 0 && errno == EINTR); /* stopped and continued */
	if (n < 0) {
		bench_die("epoll_wait");
	}
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr) {
			granted[n_granted++] = events[i].data.ptr;
		} else if (read(load->timer, &ticks, sizeof(ticks)) < 0) {
			bench_die("reading a timer");
		}
	}
	return n_granted;
}

/* Reads what grants there are, ends their jobs, and calls @each for those programs. Return: how
 * many. */
static size_t take_batch(struct load *load, nsec_t *times,
			 void (*each)(struct load *load, struct load_client *client)) {
	struct load_client *granted[BATCH];
	size_t n = wait_for_grants(load, granted);
	struct smset held = {0};

	for (size_t i = 0; i < n; i++) {
		times[i] = take(load, granted[i], &held);
	}
	for (size_t i = 0; i < n; i++) {
		end(granted[i], granted[i]->n_granted);
		if (each) {
			each(load, granted[i]);
		}
	}
	return n;
}

/* ---- everybody wants SMs ---- */

static size_t left; /* requests of this turn */

static void ask_again(struct load *load, struct load_client *client) {
	if (left > 0) {
		left--;
		ask(load, client);
	}
}

void load_press(struct load *load, size_t n, nsec_t *times) {
	size_t taken = 0;

	left = n;
	for (size_t i = 0; i < load->n_clients; i++) {
		load->clients[i].last = 0;
	}
	load->passed_max = 2 * load->n_clients + LOAD_DEPTH;
	for (size_t i = 0; i < load->n_clients * LOAD_DEPTH; i++) {
		ask_again(load, &load->clients[i % load->n_clients]);
	}
	while (taken < n) {
		if (left == 0) {
			load->passed_max = 0; /* no longer all wait */
		}
		taken += take_batch(load, times + taken, ask_again);
	}
}

/* ---- one at a time ---- */

void load_stroll(struct load *load, size_t n, nsec_t *times) {
	for (size_t i = 0; i < n; i++) {
		ask(load, &load->clients[i % load->n_clients]);
		take_batch(load, times + i, NULL);
	}
}

/* ---- at a given rate ---- */

static bool may_ask(const struct load *load, size_t i) {
	const struct load_client *next = &load->clients[i % load->n_clients];

	return next->n_asked - next->n_granted < LOAD_DEPTH;
}

static void start_timer(struct load *load) {
	const struct itimerspec every = {{.tv_nsec = LOAD_TICK}, {.tv_nsec = LOAD_TICK}};
	struct epoll_event event = {.events = EPOLLIN};

	load->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (load->timer < 0 || timerfd_settime(load->timer, 0, &every, NULL) < 0 ||
	    epoll_ctl(load->epoll, EPOLL_CTL_ADD, load->timer, &event) < 0) {
		bench_die("starting a timer");
	}
}

nsec_t load_pace(struct load *load, nsec_t interval, size_t n, nsec_t *times) {
	size_t asked = 0, taken = 0;
	nsec_t start = nsec_now();

	start_timer(load);
	while (taken < n) {
		nsec_t now = nsec_now();

		/* What is late comes at once, but what was granted is not left lying for long. */
		for (size_t burst = 0; asked < n && start + asked * interval <= now &&
				       burst < BATCH && may_ask(load, asked);
		     burst++) {
			struct load_client *client = &load->clients[asked % load->n_clients];

			ask(load, client);
			client->asked[client->n_asked % LOAD_DEPTH] = start + asked++ * interval;
		}
		taken += take_batch(load, times + taken, NULL);
	}
	close(load->timer);
	return nsec_now() - start;
}
