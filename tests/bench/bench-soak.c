/*
 * bench-soak.c: sbeetd over a long life: its memory and descriptors after many requests, and how
 * soon a dead program's SMs are another's.
 *
 * A program asks, is granted and reports the end, again and again; after every 2000 jobs it leaves
 * and another comes: a plain one, one with a period and a deadline, one that declares kernels and
 * records what it launches, and one that makes a mistake and leaves while its job runs. With each,
 * somebody asks for the status; all the time, somebody watches what happens and reads nothing. Exit
 * 1 if the daemon has more descriptors at the end than after the first tenth or has grown by more
 * than 256 KiB: that is a leak, and no matter of speed. Prints JSON lines.
 *
 * Usage: bench-soak [REQUESTS]     default 200000, or $SBEET_SOAK; 10000000 stand for a day
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "control.pb-c.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"

#define JOBS_PER_PROGRAM 2000
#define DEATHS		 200
#define GROWTH_MAX_KIB	 256

static uint8_t buffer[PROTO_PACKET_MAX];

static void ask(int fd, uint64_t job) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	uint8_t uuid[PROTO_UUID_BYTES] = {1};

	request.job = job;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = sizeof(uuid);
	request.release_ns = nsec_now();
	request.enforcement_mask = 1u << SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	if (packet_send(fd, &m.base, -1) < 0) {
		bench_die("sending a request");
	}
}

static void hear_grant(int fd) {
	ProtobufCMessage *m = NULL;
	int n = packet_receive(fd, buffer, NULL);

	if (n <= 0 || packet_unpack(&sbeet__to_shim__descriptor, buffer, (size_t)n, &m) < 0 ||
	    ((Sbeet__ToShim *)m)->body_case != SBEET__TO_SHIM__BODY_GRANT) {
		bench_die("waiting for a grant");
	}
	packet_free(m);
}

static void end(int fd, uint64_t job) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	done.job = job;
	done.launches = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	if (packet_send(fd, &m.base, -1) < 0) {
		bench_die("sending the end of a job");
	}
}

struct size {
	long kib;
	unsigned descriptors;
};

static struct size measure(pid_t pid) {
	struct size size = {0};
	char path[64], line[128];
	struct dirent *entry;
	DIR *directory;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "VmRSS:", 6) == 0) {
			size.kib = strtol(line + 6, NULL, 10);
		}
	}
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	directory = opendir(path);
	if (!file || !directory) {
		bench_die("looking at the daemon");
	}
	while ((entry = readdir(directory))) {
		size.descriptors += entry->d_name[0] != '.';
	}
	closedir(directory);
	fclose(file);
	return size;
}

/* ---- programs of several kinds ---- */

enum kind {
	KIND_PLAIN,
	KIND_REALTIME,
	KIND_RECORDS,
	KIND_RUDE,
	_KIND_N,
};

#define KERNELS 20

static void send_to_daemon(int fd, Sbeet__ToDaemon *m) {
	if (packet_send(fd, &m->base, -1) < 0) {
		bench_die("sending");
	}
}

static int open_program(enum kind kind) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__KernelDef kernel = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	int fd;

	task.name = (char[]){"soak"};
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.period_ns = 10 * NSEC_PER_MSEC;
	task.deadline_ns = 5 * NSEC_PER_MSEC;
	fd = bench_session_open_as(kind == KIND_REALTIME ? &task : NULL);
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &kernel;
	kernel.name = (char[]){"kernel"};
	kernel.enforcement_mask = BENCH_MASK;
	for (uint32_t id = 1; kind == KIND_RECORDS && id <= KERNELS; id++) {
		kernel.id = id;
		send_to_daemon(fd, &m);
	}
	return fd;
}

static void record(int fd, uint64_t job) {
	Sbeet__Op op = SBEET__OP__INIT, *ops[] = {&op};
	Sbeet__OpBatch batch = SBEET__OP_BATCH__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	op.kind = SBEET__OP_KIND__OP_KIND_LAUNCH;
	op.time_ns = nsec_now();
	op.kernel = 1;
	op.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	batch.job = job;
	batch.ops = ops;
	batch.n_ops = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_OPS;
	m.ops = &batch;
	send_to_daemon(fd, &m);
}

static void run_job(int fd, enum kind kind, uint64_t job) {
	ask(fd, job);
	hear_grant(fd);
	if (kind == KIND_RECORDS) {
		record(fd, job);
	}
	end(fd, job);
}

static void close_program(int fd, enum kind kind, uint64_t last) {
	if (kind == KIND_RUDE) {
		ask(fd, last + 1);
		hear_grant(fd);
		ask(fd, last + 1); /* there is such a job: an error, which is not read */
		ask(fd, last + 2);
	}
	close(fd);
}

static int ask_control(Sbeet__Control__Request *request) {
	char path[PROTO_PATH_MAX];
	int fd;

	packet_socket_path("control.sock", path, sizeof(path));
	fd = packet_connect(path, 0);
	if (fd < 0 || packet_send(fd, &request->base, -1) < 0) {
		bench_die("asking sbeetd");
	}
	return fd;
}

static void ask_status(void) {
	Sbeet__Control__StatusRequest status = SBEET__CONTROL__STATUS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	bool last = false;
	int fd;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_STATUS;
	request.status = &status;
	fd = ask_control(&request);
	while (!last) {
		ProtobufCMessage *m = NULL;
		int n = packet_receive(fd, buffer, NULL);

		if (n <= 0 ||
		    packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m) < 0) {
			bench_die("reading the status");
		}
		last = ((Sbeet__Control__Reply *)m)->last;
		packet_free(m);
	}
	close(fd);
}

static int watch(void) {
	Sbeet__Control__EventsRequest events = SBEET__CONTROL__EVENTS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_EVENTS;
	request.events = &events;
	return ask_control(&request);
}

/* Connections that have ended are closed when the daemon comes to it: it is asked for something
 * meanwhile, a hundred times at most. */
static struct size settle(pid_t daemon, unsigned descriptors) {
	struct size size = measure(daemon);

	for (int i = 0; i < 100 && size.descriptors > descriptors; i++) {
		ask_status();
		size = measure(daemon);
	}
	return size;
}

/* Return: whether the daemon has stayed as it was. */
static bool soak(pid_t daemon, uint64_t requests) {
	struct size begin = {0}, now;
	nsec_t start = nsec_now();
	int watcher = watch(), fd = open_program(KIND_PLAIN);
	enum kind kind = KIND_PLAIN;

	for (uint64_t i = 1; i <= requests; i++) {
		if (i % JOBS_PER_PROGRAM == 0) {
			close_program(fd, kind, i);
			ask_status();
			kind = (kind + 1) % _KIND_N;
			fd = open_program(kind);
		}
		run_job(fd, kind, i);
		if (i == requests / 10) {
			begin = measure(daemon);
		}
	}
	close(fd);
	now = settle(daemon, begin.descriptors);
	close(watcher);
	printf("{\"bench\":\"soak\",\"requests\":%llu,\"seconds\":%.1f,\"kib_after_a_tenth\":%ld,"
	       "\"kib\":%ld,\"descriptors_after_a_tenth\":%u,\"descriptors\":%u}\n",
	       (unsigned long long)requests, (double)(nsec_now() - start) / 1e9, begin.kib, now.kib,
	       begin.descriptors, now.descriptors);
	return now.kib <= begin.kib + GROWTH_MAX_KIB && now.descriptors <= begin.descriptors;
}

/* What a process does between its grant and its death. */
enum how {
	HOW_RUNNING,
	HOW_STOPPED,
	HOW_HUNG_UP, /* its connection is closed: nothing but the death itself can tell */
	HOW_SHARED,  /* a child of it keeps the connection open, and lives on */
	_HOW_N,
};

static const char *const hows[_HOW_N] = {"running", "stopped", "hung up", "child has its socket"};

/* A process that has the whole GPU. @ret_child: one that it leaves behind, or 0. */
static pid_t start_holder(enum how how, pid_t *ret_child) {
	int ready[2];
	pid_t pid;

	if (pipe(ready) < 0 || (pid = fork()) < 0) {
		bench_die("starting a program");
	}
	if (pid == 0) {
		int fd = bench_session_open();
		pid_t child = 0;

		ask(fd, 1);
		hear_grant(fd);
		if (how == HOW_HUNG_UP) {
			close(fd);
		} else if (how == HOW_SHARED) {
			child = fork();
		}
		if (child != 0 || how != HOW_SHARED) {
			if (write(ready[1], &child, sizeof(child)) != sizeof(child)) {
				_exit(1);
			}
		}
		for (;;) {
			pause();
		}
	}
	if (read(ready[0], ret_child, sizeof(*ret_child)) != sizeof(*ret_child)) {
		bench_die("waiting for a program");
	}
	if (how == HOW_STOPPED) {
		kill(pid, SIGSTOP);
		waitpid(pid, NULL, WUNTRACED);
	}
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void deaths(enum how how) {
	static nsec_t times[DEATHS];
	nsec_t p50, p99;
	int fd = bench_session_open();

	for (unsigned i = 0; i < DEATHS; i++) {
		pid_t child, pid = start_holder(how, &child);
		nsec_t killed;

		ask(fd, i + 1);
		bench_wait_until_read(fd); /* now it waits, or will before sbeetd looks up again */
		killed = nsec_now();
		kill(pid, SIGKILL);
		hear_grant(fd);
		times[i] = nsec_now() - killed;
		end(fd, i + 1);
		waitpid(pid, NULL, 0);
		if (child > 0) {
			kill(child, SIGKILL);
		}
	}
	close(fd);
	p50 = bench_quantile(times, DEATHS, 50);
	p99 = bench_quantile(times, DEATHS, 99);
	printf("{\"bench\":\"death\",\"of\":\"%s\",\"deaths\":%d,\"kill_to_grant_us_p50\":%.1f,"
	       "\"p99\":%.1f,\"max\":%.1f}\n",
	       hows[how], DEATHS, (double)p50 / 1e3, (double)p99 / 1e3,
	       (double)times[DEATHS - 1] / 1e3); /* sorted by now */
}

int main(int argc, char **argv) {
	const char *text = argc > 1 ? argv[1] : getenv("SBEET_SOAK");
	uint64_t requests = text ? strtoull(text, NULL, 10) : 200000;
	struct bench_daemon daemon;
	bool ok;

	if (requests < 10000) {
		fprintf(stderr, "bench-soak: '%s' is not a number from 10000\n", text);
		return 2;
	}
	bench_daemon_start(&daemon, (const char *[]){"--gpus", "8", NULL});
	for (enum how how = 0; how < _HOW_N; how++) {
		deaths(how);
	}
	fflush(stdout);
	ok = soak(daemon.pid, requests);
	bench_daemon_stop(&daemon);
	return ok ? 0 : 1;
}
