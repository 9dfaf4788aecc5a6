/*
 * bench-terms.c: what a job costs sbeetd that is told of it afterwards (policy steer), against one
 * that it is asked for (policy even): processor time, at 1,000 jobs a second of four programs.
 *
 * And the least that any process needs to take the same packets: a bare epoll and recv.
 *
 * All run all the time and have a hundred jobs in turns, so that what else the machine does hits
 * them alike. Each job is one packet where it is told of, and three where it is asked for. Jobs are
 * told of one by one, and five of a program together, as the shim does with short ones.
 *
 * Usage: bench-terms [SECONDS]
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/terms.h"

#define PROGRAMS 4
#define PAUSE_US 1000
#define TURN	 100

/* Jobs of one of the programs in the 20 ms for which the shim keeps accounts of short ones. */
#define BUNDLE 5

static uint8_t buffer[PROTO_PACKET_MAX];

struct side {
	struct bench_daemon daemon;
	int fds[PROGRAMS];
	unsigned bundle; /* accounts that a program sends together */
	uint64_t word;	 /* of the programs' page; 0: they ask */
	uint64_t job;
	nsec_t cpu;
};

static void send_or_die(int fd, const Sbeet__ToDaemon *m) {
	if (packet_send(fd, &m->base, -1) < 0) {
		bench_die("send");
	}
}

/* Says hello as a program that reads terms. Return: the word of its page, 0: there is none. */
static uint64_t open_program(int *ret_fd) {
	char terms[] = PROTO_FEATURE_TERMS, *features[] = {terms};
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	const struct terms_page *page;
	char path[PROTO_PATH_MAX];
	int page_fd = -1;

	packet_socket_path("shim.sock", path, sizeof(path));
	*ret_fd = packet_connect(path, 0);
	hello.version = PROTO_VERSION;
	hello.program = (char[]){"bench"};
	hello.enforcement_mask = BENCH_MASK;
	hello.features = features;
	hello.n_features = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	send_or_die(*ret_fd, &m);
	if (packet_receive(*ret_fd, buffer, &page_fd) <= 0 || page_fd < 0) {
		bench_die("welcome with a page");
	}
	page = mmap(NULL, sizeof(*page), PROT_READ, MAP_SHARED, page_fd, 0);
	close(page_fd);
	if (page == MAP_FAILED) {
		bench_die("mmap");
	}
	usleep(100000); /* at the end of its turn sbeetd writes the words */
	return atomic_load(&page->gpu[0].word);
}

static void start(struct side *s, const char *policy, unsigned bundle) {
	s->bundle = bundle;
	bench_daemon_start(&s->daemon,
			   (const char *[]){"--gpus", "8", "--sharing", "mps", "--log-level",
					    "warning", "--policy", policy, NULL});
	for (size_t i = 0; i < PROGRAMS; i++) {
		s->word = open_program(&s->fds[i]);
	}
}

static void tell(int fd, uint64_t job, uint64_t word, const ProtobufCBinaryData *uuid) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__Began began = SBEET__BEGAN__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	began.job = done.job = job;
	began.gpu_uuid = *uuid;
	began.release_ns = began.began_ns = done.granted_ns = nsec_now();
	done.finished_ns = nsec_now();
	done.launches = 1;
	began.terms = word;
	began.done = &done;
	m.body_case = SBEET__TO_DAEMON__BODY_BEGAN;
	m.began = &began;
	send_or_die(fd, &m);
}

static void ask(int fd, uint64_t job, const ProtobufCBinaryData *uuid) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	request.job = done.job = job;
	request.gpu_uuid = *uuid;
	request.release_ns = nsec_now();
	request.enforcement_mask = BENCH_MASK;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	send_or_die(fd, &m);
	if (packet_receive(fd, buffer, NULL) <= 0) {
		bench_die("grant");
	}
	done.granted_ns = done.finished_ns = nsec_now();
	done.launches = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	send_or_die(fd, &m);
}

/* Of the jobs that the program has had since the last time. */
static void tell_bundle(const struct side *s, int fd, const ProtobufCBinaryData *uuid) {
	uint64_t nth = (s->job - 1) / PROGRAMS + 1;

	for (unsigned i = 0; nth % s->bundle == 0 && i < s->bundle; i++) {
		tell(fd, s->job - (s->bundle - 1 - i) * PROGRAMS, s->word, uuid);
	}
}

static void turn(struct side *s) {
	uint8_t first[PROTO_UUID_BYTES] = {1};
	ProtobufCBinaryData uuid = {sizeof(first), first};
	nsec_t before = bench_cpu(s->daemon.pid), next = nsec_now();

	for (int i = 0; i < TURN; i++) {
		int fd = s->fds[s->job++ % PROGRAMS];

		if (s->word) {
			tell_bundle(s, fd, &uuid);
		} else {
			ask(fd, s->job, &uuid);
		}
		next += PAUSE_US * NSEC_PER_USEC;
		if (next > nsec_now()) {
			usleep((unsigned)((next - nsec_now()) / NSEC_PER_USEC));
		}
	}
	s->cpu += bench_cpu(s->daemon.pid) - before;
}

/* A process that takes packets and does nothing with them. */
static void start_bare(struct side *s) {
	struct epoll_event e = {.events = EPOLLIN};
	int fds[2], epoll;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) < 0) {
		bench_die("socketpair");
	}
	for (size_t i = 0; i < PROGRAMS; i++) {
		s->fds[i] = fds[0];
	}
	s->word = s->bundle = 1;
	s->daemon.pid = fork();
	if (s->daemon.pid > 0) {
		close(fds[1]);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fds[0]);
	epoll = epoll_create1(0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, fds[1], &e);
	while (epoll_wait(epoll, &e, 1, -1) >= 0 && recv(fds[1], buffer, sizeof(buffer), 0) > 0) {
	}
	_exit(0);
}

static double cpu_us(const struct side *s) {
	return (double)s->cpu / (double)s->job / NSEC_PER_USEC;
}

int main(int argc, char **argv) {
	int turns = (argc > 1 ? atoi(argv[1]) : 5) * 1000000 / PAUSE_US / TURN;
	struct side told = {0}, together = {0}, asked = {0}, bare = {0};

	start(&told, "steer", 1);
	start(&together, "steer", BUNDLE);
	start(&asked, "even", 1);
	start_bare(&bare);
	if (!told.word || asked.word) {
		fprintf(stderr, "sbeetd steers where it should not, or not where it should\n");
		return 1;
	}
	for (int i = 0; i < turns; i++) {
		turn(&told);
		turn(&together);
		turn(&asked);
		turn(&bare);
	}
	printf("{\"jobs\": %llu, \"told_cpu_us\": %.1f, \"together_cpu_us\": %.1f, "
	       "\"asked_cpu_us\": %.1f, \"bare_cpu_us\": %.1f, \"together_to_told\": %.2f, "
	       "\"told_to_asked\": %.3f, \"told_to_bare\": %.2f}\n",
	       (unsigned long long)told.job, cpu_us(&told), cpu_us(&together), cpu_us(&asked),
	       cpu_us(&bare), cpu_us(&together) / cpu_us(&told), cpu_us(&told) / cpu_us(&asked),
	       cpu_us(&told) / cpu_us(&bare));
	bench_daemon_stop(&told.daemon);
	bench_daemon_stop(&together.daemon);
	bench_daemon_stop(&asked.daemon);
	return 0;
}
