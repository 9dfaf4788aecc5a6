/*
 * test-daemon-mps.c: sbeetd and MPS's control daemon, here its double: one that runs, one that is
 * not to be trusted, is silent, talks nonsense, dies, comes late or does not exist; one that sbeetd
 * runs itself; what programs get meanwhile; and GPUs without room for one more program.
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

static bool is_shared(const Sbeet__Control__Status *status, void *data) {
	return strcmp(status->gpus[0]->sharing, "mps") == 0;
}

static bool is_exclusive(const Sbeet__Control__Status *status, void *data) {
	return strcmp(status->gpus[0]->sharing, "exclusive") == 0;
}

/* Two jobs of these run side by side if they are to be @beside each other, else one after
 * the other. */
static void expect_together(const struct shim *a, const struct shim *b, uint64_t job, bool beside) {
	shim_request(a->fd, job, 0, MASK_ALL);
	shim_granted(a->fd, job);
	shim_request(b->fd, job, 0, MASK_ALL);
	if (!beside) {
		shim_expect_silence(b->fd);
		shim_done(a->fd, job);
	}
	shim_granted(b->fd, job);
	if (beside) {
		shim_done(a->fd, job);
	}
	shim_done(b->fd, job);
}

/* Programs that start now are told where MPS is, or that there is none, and get what they are told.
 */
static void expect_programs_get(bool beside) {
	struct shim s[2];
	struct told told;

	for (int i = 0; i < 2; i++) {
		s[i] = open_told(&told);
		assert_int_equal(*told.pipe_directory != '\0', beside);
	}
	expect_together(&s[0], &s[1], 1, beside);
	shim_close(&s[0]);
	shim_close(&s[1]);
	harness_settle();
}

/* What the session of @s is to MPS. */
static void expect_session(const struct shim *s, const char *mps) {
	Sbeet__Control__Status *status = status_get();
	size_t i = 0;

	while (i < status->n_sessions && status->sessions[i]->id != s->session) {
		i++;
	}
	assert_true(i < status->n_sessions);
	assert_string_equal(status->sessions[i]->mps, mps);
	status_free(status);
}

static void wait_until_said(const char *text) {
	while (harness_said(&harness, text) == 0) {
		usleep(1000);
	}
}

static void kill_control(void) {
	assert_int_equal(kill(read_pid(pipe_directory), SIGKILL), 0);
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
	kill_control();
	status_until(is_down, NULL);
	expect("down", "exclusive", "sbeet-mps");
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

/* Not as a zombie. */
static bool lives(pid_t pid) {
	char path[64], text[16];
	size_t n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	file = fopen(path, "re");
	if (file) {
		n = fread(text, 1, sizeof(text), file);
		fclose(file);
	}
	return n > 0;
}

/* A control daemon of before may still end: one that would take the files of a new one with it, or
 * one that has none any more and lets no other start. */
static void twenty_sbeetds_in_a_row_share_their_gpus(void **state) {
	static const char *const faults[] = {"lingers", "hides", "late", NULL};
	char own[160];
	pid_t before = 0;

	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	snprintf(own, sizeof(own), "%s/mps/pipe", harness.directory);
	harness_listen(&harness);
	for (size_t i = 0; i < 20; i++) {
		const char *fault = faults[i % 4];

		if (fault) {
			setenv("SIMGPU_MPS_FAULT", fault, 1);
		} else {
			unsetenv("SIMGPU_MPS_FAULT");
		}
		harness_start(&harness, started);
		status_until(is_shared, NULL);
		while (before > 0 && lives(before)) {
			usleep(1000);
		}
		expect("up", "mps", NULL);
		expect_programs_get(true);
		before = read_pid(own);
		assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	}
	assert_int_equal(harness_said(&harness, "warning"), 0);
}

/* The same after ones that could end nothing. */
static void sbeetds_that_are_killed_leave_one_to_the_next(void **state) {
	char own[160];
	pid_t pid;

	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	snprintf(own, sizeof(own), "%s/mps/pipe", harness.directory);
	harness_start(&harness, started);
	status_until(is_shared, NULL);
	pid = read_pid(own);
	assert_true(pid > 0);
	for (int i = 0; i < 3; i++) {
		expect_programs_get(true);
		assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
		harness_start(&harness, started);
		status_until(is_shared, NULL);
		assert_int_equal(read_pid(own), pid);
	}
	assert_int_equal(kill(pid, SIGTERM), 0);
	status_until(is_exclusive, NULL);
	status_until(is_shared, NULL);
	expect_programs_get(true);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void sharing_follows_mps(void **state) {
	struct shim before, client;
	struct told told;

	harness_start(&harness, found);
	expect("absent", "exclusive", NULL);
	expect_programs_get(false);
	before = open_told(&told);
	start_control(NULL);
	status_until(is_shared, NULL);
	expect_programs_get(true);
	client = open_told(&told);
	assert_string_equal(told.pipe_directory, pipe_directory);
	expect_session(&before, "none");
	expect_session(&client, "client");
	expect_together(&before, &client, 1, false);
	expect_together(&client, &before, 2, false);

	kill_control();
	status_until(is_exclusive, NULL);
	expect_programs_get(false);
	expect_session(&client, "lost");
	expect_together(&before, &client, 3, false);

	start_control(NULL);
	status_until(is_shared, NULL);
	expect_programs_get(true);
	expect_session(&client, "lost");
	expect_together(&before, &client, 4, false);
	shim_close(&before);
	shim_close(&client);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Under policy steer: clients run without asking, the others ask. */
static void terms_follow_mps(void **state) {
	static const char *const steer[] = {"--gpus", "8", "--policy", "steer", NULL};
	struct steered before, s;

	harness_start(&harness, steer);
	before = steered_open("before", NULL, MASK_ALL);
	assert_false(steered_terms(&before, 0).steered);
	for (int i = 0; i < 2; i++) {
		start_control(NULL);
		status_until(is_shared, NULL);
		s = steered_open("p", NULL, MASK_ALL);
		assert_true(steered_terms(&s, 0).steered);
		assert_false(steered_terms(&before, 0).steered);
		kill_control();
		status_until(is_exclusive, NULL);
		assert_false(steered_terms(&s, 0).steered);
		steered_leave(&s);
	}
	steered_leave(&before);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* What waits and what runs meanwhile is granted and ends as everything else. */
static void jobs_outlive_a_change_of_sharing(void **state) {
	struct shim s[3];
	struct told told;

	harness_start(&harness, found);
	for (int i = 0; i < 3; i++) {
		s[i] = open_told(&told);
		shim_request(s[i].fd, 1, 0, i == 1 ? MASK_WHOLE : MASK_ALL);
	}
	shim_granted(s[0].fd, 1);
	start_control(NULL);
	status_until(is_shared, NULL);
	shim_expect_silence(s[1].fd);
	shim_expect_silence(s[2].fd);
	shim_done(s[0].fd, 1);
	shim_granted(s[1].fd, 1);
	shim_expect_silence(s[2].fd);
	kill_control();
	status_until(is_exclusive, NULL);
	shim_done(s[1].fd, 1);
	shim_granted(s[2].fd, 1);
	shim_done(s[2].fd, 1);
	for (int i = 0; i < 3; i++) {
		shim_close(&s[i]);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Two clients' jobs run when MPS dies: both keep their SMs, and nothing else starts beside them. */
static void jobs_side_by_side_end_after_mps(void **state) {
	struct shim s[3];
	struct told told;

	start_control(NULL);
	harness_start(&harness, found);
	for (int i = 0; i < 2; i++) {
		s[i] = open_told(&told);
		shim_request(s[i].fd, 1, 0, MASK_ALL);
		shim_granted(s[i].fd, 1);
	}
	kill_control();
	status_until(is_exclusive, NULL);
	s[2] = open_told(&told);
	shim_request(s[2].fd, 1, 0, MASK_ALL);
	shim_expect_silence(s[2].fd);
	shim_done(s[0].fd, 1);
	shim_expect_silence(s[2].fd);
	shim_done(s[1].fd, 1);
	shim_granted(s[2].fd, 1);
	shim_done(s[2].fd, 1);
	for (int i = 0; i < 3; i++) {
		shim_close(&s[i]);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Neither a program nor a question makes sbeetd look. The directory is not there at first. */
static void one_that_comes_is_noticed(void **state) {
	harness_listen(&harness);
	harness_start(&harness, found);
	start_control(NULL);
	wait_until_said("GPU 0 is shared through MPS now");
	kill_control();
	wait_until_said("GPU 0 is exclusive now");
	expect_programs_get(false);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* @initialised with the MPS in @uses. */
static struct shim open_again(const char *uses) {
	struct shim s = {.fd = shim_connect()};
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToShim *answer;

	hello.version = PROTO_VERSION;
	hello.program = (char *)"again";
	hello.enforcement_mask = MASK_ALL;
	hello.initialised = true;
	hello.mps_pipe_directory = (char *)uses;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	shim_send(s.fd, &m);
	answer = shim_receive(s.fd);
	assert_non_null(answer);
	assert_int_equal(answer->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	s.session = answer->welcome->session;
	packet_free(&answer->base);
	return s;
}

static void programs_that_connect_again_are_what_they_were(void **state) {
	static const char *const others[] = {"", "/", "/elsewhere"};
	struct shim client, s;
	struct told told;

	start_control(NULL);
	harness_start(&harness, found);
	client = open_again(pipe_directory);
	expect_session(&client, "client");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		s = open_again(others[i]);
		expect_session(&s, "none");
		expect_together(&s, &client, i + 1, false);
		shim_close(&s);
	}
	s = open_told(&told);
	expect_together(&s, &client, 9, true);
	shim_close(&s);
	shim_close(&client);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define PROGRAMS 8

static void programs_come_and_go(void) {
	struct told told;

	for (int i = 0; i < PROGRAMS; i++) {
		struct shim s = open_told(&told);

		shim_close(&s);
	}
	harness_settle();
}

static void what_a_dead_one_leaves_is_said_once(void **state) {
	start_control(NULL);
	kill_control();
	harness_listen(&harness);
	harness_start(&harness, found);
	expect("absent", "exclusive", "left behind");
	programs_come_and_go();
	assert_int_equal(harness_said(&harness, "left behind"), 1);
	assert_int_equal(harness_said(&harness, "warning"), 0);
	start_control(NULL);
	status_until(is_shared, NULL);
	kill_control();
	status_until(is_exclusive, NULL);
	programs_come_and_go();
	assert_int_equal(harness_said(&harness, "warning"), 1);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Also where the administrator says that GPUs are shared, and so programs are told. */
static void that_one_is_gone_is_said_once(void **state) {
	start_control(NULL);
	harness_listen(&harness);
	harness_start(&harness, shared);
	status_until(is_up, NULL);
	kill_control();
	status_until(is_down, NULL);
	programs_come_and_go();
	assert_int_equal(harness_said(&harness, "warning"), 1);
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
		CASE(twenty_sbeetds_in_a_row_share_their_gpus),
		CASE(sbeetds_that_are_killed_leave_one_to_the_next),
		CASE(sharing_follows_mps),
		CASE(terms_follow_mps),
		CASE(jobs_outlive_a_change_of_sharing),
		CASE(jobs_side_by_side_end_after_mps),
		CASE(one_that_comes_is_noticed),
		CASE(programs_that_connect_again_are_what_they_were),
		CASE(what_a_dead_one_leaves_is_said_once),
		CASE(that_one_is_gone_is_said_once),
		CASE(without_its_program_sbeetd_runs_on),
		CASE(the_program_beyond_the_limit_is_told),
	};

	return cmocka_run_group_tests_name("daemon-mps", tests, NULL, NULL);
}
