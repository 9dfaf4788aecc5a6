/*
 * test-daemon-death.c: what becomes of jobs and SMs of programs that die or hang up.
 */
#include "harness.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct harness harness;

/* One process plays several here: those that it hangs up are not to wait for its death. */
#define NO_DRAIN "--drain", "1ms"

static const char *const fcfs[] = {"--gpus", "80", "--policy", "fcfs", NO_DRAIN, NULL};

/* For real processes that die. */
static const char *const patient[] = {"--gpus", "80", "--policy", "fcfs", NULL};

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

static bool no_jobs_and_one_session(const Sbeet__Control__Status *status, void *data) {
	return status->n_jobs == 0 && status->n_sessions == 1;
}

static bool n_jobs_is(const Sbeet__Control__Status *status, void *data) {
	return status->n_jobs == *(size_t *)data;
}

/* A process that opens a session, asks for @n jobs, takes as many grants as @n_granted, tells us,
 * and waits to be killed. */
enum victim {
	VICTIM_PLAIN,
	VICTIM_KEPT,	 /* a child of it keeps the socket open beyond its death */
	VICTIM_HANGS_UP, /* it closes the socket, and lives on */
};

static pid_t start_victim(uint64_t n, uint64_t n_granted, enum victim kind, int *ret_keeper_pipe) {
	int ready[2], keep[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(keep), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct shim s = shim_open("victim", MASK_ALL);

		close(keep[1]);
		for (uint64_t job = 1; job <= n; job++) {
			shim_request(s.fd, job, 0, MASK_ALL);
		}
		for (uint64_t job = 1; job <= n_granted; job++) {
			shim_granted(s.fd, job);
		}
		if (kind == VICTIM_HANGS_UP) {
			shim_close(&s);
		}
		if (kind == VICTIM_KEPT && fork() == 0) {
			close(ready[1]);
			_exit(read(keep[0], &byte, 1) < 0); /* until our parent's parent lets go */
		}
		_exit(write(ready[1], "r", 1) < 0 || pause());
	}
	close(ready[1]);
	close(keep[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*ret_keeper_pipe = keep[1];
	return pid;
}

static void kill_victim(pid_t pid) {
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void daemon_takes_back_sms_of_the_dead_while_running(void **state) {
	struct shim other;
	int pipe_fd;
	pid_t pid;

	harness_start(&harness, patient);
	other = shim_open("other", MASK_ALL);
	pid = start_victim(1, 1, VICTIM_PLAIN, &pipe_fd);
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_expect_silence(other.fd);
	kill_victim(pid);
	shim_granted(other.fd, 1);
	shim_done(other.fd, 1);
	status_until(no_jobs_and_one_session, NULL);
	close(pipe_fd);
	shim_close(&other);
	harness_finish(&harness);
}

static void daemon_forgets_the_dead_while_waiting(void **state) {
	struct shim other;
	int pipe_fd;
	pid_t pid;

	harness_start(&harness, fcfs);
	other = shim_open("other", MASK_ALL);
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_granted(other.fd, 1);
	pid = start_victim(3, 0, VICTIM_PLAIN, &pipe_fd);
	status_until(n_jobs_is, &(size_t){4});
	kill_victim(pid);
	status_until(n_jobs_is, &(size_t){1});
	shim_done(other.fd, 1);
	shim_request(other.fd, 2, 0, MASK_ALL);
	shim_granted(other.fd, 2);
	close(pipe_fd);
	shim_close(&other);
	harness_finish(&harness);
}

static void daemon_forgets_the_dead_between_jobs(void **state) {
	struct shim other;
	int pipe_fd;
	pid_t pid;

	harness_start(&harness, fcfs);
	other = shim_open("other", MASK_ALL);
	pid = start_victim(0, 0, VICTIM_PLAIN, &pipe_fd);
	kill_victim(pid);
	status_until(no_jobs_and_one_session, NULL);
	close(pipe_fd);
	shim_close(&other);
	harness_finish(&harness);
}

/* The socket says nothing then: only the pidfd does. */
static void daemon_notices_death_though_the_socket_stays_open(void **state) {
	struct shim other;
	int pipe_fd;
	pid_t pid;

	harness_start(&harness, fcfs);
	other = shim_open("other", MASK_ALL);
	pid = start_victim(1, 1, VICTIM_KEPT, &pipe_fd);
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_expect_silence(other.fd);
	kill_victim(pid);
	shim_granted(other.fd, 1);
	close(pipe_fd);
	shim_close(&other);
	harness_finish(&harness);
}

static bool one_draining(const Sbeet__Control__Status *status, void *data) {
	for (size_t i = 0; i < status->n_sessions; i++) {
		if (strcmp(status->sessions[i]->state, "draining") == 0) {
			return status->n_jobs == *(size_t *)data;
		}
	}
	return false;
}

/* Its kernels may still run: nobody else may have their SMs, and what it waits for is dropped. */
static void daemon_keeps_sms_of_a_program_that_hangs_up_until_it_dies(void **state) {
	struct shim other;
	int pipe_fd;
	pid_t pid;

	harness_start(&harness, patient);
	other = shim_open("other", MASK_ALL);
	pid = start_victim(3, 1, VICTIM_HANGS_UP, &pipe_fd);
	status_until(one_draining, &(size_t){1});
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_expect_silence(other.fd);
	kill_victim(pid);
	shim_granted(other.fd, 1);
	shim_done(other.fd, 1);
	status_until(no_jobs_and_one_session, NULL);
	close(pipe_fd);
	shim_close(&other);
	harness_finish(&harness);
}

static void daemon_keeps_sms_of_a_misbehaving_program_too(void **state) {
	struct shim other;
	pid_t pid;

	harness_start(&harness, patient);
	other = shim_open("other", MASK_ALL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct shim s = shim_open("victim", MASK_ALL);

		shim_request(s.fd, 1, 0, MASK_ALL);
		shim_granted(s.fd, 1);
		shim_done(s.fd, 99); /* no such job: the connection ends */
		_exit(pause());
	}
	status_until(one_draining, &(size_t){1});
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_expect_silence(other.fd);
	kill_victim(pid);
	shim_granted(other.fd, 1);
	shim_done(other.fd, 1);
	shim_close(&other);
	harness_finish(&harness);
}

static void daemon_gives_sms_of_a_program_that_hangs_up_back_in_the_end(void **state) {
	struct shim other, gone;

	harness_start(&harness, fcfs);
	other = shim_open("other", MASK_ALL);
	gone = shim_open("gone", MASK_ALL);
	shim_request(gone.fd, 1, 0, MASK_ALL);
	shim_granted(gone.fd, 1);
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_expect_silence(other.fd);
	shim_close(&gone);
	shim_granted(other.fd, 1);
	shim_close(&other);
	harness_finish(&harness);
}

static void daemon_lets_a_program_that_comes_back_go_on(void **state) {
	struct shim s;

	harness_start(&harness, patient);
	s = shim_open("app", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	status_until(one_draining, &(size_t){1});
	s = shim_open("app", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	harness_finish(&harness);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_takes_back_sms_of_the_dead_while_running),
		CASE(daemon_forgets_the_dead_while_waiting),
		CASE(daemon_forgets_the_dead_between_jobs),
		CASE(daemon_notices_death_though_the_socket_stays_open),
		CASE(daemon_keeps_sms_of_a_program_that_hangs_up_until_it_dies),
		CASE(daemon_keeps_sms_of_a_misbehaving_program_too),
		CASE(daemon_lets_a_program_that_comes_back_go_on),
		CASE(daemon_gives_sms_of_a_program_that_hangs_up_back_in_the_end),
	};

	return cmocka_run_group_tests_name("daemon-death", tests, NULL, NULL);
}
