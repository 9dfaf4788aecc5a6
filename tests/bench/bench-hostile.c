/*
 * bench-hostile.c: what a client that misbehaves does to others.
 *
 * Well-behaved programs take turns on GPU 1 while one process does something else to sbeetd, on GPU
 * 0 where it needs one, so that it takes nothing of theirs but the daemon's time. Their time from
 * request to grant is compared with that beside a process that burns as much processor as it can
 * without sbeetd, and with that of the programs alone: a hostile process that has to wait itself
 * leaves them as alone, and then CPUs fall asleep between two requests, whose waking takes longer
 * than a grant. All are measured in turns, the others stopped. Each grant is checked: see load.h.
 * Prints a JSON line for each kind.
 *
 * Usage: bench-hostile [check|KIND...]      check: correctness alone, and nothing about time
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.pb-c.h"
#include "load.h"
#include "proto/limits.h"
#include "proto/packet.h"

#define TURNS	    40
#define TRIPS	    2000 /* a turn */
#define CHECK_TURNS 1
#define NICE	    (-10) /* as an administrator may give it; the unit does not */
#define DESCRIPTORS 4096
#define IDLE	    4000
#define METRICS	    "/tmp/sbeet-bench-metrics.sock"
#define SKIPPED	    77

static uint8_t buffer[PROTO_PACKET_MAX];

/* ---- what a hostile process does, again and again ---- */

static size_t pack_request(uint64_t job, uint8_t *bytes) {
	uint8_t uuid[PROTO_UUID_BYTES] = {1};
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	request.job = job;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = sizeof(uuid);
	request.enforcement_mask = BENCH_MASK;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	return protobuf_c_message_pack(&m.base, bytes);
}

/* The processor, and the kernel's sockets, but not sbeetd. */
static void burn(void) {
	static int pair[2];
	uint8_t bytes[128];

	if (pair[0] == pair[1] && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0) {
		bench_die("socketpair");
	}
	if (send(pair[0], bytes, pack_request(1, bytes), 0) < 0 ||
	    recv(pair[1], buffer, sizeof(buffer), 0) < 0) {
		bench_die("talking to myself");
	}
}

/* The same, each time as another process. */
static void burn_as_another(void) {
	pid_t pid = fork();

	if (pid < 0) {
		bench_die("fork");
	}
	if (pid == 0) {
		burn();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static int reopened = -1; /* its connection; gone at times */

static int connection(void) {
	if (reopened < 0) {
		reopened = bench_session_open();
	}
	return reopened;
}

/* Sends, without waiting for room; over a new connection next time if this one is closed. */
static void throw(const uint8_t *bytes, size_t n) {
	if (send(connection(), bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) {
		close(reopened);
		reopened = -1;
	}
}

/* Every request has an answer (there is such a job already), which is never read. */
static void never_read(void) {
	uint8_t bytes[128];

	throw(bytes, pack_request(1, bytes));
}

static void send_garbage(void) {
	uint8_t bytes[512];

	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)rand();
	}
	throw(bytes, sizeof(bytes));
}

/* As many requests as it may have, and more; what it is granted it keeps until the end of the
 * round. */
static void flood(void) {
	static uint64_t job;
	uint8_t bytes[128];

	throw(bytes, pack_request(++job, bytes));
	while (reopened >= 0 && recv(reopened, buffer, sizeof(buffer), MSG_DONTWAIT) > 0) {
	}
	if (job % (4ull * PROTO_JOBS_PER_SESSION) == 0) {
		close(reopened);
		reopened = -1;
	}
}

static void come_and_go(void) {
	close(bench_session_open());
}

/* Each time as another process. */
static void come_as_another(void) {
	pid_t pid = fork();

	if (pid < 0) {
		bench_die("fork");
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(bench_session_open());
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* Connects, says nothing, goes. */
static void knock(void) {
	char path[PROTO_PATH_MAX];
	int fd;

	packet_socket_path("shim.sock", path, sizeof(path));
	fd = packet_connect(path, 0);
	if (fd < 0) {
		bench_die("connecting");
	}
	close(fd);
}

/* A Hello with as many jobs that run and that have ended as one may name. There are none of them. */
static size_t pack_claims(uint8_t *bytes) {
	static Sbeet__JobDone ended[PROTO_JOBS_PER_SESSION], *ended_list[PROTO_JOBS_PER_SESSION];
	static Sbeet__Held held[PROTO_JOBS_PER_SESSION], *held_list[PROTO_JOBS_PER_SESSION];
	uint8_t uuid[PROTO_UUID_BYTES] = {1}, sms = 1;
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	for (size_t i = 0; i < PROTO_JOBS_PER_SESSION; i++) {
		sbeet__held__init(&held[i]);
		held[i].job = i + 1;
		held[i].gpu_uuid.data = uuid;
		held[i].gpu_uuid.len = sizeof(uuid);
		held[i].sms.data = &sms;
		held[i].sms.len = sizeof(sms);
		held[i].enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_SMID;
		held[i].enforcement_mask = BENCH_MASK;
		held_list[i] = &held[i];
		sbeet__job_done__init(&ended[i]);
		ended[i].job = 1000 + i;
		ended_list[i] = &ended[i];
	}
	hello.version = PROTO_VERSION;
	hello.program = (char[]){"bench"};
	hello.enforcement_mask = BENCH_MASK;
	hello.held = held_list;
	hello.ended = ended_list;
	hello.n_held = hello.n_ended = PROTO_JOBS_PER_SESSION;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	return protobuf_c_message_pack(&m.base, bytes);
}

/* Connects with those, and goes when it was welcomed, or refused. */
static void claim(void) {
	static uint8_t bytes[PROTO_PACKET_MAX];
	static size_t n;
	char path[PROTO_PATH_MAX];
	int fd;

	n = n > 0 ? n : pack_claims(bytes);
	packet_socket_path("shim.sock", path, sizeof(path));
	fd = packet_connect(path, 0);
	if (fd < 0) {
		bench_die("connecting");
	}
	if (send(fd, bytes, n, MSG_NOSIGNAL) > 0) {
		recv(fd, buffer, sizeof(buffer), 0);
	}
	close(fd);
}

/* Each time as another process. */
static void claim_as_another(void) {
	pid_t pid = fork();

	if (pid < 0) {
		bench_die("fork");
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		claim();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static int control = -1; /* its connection to the other socket */

/* Asks, and reads what answers there are without waiting for them. */
static void ask_control(Sbeet__Control__Request *request) {
	char path[PROTO_PATH_MAX];

	if (control < 0) {
		packet_socket_path("control.sock", path, sizeof(path));
		control = packet_connect(path, 0);
		if (control < 0) {
			bench_die("connecting");
		}
	}
	if (packet_send(control, &request->base, -1) < 0) {
		close(control);
		control = -1;
		return;
	}
	while (recv(control, buffer, sizeof(buffer), MSG_DONTWAIT) > 0) {
	}
}

static void ask_status(void) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__StatusRequest status = SBEET__CONTROL__STATUS_REQUEST__INIT;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_STATUS;
	request.status = &status;
	ask_control(&request);
}

static void ask_why(void) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__ExplainRequest explain = SBEET__CONTROL__EXPLAIN_REQUEST__INIT;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_EXPLAIN;
	request.explain = &explain;
	ask_control(&request);
}

/* Wants to be told of everything, waits until it is told what there is, and goes. */
static void watch(void) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__EventsRequest events = SBEET__CONTROL__EVENTS_REQUEST__INIT;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_EVENTS;
	request.events = &events;
	ask_control(&request);
	if (control >= 0) {
		recv(control, buffer, sizeof(buffer), 0);
		close(control);
		control = -1;
	}
}

static void scrape(void) {
	static const char get[] = "GET /metrics HTTP/1.1\r\n\r\n";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", METRICS);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		bench_die("connecting");
	}
	if (send(fd, get, sizeof(get) - 1, MSG_NOSIGNAL) > 0) {
		while (recv(fd, buffer, sizeof(buffer), 0) > 0) {
		}
	}
	close(fd);
}

static const struct kind {
	const char *name;
	void (*act)(void);
	size_t n_victims;
	void (*burn)(void); /* what is compared with it; NULL: burn() */
	size_t n_idle;	    /* sessions that are there, and do nothing */
} kinds[] = {
	{"never-read", never_read, 10},
	{"garbage", send_garbage, 10},
	{"flood", flood, 10},
	{"come-and-go", come_and_go, 10},
	{"come-as-another", come_as_another, 10, burn_as_another},
	{"knock", knock, 10},
	{"status", ask_status, 10},
	{"status-1000", ask_status, 1000},
	{"explain", ask_why, 10},
	{"watch", watch, 10},
	{"watch-1000", watch, 1000},
	{"scrape", scrape, 10},
	{"claim-4000", claim, 10, NULL, IDLE},
	{"claim-as-another-4000", claim_as_another, 10, burn_as_another, IDLE},
};

/* ---- beside whom others work ---- */

static pid_t start_acting(void (*act)(void)) {
	pid_t pid = fork();

	if (pid < 0) {
		bench_die("fork");
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		raise(SIGSTOP);
		for (;;) {
			act();
		}
	}
	/* It stops itself. */
	if (waitpid(pid, NULL, WUNTRACED) != pid) {
		bench_die("waiting for a process to stop");
	}
	return pid;
}

static void stop_acting(pid_t pid) {
	int status;

	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || WTERMSIG(status) != SIGKILL) {
		fprintf(stderr, "bench-hostile: the hostile process has ended by itself\n");
		exit(1);
	}
}

static void stroll_beside(struct load *load, pid_t pid, nsec_t *times) {
	kill(pid, SIGCONT);
	load_stroll(load, TRIPS, times);
	kill(pid, SIGSTOP);
	if (waitpid(pid, NULL, WUNTRACED) != pid) {
		bench_die("waiting for a process to stop");
	}
}

/* Of each pair of turns the ratio of this quantile; of those the median, in hundredths: so a moment
 * in which the machine does something else counts for little. */
static nsec_t ratio_of_turns(nsec_t *beside, nsec_t *calm, unsigned turns, unsigned percent) {
	nsec_t ratios[TURNS];

	for (size_t i = 0; i < turns; i++) {
		ratios[i] = 100 * bench_quantile(beside + i * TRIPS, TRIPS, percent) /
			    bench_quantile(calm + i * TRIPS, TRIPS, percent);
	}
	return bench_quantile(ratios, turns, 50);
}

/* The times of one kind, in turns. */
struct times {
	nsec_t beside[TURNS * TRIPS]; /* the hostile process */
	nsec_t calm[TURNS * TRIPS];   /* the burner */
	nsec_t alone[TURNS * TRIPS];
};

static void print_line(const char *name, struct times *t, unsigned turns) {
	/* Before they are sorted all together. */
	nsec_t ratio = ratio_of_turns(t->beside, t->calm, turns, 99);
	nsec_t to_alone = ratio_of_turns(t->beside, t->alone, turns, 99);
	nsec_t p50_to_alone = ratio_of_turns(t->beside, t->alone, turns, 50);
	size_t n = (size_t)turns * TRIPS;

	printf("{\"bench\":\"hostile\",\"kind\":\"%s\",\"p99_ratio\":%.2f,"
	       "\"p99_ratio_to_alone\":%.2f,\"p50_ratio_to_alone\":%.2f,\"p50_us\":%.1f,"
	       "\"p50_calm_us\":%.1f,"
	       "\"p50_alone_us\":%.1f,\"p99_us\":%.1f,\"p99_calm_us\":%.1f,\"p99_alone_us\":%.1f,"
	       "\"requests\":%zu}\n",
	       name, (double)ratio / 100, (double)to_alone / 100, (double)p50_to_alone / 100,
	       (double)bench_quantile(t->beside, n, 50) / 1e3,
	       (double)bench_quantile(t->calm, n, 50) / 1e3,
	       (double)bench_quantile(t->alone, n, 50) / 1e3,
	       (double)bench_quantile(t->beside, n, 99) / 1e3,
	       (double)bench_quantile(t->calm, n, 99) / 1e3,
	       (double)bench_quantile(t->alone, n, 99) / 1e3, n);
	fflush(stdout);
}

static void run(const struct kind *kind, unsigned turns, bool check) {
	static const char *const args[] = {"--gpus",	"80,80",	 "--sharing",
					   "mps",	"--log-level",	 "error",
					   "--metrics", "unix:" METRICS, NULL};
	static struct times t;
	static int idle[IDLE];
	pid_t hostile, burner;
	struct load load;

	load_init(&load, args, kind->n_victims, 1, 3ull * turns * TRIPS, false);
	for (size_t i = 0; i < kind->n_idle; i++) {
		idle[i] = bench_session_open();
	}
	setpriority(PRIO_PROCESS, (id_t)load.daemon.pid, NICE); /* without the right: not */
	hostile = start_acting(kind->act);
	burner = start_acting(kind->burn ? kind->burn : burn);
	for (unsigned i = 0; i < turns; i++) {
		load_stroll(&load, TRIPS, t.alone + (size_t)i * TRIPS);
		stroll_beside(&load, burner, t.calm + (size_t)i * TRIPS);
		stroll_beside(&load, hostile, t.beside + (size_t)i * TRIPS);
	}
	stop_acting(hostile);
	stop_acting(burner);
	for (size_t i = 0; i < kind->n_idle; i++) {
		close(idle[i]);
	}
	load_deinit(&load);
	if (!check) {
		print_line(kind->name, &t, turns);
	}
}

int main(int argc, char **argv) {
	bool check = argc > 1 && strcmp(argv[1], "check") == 0;

	if (!load_raise_limit(DESCRIPTORS + 2 * IDLE)) { /* a socket and a pidfd for each session */
		fprintf(stderr, "bench-hostile: %d open files are too many here\n",
			DESCRIPTORS + 2 * IDLE);
		return SKIPPED;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		bool wanted = argc < 2 || check;

		for (int k = 1; k < argc; k++) {
			wanted |= strcmp(argv[k], kinds[i].name) == 0;
		}
		if (wanted) {
			run(&kinds[i], check ? CHECK_TURNS : TURNS, check);
		}
	}
	return 0;
}
