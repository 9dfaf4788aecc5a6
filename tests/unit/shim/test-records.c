/*
 * test-records.c: what is written into the rings comes out at the connection, whole and in order:
 * operations like the one before, others, full rings, rings that wrap, two threads. The connection
 * is replaced (the linker's --wrap).
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "shim/conn.h"
#include "shim/records.h"
#include "shim/worker.h"

#define LAUNCH SBEET__OP_KIND__OP_KIND_LAUNCH
#define COPY   SBEET__OP_KIND__OP_KIND_COPY_HTOD
#define WHOLE  SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE

#define SENT_MAX 65536

/* What has arrived at the connection. */
static struct {
	struct {
		uint64_t job, time, blocks, bytes;
		uint32_t kernel;
	} list[SENT_MAX];
	size_t n, batches, declared;
} sent;

/* Of jobs under terms: they are told of like this. */
static int books_answer = -ENOENT;
static uint64_t n_dropped; /* that batches said */

int __wrap_conn_send(uint64_t job, const Sbeet__ToDaemon *m);
int __wrap_books_tell_of(uint64_t job, const Sbeet__ToDaemon *m);
uint32_t __wrap_conn_declare(uint64_t job, const struct kernel *k);

int __wrap_conn_send(uint64_t job, const Sbeet__ToDaemon *m) {
	assert_true(job > 0);
	assert_int_equal(m->body_case, SBEET__TO_DAEMON__BODY_OPS);
	assert_in_range(m->ops->n_ops, 1, PROTO_OPS_MAX);
	for (size_t i = 0; i < m->ops->n_ops; i++) {
		const Sbeet__Op *op = m->ops->ops[i];

		assert_true(sent.n < SENT_MAX);
		sent.list[sent.n].job = m->ops->job;
		sent.list[sent.n].time = op->time_ns;
		sent.list[sent.n].blocks = op->blocks;
		sent.list[sent.n].bytes = op->bytes;
		sent.list[sent.n].kernel = op->kernel;
		sent.n++;
	}
	sent.batches++;
	n_dropped += m->ops->dropped;
	return 0;
}

int __wrap_books_tell_of(uint64_t job, const Sbeet__ToDaemon *m) {
	return books_answer < 0 ? books_answer : __wrap_conn_send(job, m);
}

/* Kernels are numbers here. */
uint32_t __wrap_conn_declare(uint64_t job, const struct kernel *k) {
	sent.declared++;
	return (uint32_t)(uintptr_t)k;
}

static int setup(void **state) {
	memset(&sent, 0, sizeof(sent));
	books_answer = -ENOENT;
	n_dropped = 0;
	return 0;
}

static void push(uint64_t job, uintptr_t kernel, uint64_t blocks, nsec_t time) {
	const struct record r = {.job = job,
				 .kernel = (const struct kernel *)kernel,
				 .blocks = blocks,
				 .kind = LAUNCH,
				 .enforcement = WHOLE};

	records_push(worker_get(), &r, time);
}

/* Nothing waits for jobs under terms. */
static void what_finds_no_room_is_counted(void **state) {
	(void)state;
	books_answer = -EAGAIN;
	for (unsigned i = 0; i < PROTO_OPS_MAX + 3; i++) {
		push(1, 1, i, i);
	}
	records_drain();
	books_answer = -EBUSY;
	push(1, 1, 0, 1);
	records_drain();
	assert_int_equal(sent.n, 0);
	books_answer = 1;
	push(1, 1, 7, 1);
	records_drain();
	assert_int_equal(sent.n, 1);
	assert_int_equal(n_dropped, PROTO_OPS_MAX + 4);
	push(1, 1, 8, 1);
	records_drain();
	assert_int_equal(n_dropped, PROTO_OPS_MAX + 4);
}

static void records_come_out_as_they_went_in(void **state) {
	struct record copy = {.job = 1, .bytes = 4096, .kind = COPY};

	push(1, 3, 24, 100);
	push(1, 3, 24, 101);
	push(1, 3, 25, 102);
	push(1, 4, 25, 103);
	records_push(worker_get(), &copy, 104);
	push(2, 4, 25, 105);
	records_drain();
	push(2, 4, 25, 106); /* like the one that was read already */
	records_drain();
	records_drain();
	assert_int_equal(sent.n, 7);
	for (size_t i = 0; i < sent.n; i++) {
		assert_int_equal(sent.list[i].time, 100 + i);
		assert_int_equal(sent.list[i].job, i < 5 ? 1 : 2);
		assert_int_equal(sent.list[i].kernel, i < 2 ? 3 : i == 4 ? 0 : i < 3 ? 3 : 4);
		assert_int_equal(sent.list[i].blocks, i < 2 ? 24 : i == 4 ? 0 : 25);
	}
	assert_int_equal(sent.list[4].bytes, 4096);
	assert_int_equal(sent.batches, 3);
}

static void records_lose_nothing_when_the_ring_is_full(void **state) {
	const size_t n = SENT_MAX - 1;

	/* Short and long ones in a mixture that meets the ring's end at every word. */
	for (size_t i = 0; i < n; i++) {
		push(9, 3, i / 3, 1000 + i);
	}
	records_drain();
	assert_int_equal(sent.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(sent.list[i].time, 1000 + i);
		assert_int_equal(sent.list[i].blocks, i / 3);
	}
	assert_true(sent.declared < n / 100); /* not for each */
}

#define EACH 20000

static void *push_many(void *data) {
	for (size_t i = 0; i < EACH; i++) {
		push((uintptr_t)data, 3, i % 5, i);
	}
	return NULL;
}

static void records_of_threads_keep_their_order(void **state) {
	size_t next[3] = {0};
	pthread_t threads[2];

	for (uintptr_t i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, push_many, (void *)(i + 1)), 0);
	}
	for (int i = 0; i < 1000; i++) {
		records_drain();
	}
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	records_drain();
	assert_int_equal(sent.n, 2 * EACH);
	for (size_t i = 0; i < sent.n; i++) {
		assert_in_range(sent.list[i].job, 1, 2);
		assert_int_equal(sent.list[i].time, next[sent.list[i].job]++);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_finds_no_room_is_counted, setup),
		cmocka_unit_test_setup(records_come_out_as_they_went_in, setup),
		cmocka_unit_test_setup(records_lose_nothing_when_the_ring_is_full, setup),
		cmocka_unit_test_setup(records_of_threads_keep_their_order, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
