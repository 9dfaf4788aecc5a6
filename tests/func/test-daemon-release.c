/*
 * test-daemon-release.c: when jobs are released and due, and that what a program was late by and
 * what it waited for are two figures.
 *
 * Nothing here depends on how long anything takes: times are what the clients claim, or are
 * compared with what sbeetd says of them.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "proto/packet.h"

#define PERIOD	 (8 * NSEC_PER_MSEC)
#define DEADLINE (5 * NSEC_PER_MSEC)

static struct harness harness;

static int setup(void **state) {
	harness_prepare(&harness);
	harness_start(&harness, (const char *const[]){"--gpus", "8", "--policy", "fcfs", NULL});
	return 0;
}

static int teardown(void **state) {
	harness_clean(&harness);
	return 0;
}

static int open_task(nsec_t offset) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	char name[] = "camera";
	int fd = shim_connect();

	spec.name = name;
	spec.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	spec.period_ns = PERIOD;
	spec.deadline_ns = DEADLINE;
	spec.offset_ns = offset;
	shim_hello(fd, "camera", &spec, MASK_ALL);
	packet_free(&shim_receive(fd)->base); /* Welcome */
	return fd;
}

static nsec_t wait_until(nsec_t at) {
	while (nsec_now() < at) {
		usleep(100);
	}
	return nsec_now();
}

/* Requests a job now and waits for its grant. Return: when it was requested. */
static nsec_t begin(int fd, uint64_t job, nsec_t *ret_deadline) {
	nsec_t at = nsec_now();

	shim_request_at(fd, job, at, 0);
	*ret_deadline = shim_granted(fd, job).deadline_ns;
	return at;
}

static nsec_t end(int fd, uint64_t job, nsec_t not_before) {
	nsec_t at = wait_until(not_before);

	shim_done_at(fd, job, at);
	return at;
}

/* A loop that sleeps after each job drifts against any grid of its period. */
static void job_is_due_from_its_request_where_no_release_is_certain(void **state) {
	int fd = open_task(0);

	for (uint64_t job = 1; job <= 30; job++) {
		nsec_t deadline, at = begin(fd, job, &deadline);

		assert_int_equal(deadline, at + DEADLINE);
		at = end(fd, job, job % 7 ? 0 : at + 2 * PERIOD);
		wait_until(at + PERIOD - NSEC_PER_MSEC * (job % 5));
	}
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* It paces itself, a job runs on beyond the next release, and it asks again at once. */
static void job_is_due_from_the_release_that_its_predecessor_held_up(void **state) {
	nsec_t deadline, at, ended, due;
	Sbeet__Control__Status *status;
	int fd = open_task(0);

	begin(fd, 1, &deadline);
	ended = end(fd, 1, 0);
	wait_until(ended + PERIOD / 2);
	at = begin(fd, 2, &deadline);
	assert_int_equal(deadline, at + DEADLINE);
	ended = end(fd, 2, at + PERIOD);
	due = ended - (ended - at) % PERIOD;
	shim_request_at(fd, 3, ended, 0);
	assert_int_equal(shim_granted(fd, 3).deadline_ns, due + DEADLINE);

	status = status_get();
	assert_int_equal(status->n_jobs, 1);
	assert_int_equal(status->jobs[0]->release_ns, due);
	assert_int_equal(status->jobs[0]->requested_ns, ended);
	assert_int_equal(status->jobs[0]->deadline_ns, due + DEADLINE);
	status_free(status);

	shim_done(fd, 3);
	harness_settle();
	status = status_get();
	assert_int_equal(status->sessions[0]->max_started_late_ns, ended - due);
	status_free(status);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void job_of_a_task_with_an_offset_is_due_from_its_grid(void **state) {
	const nsec_t offset = NSEC_PER_USEC;
	Sbeet__Control__Status *status;
	nsec_t deadline, at, release;
	int fd = open_task(offset);

	at = begin(fd, 1, &deadline);
	release = deadline - DEADLINE;
	assert_true(release <= at && at - release < PERIOD);
	status = status_get();
	assert_int_equal((release - status->sessions[0]->connected_ns - offset) % PERIOD, 0);
	assert_int_equal(status->jobs[0]->release_ns, release);
	assert_int_equal(status->jobs[0]->requested_ns, at);
	status_free(status);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* What another program makes it wait for is waiting, not a late start. */
static void waiting_is_counted_from_the_request(void **state) {
	Sbeet__Control__Status *status;
	nsec_t at, granted, release;
	int fd = open_task(1); /* with a grid: released before it is requested */
	struct shim other = shim_open("other", MASK_ALL);

	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_granted(other.fd, 1);
	at = wait_until(nsec_now() + NSEC_PER_MSEC);
	shim_request_at(fd, 1, at, 0);
	harness_settle();
	wait_until(at + NSEC_PER_MSEC);
	shim_done(other.fd, 1);
	release = shim_granted(fd, 1).deadline_ns - DEADLINE;
	status = status_get();
	assert_int_equal(status->n_jobs, 1);
	granted = status->jobs[0]->granted_ns;
	status_free(status);
	shim_done(fd, 1);
	harness_settle();

	status = status_get();
	assert_string_equal(status->sessions[0]->task, "camera");
	assert_int_equal(status->sessions[0]->max_wait_ns, granted - at);
	assert_int_equal(status->sessions[0]->max_started_late_ns, at - release);
	status_free(status);
	shim_close(&other);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* The client says that it asks at @claimed and is done at @finished, which is not true. */
static void claim(int fd, uint64_t job, nsec_t claimed, nsec_t finished) {
	nsec_t before = nsec_now(), requested, sent, after;
	Sbeet__Control__Status *status;

	shim_request_at(fd, job, claimed, 0);
	requested = shim_granted(fd, job).deadline_ns - DEADLINE;
	sent = nsec_now();
	assert_in_range(requested, claimed && claimed < before ? before - NSEC_PER_SEC : before,
			sent);
	shim_done_at(fd, job, finished);
	harness_settle();
	after = nsec_now();
	status = status_get();
	assert_in_range(status->sessions[0]->last_response_ns, sent - requested, after - requested);
	assert_in_range(status->sessions[0]->max_wait_ns, 0, after - before + NSEC_PER_SEC);
	status_free(status);
}

static void times_are_believed_as_far_as_they_can_be_true(void **state) {
	const nsec_t hour = 3600 * NSEC_PER_SEC;
	int fd = open_task(0);

	claim(fd, 1, 0, 0);
	claim(fd, 2, 1, 1);
	claim(fd, 3, nsec_now() - NSEC_PER_SEC, 1); /* done before it was released */
	claim(fd, 4, nsec_now() + hour, nsec_now() + hour);
	claim(fd, 5, PROTO_TIME_MAX_NS, PROTO_TIME_MAX_NS);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Asks for a job now, marked as released at @marked and due @own after that. Return: when. */
static nsec_t mark(int fd, uint64_t job, nsec_t marked, nsec_t own) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	uint8_t uuid[PROTO_UUID_BYTES] = {1};
	nsec_t at = nsec_now();

	request.job = job;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = sizeof(uuid);
	request.release_ns = at;
	request.enforcement_mask = MASK_ALL;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	request.marked_ns = marked;
	request.own_deadline_ns = own;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	shim_send(fd, &m);
	return at;
}

/* The program's word stands over any grid, within bounds. */
static void job_is_released_where_the_program_has_marked_it(void **state) {
	const nsec_t ms = NSEC_PER_MSEC;
	int fd = open_task(1);
	Sbeet__Control__Status *status;
	nsec_t at, told;

	told = nsec_now() - 123457;
	at = mark(fd, 1, told, 0);
	assert_int_equal(shim_granted(fd, 1).deadline_ns, told + DEADLINE);
	status = status_get();
	assert_int_equal(status->jobs[0]->release_ns, told);
	assert_int_equal(status->jobs[0]->requested_ns, at);
	status_free(status);
	shim_done(fd, 1);
	harness_settle();
	status = status_get();
	assert_int_equal(status->sessions[0]->max_started_late_ns, at - told);
	status_free(status);

	at = mark(fd, 2, 1, 0); /* long ago */
	assert_int_equal(shim_granted(fd, 2).deadline_ns, at - NSEC_PER_SEC + DEADLINE);
	shim_done(fd, 2);
	at = mark(fd, 3, nsec_now() + NSEC_PER_SEC, 0); /* to come */
	assert_int_equal(shim_granted(fd, 3).deadline_ns, at + DEADLINE);
	shim_done(fd, 3);
	told = nsec_now();
	mark(fd, 4, told, 2 * ms);
	assert_int_equal(shim_granted(fd, 4).deadline_ns, told + 2 * ms);
	shim_done(fd, 4);
	told = nsec_now();
	mark(fd, 5, told, 100 * ms);
	assert_int_equal(shim_granted(fd, 5).deadline_ns, told + PERIOD);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Threads with jobs of their own are not held up by each other. */
static void job_is_not_held_up_by_another_threads(void **state) {
	nsec_t deadline, at, ended;
	int fd = open_task(0);

	begin(fd, 1, &deadline);
	ended = end(fd, 1, 0);
	wait_until(ended + PERIOD / 2);
	at = begin(fd, 2, &deadline);
	ended = end(fd, 2, at + PERIOD);
	shim_request_at(fd, 3, ended, 77);
	assert_int_equal(shim_granted(fd, 3).deadline_ns, ended + DEADLINE);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(job_is_due_from_its_request_where_no_release_is_certain),
		CASE(job_is_due_from_the_release_that_its_predecessor_held_up),
		CASE(job_of_a_task_with_an_offset_is_due_from_its_grid),
		CASE(waiting_is_counted_from_the_request),
		CASE(times_are_believed_as_far_as_they_can_be_true),
		CASE(job_is_released_where_the_program_has_marked_it),
		CASE(job_is_not_held_up_by_another_threads),
	};

	return cmocka_run_group_tests_name("daemon-release", tests, NULL, NULL);
}
