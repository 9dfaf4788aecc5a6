/*
 * test-daemon-mps.c: sbeetd and MPS's control daemon, here its double: one that runs, one that is
 * not to be trusted, is silent, talks nonsense, dies or does not exist; one that sbeetd runs
 * itself; and GPUs without room for one more program.
 */
#include "harness.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/packet.h"

#define CLIENTS_MAX 48

static struct harness harness;
static char pipe_directory[128];

static const char *const found[] = {"--gpus", "8", NULL};
static const char *const shared[] = {"--gpus", "8", "--sharing", "mps", NULL};
static const char *const started[] = {"--gpus", "8", "--mps", "start", NULL};
static const char *const off[] = {"--gpus", "8", "--sharing", "mps", "--mps", "off", NULL};

static int setup(void **state) {
	harness_prepare(&harness);
	snprintf(pipe_directory, sizeof(pipe_directory), "%s/p", harness.directory);
	setenv("CUDA_MPS_PIPE_DIRECTORY", pipe_directory, 1);
	setenv("SIMGPU_DIR", harness.directory, 1);
	setenv("PATH", MPS_PATH ":/usr/bin:/bin", 1);
	unsetenv("SIMGPU_MPS_FAULT");
	return 0;
}

/* Of the control daemon in @directory; 0: it has none. */
static pid_t read_pid(const char *directory) {
	char path[256];
	int pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", directory);
	file = fopen(path, "re");
	if (file) {
		if (fscanf(file, "%d", &pid) != 1) {
			pid = 0;
		}
		fclose(file);
	}
	return pid;
}

static int clean(void **state) {
	char own[160];
	pid_t pid = read_pid(pipe_directory);

	if (pid > 0) {
		kill(pid, SIGKILL);
	}
	snprintf(own, sizeof(own), "%s/mps/pipe", harness.directory);
	pid = read_pid(own);
	if (pid > 0) {
		kill(pid, SIGKILL);
	}
	harness_clean(&harness);
	return 0;
}

/* Starts the double, with a fault or NULL, and waits until it listens or is dead. */
static void start_control_for(const char *users, const char *fault) {
	char path[160];
	pid_t pid;
	int status;

	snprintf(path, sizeof(path), "%s/control", pipe_directory);
	if (fault) {
		setenv("SIMGPU_MPS_FAULT", fault, 1);
	}
	pid = fork();
	if (pid == 0) {
		execlp("nvidia-cuda-mps-control", "nvidia-cuda-mps-control", "-d", users, NULL);
		_exit(127);
	}
	unsetenv("SIMGPU_MPS_FAULT");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	while (access(path, F_OK) < 0 || read_pid(pipe_directory) == 0) {
		usleep(1000);
	}
}

static void start_control(const char *fault) {
	start_control_for(NULL, fault);
}

static void expect(const char *state, const char *sharing, const char *note) {
	Sbeet__Control__Status *status = status_get();

	assert_non_null(status->mps);
	assert_string_equal(status->mps->state, state);
	assert_string_equal(status->gpus[0]->sharing, sharing);
	if (note) {
		assert_non_null(strstr(status->mps->note, note));
	} else {
		assert_string_equal(status->mps->note, "");
	}
	status_free(status);
}

/* What the program is told about MPS. */
struct told {
	char pipe_directory[160], notice[512];
};

static struct shim open_told(struct told *ret) {
	struct shim s = {.fd = shim_connect()};
	Sbeet__ToShim *m;

	shim_hello(s.fd, "p", NULL, MASK_ALL);
	m = shim_receive(s.fd);
	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	s.session = m->welcome->session;
	snprintf(ret->pipe_directory, sizeof(ret->pipe_directory), "%s",
		 m->welcome->mps_pipe_directory);
	snprintf(ret->notice, sizeof(ret->notice), "%s", m->welcome->notice);
	packet_free(&m->base);
	return s;
}

static bool is_up(const Sbeet__Control__Status *status, void *data) {
	return strcmp(status->mps->state, "up") == 0;
}

static bool is_down(const Sbeet__Control__Status *status, void *data) {
	return strcmp(status->mps->state, "down") == 0;
}

static void one_that_runs_is_used(void **state) {
	struct told told;
	struct shim s;

	start_control(NULL);
	harness_start(&harness, found);
	expect("up", "mps", NULL);
	s = open_told(&told);
	assert_string_equal(told.pipe_directory, pipe_directory);
	assert_string_equal(told.notice, "");
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	assert_int_equal(kill(read_pid(pipe_directory), 0), 0); /* it is not ours */
}

static void without_one_gpus_are_exclusive(void **state) {
	struct told told;
	struct shim s;

	harness_start(&harness, found);
	expect("absent", "exclusive", NULL);
	s = open_told(&told);
	assert_string_equal(told.pipe_directory, "");
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void one_that_comes_later_is_used(void **state) {
	harness_start(&harness, shared);
	expect("absent", "mps", NULL);
	start_control(NULL);
	status_until(is_up, NULL);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void what_others_could_replace_is_not_trusted(void **state) {
	char path[160];
	FILE *file;

	start_control(NULL);
	assert_int_equal(chmod(pipe_directory, 0777), 0);
	harness_start(&harness, found);
	expect("absent", "exclusive", "everybody can write");
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);

	assert_int_equal(chmod(pipe_directory, 0755), 0);
	snprintf(path, sizeof(path), "%s/control", pipe_directory);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		harness_start(&harness, found);
		expect("absent", "exclusive", "user 12345");
		assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	}
	assert_int_equal(unlink(path), 0);
	file = fopen(path, "we");
	assert_non_null(file);
	fclose(file);
	harness_start(&harness, found);
	expect("absent", "exclusive", "neither a socket nor a FIFO");
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static bool is_silent(const Sbeet__Control__Status *status, void *data) {
	return is_down(status, data) && strcmp(status->gpus[0]->sharing, "exclusive") == 0 &&
	       strstr(status->mps->note, "does not answer");
}

static void one_that_does_not_answer_holds_nobody_up(void **state) {
	start_control("silent");
	harness_start(&harness, found);
	status_until(is_silent, NULL); /* now and then it is asked again */
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* What it has asked and who answers are given up; a sanitizer tells what is left behind. */
static void sbeetd_ends_while_it_waits_for_an_answer(void **state) {
	start_control("silent");
	harness_start(&harness, found);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* It lives and is trusted, so programs may use it; but nobody believes what it says. */
static void one_that_talks_nonsense_is_not_believed(void **state) {
	struct told told;
	struct shim s;

	start_control("garbage");
	harness_start(&harness, shared);
	expect("up", "mps", "it says '12'");
	s = open_told(&told);
	assert_string_equal(told.pipe_directory, pipe_directory);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define OTHER 65533

static bool has_other(const Sbeet__Control__Status *status, void *data) {
	return status->n_sessions == 1 && status->sessions[0]->uid == OTHER;
}

static void allow_everybody(const char *name, mode_t mode) {
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	assert_int_equal(chmod(path, mode), 0);
}

/* What a program of ours is told while one of another user is connected. */
static void tell_beside_other(const char *users, struct told *ret) {
	struct shim s;
	pid_t pid;

	start_control_for(users, NULL);
	harness_start(&harness, shared);
	expect("up", "mps", NULL);
	allow_everybody("", 0755);
	allow_everybody("shim.sock", 0666);
	pid = fork();
	if (pid == 0) {
		harness.pid = 0;
		if (setgroups(0, NULL) < 0 || setresgid(OTHER, OTHER, OTHER) < 0 ||
		    setresuid(OTHER, OTHER, OTHER) < 0) {
			_exit(1);
		}
		open_told(ret);
		pause();
	}
	status_until(has_other, NULL);
	s = open_told(ret);
	shim_close(&s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void who_has_to_wait_for_another_user_is_told(void **state) {
	struct told told;

	if (geteuid() != 0) {
		skip();
	}
	tell_beside_other(NULL, &told);
	assert_non_null(strstr(told.notice, "programs of user 65533 use MPS"));
}

static void users_that_share_a_server_wait_for_nobody(void **state) {
	struct told told;

	if (geteuid() != 0) {
		skip();
	}
	tell_beside_other("-M", &told);
	assert_string_equal(told.notice, "");
}

static void the_fault_of_a_server_is_shown(void **state) {
	start_control("server");
	harness_start(&harness, found);
	expect("up", "mps", "a program's fault");
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void one_that_dies_is_shown_and_found_again(void **state) {
	struct told told;
	struct shim s;

	start_control(NULL);
	harness_start(&harness, found);
	expect("up", "mps", NULL);
	assert_int_equal(kill(read_pid(pipe_directory), SIGKILL), 0);
	status_until(is_down, NULL);
	expect("down", "mps", "sbeet-mps");
	s = open_told(&told);
	assert_string_equal(told.pipe_directory, "");
	assert_non_null(strstr(told.notice, "takes turns"));
	shim_close(&s);
	start_control(NULL);
	status_until(is_up, NULL);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void one_that_dies_of_a_question_is_survived(void **state) {
	start_control("ends");
	harness_start(&harness, found);
	status_until(is_down, NULL);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static bool was_restarted(const Sbeet__Control__Status *status, void *data) {
	return strcmp(status->mps->state, "up") == 0 && status->mps->restarts > *(unsigned *)data;
}

static void sbeetd_runs_one_and_restarts_it(void **state) {
	char own[160];

	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	snprintf(own, sizeof(own), "%s/mps/pipe", harness.directory);
	harness_start(&harness, started);
	expect("up", "mps", NULL);
	for (unsigned i = 0; i < 2; i++) {
		pid_t pid = read_pid(own);

		assert_true(pid > 0);
		assert_int_equal(kill(pid, SIGKILL), 0);
		status_until(was_restarted, &i);
		assert_int_not_equal(read_pid(own), pid);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void one_that_programs_hang_on_outlives_sbeetd(void **state) {
	char own[160];
	struct shim s;
	pid_t pid;

	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	snprintf(own, sizeof(own), "%s/mps/pipe", harness.directory);
	harness_start(&harness, started);
	s = shim_open("p", MASK_ALL);
	pid = read_pid(own);
	assert_true(pid > 0);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	assert_int_equal(kill(pid, 0), 0);
	harness_start(&harness, started);
	expect("up", "mps", NULL);
	assert_int_equal(read_pid(own), pid);
	close(s.fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void without_its_program_sbeetd_runs_on(void **state) {
	setenv("PATH", harness.directory, 1);
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	harness_start(&harness, started);
	expect("down", "exclusive", "is not installed");
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void the_program_beyond_the_limit_is_told(void **state) {
	struct shim s[CLIENTS_MAX + 1];
	struct told told;

	harness_start(&harness, off);
	for (int i = 0; i <= CLIENTS_MAX; i++) {
		s[i] = open_told(&told);
		if (i < CLIENTS_MAX) {
			assert_string_equal(told.notice, "");
		}
	}
	assert_non_null(strstr(told.notice, "GPU 0 has 48 programs"));
	shim_close(&s[0]);
	harness_settle();
	shim_close(&s[1]);
	harness_settle();
	s[0] = open_told(&told);
	assert_string_equal(told.notice, "");
	shim_close(&s[0]);
	for (int i = 2; i <= CLIENTS_MAX; i++) {
		shim_close(&s[i]);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(one_that_runs_is_used),
		CASE(without_one_gpus_are_exclusive),
		CASE(one_that_comes_later_is_used),
		CASE(what_others_could_replace_is_not_trusted),
		CASE(one_that_does_not_answer_holds_nobody_up),
		CASE(sbeetd_ends_while_it_waits_for_an_answer),
		CASE(one_that_talks_nonsense_is_not_believed),
		CASE(who_has_to_wait_for_another_user_is_told),
		CASE(users_that_share_a_server_wait_for_nobody),
		CASE(the_fault_of_a_server_is_shown),
		CASE(one_that_dies_is_shown_and_found_again),
		CASE(one_that_dies_of_a_question_is_survived),
		CASE(sbeetd_runs_one_and_restarts_it),
		CASE(one_that_programs_hang_on_outlives_sbeetd),
		CASE(without_its_program_sbeetd_runs_on),
		CASE(the_program_beyond_the_limit_is_told),
	};

	return cmocka_run_group_tests_name("daemon-mps", tests, NULL, NULL);
}
