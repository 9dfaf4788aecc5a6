/*
 * test-shim.c: the jobs of a program under libsbeet.so: what it tells the daemon of them, when they
 * begin and end, and what it makes of grants.
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

/* ---- the ordinary way ---- */

static void shim_tells_every_operation_of_a_job(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	uint32_t mask = 0;
	struct mini_sums sums;
	uint64_t job;

	mini_tell(m, "@0 copy");
	job = mini_request(fd, &mask);
	assert_int_equal(mask, 1 << 1 | 1 << 2 | 1 << 3);
	mini_grant(fd, job, WHOLE);
	mini_answers(m, "0 copy 0");
	mini_do(m, "@0 launch 1500", 0);
	mini_do(m, "@0 sync", 0);
	sums = mini_done(fd, job);
	assert_int_equal(sums.launches, 1500);
	assert_int_equal(sums.copies, 1);
	assert_false(sums.cancelled);
	mini_do(m, "@0 launches", 1500);
	close(fd);
}

/* From its first operation on. */
static void a_thread_with_a_deadline_wakes_up_on_time(void **state) {
	static const struct {
		const char *environment[2];
		int slack; /* ns */
	} cases[] = {
		{{"SBEET_DEADLINE=10ms", NULL}, 1},
		{{"SBEET_PERIOD=10ms", NULL}, 1},
		{{NULL}, 50000},
	};
	struct mini *m = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = mini_begin(m, cases[i].environment);

		mini_do(m, "@0 slack", 50000);
		mini_open_job(m, fd);
		mini_do(m, "@0 slack", cases[i].slack);
		mini_do(m, "@1 slack", 50000);
		close(fd);
		mini_end(m);
		mini_unlisten(m);
	}
}

static void a_thread_keeps_a_timer_slack_of_its_own(void **state) {
	static const char *const deadline[] = {"SBEET_DEADLINE=10ms", NULL};
	struct mini *m = *state;
	int fd = mini_begin(m, deadline);

	mini_do(m, "@0 set-slack", 0);
	mini_open_job(m, fd);
	mini_do(m, "@0 slack", 20000);
	close(fd);
}

/* It loads them beside the program's code, which says how it is to be compiled. */
static void shim_compiles_twins_as_the_program_wants(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	mini_do(m, "@0 module-of 24", 24);
	mini_do(m, "@0 module-of 40", 40);
	close(fd);
}

static void shim_numbers_jobs_upwards(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	uint64_t before = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t job = mini_open_job(m, fd);

		assert_true(job > before);
		before = job;
		mini_do(m, "@0 fetch", 0); /* a copy to the host waits for everything */
		assert_int_equal(mini_done(fd, job).copies, 1);
	}
	close(fd);
}

static void shim_ends_job_of_program_that_does_nothing(void **state) {
	struct mini *m = *state;
	uint64_t job;
	int fd;

	m->linger_ns = MINI_LINGER_SHORT_NS;
	fd = mini_begin(m, mini_plain);
	job = mini_open_job(m, fd);
	assert_int_equal(mini_done(fd, job).launches, 1);
	close(fd);
}

static void shim_keeps_job_while_work_is_under_way(void **state) {
	struct mini *m = *state;
	int fd;
	uint64_t job;

	m->linger_ns = MINI_LINGER_SHORT_NS;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 stream", 0);
	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job_by(m, fd, "@0 stream-launch", WHOLE);
	for (int i = 0; i < 100; i++) {
		mini_do(m, "@0 stream-query", 600); /* not ready */
	}
	mini_do(m, "@0 hold 0", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);
	close(fd);
}

static void shim_ends_job_at_the_event_behind_it(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	uint64_t job;

	mini_do(m, "@0 stream", 0);
	job = mini_open_job_by(m, fd, "@0 stream-launch", WHOLE);
	mini_do(m, "@0 event", 0);
	mini_do(m, "@0 event-sync", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);
	close(fd);
}

/* Nobody else can ask about a thread's own default stream: the tracker marks the end of it on the
 * legacy one, which comes after it. */
static void shim_follows_the_default_stream_of_a_thread(void **state) {
	struct mini *m = *state;
	uint64_t job;
	int fd;

	m->linger_ns = MINI_LINGER_SHORT_NS;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job_by(m, fd, "@0 thread-launch", WHOLE);
	mini_do(m, "@0 events-wait", 0); /* it has asked for the mark, in vain */
	mini_do(m, "@0 hold 0", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);
	mini_do(m, "@0 events", 0);
	close(fd);
}

static void shim_follows_streams_and_contexts_that_go(void **state) {
	struct mini *m = *state;
	int fd;
	uint64_t job;

	m->linger_ns = MINI_LINGER_SHORT_NS;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 stream", 0);
	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job_by(m, fd, "@0 stream-launch", WHOLE);
	mini_do(m, "@0 stream-destroy", 0);
	mini_do(m, "@0 hold 0", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);

	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job(m, fd);
	mini_do(m, "@0 release", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);
	close(fd);
}

/* The tracker stands at the gate, within the driver, while the program takes the context down by
 * @command: that waits. */
static void take_context_down(struct mini *m, const char *command, const char *answer) {
	mini_do(m, "@0 gate-wait", 0);
	mini_tell(m, command);
	/* Time enough for one that does not wait. */
	for (int i = 0; i < 1000; i++) {
		mini_do(m, "@0 trampled", 0);
	}
	mini_open_gate(m, "@0 gate 0", answer);
	mini_do(m, "@0 trampled", 0);
}

/* A confined job is over, and the tracker is reading what its twins counted, while the program
 * takes the context down by @command: it must wait, or the tracker reads memory that is gone. */
static void check_context_waits(struct mini *m, const char *command, const char *answer) {
	uint64_t job;
	int fd;

	m->linger_ns = MINI_LINGER_SHORT_NS;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 module", 0);
	mini_do(m, "@1 device", 0);
	mini_do(m, "@1 release", 0); /* retained twice: the next release is the last */
	mini_do(m, "@0 gate 1", 0);
	job = mini_open_job_by(m, fd, "@0 launch", COUNT);
	mini_do(m, "@0 twin-launches", 1);
	take_context_down(m, command, answer);
	assert_int_equal(mini_done(fd, job).launches, 1);
	close(fd);
}

static void shim_keeps_released_context_until_its_job_is_closed(void **state) {
	check_context_waits(*state, "@1 release", "1 release 0");
}

static void shim_keeps_destroyed_context_until_its_job_is_closed(void **state) {
	check_context_waits(*state, "@1 context-destroy", "1 context-destroy 0");
}

static void shim_keeps_detached_context_until_its_job_is_closed(void **state) {
	check_context_waits(*state, "@1 context-detach", "1 context-detach 0");
}

/* The context goes while the tracker makes an event in it, which does not come: nobody may destroy
 * that afterwards, for it has gone with the context. */
static void shim_forgets_events_of_contexts_that_go(void **state) {
	struct mini *m = *state;
	uint64_t job;
	int fd;

	m->linger_ns = MINI_LINGER_SHORT_NS;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@1 device", 0);
	mini_do(m, "@1 release", 0); /* retained twice: the next release is the last */
	mini_do(m, "@0 gate 1", 0);
	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job_by(m, fd, "@0 thread-launch", WHOLE);
	take_context_down(m, "@1 release", "1 release 0");
	assert_int_equal(mini_done(fd, job).launches, 1);
	mini_do(m, "@0 events", 1);

	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 device", 0);
	mini_do(m, "@0 stream", 0);
	job = mini_open_job_by(m, fd, "@0 stream-launch", WHOLE);
	assert_int_equal(mini_done(fd, job).launches, 1);
	mini_do(m, "@0 events", 1);
	close(fd);
}

/* Answers of success by other threads than the first, until it has answered a thousand times: time
 * enough for what does not wait. */
static unsigned answered_meanwhile(struct mini *m) {
	char answer[MINI_ANSWER_MAX];
	unsigned n = 0;

	for (int i = 0; i < 1000; i++) {
		mini_tell(m, "@0 trampled");
		for (mini_answer(m, answer); *answer != '0'; mini_answer(m, answer)) {
			assert_string_equal(strrchr(answer, ' '), " 0");
			n++;
		}
		assert_string_equal(answer, "0 trampled 0");
	}
	return n;
}

/* A thread retains the context while another one's release, so far the last one, takes it down: it
 * is held from then on, and goes with no release but that thread's own. */
static void shim_counts_who_retains_a_context_that_goes(void **state) {
	struct mini *m = *state;
	char answer[MINI_ANSWER_MAX];
	unsigned n = 0;
	uint64_t job;
	int fd;

	m->linger_ns = MINI_LINGER_SHORT_NS;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 gate 1", 0);
	job = mini_open_job_by(m, fd, "@0 thread-launch", WHOLE);
	mini_do(m, "@0 gate-wait", 0);
	mini_tell(m, "@1 release"); /* waits for the tracker, who stands at the gate */
	n += answered_meanwhile(m);
	mini_tell(m, "@2 device");
	n += answered_meanwhile(m);
	mini_tell(m, "@0 gate 0");
	for (; n < 3; n++) {
		mini_answer(m, answer);
		assert_string_equal(strrchr(answer, ' '), " 0");
	}
	assert_int_equal(mini_done(fd, job).launches, 1);

	mini_do(m, "@0 module", 0);
	mini_do(m, "@3 device", 0);
	mini_do(m, "@3 release", 0);
	mini_open_job_by(m, fd, "@0 launch", COUNT);
	mini_do(m, "@0 twin-launches", 1);
	close(fd);
}

/* Somebody else has attached to it: it stays, with the twins of its kernels. */
static void shim_keeps_context_that_others_are_attached_to(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	mini_do(m, "@0 module", 0);
	mini_do(m, "@0 context-attach", 0);
	mini_do(m, "@0 context-detach", 0);
	mini_open_job_by(m, fd, "@0 launch", COUNT);
	mini_do(m, "@0 twin-launches", 1);
	close(fd);
}

static void shim_lets_threads_have_jobs_of_their_own(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_by_thread);
	uint64_t jobs[2];

	mini_do(m, "@1 device", 0);
	for (int i = 0; i < 2; i++) {
		Sbeet__ToDaemon *r;

		mini_tell(m, i ? "@1 launch" : "@0 launch");
		r = mini_expect(fd, SBEET__TO_DAEMON__BODY_REQUEST);
		assert_true(r->request->tid != 0);
		jobs[i] = r->request->job;
		mini_free(r);
	}
	/* Both wait on one connection; the later one comes first. */
	mini_grant(fd, jobs[1], WHOLE);
	mini_answers(m, "1 launch 0");
	mini_grant(fd, jobs[0], WHOLE);
	mini_answers(m, "0 launch 0");
	mini_do(m, "@0 sync", 0);
	close(fd);
}

static void shim_has_one_job_a_process_otherwise(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	uint64_t job;

	mini_do(m, "@1 device", 0);
	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job(m, fd);
	mini_do(m, "@1 launch", 0);
	mini_do(m, "@1 launch 10", 0);
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
	assert_int_equal(mini_done(fd, job).launches, 12);
	close(fd);
}

static void shim_has_jobs_on_each_gpu(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	Sbeet__ToDaemon *r;
	uint64_t job;

	job = mini_open_job(m, fd);
	mini_do(m, "@0 sync", 0);
	mini_done(fd, job);
	mini_do(m, "@1 device 1", 0);
	mini_tell(m, "@0 launch"); /* waits, which does not keep the other GPU's job from coming */
	job = mini_request(fd, NULL);
	mini_tell(m, "@1 launch");
	r = mini_expect(fd, SBEET__TO_DAEMON__BODY_REQUEST);
	assert_int_equal(r->request->gpu_uuid.data[0], 2);
	mini_grant(fd, r->request->job, WHOLE);
	mini_free(r);
	mini_answers(m, "1 launch 0");
	mini_grant(fd, job, WHOLE);
	mini_answers(m, "0 launch 0");
	close(fd);
}

static void shim_leaves_captures_alone(void **state) {
	struct mini *m = *state;
	int fd;
	uint32_t mask = 0;
	uint64_t job;

	m->linger_ns = MINI_LINGER_SHORT_NS;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 stream", 0);
	mini_do(m, "@0 capture", 0);
	mini_do(m, "@0 stream-launch 3", 0); /* lines of a graph, not work: nobody is asked */
	mini_do(m, "@0 capture-end", 0);
	assert_true(mini_is_quiet(fd));
	mini_tell(m, "@0 graph");
	job = mini_request(fd, &mask);
	assert_int_equal(mask, 1 << WHOLE);
	mini_grant(fd, job, WHOLE);
	mini_answers(m, "0 graph 0");
	mini_do(m, "@0 stream-sync", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);

	/* A job is open and quiet while the program captures: the tracker must not ask. */
	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job(m, fd);
	mini_do(m, "@0 capture", 0);
	mini_do(m, "@0 stream-launch 2", 0);
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 capture-end", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);
	mini_do(m, "@0 spoiled", 0);
	close(fd);
}

/* ---- grants that do not fit, or are taken back ---- */

static void shim_finishes_job_that_a_kernel_does_not_fit(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	struct mini_sums sums;
	uint32_t mask = 0;
	nsec_t called;
	uint64_t job;

	mini_do(m, "@0 hold 1", 0);
	mini_tell(m, "@0 copy");
	job = mini_request(fd, &mask);
	assert_true(mask & 1 << COUNT);
	mini_grant(fd, job, COUNT);
	mini_answers(m, "0 copy 0");
	mini_tell(m, "@0 launch"); /* a kernel that nobody knows can't be confined */
	mini_do(m, "@1 launches", 0);
	mini_do(m, "@1 hold 0", 0);
	sums = mini_done(fd, job);
	assert_int_equal(sums.copies, 1);
	job = mini_request_at(fd, &mask, &called);
	assert_int_equal(mask, 1 << WHOLE);
	assert_true(called <= sums.finished_ns); /* its wait for the job before counts */
	mini_grant(fd, job, WHOLE);
	mini_answers(m, "0 launch 0");
	mini_do(m, "@0 sync", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);

	/* The pattern is known now: the copy before it asks for the whole GPU at once. */
	mini_tell(m, "@0 copy");
	job = mini_request(fd, &mask);
	assert_int_equal(mask, 1 << WHOLE);
	mini_grant(fd, job, WHOLE);
	mini_answers(m, "0 copy 0");
	close(fd);
}

static void send_revoke(int fd, uint64_t job) {
	Sbeet__Revoke revoke = SBEET__REVOKE__INIT;
	Sbeet__ToShim message = SBEET__TO_SHIM__INIT;

	revoke.job = job;
	revoke.reason = (char *)"test";
	message.body_case = SBEET__TO_SHIM__BODY_REVOKE;
	message.revoke = &revoke;
	mini_send(fd, &message);
}

static void shim_starts_nothing_more_after_revoke(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	uint64_t job;

	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job(m, fd);
	send_revoke(fd, job);
	mini_do(m, "@1 hold 0", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);
	mini_open_job(m, fd);
	close(fd);
}

/*
 * Grant and Revoke in one breath: whoever reads the second must know the job of the first. Thread
 * 0's launch may enter that job before the second is read, or find it closed and ask again; what it
 * launches after that must not enter it. Messages are read in their order, so the refusal's effect
 * on thread 1 tells that the Revoke was read.
 */
static void shim_heeds_a_revoke_right_behind_the_grant(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_by_thread);
	bool launched = false, over = false, read = false;
	struct mini_sums sums = {0};
	char answer[MINI_ANSWER_MAX];
	uint64_t first, other;

	mini_do(m, "@1 device", 0);
	mini_do(m, "@0 hold 1", 0);
	mini_tell(m, "@1 launch");
	other = mini_request(fd, NULL);
	mini_tell(m, "@0 launch");
	first = mini_request(fd, NULL);
	mini_grant(fd, first, WHOLE);
	send_revoke(fd, first);
	mini_error(fd, other, SBEET__ERROR_CODE__ERROR_CODE_NO_GPU, "test");
	while (!read || (!launched && !over)) {
		/* What comes next from the shim of a job that is over is its next request. */
		if (over || mini_wait(m, fd)) {
			mini_answer(m, answer);
			assert_string_equal(answer + 1, " launch 0");
			*(answer[0] == '0' ? &launched : &read) = true;
		} else {
			over = mini_read(fd, first, &sums);
		}
	}
	if (launched) {
		mini_tell(m, "@0 launch");
		mini_do(m, "@1 hold 0", 0);
		while (!mini_read(fd, first, &sums)) {
		}
		assert_int_equal(sums.launches, 1);
	} else {
		assert_true(sums.cancelled);
		mini_do(m, "@1 hold 0", 0);
	}
	mini_grant(fd, mini_request(fd, NULL), WHOLE);
	mini_answers(m, "0 launch 0");
	close(fd);
}

/* ---- waiting awake ---- */

/* The grants come while the reader looks for them, after it has fallen asleep, and by way of it to
 * another thread. */
static void shim_takes_grants_awake_and_asleep(void **state) {
	static const uint64_t spins[] = {1, PROTO_SPIN_MAX_NS};
	struct mini *m = *state;
	uint64_t jobs[2];
	int fd;

	for (size_t i = 0; i < sizeof(spins) / sizeof(spins[0]); i++) {
		m->spin_ns = spins[i];
		fd = mini_begin(m, mini_by_thread);
		mini_do(m, "@1 device", 0);
		mini_tell(m, "@0 launch");
		jobs[0] = mini_request(fd, NULL);
		mini_tell(m, "@1 launch");
		jobs[1] = mini_request(fd, NULL);
		mini_grant(fd, jobs[1], WHOLE);
		mini_answers(m, "1 launch 0");
		mini_grant(fd, jobs[0], WHOLE);
		mini_answers(m, "0 launch 0");
		mini_do(m, "@0 sync", 0);
		close(fd);
		mini_deinit(m);
		mini_init(m);
	}
}

/* ---- settings ---- */

static void shim_passes_mps_directories_on(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	mini_do(m, "@0 environment", 1);
	close(fd);
}

static void shim_respects_mps_directories_of_the_program(void **state) {
	static const char *const own[] = {"CUDA_MPS_PIPE_DIRECTORY=/mine", NULL};
	struct mini *m = *state;
	int fd = mini_begin(m, own);

	mini_do(m, "@0 environment", 0);
	close(fd);
}

static void shim_does_nothing_when_disabled(void **state) {
	static const char *const disabled[] = {"SBEET_DISABLE=1", NULL};
	struct mini *m = *state;

	mini_listen(m);
	mini_start(m, disabled);
	mini_do(m, "@0 init", 0);
	mini_do(m, "@0 device", 0);
	mini_do(m, "@0 launch 10", 0);
	mini_do(m, "@0 sync", 0);
	assert_false(mini_is_called(m));
	assert_int_equal(mini_said(m, "sbeet:"), 0);
}

static void shim_complains_of_settings_and_goes_on(void **state) {
	static const char *const wrong[] = {"SBEET_PERIOD=33",
					    "SBEET_CLASS=fast",
					    "SBEET_SCOPE=moon",
					    "SBEET_PRIORITY=2000",
					    "SBEET_TASK=a b",
					    "SBEET_WAIT=long",
					    NULL};
	struct mini *m = *state;
	int fd = mini_begin(m, wrong);

	assert_int_equal(mini_said(m, "ignoring"), 6);
	mini_open_job(m, fd);
	close(fd);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		MINI_CASE(shim_tells_every_operation_of_a_job),
		MINI_CASE(a_thread_with_a_deadline_wakes_up_on_time),
		MINI_CASE(a_thread_keeps_a_timer_slack_of_its_own),
		MINI_CASE(shim_compiles_twins_as_the_program_wants),
		MINI_CASE(shim_numbers_jobs_upwards),
		MINI_CASE(shim_ends_job_of_program_that_does_nothing),
		MINI_CASE(shim_keeps_job_while_work_is_under_way),
		MINI_CASE(shim_ends_job_at_the_event_behind_it),
		MINI_CASE(shim_follows_the_default_stream_of_a_thread),
		MINI_CASE(shim_follows_streams_and_contexts_that_go),
		MINI_CASE(shim_keeps_released_context_until_its_job_is_closed),
		MINI_CASE(shim_keeps_destroyed_context_until_its_job_is_closed),
		MINI_CASE(shim_keeps_detached_context_until_its_job_is_closed),
		MINI_CASE(shim_forgets_events_of_contexts_that_go),
		MINI_CASE(shim_counts_who_retains_a_context_that_goes),
		MINI_CASE(shim_keeps_context_that_others_are_attached_to),
		MINI_CASE(shim_lets_threads_have_jobs_of_their_own),
		MINI_CASE(shim_has_one_job_a_process_otherwise),
		MINI_CASE(shim_has_jobs_on_each_gpu),
		MINI_CASE(shim_leaves_captures_alone),
		MINI_CASE(shim_finishes_job_that_a_kernel_does_not_fit),
		MINI_CASE(shim_starts_nothing_more_after_revoke),
		MINI_CASE(shim_heeds_a_revoke_right_behind_the_grant),
		MINI_CASE(shim_takes_grants_awake_and_asleep),
		MINI_CASE(shim_passes_mps_directories_on),
		MINI_CASE(shim_respects_mps_directories_of_the_program),
		MINI_CASE(shim_does_nothing_when_disabled),
		MINI_CASE(shim_complains_of_settings_and_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
