/*
 * bench-wire.c: what it takes to write and to read a message, by proto/wire.c and by libprotobuf-c:
 * the messages of a job, and a hello.
 *
 * Prints one JSON line a message and way: nanoseconds, of the quickest of many rounds in turns, and
 * instructions, single-stepped, so the same on any machine. Without the system call.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprotobuf-c.h"
#include "proto/units.h"
#include "proto/wire.h"
#include "sbeet.pb-c.h"

#define ROUNDS 200
#define TURNS  200
#define BYTES  1024

struct message {
	const char *name;
	const ProtobufCMessage *m;
	size_t n;
	uint8_t bytes[BYTES];
};

static const struct libprotobuf_c ours = {
	.size = protobuf_c_message_get_packed_size,
	.pack = protobuf_c_message_pack,
	.unpack = protobuf_c_message_unpack,
	.free = protobuf_c_message_free_unpacked,
};

static uint8_t out[BYTES];

/* As packet_send() does; with libprotobuf-c it asked for the size first. */
static void write_message(const struct libprotobuf_c *l, const struct message *m) {
	size_t n = l == &ours			  ? wire_pack(m->m, out, sizeof(out))
		   : l->size(m->m) <= sizeof(out) ? l->pack(m->m, out)
						  : 0;

	if (n != m->n) {
		errx(2, "%s has another length", m->name);
	}
}

static void read_message(const struct libprotobuf_c *l, const struct message *m) {
	ProtobufCMessage *read = l->unpack(m->m->descriptor, NULL, m->n, m->bytes);

	if (!read) {
		errx(2, "%s can't be read", m->name);
	}
	l->free(read, NULL);
}

typedef void (*way)(const struct libprotobuf_c *, const struct message *);

static double quickest_ns(way run, const struct libprotobuf_c *l, const struct message *m,
			  double before) {
	nsec_t begin = nsec_now(), took;

	for (int i = 0; i < TURNS; i++) {
		run(l, m);
	}
	took = nsec_now() - begin;
	return (double)took / TURNS < before ? (double)took / TURNS : before;
}

/* Stops for the parent, which steps from the first of two to the second. */
static void mark(void) {
	raise(SIGSTOP);
}

static void wait_stop(pid_t child, int signal) {
	int status;

	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
	    WSTOPSIG(status) != signal) {
		errx(2, "the child is not stopped by signal %d", signal);
	}
}

/* From one mark to the next, raise() included. */
static unsigned long steps(pid_t child) {
	unsigned long n = 0;
	int status;

	wait_stop(child, SIGSTOP);
	do {
		n++;
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) < 0 ||
		    waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
			errx(2, "the child can't be stepped");
		}
	} while (WSTOPSIG(status) == SIGTRAP);
	return n;
}

static unsigned long instructions(way run, const struct libprotobuf_c *l, const struct message *m) {
	pid_t child = fork();
	unsigned long nothing, all;
	int status;

	if (child == 0) {
		run(l, m);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		mark();
		mark();
		mark();
		run(l, m);
		mark();
		_exit(0);
	}
	nothing = steps(child);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	all = steps(child);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	waitpid(child, &status, 0);
	return all - nothing;
}

static void compare(const char *what, way run, const struct message *m) {
	const struct libprotobuf_c *other = libprotobuf_c();
	double ns = 1e9, other_ns = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		ns = quickest_ns(run, &ours, m, ns);
		other_ns = quickest_ns(run, other, m, other_ns);
	}
	printf("{\"bench\":\"wire\",\"message\":\"%s\",\"way\":\"%s\",\"bytes\":%zu,\"ns\":%.0f,"
	       "\"libprotobuf_c_ns\":%.0f,\"instructions\":%lu,"
	       "\"libprotobuf_c_instructions\":%lu}\n",
	       m->name, what, m->n, ns, other_ns, instructions(run, &ours, m),
	       instructions(run, other, m));
	fflush(stdout);
}

static void compare_both(const char *name, const ProtobufCMessage *m) {
	struct message message = {.name = name, .m = m};

	message.n = protobuf_c_message_pack(m, message.bytes);
	compare("write", write_message, &message);
	compare("read", read_message, &message);
}

static uint8_t uuid[16] = {1, 2, 3}, sms[10] = {0xff, 0xff};

static void compare_job(void) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__Grant grant = SBEET__GRANT__INIT;
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon to_daemon = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim to_shim = SBEET__TO_SHIM__INIT;

	request.job = grant.job = done.job = 1000;
	request.gpu_uuid = grant.gpu_uuid = (ProtobufCBinaryData){sizeof(uuid), uuid};
	request.release_ns = done.granted_ns = done.finished_ns = grant.deadline_ns =
		10000000000000;
	request.enforcement_mask = 0x1e;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	request.kernel = 7;
	to_daemon.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	to_daemon.request = &request;
	compare_both("Request", &to_daemon.base);
	grant.slot = 1;
	grant.sms = (ProtobufCBinaryData){sizeof(sms), sms};
	grant.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_GREEN;
	grant.sequence = 100000;
	grant.gpu_sms = 80;
	to_shim.body_case = SBEET__TO_SHIM__BODY_GRANT;
	to_shim.grant = &grant;
	compare_both("Grant", &to_shim.base);
	done.launches = 250;
	done.waves = 250;
	to_daemon.body_case = SBEET__TO_DAEMON__BODY_DONE;
	to_daemon.done = &done;
	compare_both("JobDone", &to_daemon.base);
}

static void compare_hello(void) {
	char a[] = "counts", b[] = "terms", c[] = "copies", program[] = "camera";
	char *features[] = {a, b, c};
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__ToDaemon to_daemon = SBEET__TO_DAEMON__INIT;

	hello.version = 1;
	hello.features = features;
	hello.n_features = 3;
	hello.program = task.name = program;
	hello.task = &task;
	task.period_ns = 33000000;
	to_daemon.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	to_daemon.hello = &hello;
	compare_both("Hello", &to_daemon.base);
}

int main(void) {
	compare_job();
	compare_hello();
	return 0;
}
