/*
 * bench-done.c: what the end of a job of 250 launches costs a program, and how much it says of the
 * job: when it counts its operations, and when it tells each of them, as it does while somebody
 * watches. Both in one run, in turns.
 *
 * Prints one JSON line a way, then the ratios. The program runs under libsbeet.so on the fake
 * driver; this process plays the daemon.
 *
 * usage: bench-done LIBSBEET
 */
#include <cuda.h>
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"
#include "tests/fake/fake.h"

#define TURNS	 6
#define JOBS	 200 /* a turn */
#define LAUNCHES 250
#define WAYS	 2

static const char *const ways[WAYS] = {"counted", "each told"};

/* ---- the program ---- */

static void check(CUresult rc) {
	if (rc != CUDA_SUCCESS) {
		errx(2, "CUDA error %d", rc);
	}
}

/* Writes how long each job's end took to @out. */
static int program(int out) {
	static const char text[] =
		".version 7.0\n.target sm_75\n.address_size 64\n"
		".visible .entry nothing() { ret; }\n";
	CUfunction function;
	CUcontext context;
	CUmodule module;

	check(cuInit(0));
	check(cuDevicePrimaryCtxRetain(&context, 0));
	check(cuCtxSetCurrent(context));
	check(cuModuleLoadData(&module, text));
	check(cuModuleGetFunction(&function, module, "nothing"));
	for (int job = 0; job < JOBS; job++) {
		nsec_t began, took;

		for (int i = 0; i < LAUNCHES; i++) {
			check(cuLaunchKernel(function, 24, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
		}
		began = nsec_now();
		check(cuCtxSynchronize());
		took = nsec_now() - began;
		if (write(out, &took, sizeof(took)) != sizeof(took)) {
			return 2;
		}
	}
	return 0;
}

/* ---- the daemon ---- */

static int listen_at(const char *path) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, 1) < 0) {
		err(2, "%s", path);
	}
	return fd;
}

static void welcome(int fd) {
	char *features[] = {(char *)(uintptr_t)PROTO_FEATURE_COUNTS};
	Sbeet__Welcome body = SBEET__WELCOME__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	body.version = PROTO_VERSION;
	body.session = 1;
	body.task = (char *)(uintptr_t) "bench";
	body.linger_ns = PROTO_PERIOD_MAX_NS; /* only the program's waits end jobs */
	body.features = features;
	body.n_features = 1;
	m.body_case = SBEET__TO_SHIM__BODY_WELCOME;
	m.welcome = &body;
	packet_send(fd, &m.base, -1);
}

static void grant(int fd, uint64_t job, bool record_ops) {
	uint8_t uuid[PROTO_UUID_BYTES] = {1}, sms[] = {0xff};
	Sbeet__Grant body = SBEET__GRANT__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	body.job = job;
	body.gpu_uuid.data = uuid;
	body.gpu_uuid.len = sizeof(uuid);
	body.sms.data = sms;
	body.sms.len = sizeof(sms);
	body.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	body.sequence = job;
	body.gpu_sms = 8;
	body.record_ops = record_ops;
	m.body_case = SBEET__TO_SHIM__BODY_GRANT;
	m.grant = &body;
	packet_send(fd, &m.base, -1);
}

/* Serves a program to its end. Return: the bytes that it has said between Grants and JobDones. */
static uint64_t serve(int fd, bool record_ops) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	uint64_t bytes = 0;
	int n;

	while ((n = packet_receive(fd, buffer, NULL)) > 0) {
		ProtobufCMessage *base = NULL;
		const Sbeet__ToDaemon *m;

		if (packet_unpack(&sbeet__to_daemon__descriptor, buffer, (size_t)n, &base) < 0) {
			errx(2, "a packet does not parse");
		}
		m = (const Sbeet__ToDaemon *)base;
		if (m->body_case == SBEET__TO_DAEMON__BODY_HELLO) {
			welcome(fd);
		} else if (m->body_case == SBEET__TO_DAEMON__BODY_REQUEST) {
			grant(fd, m->request->job, record_ops);
		} else {
			bytes += (uint64_t)n;
		}
		packet_free(base);
	}
	return bytes;
}

/* ---- the comparison ---- */

static nsec_t times[WAYS][TURNS / WAYS * JOBS];
static uint64_t bytes[WAYS];
static size_t n_times[WAYS];

static void turn(const char *self, const char *shim, const char *path, int way) {
	int listener = listen_at(path), fd, out[2];
	nsec_t took;
	pid_t pid;
	int status;

	if (pipe(out) < 0 || (pid = fork()) < 0) {
		err(2, "fork");
	}
	if (pid == 0) {
		char number[16];

		snprintf(number, sizeof(number), "%d", out[1]);
		setenv("LD_PRELOAD", shim, 1);
		setenv("SBEET_SOCKET", path, 1);
		execl(self, self, "--program", number, (char *)NULL);
		err(2, "%s", self);
	}
	close(out[1]);
	fd = accept(listener, NULL, NULL);
	bytes[way] += serve(fd, way == 1);
	while (read(out[0], &took, sizeof(took)) == sizeof(took)) {
		times[way][n_times[way]++] = took;
	}
	close(out[0]);
	close(fd);
	close(listener);
	unlink(path);
	if (waitpid(pid, &status, 0) != pid || status != 0) {
		errx(2, "the program failed");
	}
}

static int compare(const void *a, const void *b) {
	nsec_t x = *(const nsec_t *)a, y = *(const nsec_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv) {
	char directory[] = "/tmp/sbeet-bench-XXXXXX", path[64];
	double ns[WAYS], size[WAYS];

	if (argc == 3 && strcmp(argv[1], "--program") == 0) {
		return program(atoi(argv[2]));
	}
	if (argc != 2 || !mkdtemp(directory)) {
		errx(2, "usage: bench-done LIBSBEET");
	}
	snprintf(path, sizeof(path), "%s/shim.sock", directory);
	for (int i = 0; i < TURNS; i++) {
		turn("/proc/self/exe", argv[1], path, i % WAYS);
	}
	rmdir(directory);
	for (int way = 0; way < WAYS; way++) {
		qsort(times[way], n_times[way], sizeof(nsec_t), compare);
		ns[way] = (double)times[way][n_times[way] / 2];
		size[way] = (double)bytes[way] / (double)n_times[way];
		printf("{\"bench\":\"done\",\"operations\":\"%s\",\"launches\":%d,\"end_ns\":%.0f,"
		       "\"bytes\":%.0f}\n",
		       ways[way], LAUNCHES, ns[way], size[way]);
	}
	printf("{\"bench\":\"done\",\"end_ratio\":%.1f,\"bytes_ratio\":%.1f}\n", ns[1] / ns[0],
	       size[1] / size[0]);
	return 0;
}
