/*
 * test-wire.c: packets that the driver library would never send. simgpud must refuse them and go
 * on: it is everybody's GPU. Run by run-api.sh, which starts and stops a simgpud of its own.
 *
 * Argument: simgpud.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simgpu/client.h"
#include "tests/simgpu/place.h"

#define PAGE 4096

static const char program[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry nothing() { ret; }\n";

struct context {
	uint32_t id, stream;
	uint64_t memory;
};

static struct context contexts[2];

static int ask(const void *request, size_t n, int fd, struct wire_value_reply *reply) {
	const struct client_message q = {.head = (void *)request, .head_size = n};
	const struct client_message a = {.head = reply, .head_size = sizeof(*reply)};

	assert_true(client_call(&q, fd, &a) >= (int)sizeof(struct wire_reply));
	return reply->r.result;
}

static int ask_object(uint32_t type, const struct wire_object *what, int fd,
		      struct wire_value_reply *reply) {
	struct wire_object q = *what;

	q.h.type = type;
	return ask(&q, sizeof(q), fd, reply);
}

static int setup(void **state) {
	struct wire_value_reply reply;

	for (uint32_t i = 0; i < 2; i++) {
		struct context *c = &contexts[i];

		assert_int_equal(ask_object(WIRE_CONTEXT_NEW, &(struct wire_object){.object = i},
					    -1, &reply),
				 0);
		c->id = (uint32_t)reply.value;
		c->stream = (uint32_t)reply.value2;
		assert_int_equal(ask_object(WIRE_MEMORY_ALLOC,
					    &(struct wire_object){.object = c->id, .value = PAGE},
					    -1, &reply),
				 0);
		c->memory = reply.value;
	}
	return 0;
}

/* Whatever happened, the GPUs still work. */
static int teardown(void **state) {
	struct wire_value_reply reply;

	for (uint32_t i = 0; i < 2; i++) {
		const struct wire_object q = {.object = contexts[i].id};

		assert_int_equal(ask_object(WIRE_CONTEXT_SYNC, &q, -1, &reply), 0);
		assert_int_equal(ask_object(WIRE_CONTEXT_FREE, &q, -1, &reply), 0);
	}
	return 0;
}

/* @seals: as the driver library's files have them; 0: one that can be cut short. */
static int file_of(const char *text, size_t size, int seals) {
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (text) {
		assert_int_equal(pwrite(fd, text, size, 0), (ssize_t)size);
	}
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int load(const struct context *c, int seals, struct wire_value_reply *reply) {
	const struct wire_object q = {.object = c->id, .value = sizeof(program)};
	int fd = file_of(program, sizeof(program), seals);
	int result = ask_object(WIRE_MODULE_LOAD, &q, fd, reply);

	close(fd);
	return result;
}

static void simgpud_refuses_another_contexts_kernel(void **state) {
	struct wire_value_reply reply;
	struct wire_launch launch = {
		.h.type = WIRE_LAUNCH,
		.grid = {1, 1, 1},
		.block = {32, 1, 1},
	};

	assert_int_equal(load(&contexts[0], F_SEAL_SHRINK, &reply), 0);
	launch.module = (uint32_t)reply.value;
	launch.stream = contexts[1].stream;
	assert_int_equal(ask(&launch, sizeof(launch), -1, &reply), CUDA_ERROR_INVALID_HANDLE);
	launch.stream = contexts[0].stream;
	assert_int_equal(ask(&launch, sizeof(launch), -1, &reply), 0);
}

static void simgpud_refuses_to_free_in_another_contexts_stream(void **state) {
	struct wire_object q = {
		.object = contexts[0].id,
		.other = contexts[1].stream,
		.value = contexts[0].memory,
	};
	struct wire_value_reply reply;

	assert_int_equal(ask_object(WIRE_MEMORY_FREE, &q, -1, &reply), CUDA_ERROR_INVALID_HANDLE);
	q.other = contexts[0].stream;
	assert_int_equal(ask_object(WIRE_MEMORY_FREE, &q, -1, &reply), 0);
}

/* Rows that lie on each other cost time without end and no memory. */
static void simgpud_refuses_rows_that_overlap(void **state) {
	struct wire_value_reply reply;
	struct wire_fill fill = {
		.h.type = WIRE_FILL,
		.stream = contexts[0].stream,
		.target = contexts[0].memory,
		.element = 1,
		.width = 2,
		.height = 1ull << 50,
	};
	struct wire_copy copy = {
		.h.type = WIRE_COPY,
		.stream = contexts[0].stream,
		.from = WIRE_DEVICE,
		.to = WIRE_DEVICE,
		.source = contexts[0].memory,
		.target = contexts[0].memory,
		.width = 2,
		.height = 1ull << 50,
	};

	assert_int_equal(ask(&fill, sizeof(fill), -1, &reply), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(ask(&copy, sizeof(copy), -1, &reply), CUDA_ERROR_INVALID_VALUE);
}

/* A mapping whose file is cut short kills whoever reads it. */
static void simgpud_refuses_files_that_can_shrink(void **state) {
	struct wire_object q = {.value = 0x10000, .value2 = PAGE};
	struct wire_value_reply reply;
	int fd = file_of(NULL, PAGE, 0);

	assert_int_equal(ask_object(WIRE_HOST_MAP, &q, fd, &reply), CUDA_ERROR_INVALID_VALUE);
	close(fd);
	assert_int_equal(load(&contexts[0], 0, &reply), CUDA_ERROR_INVALID_IMAGE);
	fd = file_of(NULL, PAGE, F_SEAL_SHRINK);
	assert_int_equal(ask_object(WIRE_HOST_MAP, &q, fd, &reply), 0);
	close(fd);
	assert_int_equal(ask_object(WIRE_HOST_UNMAP, &q, -1, &reply), 0);
}

/* ---- who does not read ---- */

/* A connection of its own, which has said hello. */
static int connect_raw(void) {
	struct wire_hello hello = {.h = {.type = WIRE_HELLO, .id = 1}, .version = WIRE_VERSION};
	struct wire_hello_reply reply;
	struct sockaddr_un addr;
	char dir[200], path[256];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(place_dir(dir, sizeof(dir)), 0);
	assert_int_equal(place_file(path, sizeof(path), dir, "simgpud.sock"), 0);
	addr = place_address(path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(send(fd, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(recv(fd, &reply, sizeof(reply), 0), sizeof(reply));
	assert_int_equal(reply.r.result, 0);
	return fd;
}

/* Answers on our proper connection: simgpud has looked at every other one meanwhile. */
static void simgpud_goes_round(void) {
	struct wire_value_reply reply;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			ask_object(WIRE_GPU_STATE, &(struct wire_object){.object = 0}, -1, &reply),
			0);
	}
}

/* Return: whether the packet went out, if need be after simgpud had its turn. */
static bool send_patiently(int fd, const void *packet, size_t n) {
	if (send(fd, packet, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n) {
		return true;
	}
	simgpud_goes_round();
	return send(fd, packet, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

static void simgpud_stops_listening_to_who_does_not_read(void **state) {
	struct wire_object q = {.h = {.type = WIRE_GPU_STATE, .id = 2}};
	struct wire_gpu_state_reply reply;
	unsigned sent = 0, read = 0;
	int fd = connect_raw();

	while (send_patiently(fd, &q, sizeof(q))) {
		sent++;
		assert_true(sent < 1000000);
	}
	/* And listens again when it does. */
	for (; read < sent; read++) {
		assert_int_equal(recv(fd, &reply, sizeof(reply), 0), sizeof(reply));
		assert_int_equal(reply.r.h.id, 2);
	}
	assert_int_equal(send(fd, &q, sizeof(q), 0), sizeof(q));
	assert_int_equal(recv(fd, &reply, sizeof(reply), 0), sizeof(reply));
	close(fd);
}

static void send_all(int fd, const void *packet, size_t n) {
	assert_int_equal(send(fd, packet, n, 0), n);
}

/* Copies that are all answered at once, when the host function before them is done. */
static void simgpud_lets_go_who_lets_answers_pile_up(void **state) {
	struct wire_object q = {.h = {.type = WIRE_CONTEXT_NEW, .id = 2}};
	struct wire_copy copy = {.h = {.type = WIRE_COPY, .id = 3},
				 .wait = 1,
				 .from = WIRE_DEVICE,
				 .to = WIRE_INLINE,
				 .width = WIRE_INLINE_MAX,
				 .height = 1};
	struct wire_value_reply reply;
	int fd = connect_raw();
	ssize_t n;

	send_all(fd, &q, sizeof(q));
	assert_int_equal(recv(fd, &reply, sizeof(reply), 0), sizeof(reply));
	copy.stream = (uint32_t)reply.value2;
	q = (struct wire_object){.h = {.type = WIRE_MEMORY_ALLOC, .id = 2},
				 .object = (uint32_t)reply.value,
				 .value = WIRE_INLINE_MAX};
	send_all(fd, &q, sizeof(q));
	assert_int_equal(recv(fd, &reply, sizeof(reply), 0), sizeof(reply));
	copy.source = reply.value;
	q = (struct wire_object){.h = {.type = WIRE_HOST_FUNCTION}, .object = copy.stream};
	send_all(fd, &q, sizeof(q));
	for (unsigned i = 0; i < WIRE_UNREAD_MAX / WIRE_INLINE_MAX + 100; i++) {
		send_all(fd, &copy, sizeof(copy));
	}
	q = (struct wire_object){.h = {.type = WIRE_HOST_NEXT, .id = 4}};
	send_all(fd, &q, sizeof(q));
	assert_true(recv(fd, &reply, sizeof(reply), 0) >= (ssize_t)sizeof(reply.r));
	q = (struct wire_object){.h = {.type = WIRE_HOST_DONE}};
	send_all(fd, &q, sizeof(q));
	do {
		simgpud_goes_round();
		n = send(fd, &q, sizeof(q), MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n >= 0 || errno == EAGAIN);
	assert_true(errno == EPIPE || errno == ECONNRESET);
	close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		TEST(simgpud_refuses_another_contexts_kernel),
		TEST(simgpud_refuses_to_free_in_another_contexts_stream),
		TEST(simgpud_refuses_rows_that_overlap),
		TEST(simgpud_refuses_files_that_can_shrink),
		TEST(simgpud_stops_listening_to_who_does_not_read),
		TEST(simgpud_lets_go_who_lets_answers_pile_up),
	};
	pid_t pid;
	int status;

	if (argc != 2) {
		return 2;
	}
	pid = fork();
	if (pid == 0) {
		execl(argv[1], argv[1], NULL); /* returns once it can be connected to */
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 || client_connect() != 0) {
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
