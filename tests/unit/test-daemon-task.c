/*
 * test-daemon-task.c: a task's name, and the releases and deadlines of its jobs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/config/task.h"
#include "proto/validate.h"

#define START 1000000000ull

/* What a session keeps of its task. */
struct task {
	struct task_spec spec;
	struct releases releases;
};

static struct task make(nsec_t period, nsec_t deadline, nsec_t offset) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	struct task task;

	spec.period_ns = period;
	spec.deadline_ns = deadline;
	spec.offset_ns = offset;
	task_init(&task.spec, &spec, "app");
	task_start(&task.releases, &task.spec, START);
	return task;
}

static void task_is_named_after_its_program(void **state) {
	static const struct {
		const char *program, *name;
	} cases[] = {
		{"app", "app"},
		{"my app", "my_app"},
		{".hidden", "_hidden"},
		{"-x", "_x"},
		{"a.out", "a.out"},
		{"", "unnamed"},
		{"\xc3\xa9t\xc3\xa9", "__t__"},
	};
	struct task_spec task;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		task_init(&task, NULL, cases[i].program);
		assert_string_equal(task.name, cases[i].name);
		assert_int_equal(validate_name(task.name), 0);
	}
}

static void task_keeps_what_was_declared(void **state) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	char name[] = "camera";
	struct task_spec task;

	spec.name = name;
	spec.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	spec.priority = -7;
	spec.profile = name;
	spec.gpu = 1;
	task_init(&task, &spec, "app");
	assert_string_equal(task.name, "camera");
	assert_int_equal(task.task_class, SBEET__TASK_CLASS__TASK_CLASS_REALTIME);
	assert_int_equal(task.job.priority, -7);
	assert_string_equal(task.profile, ""); /* an administrator's to say */
	assert_int_equal(task.gpu, -1);
}

/* The release of a job of a program of one thread that is requested at @at. */
static nsec_t release_at(struct task *task, nsec_t at) {
	return task_release(&task->releases, &task->spec,
			    &(struct task_request){.at = at, .alone = true});
}

/* The same; the job ends at @end. */
static nsec_t job(struct task *task, nsec_t at, nsec_t end) {
	struct task_last last = {.release = release_at(task, at), .ended = end};

	task_ended(&task->releases, &last);
	return last.release;
}

static void task_without_period_is_released_when_requested(void **state) {
	struct task task = make(0, 0, 0);

	assert_int_equal(release_at(&task, START + 5), START + 5);
	assert_int_equal(task_deadline(&task.spec, START + 5, 0), 0);
	task = make(0, 30, 0);
	assert_int_equal(task_deadline(&task.spec, job(&task, START + 5, START + 900), 0), START + 35);
	assert_int_equal(job(&task, START + 900, START + 901), START + 900);
}

static void task_deadline_of_a_job_is_its_own_up_to_the_period(void **state) {
	struct task task = make(0, 30, 0);

	assert_int_equal(task_deadline(&task.spec, START, 500), START + 500);
	task = make(100, 60, 0);
	assert_int_equal(task_deadline(&task.spec, START, 80), START + 80);
	assert_int_equal(task_deadline(&task.spec, START, 101), START + 100);
}

static void task_deadline_is_the_period_unless_declared(void **state) {
	struct task task = make(100, 0, 0);

	assert_int_equal(task_deadline(&task.spec, START, 0), START + 100);
	task = make(100, 60, 0);
	assert_int_equal(task_deadline(&task.spec, START, 0), START + 60);
}

static void task_with_offset_keeps_to_its_grid(void **state) {
	struct task task = make(800, 0, 300);

	assert_int_equal(release_at(&task, START + 10), START + 10); /* before the first release */
	assert_int_equal(release_at(&task, START + 300), START + 300);
	assert_int_equal(release_at(&task, START + 301), START + 300);
	assert_int_equal(release_at(&task, START + 1099), START + 300);
	assert_int_equal(release_at(&task, START + 1100), START + 1100);
	assert_int_equal(release_at(&task, START + 300 + 8000000), START + 300 + 8000000);
}

/* usleep(30 ms) in a loop of a task of 33 ms: whatever its jobs take, and however they drift
 * against any grid, each is released when it is requested. */
static void task_that_sleeps_between_jobs_is_released_when_requested(void **state) {
	struct task task = make(33000, 20000, 0);
	nsec_t at = START;

	for (unsigned i = 0; i < 1000; i++) {
		nsec_t took = i % 17 == 5 ? 40000 + i % 7 * 9000 : 200 + i * 7919 % 9000;

		assert_int_equal(job(&task, at, at + took), at);
		at += took + 30000 + i % 3 * 90;
	}
}

/* One that never pauses: there is nothing that it waits for, so nothing that it could miss. */
static void task_that_never_pauses_is_released_when_requested(void **state) {
	struct task task = make(32000, 20000, 0);
	nsec_t at = START;

	for (unsigned i = 0; i < 1000; i++) {
		nsec_t took = 1000 + i * 7919 % 90000;

		assert_int_equal(job(&task, at, at + took), at);
		at += took + i % 2 * 999;
	}
}

/* It waits for a timer or a camera; a long job holds up the next requests, until it has caught up.
 */
static void task_is_released_in_time_when_its_own_job_holds_it_up(void **state) {
	struct task task = make(3200, 2000, 0);

	assert_int_equal(job(&task, START, START + 500), START);
	assert_int_equal(job(&task, START + 3200, START + 3200 + 5000), START + 3200);
	assert_int_equal(job(&task, START + 8250, START + 12900), START + 6400);
	assert_int_equal(job(&task, START + 12950, START + 13000), START + 12800);
	assert_int_equal(job(&task, START + 16000, START + 16100), START + 16000);
}

/* Two and a half periods too long: of the releases that came due meanwhile the last one counts. */
static void task_that_is_held_up_for_long_begins_with_the_last_release(void **state) {
	struct task task = make(3200, 2000, 0);

	job(&task, START, START + 500);
	assert_int_equal(job(&task, START + 3200, START + 3200 + 8000), START + 3200);
	assert_int_equal(job(&task, START + 3200 + 8001, START + 3200 + 8010), START + 9600);
}

/* The same, but it makes up for all of them: seen once it asks before the next one. */
static void task_that_queues_its_releases_leaves_none_out(void **state) {
	struct task task = make(3200, 2000, 0);
	nsec_t at = START;

	job(&task, START, START + 500);
	for (unsigned round = 0; round < 3; round++) {
		at += 32000;
		assert_int_equal(job(&task, at, at + 9800), at);
		/* The first time it is not known yet. */
		assert_int_equal(job(&task, at + 9810, at + 10800), at + (round ? 3200 : 9600));
		assert_int_equal(job(&task, at + 10810, at + 12000), at + 6400);
		assert_int_equal(job(&task, at + 12010, at + 12100), at + 9600);
		assert_int_equal(job(&task, at + 12800, at + 12900), at + 12800); /* caught up */
	}
}

/* One that does leave releases out is known by its pause. */
static void task_that_pauses_with_a_release_left_queues_none(void **state) {
	struct task task = make(3200, 2000, 0);
	nsec_t at = START + 32000;

	job(&task, START, START + 500);
	job(&task, at, at + 9800);
	job(&task, at + 9810, at + 10000);
	assert_int_equal(job(&task, at + 10010, at + 10100), at + 6400);
	at += 12800;
	assert_int_equal(job(&task, at, at + 9800), at);
	assert_int_equal(job(&task, at + 9810, at + 10000), at + 9600);
}

/* What it slept for was there before it asked. */
static void task_is_woken_for_what_comes_after_a_pause(void **state) {
	struct task task = make(3200, 2000, 0);

	job(&task, START, START + 500);
	assert_false(task.releases.woken); /* it may have come from anywhere */
	job(&task, START + 3200, START + 3200 + 5000);
	assert_true(task.releases.woken);
	job(&task, START + 8250, START + 9000);
	assert_false(task.releases.woken); /* held up */
	job(&task, START + 9600, START + 9700);
	assert_true(task.releases.woken);
	job(&task, START + 9710, START + 9800);
	assert_false(task.releases.woken);
}

/* Two jobs a period, one right after the other: neither is released before it is requested. */
static void task_of_two_jobs_a_period_queues_none(void **state) {
	struct task task = make(3200, 2000, 0);

	for (nsec_t at = START; at < START + 320000; at += 3200) {
		assert_int_equal(job(&task, at, at + 800), at);
		assert_int_equal(job(&task, at + 810, at + 1600), at + 810);
	}
}

/* What would make the release before the request a guess makes it the request. */
static void task_is_released_when_requested_unless_all_is_certain(void **state) {
	static const struct {
		const char *what;
		nsec_t pause, took, gap; /* before the long job, it, and after it */
		bool alone;
		uint32_t tid;
		size_t gpu;
		bool earlier;
	} cases[] = {
		{"held up", 2700, 5000, 100, true, 0, 0, true},
		{"its job was over in time", 2700, 3199, 1, true, 0, 0, false},
		{"it asked later", 2700, 5000, 101, true, 0, 0, false},
		{"it had not paused", 399, 5000, 100, true, 0, 0, false},
		{"it had another job", 2700, 5000, 100, false, 0, 0, false},
		{"another thread", 2700, 5000, 100, true, 7, 0, false},
		{"another GPU", 2700, 5000, 100, true, 0, 1, false},
		{"a release came after the end", 2700, 6350, 60, true, 0, 0, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		nsec_t first = START + 500 + cases[i].pause, end = first + cases[i].took;
		struct task_request request = {.at = end + cases[i].gap,
					       .alone = cases[i].alone,
					       .tid = cases[i].tid,
					       .gpu = cases[i].gpu};
		struct task task = make(3200, 2000, 0);
		nsec_t release;

		job(&task, START, START + 500);
		assert_int_equal(job(&task, first, end), first);
		release = task_release(&task.releases, &task.spec, &request);
		if (release != (cases[i].earlier ? first + 3200 : request.at)) {
			fail_msg("%s: released %lld before its request", cases[i].what,
				 (long long)(request.at - release));
		}
	}
}

/* A job that was cancelled or lost says nothing; nor does the time before a change. */
static void task_forgets_what_held_it_up(void **state) {
	struct task task = make(3200, 2000, 0);

	job(&task, START, START + 500);
	job(&task, START + 3200, START + 8200);
	task_ended(&task.releases, &(struct task_last){.release = START + 8200});
	assert_int_equal(job(&task, START + 8250, START + 8300), START + 8250);

	task = make(3200, 2000, 0);
	job(&task, START, START + 500);
	job(&task, START + 3200, START + 8200);
	task_start(&task.releases, &task.spec, START + 8210);
	assert_int_equal(job(&task, START + 8250, START + 8300), START + 8250);
}

/* Claimed by a client, who may lie: never after the request, never a period or more before it. */
static void task_is_never_released_after_its_request(void **state) {
	struct task task = make(1000, 500, 0), offset = make(1000, 500, 77);
	uint32_t random = 1;
	nsec_t at = START;

	for (unsigned i = 0; i < 100000; i++) {
		struct task *t = i % 2 ? &task : &offset;
		nsec_t release, end;

		random = random * 1664525 + 1013904223;
		end = at + (random >> 8) % 4000;
		release = job(t, at, end);
		assert_true(release <= at && at - release < 1000);
		random = random * 1664525 + 1013904223;
		at = end + (random >> 8) % 200 - 50;
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(task_is_named_after_its_program),
		cmocka_unit_test(task_keeps_what_was_declared),
		cmocka_unit_test(task_without_period_is_released_when_requested),
		cmocka_unit_test(task_deadline_of_a_job_is_its_own_up_to_the_period),
		cmocka_unit_test(task_deadline_is_the_period_unless_declared),
		cmocka_unit_test(task_with_offset_keeps_to_its_grid),
		cmocka_unit_test(task_that_sleeps_between_jobs_is_released_when_requested),
		cmocka_unit_test(task_that_never_pauses_is_released_when_requested),
		cmocka_unit_test(task_is_released_in_time_when_its_own_job_holds_it_up),
		cmocka_unit_test(task_that_is_held_up_for_long_begins_with_the_last_release),
		cmocka_unit_test(task_that_queues_its_releases_leaves_none_out),
		cmocka_unit_test(task_that_pauses_with_a_release_left_queues_none),
		cmocka_unit_test(task_is_woken_for_what_comes_after_a_pause),
		cmocka_unit_test(task_of_two_jobs_a_period_queues_none),
		cmocka_unit_test(task_is_released_when_requested_unless_all_is_certain),
		cmocka_unit_test(task_forgets_what_held_it_up),
		cmocka_unit_test(task_is_never_released_after_its_request),
	};

	return cmocka_run_group_tests_name("daemon-task", tests, NULL, NULL);
}
