/*
 * test-daemon-stop.c: jobs that are stopped for others of higher priority, in a real sbeetd: what
 * it says to programs, what it takes from them, and what becomes of a stopped job when its program
 * or sbeetd dies.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sched.h>

#include "manager.h"
#include "proto/packet.h"

static struct harness harness;
static const char *const plain[] = {"--gpus", "8", "--policy", "gpu-ioctl", NULL};

static int setup(void **state) {
	harness_start(&harness, plain);
	return 0;
}

static int clean(void **state) {
	shim_forget_secret();
	harness_clean(&harness);
	memset(&harness, 0, sizeof(harness));
	return 0;
}

static void end(void) {
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Of a program whose streams can be moved. */
#define MASK_LEVELS (MASK_ALL | 1u << SBEET__ENFORCEMENT__ENFORCEMENT_GREEN)

/* A program whose library has the first @n_features of "stop" and "level". */
static int open_with(const char *task_name, int priority, size_t n_features) {
	static const char *const features[] = {PROTO_FEATURE_STOP, PROTO_FEATURE_LEVEL};
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;

	task.name = (char *)(uintptr_t)task_name;
	task.priority = priority;
	return shim_open_with(task_name, &task, features, n_features, MASK_LEVELS).fd;
}

/* A program whose library can stop jobs, or is older. */
static int open_as(const char *task_name, int priority, bool stops) {
	return open_with(task_name, priority, stops);
}

static void expect_revoke(int fd, uint64_t job, bool stop) {
	Sbeet__ToShim *m = shim_receive(fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_REVOKE);
	assert_int_equal(m->revoke->job, job);
	assert_int_equal(m->revoke->stop, stop);
	packet_free(&m->base);
}

static void say_stopped(int fd, uint64_t job) {
	Sbeet__Stopped stopped = SBEET__STOPPED__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	stopped.job = job;
	m.body_case = SBEET__TO_DAEMON__BODY_STOPPED;
	m.stopped = &stopped;
	shim_send(fd, &m);
}

/* Whether the only job of @task is in this state, and how many SMs it holds. */
static void expect_job(const char *task, const char *job_state, size_t n_sms) {
	Sbeet__Control__Status *status = status_get();
	size_t found = 0;

	for (size_t i = 0; i < status->n_jobs; i++) {
		const Sbeet__Control__Job *job = status->jobs[i];
		struct smset sms;

		if (strcmp(job->task, task) == 0) {
			assert_string_equal(job->state, job_state);
			assert_int_equal(smset_from_bytes(job->sms.data, job->sms.len, &sms), 0);
			assert_int_equal(smset_count(&sms), n_sms);
			found++;
		}
	}
	assert_int_equal(found, 1);
	status_free(status);
}

/* @low runs job 1 and is told to stop it, for job 1 of @high. */
static void preempt(int low, int high) {
	shim_request(low, 1, 0, MASK_ALL);
	shim_granted(low, 1);
	shim_request(high, 1, 0, MASK_ALL);
	expect_revoke(low, 1, true);
	harness_settle();
	expect_job("low", "preempted", 8);
	shim_expect_silence(high); /* what @low has launched runs first */
}

static void a_lower_job_is_stopped_and_goes_on(void **state) {
	int low = open_as("low", 1, true), high = open_as("high", 2, true);
	Sbeet__Control__Status *status;
	nsec_t release;

	preempt(low, high);
	status = status_get();
	release = status->jobs[0]->release_ns;
	status_free(status);
	say_stopped(low, 1);
	shim_granted(high, 1);
	expect_job("low", "stopped", 0);

	shim_request(low, 1, 0, MASK_ALL); /* the same job */
	harness_settle();
	expect_job("low", "waiting", 0);
	shim_expect_silence(low);
	shim_done(high, 1);
	shim_granted(low, 1);
	status = status_get();
	assert_int_equal(status->n_jobs, 1);
	assert_int_equal(status->jobs[0]->release_ns, release);
	status_free(status);
	shim_done(low, 1);
	harness_settle();
	status = status_get();
	assert_int_equal(status->n_jobs, 0);
	assert_int_equal(status->service->jobs_done, 2); /* not three */
	assert_int_equal(status->service->jobs_abandoned, 0);
	status_free(status);
	close(low);
	close(high);
	end();
}

static void a_stopped_job_may_be_over(void **state) {
	int low = open_as("low", 1, true), high = open_as("high", 2, true);
	Sbeet__Control__Status *status;

	preempt(low, high);
	say_stopped(low, 1);
	shim_granted(high, 1);
	shim_done(low, 1); /* there was no more to do */
	shim_request(low, 2, 0, MASK_ALL);
	harness_settle();
	status = status_get();
	assert_int_equal(status->service->jobs_done, 1);
	status_free(status);
	shim_done(high, 1);
	shim_granted(low, 2);
	close(low);
	close(high);
	end();
}

static void a_job_that_ends_need_not_be_stopped(void **state) {
	int low = open_as("low", 1, true), high = open_as("high", 2, true);

	preempt(low, high);
	shim_done(low, 1);
	shim_granted(high, 1);
	close(low);
	close(high);
	end();
}

/* Its job ends where it is; the rest is another one. */
static void an_older_library_is_revoked_as_ever(void **state) {
	int low = open_as("low", 1, false), high = open_as("high", 2, true);

	shim_request(low, 1, 0, MASK_ALL);
	shim_granted(low, 1);
	shim_request(high, 1, 0, MASK_ALL);
	expect_revoke(low, 1, false);
	shim_done(low, 1);
	shim_granted(high, 1);
	shim_request(low, 2, 0, MASK_ALL);
	harness_settle();
	shim_expect_silence(low);
	shim_done(high, 1);
	shim_granted(low, 2);
	close(low);
	close(high);
	end();
}

static void equals_and_higher_ones_are_left_alone(void **state) {
	int first = open_as("first", 2, true), equal = open_as("equal", 2, true),
	    lower = open_as("lower", 1, true);

	shim_request(first, 1, 0, MASK_ALL);
	shim_granted(first, 1);
	shim_request(lower, 1, 0, MASK_ALL);
	shim_request(equal, 1, 0, MASK_ALL);
	shim_expect_silence(first);
	shim_done(first, 1);
	shim_granted(equal, 1);
	shim_done(equal, 1);
	shim_granted(lower, 1);
	close(first);
	close(equal);
	close(lower);
	end();
}

/* In the middle of being stopped, while it is stopped, and while it waits to go on. */
static void a_stopped_program_dies(void **state) {
	for (int when = 0; when < 3; when++) {
		int low = open_as("low", 1, true), high = open_as("high", 2, true);
		Sbeet__Control__Status *status;

		preempt(low, high);
		if (when > 0) {
			say_stopped(low, 1);
			shim_granted(high, 1);
		}
		if (when > 1) {
			shim_request(low, 1, 0, MASK_ALL);
		}
		harness_settle();
		close(low); /* before it is told to be dead it might come back, so its job stays */
		if (when == 0) {
			shim_expect_silence(high);
		} else {
			shim_done(high, 1);
			harness_settle();
			status = status_get();
			assert_int_equal(status->n_jobs, 0);
			status_free(status);
		}
		assert_int_equal(harness_stop(&harness, SIGTERM), 0);
		close(high);
		shim_forget_secret();
		harness_clean(&harness);
		harness_start(&harness, plain);
	}
	end();
}

/* Its connection is lost after it was told, and it may not have read that: it is told again. */
static void a_program_that_comes_back_is_told_again(void **state) {
	struct shim low = shim_open("low", MASK_ALL);
	int high = open_as("high", 2, true), fd;
	struct claim claim;
	struct grant g;

	shim_request(low.fd, 1, 0, MASK_ALL);
	g = shim_granted(low.fd, 1);
	shim_request(high, 1, 0, MASK_ALL);
	expect_revoke(low.fd, 1, false);
	claim_init(&claim, 1, 0, &g);
	close(low.fd);
	fd = shim_come_back("low", &claim, 1);
	expect_revoke(fd, 1, false);
	shim_done(fd, 1);
	shim_granted(high, 1);
	close(fd);
	close(high);
	end();
}

static void the_one_of_higher_priority_dies(void **state) {
	int low = open_as("low", 1, true), high = open_as("high", 2, true);

	preempt(low, high);
	close(high);
	harness_settle();
	say_stopped(low, 1);
	shim_request(low, 1, 0, MASK_ALL);
	shim_granted(low, 1);
	shim_done(low, 1);
	close(low);
	end();
}

/* What a stopped job's program says is checked as ever. */
static void nonsense_about_stopped_jobs_ends_the_session(void **state) {
	int low = open_as("low", 1, true), high = open_as("high", 2, true), other;

	preempt(low, high);
	say_stopped(low, 1);
	shim_granted(high, 1);
	say_stopped(low, 1); /* it holds nothing */
	shim_error(low, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(low);
	close(low);
	other = open_as("other", 3, true);
	say_stopped(other, 77);
	shim_error(other, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(other);
	close(other);
	other = open_as("other", 1, true);
	shim_request(other, 1, 0, MASK_ALL);
	say_stopped(other, 1); /* it waits */
	shim_error(other, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(other);
	close(other);
	shim_done(high, 1);
	close(high);
	end();
}

/* As systemctl restart: the next sbeetd has the connections. */
static void sbeetd_restarts_while_a_job_is_stopped(void **state) {
	Sbeet__Control__Status *status;
	int low, high;

	harness_prepare(&harness);
	manager_begin(&harness);
	harness_start(&harness, plain);
	low = open_as("low", 1, true);
	high = open_as("high", 2, true);
	preempt(low, high);
	say_stopped(low, 1);
	shim_granted(high, 1);
	harness_settle();
	assert_int_equal(manager_stop(&harness), 0);
	harness_start(&harness, plain);
	manager_forget(&harness);
	packet_free(&shim_receive(low)->base); /* Welcome */
	packet_free(&shim_receive(high)->base);
	shim_request(low, 1, 0, MASK_ALL); /* to the new one it is a new job */
	harness_settle();
	expect_job("low", "waiting", 0);
	shim_done(high, 1);
	shim_granted(low, 1);
	/* And another one that had no more to do. */
	shim_request(high, 2, 0, MASK_ALL);
	expect_revoke(low, 1, true);
	say_stopped(low, 1);
	shim_granted(high, 2);
	harness_settle();
	assert_int_equal(manager_stop(&harness), 0);
	harness_start(&harness, plain);
	manager_forget(&harness);
	packet_free(&shim_receive(low)->base);
	packet_free(&shim_receive(high)->base);
	shim_done(low, 1);
	shim_request(low, 2, 0, MASK_ALL);
	shim_done(high, 2);
	shim_granted(low, 2);
	status = status_get();
	assert_int_equal(status->service->protocol_errors, 0);
	status_free(status);
	close(low);
	close(high);
	end();
	manager_end(&harness);
}

/* Told to stop by one that is gone by now: the next one tells it again, and takes the answer to
 * either. */
static void sbeetd_restarts_while_a_job_is_being_stopped(void **state) {
	int low, high;

	harness_prepare(&harness);
	manager_begin(&harness);
	harness_start(&harness, plain);
	low = open_as("low", 1, true);
	high = open_as("high", 2, true);
	preempt(low, high);
	assert_int_equal(manager_stop(&harness), 0);
	harness_start(&harness, plain);
	manager_forget(&harness);
	packet_free(&shim_receive(low)->base);
	packet_free(&shim_receive(high)->base);
	expect_revoke(low, 1, true);
	say_stopped(low, 1);
	shim_granted(high, 1);
	shim_request(low, 1, 0, MASK_ALL);
	shim_done(high, 1);
	shim_granted(low, 1);
	close(low);
	close(high);
	end();
	manager_end(&harness);
}

/* A policy that stops nobody lets a stopped job go on like any. */
static void the_policy_changes_while_a_job_is_stopped(void **state) {
	int low = open_as("low", 1, true), high = open_as("high", 2, true);

	preempt(low, high);
	say_stopped(low, 1);
	shim_granted(high, 1);
	policy_set("fcfs", SBEET__ERROR_CODE__ERROR_CODE_NONE);
	shim_request(low, 1, 0, MASK_ALL);
	shim_done(high, 1);
	shim_granted(low, 1);
	shim_request(high, 2, 0, MASK_ALL);
	shim_expect_silence(low);
	shim_done(low, 1);
	shim_granted(high, 2);
	close(low);
	close(high);
	end();
}

static void grants_say_whether_segments_end_jobs(void **state) {
	static const char *const names[] = {"gpu-kthread", "gpu-ioctl", "fcfs"};
	int fd = open_as("app", 1, true);

	for (uint64_t i = 0; i < 3; i++) {
		Sbeet__ToShim *m;

		policy_set(names[i], SBEET__ERROR_CODE__ERROR_CODE_NONE);
		shim_request(fd, i + 1, 0, MASK_ALL);
		m = shim_receive(fd);
		assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_GRANT);
		assert_int_equal(m->grant->whole_job, i == 0);
		packet_free(&m->base);
		shim_done(fd, i + 1);
	}
	close(fd);
	end();
}

/* Under any policy: a job that --max-hold takes the SMs from goes on as the same, too. */
static void a_job_that_holds_too_long_is_stopped(void **state) {
	int first, second;

	harness_start(&harness, (const char *[]){"--gpus", "8", "--policy", "fcfs", "--max-hold",
						 "20ms", NULL});
	first = open_as("low", 0, true);
	second = open_as("second", 0, true);
	shim_request(first, 1, 0, MASK_ALL);
	shim_granted(first, 1);
	shim_request(second, 1, 0, MASK_ALL);
	expect_revoke(first, 1, true);
	say_stopped(first, 1);
	shim_granted(second, 1);
	expect_job("low", "stopped", 0);
	shim_request(first, 1, 0, MASK_ALL);
	shim_done(second, 1);
	shim_granted(first, 1);
	shim_done(first, 1);
	close(first);
	close(second);
	end();
}

/* This very process is the program. Return: false if it may not. */
static bool run_with_cpu_priority(int policy, int priority) {
	const struct sched_param param = {.sched_priority = priority};

	return sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &param) == 0;
}

static void expect_priority(const char *task, int priority, bool of_cpu) {
	Sbeet__Control__Status *status = status_get();
	size_t found = 0;

	for (size_t i = 0; i < status->n_sessions; i++) {
		if (strcmp(status->sessions[i]->task, task) == 0) {
			assert_int_equal(status->sessions[i]->priority, priority);
			assert_int_equal(status->sessions[i]->cpu_priority, of_cpu);
			found++;
		}
	}
	assert_int_equal(found, 1);
	status_free(status);
}

static void a_task_without_a_priority_has_that_of_its_process(void **state) {
	int low, of_cpu, other;

	if (!run_with_cpu_priority(SCHED_FIFO, 7)) {
		skip();
	}
	of_cpu = open_as("of-cpu", 0, true);
	low = open_as("low", 3, true);
	expect_priority("of-cpu", 7, true);
	expect_priority("low", 3, false); /* apart from its process's */
	preempt(low, of_cpu);
	say_stopped(low, 1);
	shim_granted(of_cpu, 1);
	shim_done(of_cpu, 1);
	shim_request(low, 1, 0, MASK_ALL);
	shim_granted(low, 1);

	/* As of each job. */
	assert_true(run_with_cpu_priority(SCHED_OTHER, 0));
	shim_request(of_cpu, 2, 0, MASK_ALL);
	shim_expect_silence(low);
	expect_priority("of-cpu", 0, false);
	shim_done(low, 1);
	shim_granted(of_cpu, 2);
	assert_true(run_with_cpu_priority(SCHED_RR, 2));
	other = open_as("other", 0, true);
	expect_priority("other", 2, true);
	assert_true(run_with_cpu_priority(SCHED_OTHER, 0));
	close(low);
	close(of_cpu);
	close(other);
	end();
}

/* No higher than its user may. */
static void the_priority_of_a_process_is_limited(void **state) {
	char path[128];
	FILE *f;
	int fd;

	harness_prepare(&harness);
	snprintf(path, sizeof(path), "%s/sbeetd.conf", harness.directory);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs("[users]\npriority-max = 5\n", f);
	fclose(f);
	if (!run_with_cpu_priority(SCHED_FIFO, 40)) {
		skip();
	}
	harness_start(&harness, plain);
	fd = open_as("of-cpu", 0, true);
	expect_priority("of-cpu", 5, true);
	assert_true(run_with_cpu_priority(SCHED_OTHER, 0));
	close(fd);
	end();
}

static void status_says_where_priorities_decide_nothing(void **state) {
	Sbeet__Control__Status *status = status_get();

	assert_string_equal(status->service->priority, "which job has the GPU");
	status_free(status);
	policy_set("even", SBEET__ERROR_CODE__ERROR_CODE_NONE);
	status = status_get();
	assert_string_equal(status->service->priority, "");
	status_free(status);
	end();
}

static void start_mps(void) {
	harness_start(&harness, (const char *const[]){"--gpus", "8", "--sharing", "mps", "--policy",
						      "gpu-kthread", NULL});
}

static void expect_level(int fd, uint64_t job, unsigned level) {
	Sbeet__ToShim *m = shim_receive(fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_GRANT);
	assert_int_equal(m->grant->job, job);
	assert_int_equal(m->grant->level, level);
	packet_free(&m->base);
}

/* Nobody is told to stop: each job of higher priority runs one level above, up to the last one. */
static void under_mps_levels_stop_jobs(void **state) {
	char name[8] = "p0";
	int fd[7];

	start_mps();
	for (int i = 0; i < 6; i++, name[1]++) {
		fd[i] = open_with(name, i + 1, 2);
		shim_request(fd[i], 1, 0, MASK_LEVELS);
		expect_level(fd[i], 1, (unsigned)i);
		expect_job(name, "running", 8);
	}
	expect_job("p0", "waiting", 0);
	fd[6] = open_with(name, 7, 2);
	shim_request(fd[6], 1, 0, MASK_LEVELS);
	expect_revoke(fd[5], 1, true); /* there is no higher level */
	say_stopped(fd[5], 1);
	expect_level(fd[6], 1, 5);
	shim_done(fd[6], 1);
	harness_settle();
	shim_done(fd[4], 1);
	harness_settle();
	for (int i = 3; i > 0; i--) {
		name[1] = (char)('0' + i);
		expect_job(name, "running", 8);
		shim_expect_silence(fd[i]);
		shim_done(fd[i], 1);
		harness_settle();
	}
	expect_job("p0", "running", 8);
	for (int i = 0; i < 7; i++) {
		shim_expect_silence(fd[i]);
		close(fd[i]);
	}
	end();
}

/* Its kernels run on, so it may be over before it is granted again. */
static void a_job_that_is_aside_may_be_over(void **state) {
	int low, high;
	Sbeet__Control__Status *status;

	start_mps();
	low = open_with("low", 1, 2);
	high = open_with("high", 2, 2);
	shim_request(low, 1, 0, MASK_LEVELS);
	expect_level(low, 1, 0);
	shim_request(high, 1, 0, MASK_LEVELS);
	expect_level(high, 1, 1);
	status = status_get();
	assert_int_equal(status->n_jobs, 2);
	for (size_t i = 0; i < 2; i++) {
		bool is_low = strcmp(status->jobs[i]->task, "low") == 0;

		assert_int_equal(status->jobs[i]->aside, is_low);
		assert_string_equal(status->jobs[i]->stop, is_low ? "" : "level");
	}
	status_free(status);
	shim_done(low, 1);
	shim_done(high, 1);
	shim_request(low, 2, 0, MASK_LEVELS);
	expect_level(low, 2, 0);
	status = status_get();
	assert_int_equal(status->service->jobs_done, 2);
	assert_int_equal(status->service->protocol_errors, 0);
	status_free(status);
	close(low);
	close(high);
	end();
}

/* One that knows no levels would run beside the other as an equal. */
static void without_levels_launches_are_held_back(void **state) {
	int low, high, other;
	Sbeet__Control__Status *status;

	start_mps();
	low = open_with("low", 1, 2);
	high = open_with("high", 2, 2);
	other = open_as("other", 3, true);
	shim_request(low, 1, 0, MASK_LEVELS);
	expect_level(low, 1, 0);
	shim_request(other, 1, 0, MASK_LEVELS);
	expect_revoke(low, 1, true);
	say_stopped(low, 1);
	expect_level(other, 1, 0);
	shim_done(other, 1);
	shim_request(low, 1, 0, MASK_LEVELS);
	expect_level(low, 1, 0);
	status = status_get();
	assert_string_equal(status->jobs[0]->stop, "launches");
	assert_true(status->jobs[0]->stop_takes_ns > 0);
	status_free(status);
	shim_request(high, 1, 0, MASK_LEVELS);
	expect_revoke(low, 1, true);
	close(low);
	close(high);
	close(other);
	end();
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(a_lower_job_is_stopped_and_goes_on),
		CASE(a_stopped_job_may_be_over),
		CASE(a_job_that_ends_need_not_be_stopped),
		CASE(an_older_library_is_revoked_as_ever),
		CASE(equals_and_higher_ones_are_left_alone),
		CASE(a_stopped_program_dies),
		CASE(a_program_that_comes_back_is_told_again),
		CASE(the_one_of_higher_priority_dies),
		CASE(nonsense_about_stopped_jobs_ends_the_session),
		CASE(the_policy_changes_while_a_job_is_stopped),
		CASE(grants_say_whether_segments_end_jobs),
		CASE(a_task_without_a_priority_has_that_of_its_process),
		CASE(status_says_where_priorities_decide_nothing),
		cmocka_unit_test_teardown(under_mps_levels_stop_jobs, clean),
		cmocka_unit_test_teardown(a_job_that_is_aside_may_be_over, clean),
		cmocka_unit_test_teardown(without_levels_launches_are_held_back, clean),
		cmocka_unit_test_teardown(the_priority_of_a_process_is_limited, clean),
		cmocka_unit_test_teardown(a_job_that_holds_too_long_is_stopped, clean),
		cmocka_unit_test_teardown(sbeetd_restarts_while_a_job_is_stopped, clean),
		cmocka_unit_test_teardown(sbeetd_restarts_while_a_job_is_being_stopped, clean),
	};

	return cmocka_run_group_tests_name("daemon-stop", tests, NULL, NULL);
}
