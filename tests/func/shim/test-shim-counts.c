/*
 * test-shim-counts.c: a program counts what its jobs do, and tells of single operations only while
 * the daemon wants that.
 *
 * The program runs on the fake driver. The test plays the daemon by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mini.h"
#include "proto/limits.h"
#include "proto/units.h"

/* What the program has said of a job until its end, and of its kernels. */
struct said {
	unsigned n_ops, n_kernels;
	char kernel[64]; /* the name of the last one declared */
	uint32_t id;
	uint64_t launches; /* of that one, as counted so far */
	Sbeet__JobDone done;
};

/* Of blocks as most launches of the guest have them. */
static void read_kernel_count(const Sbeet__KernelCount *count, struct said *said) {
	if (said->id == 0) {
		return; /* of another connection's job; here it is told of when it is launched */
	}
	assert_int_equal(count->kernel, said->id);
	assert_int_equal(count->block_threads, 64);
	assert_true(count->blocks >= 24 * count->launches); /* some have more */
	assert_true(count->launches > said->launches);
	said->launches = count->launches;
}

static void read_until_done(int fd, uint64_t job, struct said *said) {
	bool over = false;

	while (!over) {
		Sbeet__ToDaemon *m = mini_next(fd);

		assert_non_null(m);
		switch (m->body_case) {
		case SBEET__TO_DAEMON__BODY_OPS:
			assert_int_equal(m->ops->job, job);
			said->n_ops += (unsigned)m->ops->n_ops;
			break;
		case SBEET__TO_DAEMON__BODY_KERNEL:
			said->n_kernels++;
			said->id = m->kernel->id;
			strncpy(said->kernel, m->kernel->name, sizeof(said->kernel) - 1);
			break;
		case SBEET__TO_DAEMON__BODY_COUNTS:
			for (size_t i = 0; i < m->counts->n_kernels; i++) {
				read_kernel_count(m->counts->kernels[i], said);
			}
			break;
		default:
			assert_int_equal(m->body_case, SBEET__TO_DAEMON__BODY_DONE);
			assert_int_equal(m->done->job, job);
			said->done = *m->done;
			over = true;
			break;
		}
		mini_free(m);
	}
}

static void grant(int fd, uint64_t job, bool record_ops) {
	Sbeet__Grant grant = SBEET__GRANT__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	uint8_t uuid[PROTO_UUID_BYTES] = {1}, sms[] = {0xff, 0xff, 0xff, 0xff, 0xff};

	grant.job = job;
	grant.gpu_uuid.data = uuid;
	grant.gpu_uuid.len = sizeof(uuid);
	grant.sms.data = sms;
	grant.sms.len = sizeof(sms);
	grant.enforcement = WHOLE;
	grant.gpu_sms = 40;
	grant.record_ops = record_ops;
	m.body_case = SBEET__TO_SHIM__BODY_GRANT;
	m.grant = &grant;
	mini_send(fd, &m);
}

static void record_ops(int fd, uint64_t job, bool on) {
	Sbeet__RecordOps record = SBEET__RECORD_OPS__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	record.job = job;
	record.on = on;
	m.body_case = SBEET__TO_SHIM__BODY_RECORD_OPS;
	m.record_ops = &record;
	mini_send(fd, &m);
}

/* Counts may come before it. */
static uint64_t next_request(int fd) {
	uint64_t job = 0;

	while (job == 0) {
		Sbeet__ToDaemon *m = mini_next(fd);

		assert_non_null(m);
		if (m->body_case == SBEET__TO_DAEMON__BODY_REQUEST) {
			job = m->request->job;
		} else {
			assert_int_equal(m->body_case, SBEET__TO_DAEMON__BODY_COUNTS);
		}
		mini_free(m);
	}
	return job;
}

/* A job that a copy has opened. */
static uint64_t open_job(struct mini *m, int fd, bool recorded) {
	uint64_t job;

	mini_tell(m, "@0 copy");
	job = next_request(fd);
	grant(fd, job, recorded);
	mini_answers(m, "0 copy 0");
	return job;
}

static void shim_tells_no_operations_unasked(void **state) {
	struct mini *m = *state;
	struct said said = {0};
	uint64_t job;
	nsec_t before;
	int fd;

	m->counts = true;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 module", 0);
	job = open_job(m, fd, false);
	before = nsec_now();
	mini_do(m, "@0 launch 1500", 0);
	mini_do(m, "@0 sync", 0);
	read_until_done(fd, job, &said);
	assert_int_equal(said.n_ops, 0);
	assert_int_equal(said.done.launches, 1500);
	assert_int_equal(said.done.waves, 1500); /* the GPU holds more blocks than one has */
	assert_int_equal(said.done.copies, 1);
	assert_int_equal(said.done.bytes, 16);
	assert_in_range(said.done.launched_ns, before, said.done.finished_ns);
	assert_false(said.done.unconfined);
	assert_int_equal(said.n_kernels, 1); /* though it opened no job */
	assert_string_equal(said.kernel, "nothing");

	/* The next job's sums are its own, and its kernel is known. */
	job = open_job(m, fd, false);
	mini_do(m, "@0 launch", 0);
	mini_do(m, "@0 sync", 0);
	said.n_kernels = 0;
	read_until_done(fd, job, &said);
	assert_int_equal(said.done.launches, 1);
	assert_int_equal(said.n_kernels, 0);

	/* Two of these blocks fit on each of the fake GPU's 80 SMs. */
	job = open_job(m, fd, false);
	mini_do(m, "@0 blocks 160", 0);
	mini_do(m, "@0 blocks 161", 0);
	mini_do(m, "@0 blocks 500", 0);
	mini_do(m, "@0 sync", 0);
	read_until_done(fd, job, &said);
	assert_int_equal(said.done.waves, 1 + 2 + 4);
	job = open_job(m, fd, false);
	mini_do(m, "@0 sync", 0);
	read_until_done(fd, job, &said);
	assert_int_equal(said.done.launches, 0);
	assert_int_equal(said.done.launched_ns, 0);
	close(fd);
}

static void shim_tells_operations_of_jobs_that_are_watched(void **state) {
	struct mini *m = *state;
	struct said said = {0};
	uint64_t job;
	int fd;

	m->counts = true;
	fd = mini_begin(m, mini_plain);
	job = open_job(m, fd, true);
	mini_do(m, "@0 launch 600", 0);
	mini_do(m, "@0 sync", 0);
	read_until_done(fd, job, &said);
	assert_int_equal(said.n_ops, 601);
	assert_int_equal(said.done.launches, 600);

	/* The next one again is not. */
	said = (struct said){0};
	job = open_job(m, fd, false);
	mini_do(m, "@0 launch 600", 0);
	mini_do(m, "@0 sync", 0);
	read_until_done(fd, job, &said);
	assert_int_equal(said.n_ops, 0);
	close(fd);
}

/* The messages are read within a moment, not at once: so until it has begun, or ended. */
static void shim_begins_and_ends_to_tell_operations_of_open_jobs(void **state) {
	struct mini *m = *state;
	uint64_t job;
	int fd;

	m->counts = true;
	fd = mini_begin(m, mini_plain);
	job = open_job(m, fd, false);
	record_ops(fd, job + 1, true); /* another one's */
	record_ops(fd, job, true);
	for (bool told = false; !told;) {
		mini_do(m, "@0 launch", 0);
		while (!told && !mini_is_quiet(fd)) {
			Sbeet__ToDaemon *r = mini_next(fd);

			told = r->body_case == SBEET__TO_DAEMON__BODY_OPS;
			mini_free(r);
		}
	}
	record_ops(fd, job, false);
	for (unsigned quiet = 0; quiet < 1000;) {
		mini_do(m, "@0 launch", 0);
		quiet++;
		while (!mini_is_quiet(fd)) {
			Sbeet__ToDaemon *r = mini_next(fd);

			quiet = r->body_case == SBEET__TO_DAEMON__BODY_OPS ? 0 : quiet;
			mini_free(r);
		}
	}
	close(fd);
}

/* Soon after a job, though nothing more happens; with the whole of it. */
static void shim_tells_how_often_kernels_were_launched(void **state) {
	struct mini *m = *state;
	struct said said = {0};
	size_t n_jobs = 1;
	uint64_t job;
	int fd;

	m->counts = true;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 module", 0);
	job = open_job(m, fd, false);
	mini_do(m, "@0 launch 7", 0);
	mini_do(m, "@1 device", 0);
	mini_do(m, "@1 launch 5", 0); /* another thread counts for itself */
	mini_do(m, "@0 sync", 0);
	read_until_done(fd, job, &said);
	while (said.launches < 12) {
		Sbeet__ToDaemon *r = mini_expect(fd, SBEET__TO_DAEMON__BODY_COUNTS);

		/* What was counted before the job's end may be told after it, and then no more. */
		assert_in_range(r->counts->n_jobs, 0, n_jobs);
		n_jobs = r->counts->n_jobs;
		if (n_jobs == 1) {
			assert_int_equal(r->counts->jobs[0]->job, job);
		}
		assert_int_equal(r->counts->n_kernels, 1);
		read_kernel_count(r->counts->kernels[0], &said);
		mini_free(r);
	}
	assert_int_equal(said.launches, 12);
	close(fd);
}

/* While a job is open its counts come from time to time. */
static void shim_tells_what_an_open_job_has_done(void **state) {
	struct mini *m = *state;
	uint64_t job, launches = 0;
	int fd;

	m->counts = true;
	fd = mini_begin(m, mini_plain);
	job = open_job(m, fd, false);
	mini_do(m, "@0 launch 3", 0);
	while (launches < 3) {
		Sbeet__ToDaemon *r = mini_expect(fd, SBEET__TO_DAEMON__BODY_COUNTS);

		for (size_t i = 0; i < r->counts->n_jobs; i++) {
			assert_int_equal(r->counts->jobs[i]->job, job);
			assert_true(r->counts->jobs[i]->launched_ns > 0);
			launches = r->counts->jobs[i]->launches;
		}
		mini_free(r);
	}
	assert_int_equal(launches, 3);
	close(fd);
}

/* A launch does not declare its kernel while the tracker has the connection: then one of the next
 * jobs does. @job is open. */
static void launch_until_declared(struct mini *m, int fd, uint64_t job, struct said *said) {
	for (;;) {
		mini_do(m, "@0 launch", 0);
		mini_do(m, "@0 sync", 0);
		read_until_done(fd, job, said);
		if (said->n_kernels > 0) {
			return;
		}
		job = open_job(m, fd, false);
	}
}

/* A kernel that is known over one connection is declared again over the next. */
static void shim_declares_kernels_to_the_next_daemon(void **state) {
	struct mini *m = *state;
	struct said said = {0};
	uint64_t job;
	int fd;

	m->counts = true;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 module", 0);
	job = open_job(m, fd, false);
	launch_until_declared(m, fd, job, &said);
	assert_int_equal(said.n_kernels, 1);
	close(fd);
	mini_tell(m, "@0 copy");
	fd = mini_accept(m);
	job = next_request(fd);
	grant(fd, job, false);
	mini_answers(m, "0 copy 0");
	said = (struct said){0};
	launch_until_declared(m, fd, job, &said);
	assert_int_equal(said.n_kernels, 1);
	assert_string_equal(said.kernel, "nothing");
	close(fd);
}

static const char *const measured[] = {"SBEET_MEASURE=1", NULL};
static const char *const unmeasured[] = {"SBEET_MEASURE=0", NULL};

static struct said sync_and_read(struct mini *m, int fd, uint64_t job) {
	struct said said = {0};

	mini_do(m, "@0 sync", 0);
	read_until_done(fd, job, &said);
	return said;
}

/* The copy is begun when they have ended: in between somebody looks at the clock. */
static void shim_tells_when_kernels_had_ended_before_a_copy_back(void **state) {
	struct mini *m = *state;
	nsec_t running, ended;
	struct said said;
	uint64_t job;
	int fd;

	m->counts = true;
	fd = mini_begin(m, measured);
	mini_do(m, "@1 hold 1", 0);
	mini_do(m, "@1 gate 1", 0);
	job = mini_open_job(m, fd);
	mini_tell(m, "@0 fetch");
	mini_do(m, "@1 questions-wait", 0);
	running = nsec_now();
	mini_do(m, "@1 hold 0", 0);
	mini_do(m, "@1 gate-wait", 0);
	ended = nsec_now();
	mini_open_gate(m, "@1 gate 0", "0 fetch 0");
	said = (struct said){0};
	read_until_done(fd, job, &said);
	assert_in_range(said.done.kernel_end_ns, running, ended);
	assert_true(said.done.launched_ns <= running);
	assert_true(said.done.finished_ns >= ended);
	assert_int_equal(said.done.launches, 1);
	assert_int_equal(said.done.copies, 1);
	close(fd);
}

/* Of copies that may go to the host, and where no kernel follows. */
static void shim_tells_ends_of_kernels_before_copies_back_alone(void **state) {
	struct mini *m = *state;
	struct said said;
	uint64_t job;
	int fd;

	m->counts = true;
	fd = mini_begin(m, measured);
	job = mini_open_job(m, fd);
	mini_do(m, "@0 unified", 0);
	said = sync_and_read(m, fd, job);
	assert_in_range(said.done.kernel_end_ns, said.done.launched_ns, said.done.finished_ns);

	job = mini_open_job(m, fd);
	mini_do(m, "@0 copy", 0); /* from the host */
	said = sync_and_read(m, fd, job);
	assert_int_equal(said.done.kernel_end_ns, 0);

	job = mini_open_job(m, fd);
	mini_do(m, "@0 unified", 0);
	mini_do(m, "@0 launch", 0);
	said = sync_and_read(m, fd, job);
	assert_int_equal(said.done.launches, 2);
	assert_int_equal(said.done.kernel_end_ns, 0);
	close(fd);
}

static void shim_asks_about_no_kernels_while_a_stream_is_captured(void **state) {
	struct mini *m = *state;
	struct said said;
	uint64_t job;
	int fd;

	m->counts = true;
	fd = mini_begin(m, measured);
	mini_do(m, "@0 stream", 0);
	job = mini_open_job(m, fd);
	mini_do(m, "@0 capture", 0);
	mini_do(m, "@0 unified", 0);
	mini_do(m, "@0 capture-end", 0);
	mini_do(m, "@0 spoiled", 0);
	mini_do(m, "@0 questions", 0);
	said = sync_and_read(m, fd, job);
	assert_int_equal(said.done.kernel_end_ns, 0);
	close(fd);
}

static void shim_does_not_measure_unasked(void **state) {
	const char *const *const environments[] = {mini_plain, unmeasured};
	struct mini *m = *state;

	m->counts = true;
	for (unsigned i = 0; i < 2; i++) {
		int fd = mini_begin(m, environments[i]);
		uint64_t job = mini_open_job(m, fd);
		struct said said;

		mini_do(m, "@0 unified", 0);
		mini_do(m, "@0 questions", 0);
		said = sync_and_read(m, fd, job);
		assert_int_equal(said.done.launches, 1);
		assert_int_equal(said.done.kernel_end_ns, 0);
		close(fd);
		mini_end(m);
		mini_unlisten(m);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		MINI_CASE(shim_tells_no_operations_unasked),
		MINI_CASE(shim_tells_operations_of_jobs_that_are_watched),
		MINI_CASE(shim_begins_and_ends_to_tell_operations_of_open_jobs),
		MINI_CASE(shim_tells_how_often_kernels_were_launched),
		MINI_CASE(shim_tells_what_an_open_job_has_done),
		MINI_CASE(shim_declares_kernels_to_the_next_daemon),
		MINI_CASE(shim_tells_when_kernels_had_ended_before_a_copy_back),
		MINI_CASE(shim_tells_ends_of_kernels_before_copies_back_alone),
		MINI_CASE(shim_asks_about_no_kernels_while_a_stream_is_captured),
		MINI_CASE(shim_does_not_measure_unasked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
