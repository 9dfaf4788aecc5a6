/*
 * bench-grant.c: from Request to Grant on an idle sbeetd, against the least that two processes can
 * do with the same packets: a bare SOCK_SEQPACKET and epoll ping-pong.
 *
 * Both are measured in turns of a few hundred round trips, so that what else the machine does hits
 * both alike, and with the processes pinned in the same way: on one CPU, where every instruction of
 * the other side counts, and on two, where waking the other CPU counts most. Between two requests
 * the daemon has dealt with the end of the job before. Then from the end of a job to the Grant of
 * one that waits for its SMs: an upper bound of when they are in the daemon's hands again. Prints
 * two lines of JSON a placement.
 *
 * Real programs ask every few milliseconds, and by then the other side's CPU sleeps: "paced" asks
 * both sides after pauses of 3 to 20 ms, not pinned, the asking thread awake as one that prepares
 * its next launch. What is beyond the ping-pong's time there is what the daemon adds.
 *
 * Usage: bench-grant [ROUND_TRIPS [PACED [SBEETD-OPTIONS...]]]
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

#define TURN 200 /* round trips of one kind before the other has its turn */

/* Between two requests of a program that does inference or training. */
#define PAUSE_MIN_NS (3 * NSEC_PER_MSEC)
#define PAUSE_MAX_NS (20 * NSEC_PER_MSEC)
#define PACED	     300 /* some 7 s */

static uint8_t buffer[PROTO_PACKET_MAX];

static size_t pack_request(uint64_t job, uint8_t *bytes) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	uint8_t uuid[PROTO_UUID_BYTES] = {1};

	request.job = job;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = sizeof(uuid);
	request.release_ns = nsec_now();
	request.enforcement_mask = BENCH_MASK;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	request.kernel = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	return protobuf_c_message_pack(&m.base, bytes);
}

static void send_done(int fd, uint64_t job) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	done.job = job;
	done.launches = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	if (packet_send(fd, &m.base, -1) < 0) {
		bench_die("send");
	}
	bench_wait_until_read(fd);
}

/* One round trip. Returns the time; the answer's length in @ret_n. */
static nsec_t round_trip(int fd, const uint8_t *bytes, size_t n, size_t *ret_n) {
	nsec_t start = nsec_now();
	ssize_t r;

	if (send(fd, bytes, n, MSG_NOSIGNAL) < 0 ||
	    (r = recv(fd, buffer, sizeof(buffer), 0)) <= 0) {
		bench_die("round trip");
	}
	*ret_n = (size_t)r;
	return nsec_now() - start;
}

static void check_grant(size_t n) {
	ProtobufCMessage *m;

	if (packet_unpack(&sbeet__to_shim__descriptor, buffer, n, &m) < 0 ||
	    ((Sbeet__ToShim *)m)->body_case != SBEET__TO_SHIM__BODY_GRANT) {
		bench_die("no grant");
	}
	packet_free(m);
}

/* First byte of a packed JobDone: the field's number and wire type. */
#define DONE_TAG (SBEET__TO_DAEMON__BODY_DONE << 3 | 2)

/* The other end of the ping-pong: waits, reads, answers with @n bytes; the end of a job has no
 * answer there either. */
static void pong(int fd, size_t n) {
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(0);
	uint8_t *answer = calloc(1, n);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	while (epoll_wait(epoll, &event, 1, -1) == 1 && recv(fd, buffer, sizeof(buffer), 0) > 0 &&
	       (buffer[0] == DONE_TAG || send(fd, answer, n, MSG_NOSIGNAL) > 0)) {
	}
	_exit(0);
}

static int start_pong(size_t n) {
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		bench_die("socketpair");
	}
	switch (fork()) {
	case -1:
		bench_die("fork");
	case 0:
		close(fds[0]);
		pong(fds[1], n);
	}
	close(fds[1]);
	return fds[0];
}

/* This process and those that it starts from now on. */
static void pin_to(int cpu) {
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0) {
		bench_die("sched_setaffinity");
	}
}

struct samples {
	nsec_t *grant, *bare; /* n each, rounded up to turns */
	size_t n;
};

static void measure(int fd, int pong_fd, struct samples *samples) {
	uint64_t job = 1;
	uint8_t bytes[256];
	size_t n_answer;

	for (size_t i = 0; i < samples->n; i += TURN) {
		for (size_t j = i; j < i + TURN; j++) {
			size_t n = pack_request(++job, bytes);

			samples->grant[j] = round_trip(fd, bytes, n, &n_answer);
			check_grant(n_answer);
			send_done(fd, job);
		}
		for (size_t j = i; j < i + TURN; j++) {
			size_t n = pack_request(job, bytes);

			samples->bare[j] = round_trip(pong_fd, bytes, n, &n_answer);
			send_done(pong_fd, job);
		}
	}
}

/* Not the sleeping kind: the thread that asks comes from work. */
static void pause_awake(unsigned *seed) {
	nsec_t end =
		nsec_now() + PAUSE_MIN_NS + (nsec_t)rand_r(seed) % (PAUSE_MAX_NS - PAUSE_MIN_NS);

	while (nsec_now() < end) {
	}
}

static void measure_paced(int fd, int pong_fd, struct samples *samples) {
	unsigned seed = 1;
	uint8_t bytes[256];
	size_t n_answer;

	for (size_t i = 0; i < samples->n; i++) {
		uint64_t job = i + 2;

		pause_awake(&seed);
		samples->grant[i] = round_trip(fd, bytes, pack_request(job, bytes), &n_answer);
		check_grant(n_answer);
		pause_awake(&seed);
		send_done(fd, job);
		pause_awake(&seed);
		samples->bare[i] = round_trip(pong_fd, bytes, pack_request(job, bytes), &n_answer);
	}
}

static void print_line(const char *bench, int n_cpus, struct samples *samples) {
	nsec_t grant = bench_quantile(samples->grant, samples->n, 50);
	nsec_t bare = bench_quantile(samples->bare, samples->n, 50);

	printf("{\"bench\":\"%s\",\"cpus\":%d,\"median_ns\":%llu,\"pingpong_median_ns\":%llu,"
	       "\"ratio\":%.2f,\"p99_ns\":%llu,\"pingpong_p99_ns\":%llu,\"round_trips\":%zu}\n",
	       bench, n_cpus, (unsigned long long)grant, (unsigned long long)bare,
	       (double)grant / (double)bare,
	       (unsigned long long)bench_quantile(samples->grant, samples->n, 99),
	       (unsigned long long)bench_quantile(samples->bare, samples->n, 99), samples->n);
}

static void expect_grant(int fd) {
	ssize_t n = recv(fd, buffer, sizeof(buffer), 0);

	if (n <= 0) {
		bench_die("grant");
	}
	check_grant((size_t)n);
}

/* Two sessions hand all SMs to each other: the end of one's job is the other's grant. */
static void run_handover(int client_cpu, int server_cpu, struct samples *samples) {
	static const char *const args[] = {"--gpus",	  "80",	   "--policy", "fcfs",
					   "--log-level", "error", NULL};
	struct bench_daemon daemon;
	uint8_t bytes[256];
	size_t n_answer, n = samples->n;
	int fds[2];

	pin_to(server_cpu);
	bench_daemon_start(&daemon, args);
	fds[0] = bench_session_open();
	fds[1] = bench_session_open();
	pin_to(client_cpu);
	round_trip(fds[0], bytes, pack_request(1, bytes), &n_answer);
	check_grant(n_answer);
	for (size_t i = 0; i < n; i++) {
		int holder = fds[i % 2], waiter = fds[(i + 1) % 2];
		nsec_t start;

		if (send(waiter, bytes, pack_request(i + 2, bytes), MSG_NOSIGNAL) < 0) {
			bench_die("request");
		}
		bench_wait_until_read(waiter);
		start = nsec_now();
		send_done(holder, i + 1);
		expect_grant(waiter);
		samples->grant[i] = nsec_now() - start;
	}
	close(fds[0]);
	close(fds[1]);
	bench_daemon_stop(&daemon);
	printf("{\"bench\":\"handover\",\"cpus\":%d,\"median_ns\":%llu,\"p99_ns\":%llu,"
	       "\"round_trips\":%zu}\n",
	       client_cpu == server_cpu ? 1 : 2,
	       (unsigned long long)bench_quantile(samples->grant, n, 50),
	       (unsigned long long)bench_quantile(samples->grant, n, 99), n);
}

/* Client on @client_cpu, daemon and ping-pong on @server_cpu. */
static void run(int client_cpu, int server_cpu, struct samples *samples) {
	static const char *const args[] = {"--gpus", "80", "--log-level", "error", NULL};
	struct bench_daemon daemon;
	uint8_t bytes[256];
	size_t n_grant;
	int fd, pong_fd;

	pin_to(server_cpu);
	bench_daemon_start(&daemon, args);
	fd = bench_session_open();
	round_trip(fd, bytes, pack_request(1, bytes), &n_grant);
	check_grant(n_grant);
	send_done(fd, 1);
	pong_fd = start_pong(n_grant);
	pin_to(client_cpu);
	measure(fd, pong_fd, samples);
	close(pong_fd);
	close(fd);
	bench_daemon_stop(&daemon);
	print_line("grant", client_cpu == server_cpu ? 1 : 2, samples);
}

/* Wherever the kernel puts the processes. @options: of sbeetd. */
static void run_paced(const cpu_set_t *usable, char **options, struct samples *samples) {
	const char *args[12] = {"--gpus", "80", "--log-level", "error"};
	struct bench_daemon daemon;
	uint8_t bytes[256];
	size_t n_grant;
	int fd, pong_fd;

	for (size_t i = 4; options && *options && i < 11; i++) {
		args[i] = *options++;
	}
	sched_setaffinity(0, sizeof(*usable), usable);
	bench_daemon_start(&daemon, args);
	fd = bench_session_open();
	round_trip(fd, bytes, pack_request(1, bytes), &n_grant);
	check_grant(n_grant);
	send_done(fd, 1);
	pong_fd = start_pong(n_grant);
	measure_paced(fd, pong_fd, samples);
	close(pong_fd);
	close(fd);
	bench_daemon_stop(&daemon);
	print_line("paced", CPU_COUNT(usable), samples);
}

int main(int argc, char **argv) {
	int64_t n_trips = 20000, n_paced = PACED;
	struct samples samples;
	cpu_set_t usable;
	int first = 0, second;

	for (int i = 1; i < argc && i < 3; i++) {
		if (units_parse_int(argv[i], 1, 10000000, i == 1 ? &n_trips : &n_paced) < 0) {
			fprintf(stderr, "bench-grant: '%s' is not a number of round trips\n",
				argv[i]);
			return 2;
		}
	}
	samples.n = ((size_t)n_trips + TURN - 1) / TURN * TURN;
	samples.grant = calloc(samples.n, sizeof(nsec_t));
	samples.bare = calloc(samples.n, sizeof(nsec_t));
	if (!samples.grant || !samples.bare || sched_getaffinity(0, sizeof(usable), &usable) < 0) {
		bench_die("start");
	}
	while (!CPU_ISSET(first, &usable)) {
		first++;
	}
	for (second = first + 1; second < CPU_SETSIZE && !CPU_ISSET(second, &usable); second++) {
	}
	run(first, first, &samples);
	run_handover(first, first, &samples);
	if (second < CPU_SETSIZE) {
		run(first, second, &samples);
		run_handover(first, second, &samples);
		samples.n = (size_t)n_paced < samples.n ? (size_t)n_paced : samples.n;
		run_paced(&usable, argc > 3 ? argv + 3 : NULL, &samples);
	}
	free(samples.grant);
	free(samples.bare);
	return 0;
}
