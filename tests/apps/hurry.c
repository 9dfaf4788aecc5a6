/*
 * hurry.c: a program that says on the board (proto/board.h), all the time, that it has a copy which
 * is due before everybody else's, and an open job, and another one each millisecond. So the gates
 * of all others are closed, whenever they look, but for the moments when they have waited long
 * enough.
 *
 * usage: hurry SOCKET. Says "begun" when it has begun, and ends with sbeetd.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/board.h"
#include "proto/enforcement.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "sbeet.pb-c.h"

static void fail(const char *what) {
	perror(what);
	exit(1);
}

static int greet(const char *path) {
	char terms[] = PROTO_FEATURE_TERMS, copies[] = PROTO_FEATURE_COPIES,
	     *features[] = {terms, copies};
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	int fd = packet_connect(path, 0);

	if (fd < 0) {
		fail("connect");
	}
	task.name = (char[]){"hurry"};
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.deadline_ns = 100 * NSEC_PER_MSEC;
	hello.version = PROTO_VERSION;
	hello.program = (char[]){"hurry"};
	hello.enforcement_mask = ENFORCEMENT_BIT(WHOLE);
	hello.task = &task;
	hello.features = features;
	hello.n_features = 2;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	if (packet_send(fd, &m.base, -1) < 0) {
		fail("send");
	}
	return fd;
}

/* @slot: the GPU's, -1 before the board has come. Return: false when sbeetd has gone. */
static bool hear(int fd, struct board **board, unsigned *slot) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	ProtobufCMessage *base = NULL;
	const Sbeet__ToShim *m;
	int passed = -1, n = packet_receive(fd, buffer, &passed);

	if (n <= 0 || packet_unpack(&sbeet__to_shim__descriptor, buffer, (size_t)n, &base) < 0) {
		return false;
	}
	m = (const Sbeet__ToShim *)base;
	if (m->body_case == SBEET__TO_SHIM__BODY_BOARD) {
		*board = mmap(NULL, sizeof(**board), PROT_READ | PROT_WRITE, MAP_SHARED, passed, 0);
		if (*board == MAP_FAILED) {
			fail("mmap");
		}
		*slot = m->board->slot;
		printf("begun\n");
		fflush(stdout);
	}
	if (passed >= 0) {
		close(passed);
	}
	packet_free(base);
	return true;
}

int main(int argc, char **argv) {
	struct pollfd ready = {.events = POLLIN};
	struct board *board = NULL;
	unsigned slot = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: hurry SOCKET\n");
		return 2;
	}
	ready.fd = greet(argv[1]);
	for (;;) {
		if (poll(&ready, 1, 1) > 0 && !hear(ready.fd, &board, &slot)) {
			return 0;
		}
		for (unsigned gpu = 0; board && gpu < PROTO_TERMS_GPUS_MAX; gpu++) {
			atomic_store(&board->slots[gpu][slot].due_ns, nsec_now());
			atomic_store(&board->slots[gpu][slot].job_due_ns, nsec_now());
		}
	}
}
