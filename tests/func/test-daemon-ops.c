/*
 * test-daemon-ops.c: a real sbeetd asks programs for their single operations while somebody watches
 * who may see them, passes them on with the names of their kernels, and asks no longer than that.
 */
#include "harness.h"

#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/watch/ops.h"
#include "proto/packet.h"
#include "proto/validate.h"

#define OTHER 65533 /* nobody on this machine */

#define LAUNCH SBEET__OP_KIND__OP_KIND_LAUNCH
#define COPY   SBEET__OP_KIND__OP_KIND_COPY_HTOD

static struct harness harness;

static int start(void **state) {
	harness_start(&harness, (const char *const[]){"--gpus", "8", "--sharing", "mps", NULL});
	return 0;
}

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

/* ---- the program ---- */

/* A program that counts its operations. */
static struct shim open_program(const char *name) {
	static const char *const features[] = {PROTO_FEATURE_COUNTS};

	return shim_open_with(name, NULL, features, 1, MASK_ALL);
}

/* Return: whether its operations are wanted. */
static bool granted(int fd, uint64_t job) {
	Sbeet__ToShim *m;
	bool wanted;

	shim_request(fd, job, 0, MASK_ALL);
	m = shim_receive(fd);
	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_GRANT);
	assert_int_equal(m->grant->job, job);
	wanted = m->grant->record_ops;
	packet_free(&m->base);
	return wanted;
}

static void expect_record_ops(int fd, uint64_t job, bool on) {
	Sbeet__ToShim *m = shim_receive(fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_RECORD_OPS);
	assert_int_equal(m->record_ops->job, job);
	assert_int_equal(m->record_ops->on, on);
	packet_free(&m->base);
}

static void declare(int fd, uint32_t id, const char *name) {
	Sbeet__KernelDef kernel = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	kernel.id = id;
	kernel.name = (char *)(uintptr_t)name;
	kernel.enforcement_mask = MASK_ALL;
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &kernel;
	shim_send(fd, &m);
}

/* Before the next batch. */
static uint64_t dropped;

/* @n operations of @job, a nanosecond after each other from @at on; launches of @kernel if that is
 * not 0, else copies. */
static void send_ops(int fd, uint64_t job, uint32_t kernel, nsec_t at, size_t n) {
	Sbeet__Op ops[PROTO_OPS_MAX], *list[PROTO_OPS_MAX];
	Sbeet__OpBatch batch = SBEET__OP_BATCH__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	for (size_t i = 0; i < n; i++) {
		sbeet__op__init(&ops[i]);
		ops[i].kind = kernel ? LAUNCH : COPY;
		ops[i].kernel = kernel;
		ops[i].time_ns = at + i;
		ops[i].blocks = kernel ? 24 : 0;
		ops[i].block_threads = kernel ? 64 : 0;
		ops[i].bytes = kernel ? 0 : 4096;
		ops[i].stream = 7;
		ops[i].enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
		list[i] = &ops[i];
	}
	batch.job = job;
	batch.ops = list;
	batch.n_ops = n;
	batch.dropped = dropped;
	dropped = 0;
	m.body_case = SBEET__TO_DAEMON__BODY_OPS;
	m.ops = &batch;
	shim_send(fd, &m);
}

/* ---- who watches ---- */

static Sbeet__Control__Reply *receive(int fd) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	ProtobufCMessage *m = NULL;
	char why[256];
	int n = packet_receive(fd, buffer, NULL);

	assert_true(n > 0);
	assert_int_equal(packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m),
			 0);
	if (validate_control_reply((Sbeet__Control__Reply *)m, why, sizeof(why)) != 0) {
		fail_msg("%s", why);
	}
	return (Sbeet__Control__Reply *)m;
}

static int subscribe(bool ops) {
	Sbeet__Control__EventsRequest ask = SBEET__CONTROL__EVENTS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	char path[128];
	int fd;

	assert_int_equal(packet_socket_path("control.sock", path, sizeof(path)), 0);
	fd = packet_connect(path, 0);
	assert_true(fd >= 0);
	ask.ops = ops;
	request.id = 5;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_EVENTS;
	request.events = &ask;
	assert_int_equal(packet_send(fd, &request.base, -1), 0);
	packet_free(&receive(fd)->base); /* it has begun */
	return fd;
}

/* Until sbeetd has hung up, too. Whoever comes often waits, also for that. */
static void unsubscribe(int fd) {
	uint8_t buffer[PROTO_PACKET_MAX];

	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	while (recv(fd, buffer, sizeof(buffer), 0) > 0) {
	}
	close(fd);
}

/* Operations one after the other, across packets. */
struct reading {
	int fd;
	Sbeet__Control__Reply *reply;
	size_t next;
	uint64_t lost;
};

static const Sbeet__Control__JobOp *next_op(struct reading *r, const char **ret_name) {
	const Sbeet__Control__JobOp *op;

	while (!r->reply || !r->reply->events->ops || r->next == r->reply->events->ops->n_ops) {
		if (r->reply) {
			packet_free(&r->reply->base);
		}
		r->reply = receive(r->fd);
		assert_int_equal(r->reply->body_case, SBEET__CONTROL__REPLY__BODY_EVENTS);
		r->lost += r->reply->events->ops ? r->reply->events->ops->lost : 0;
		r->next = 0;
	}
	op = r->reply->events->ops->ops[r->next++];
	*ret_name = op->name ? r->reply->events->ops->names[op->name - 1] : NULL;
	return op;
}

static void reading_end(struct reading *r) {
	if (r->reply) {
		packet_free(&r->reply->base);
	}
	close(r->fd);
	harness_settle();
}

/* ---- cases ---- */

static void operations_are_asked_for_while_somebody_watches(void **state) {
	struct shim s = open_program("a");
	struct reading r;
	int idle;

	assert_false(granted(s.fd, 1));
	idle = subscribe(false);
	shim_expect_silence(s.fd); /* events alone need none */
	r = (struct reading){.fd = subscribe(true)};
	expect_record_ops(s.fd, 1, true);
	shim_done(s.fd, 1);
	assert_true(granted(s.fd, 2));
	reading_end(&r);
	expect_record_ops(s.fd, 2, false);
	shim_done(s.fd, 2);
	assert_false(granted(s.fd, 3));
	close(idle);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void operations_come_with_their_kernels_names(void **state) {
	struct reading r = {.fd = subscribe(true)};
	struct shim s = open_program("a");
	const Sbeet__Control__JobOp *op;
	const char *name;

	assert_true(granted(s.fd, 1));
	declare(s.fd, 5, "_Z3addPf");
	declare(s.fd, 6, "scan");
	send_ops(s.fd, 1, 5, 1000, 2);
	send_ops(s.fd, 1, 0, 1002, 1);
	send_ops(s.fd, 1, 6, 1003, 1);
	send_ops(s.fd, 1, 9, 1004, 1); /* never declared */
	shim_done(s.fd, 1);
	shim_close(&s); /* names outlive their program */
	for (unsigned i = 0; i < 5; i++) {
		static const char *const names[] = {"_Z3addPf", "_Z3addPf", NULL, "scan", NULL};

		op = next_op(&r, &name);
		assert_int_equal(op->session, s.session);
		assert_int_equal(op->job, 1);
		assert_int_equal(op->op->time_ns, 1000 + i);
		assert_int_equal(op->op->kind, i == 2 ? COPY : LAUNCH);
		assert_int_equal(op->op->bytes, i == 2 ? 4096 : 0);
		assert_int_equal(op->op->blocks, i == 2 ? 0 : 24);
		assert_int_equal(op->op->block_threads, i == 2 ? 0 : 64);
		assert_int_equal(op->op->stream, 7);
		assert_true(!name == !names[i]);
		if (name) {
			assert_string_equal(name, names[i]);
		}
	}
	assert_int_equal(r.lost, 0);
	reading_end(&r);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* A program that does not read is not hung up on because watchers come and go. */
static void watchers_do_not_fill_a_programs_socket(void **state) {
	struct shim s = open_program("a");

	assert_false(granted(s.fd, 1));
	for (int i = 0; i < 64; i++) {
		int fd = subscribe(true);

		expect_record_ops(s.fd, 1, true);
		close(fd);
		expect_record_ops(s.fd, 1, false);
	}
	unsubscribe(subscribe(true));
	shim_expect_silence(s.fd); /* though it could be reading */
	shim_done(s.fd, 1);
	assert_false(granted(s.fd, 2));
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Waits until the page says so. */
static void page_says(const struct steered *s, bool on) {
	while ((atomic_load(&s->page->record_ops) != 0) != on) {
		harness_settle();
	}
}

/* Programs with a page of terms read there whether somebody watches, before any job. */
static void pages_say_whether_operations_are_watched(void **state) {
	struct steered early = steered_open("early", NULL, MASK_ALL), late;
	struct reading r;
	const char *name;

	page_says(&early, false);
	close(subscribe(false));
	harness_settle();
	assert_int_equal(atomic_load(&early.page->record_ops), 0);
	r = (struct reading){.fd = subscribe(true)};
	page_says(&early, true);
	late = steered_open("late", NULL, MASK_ALL);
	page_says(&late, true);

	/* Of a job that sbeetd is not told of yet. */
	declare(late.fd, 5, "scan");
	send_ops(late.fd, 1, 5, 1000, 1);
	assert_int_equal(next_op(&r, &name)->session, late.session);
	assert_string_equal(name, "scan");
	steered_began(&late, 0, &(struct began){.job = 2, .terms = 1, .release = 1});
	reading_end(&r);
	page_says(&early, false);
	page_says(&late, false);
	shim_expect_silence(late.fd); /* the page says all */
	steered_close(&early);
	steered_close(&late);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* An older one knows of no RecordOps and sends all that it does; that is passed on, too. */
static void older_programs_are_told_nothing(void **state) {
	struct shim s = shim_open("old", MASK_ALL);
	struct reading r;
	const char *name;

	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	send_ops(s.fd, 1, 0, 500, 1);
	r = (struct reading){.fd = subscribe(true)};
	shim_expect_silence(s.fd);
	send_ops(s.fd, 1, 0, 1000, 1);
	assert_int_equal(next_op(&r, &name)->op->time_ns, 1000);
	reading_end(&r);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* More than the ring holds, while nothing is read: the newest ones are left, and how many are
 * missing is told. */
static void watchers_that_read_too_slowly_lose_the_oldest(void **state) {
	struct reading r = {.fd = subscribe(true)};
	struct shim s = open_program("a");
	const size_t n = 8 * OPS_RING;
	const char *name;
	uint64_t seen = 0, last = 0;

	assert_true(granted(s.fd, 1));
	declare(s.fd, 5, "add");
	for (size_t i = 0; i < n; i += PROTO_OPS_MAX) {
		send_ops(s.fd, 1, 5, 1 + i, PROTO_OPS_MAX);
	}
	while (last < n) {
		uint64_t time = next_op(&r, &name)->op->time_ns;

		assert_true(time > last);
		assert_string_equal(name, "add");
		last = time;
		seen++;
	}
	assert_int_equal(seen + r.lost, n);
	reading_end(&r);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void watchers_hear_what_programs_dropped(void **state) {
	struct reading r = {.fd = subscribe(true)};
	struct shim s = open_program("a");
	const char *name;

	assert_true(granted(s.fd, 1));
	send_ops(s.fd, 1, 0, 1000, 1);
	dropped = 77;
	send_ops(s.fd, 1, 0, 1001, 1);
	send_ops(s.fd, 1, 0, 1002, 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(next_op(&r, &name)->op->time_ns, 1000 + i);
	}
	assert_int_equal(r.lost, 77);
	shim_done(s.fd, 1);
	reading_end(&r);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* In another user's process an assertion of cmocka has nowhere to jump to. */
static void watch_as_other(int tell, int listen, uint64_t session) {
	char byte = 1;
	int fd;

	if (setgroups(0, NULL) < 0 || setresgid(OTHER, OTHER, OTHER) < 0 ||
	    setresuid(OTHER, OTHER, OTHER) < 0) {
		_exit(99);
	}
	harness.pid = 0;
	fd = subscribe(true);
	if (write(tell, &byte, 1) != 1 || read(listen, &byte, 1) != 1) {
		_exit(98);
	}
	for (;;) {
		Sbeet__Control__Reply *reply = receive(fd);

		if (reply->events->ops) {
			_exit(1);
		}
		for (size_t i = 0; i < reply->events->n_events; i++) {
			const Sbeet__Control__Event *e = reply->events->events[i];

			if (e->kind == SBEET__CONTROL__EVENT_KIND__EVENT_KIND_SESSION_END &&
			    e->session == session) {
				_exit(0);
			}
		}
	}
}

static void operations_of_other_users_are_not_told(void **state) {
	int up[2], down[2], status;
	struct reading own;
	const char *name;
	struct shim s;
	char path[128], byte;
	pid_t pid;

	if (geteuid() != 0) {
		skip();
	}
	assert_int_equal(chmod(harness.directory, 0755), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", harness.directory,
			 i ? "shim.sock" : "control.sock");
		assert_int_equal(chmod(path, 0666), 0);
	}
	assert_int_equal(pipe(up), 0);
	assert_int_equal(pipe(down), 0);
	s = open_program("a");
	assert_false(granted(s.fd, 1));
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(s.fd);
		watch_as_other(up[1], down[0], s.session);
	}
	close(up[1]);
	assert_int_equal(read(up[0], &byte, 1), 1);
	shim_expect_silence(s.fd); /* its operations are not asked for */
	own = (struct reading){.fd = subscribe(true)};
	expect_record_ops(s.fd, 1, true);
	declare(s.fd, 5, "secret");
	send_ops(s.fd, 1, 5, 1000, 3);
	for (int i = 0; i < 3; i++) { /* then the other one would have them, too */
		next_op(&own, &name);
		assert_string_equal(name, "secret");
	}
	assert_int_equal(write(down[1], &byte, 1), 1);
	shim_done(s.fd, 1);
	shim_close(&s);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	reading_end(&own);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(operations_are_asked_for_while_somebody_watches),
		CASE(operations_come_with_their_kernels_names),
		CASE(watchers_do_not_fill_a_programs_socket),
		CASE(pages_say_whether_operations_are_watched),
		CASE(older_programs_are_told_nothing),
		CASE(watchers_that_read_too_slowly_lose_the_oldest),
		CASE(watchers_hear_what_programs_dropped),
		CASE(operations_of_other_users_are_not_told),
	};

	return cmocka_run_group_tests_name("daemon-ops", tests, NULL, NULL);
}
