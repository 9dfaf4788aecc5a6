/*
 * test-daemon-access.c: who may do what: sbeetd, this user, and other users' processes.
 *
 * Credentials are the kernel's, so that the other users are real: a child changes its ids and asks.
 * Without root there are no others, and the cases that need them are skipped.
 */
#include "harness.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/packet.h"
#include "proto/units.h"

#define OTHER 65533 /* nobody on this machine */
#define ADMIN 65532 /* an admin by the configuration */
#define TEAM  65531 /* a group of which OTHER may be */

static struct harness harness;

static void write_file(const char *name, const char *text) {
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void make_folder(const char *name) {
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void allow_everybody(const char *name, mode_t mode) {
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	assert_int_equal(chmod(path, mode), 0);
}

static void start(const char *config) {
	write_file("sbeetd.conf", config);
	harness_start(&harness, (const char *const[]){"--gpus", "8,8", NULL});
	allow_everybody("", 0755);
	allow_everybody("shim.sock", 0666);
	allow_everybody("control.sock", 0666);
}

static int setup(void **state) {
	harness_prepare(&harness);
	return 0;
}

static int teardown(void **state) {
	harness_clean(&harness);
	return 0;
}

/* Runs @step as another user; its failures fail this test. */
static void as_user(uid_t uid, gid_t team, void (*step)(void *data), void *data) {
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgroups(team ? 1 : 0, &team) < 0 || setresgid(uid, uid, uid) < 0 ||
		    setresuid(uid, uid, uid) < 0) {
			_exit(99);
		}
		harness.pid = 0;
		step(data);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a child an assertion of cmocka has nowhere to jump to. */
static void check(bool holds, const char *what) {
	if (!holds) {
		fprintf(stderr, "in another user's process: %s\n", what);
		_exit(1);
	}
}

static Sbeet__ErrorCode ask(Sbeet__Control__Request *request) {
	Sbeet__Control__Reply *reply = control_ask(request);
	Sbeet__ErrorCode code = SBEET__ERROR_CODE__ERROR_CODE_NONE;

	if (reply->body_case == SBEET__CONTROL__REPLY__BODY_ERROR) {
		code = reply->error->code;
	}
	packet_free(&reply->base);
	return code;
}

static Sbeet__ErrorCode set_priority(const char *name, int priority, bool save) {
	Sbeet__Control__TaskChange change = SBEET__CONTROL__TASK_CHANGE__INIT;
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	change.task = (char *)(uintptr_t)name;
	change.mask = 1 << 6;
	change.spec = &spec;
	spec.priority = priority;
	change.save = save;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE;
	request.task_change = &change;
	return ask(&request);
}

static Sbeet__ErrorCode change_priority(const char *name, int priority) {
	return set_priority(name, priority, false);
}

static Sbeet__ErrorCode save_priority(const char *name, int priority) {
	return set_priority(name, priority, true);
}

static Sbeet__ErrorCode kill_session(uint64_t session) {
	Sbeet__Control__SessionKill kill = SBEET__CONTROL__SESSION_KILL__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	kill.session = session;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_SESSION_KILL;
	request.session_kill = &kill;
	return ask(&request);
}

static Sbeet__ErrorCode drain_gpu(unsigned gpu, bool resume) {
	Sbeet__Control__GpuDrain drain = SBEET__CONTROL__GPU_DRAIN__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	drain.gpu = gpu;
	drain.resume = resume;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN;
	request.gpu_drain = &drain;
	return ask(&request);
}

static Sbeet__ErrorCode reload(void) {
	Sbeet__Control__ConfigRequest config = SBEET__CONTROL__CONFIG_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	config.reload = true;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_CONFIG;
	request.config = &config;
	return ask(&request);
}

static Sbeet__ErrorCode set_policy(const char *name) {
	Sbeet__Control__PolicyRequest policy = SBEET__CONTROL__POLICY_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	policy.name = (char *)(uintptr_t)name;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_POLICY;
	request.policy = &policy;
	return ask(&request);
}

#define NONE   SBEET__ERROR_CODE__ERROR_CODE_NONE
#define DENIED SBEET__ERROR_CODE__ERROR_CODE_DENIED
#define NO_ONE SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT

static void draining_lets_jobs_end_and_starts_none(void **state) {
	struct shim a, b;

	start("");
	a = shim_open("a", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	assert_int_equal(drain_gpu(0, false), NONE);
	b = shim_open("b", MASK_ALL);
	shim_request(b.fd, 1, 0, MASK_ALL); /* would have its half */
	shim_request(b.fd, 2, 1, MASK_ALL);
	shim_granted(b.fd, 2); /* the other GPU goes on */
	shim_done(a.fd, 1);
	shim_expect_silence(b.fd);
	assert_int_equal(drain_gpu(0, true), NONE);
	shim_granted(b.fd, 1);
	assert_int_equal(drain_gpu(2, false), NO_ONE);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static bool has_priority(const Sbeet__Control__Status *status, void *data) {
	for (size_t i = 0; i < status->n_sessions; i++) {
		if (status->sessions[i]->priority == *(int *)data) {
			return true;
		}
	}
	return false;
}

static void tasks_change_and_sessions_end(void **state) {
	Sbeet__ToShim *m;
	struct shim a;
	int seven = 7;

	start("");
	a = shim_open("a", MASK_ALL);
	assert_int_equal(change_priority("a", 7), NONE);
	status_until(has_priority, &seven);
	assert_int_equal(change_priority("b", 7), NO_ONE);
	assert_int_equal(kill_session(a.session + 1), NO_ONE);
	assert_int_equal(kill_session(a.session), NONE);
	m = shim_receive(a.fd);
	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_GOODBYE);
	packet_free(&m->base);
	shim_closed(a.fd);
	shim_close(&a);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void files_say_what_programs_are(void **state) {
	Sbeet__Control__Status *status;
	struct shim a;

	make_folder("tasks.d");
	write_file("tasks.d/camera.conf",
		   "[match]\nname = cam*\n[task]\nclass = realtime\n"
		   "deadline = 20ms\npriority = 9\ngpu = 1\nmax-sms = 3\n");
	start("[users]\npriority-max = 5\n");
	a = shim_open("cam0", MASK_ALL);
	status = status_get();
	assert_int_equal(status->n_sessions, 1);
	assert_string_equal(status->sessions[0]->task, "camera");
	assert_int_equal(status->sessions[0]->task_class, SBEET__TASK_CLASS__TASK_CLASS_REALTIME);
	assert_int_equal(status->sessions[0]->deadline_ns, 20000000);
	assert_int_equal(status->sessions[0]->priority, 5);
	status_free(status);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_error(a.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_DENIED);
	shim_request(a.fd, 2, 1, MASK_ALL);
	assert_int_equal(smset_count(&(struct smset[]){shim_granted(a.fd, 2).sms}[0]), 3);
	shim_close(&a);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Half of the GPU would be 4: who needs 5 waits until he can be alone. */
static void files_bound_the_sms_of_tasks(void **state) {
	struct grant g;
	struct shim a, b;

	make_folder("tasks.d");
	write_file("tasks.d/large.conf", "[task]\nmin-sms = 5\n");
	start("");
	a = shim_open("small", MASK_ALL);
	b = shim_open("large", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_expect_silence(b.fd);
	shim_done(a.fd, 1);
	g = shim_granted(b.fd, 1);
	assert_true(smset_count(&g.sms) >= 5);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void other_may_do_nothing(void *data) {
	check(change_priority("a", 3) == DENIED, "change another user's task");
	check(save_priority("a", 3) == DENIED, "save a task");
	check(save_priority("nobody", 3) == DENIED, "save a task of nobody's");
	check(kill_session(*(uint64_t *)data) == DENIED, "end another user's session");
	check(drain_gpu(0, false) == DENIED, "drain a GPU");
	check(reload() == DENIED, "reload");
	check(set_policy("fcfs") == DENIED, "set the policy");
	check(set_policy("") == NONE, "ask for the policy"); /* everybody may */
}

static void admin_may_do_all(void *data) {
	check(change_priority("a", 3) == NONE, "change a task");
	check(save_priority("a", 4) == NONE, "save a task");
	check(save_priority("nobody", 4) == NONE, "save a task that nobody runs");
	check(drain_gpu(0, false) == NONE, "drain a GPU");
	check(drain_gpu(0, true) == NONE, "resume a GPU");
	check(reload() == NONE, "reload");
	check(set_policy("fcfs") == NONE, "set the policy");
	check(set_policy("even") == NONE, "set the policy back");
	check(kill_session(*(uint64_t *)data) == NONE, "end a session");
}

static void others_are_denied_and_admins_are_not(void **state) {
	struct shim a;

	if (geteuid() != 0) {
		skip();
	}
	start("[sbeetd]\nadmins = 65532\n");
	a = shim_open("a", MASK_ALL);
	as_user(OTHER, 0, other_may_do_nothing, &a.session);
	as_user(ADMIN, 0, admin_may_do_all, &a.session);
	shim_close(&a);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void other_has_its_own(void *data) {
	struct shim mine = shim_open("mine", MASK_ALL);

	check(change_priority("mine", 4) == NONE, "change one's own task");
	check(save_priority("mine", 4) == DENIED, "save one's own task");
	check(change_priority("mine", 6) == DENIED, "have a priority above one's right");
	check(kill_session(mine.session) == NONE, "end one's own session");
}

static void other_is_of_the_team(void *data) {
	shim_open("mine", MASK_ALL);
	check(change_priority("mine", 6) == NONE, "have the priority that one's group may");
}

static void users_change_their_own_within_their_rights(void **state) {
	if (geteuid() != 0) {
		skip();
	}
	start("[users]\npriority-max = 5\n[group 65531]\npriority-max = 6\n");
	as_user(OTHER, 0, other_has_its_own, NULL);
	as_user(OTHER, TEAM, other_is_of_the_team, NULL);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void other_is_best_effort(void *data) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	struct pollfd more[2];
	Sbeet__Control__Status *status;
	int fd = shim_connect();
	Sbeet__ToShim *m;

	task.name = (char[]){"t"};
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.period_ns = 1000000;
	shim_hello(fd, "p", &task, MASK_ALL);
	m = shim_receive(fd);
	check(m && m->body_case == SBEET__TO_SHIM__BODY_WELCOME, "be welcome");
	packet_free(&m->base);
	status = status_get();
	check(status->n_sessions == 1 &&
		      status->sessions[0]->task_class == SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT,
	      "be best effort");
	status_free(status);
	/* One is open; status_get() has closed its own, which may be noticed only later. */
	for (int i = 0; i < 2; i++) {
		more[i] = (struct pollfd){.fd = shim_connect(), .events = POLLIN};
	}
	check(poll(more, 2, 30000) > 0, "be refused");
	m = shim_receive(more[more[0].revents == 0].fd);
	check(m && m->body_case == SBEET__TO_SHIM__BODY_ERROR &&
		      m->error->code == SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
	      "have no more than two sessions");
}

static void rights_are_kept(void **state) {
	if (geteuid() != 0) {
		skip();
	}
	start("[user 65533]\nrealtime = no\nsessions = 2\n");
	as_user(OTHER, 0, other_is_best_effort, NULL);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* All sessions of a user together; what ends makes room. */
static void the_number_of_jobs_is_kept(void **state) {
	struct shim a, b;

	start("[users]\njobs = 2\n");
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_WHOLE);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_WHOLE); /* waits, and counts */
	harness_settle();
	shim_request(a.fd, 2, 1, MASK_ALL);
	shim_error(a.fd, 2, SBEET__ERROR_CODE__ERROR_CODE_QUOTA);
	shim_done(a.fd, 1);
	shim_granted(b.fd, 1);
	shim_request(a.fd, 3, 1, MASK_ALL);
	shim_granted(a.fd, 3);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void other_makes_mistakes(void *data) {
	struct shim mine = shim_open("loud", MASK_ALL);

	for (uint64_t job = 1; job <= 60; job++) {
		shim_request(mine.fd, job, 9, MASK_ALL); /* there is no such GPU */
	}
	for (uint64_t job = 1; job <= 60; job++) {
		shim_error(mine.fd, job, SBEET__ERROR_CODE__ERROR_CODE_NO_GPU);
	}
}

static void admin_makes_one_mistake(void *data) {
	struct shim mine = shim_open("quiet", MASK_ALL);

	shim_request(mine.fd, 1, 9, MASK_ALL);
	shim_error(mine.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_NO_GPU);
}

/* Nor other users' mistakes. */
static void mistakes_of_one_user_hide_no_changes(void **state) {
	if (geteuid() != 0) {
		skip();
	}
	harness_listen(&harness);
	start("");
	as_user(OTHER, 0, other_makes_mistakes, NULL);
	as_user(ADMIN, 0, admin_makes_one_mistake, NULL);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(drain_gpu(0, false), NONE);
		assert_int_equal(drain_gpu(0, true), NONE);
	}
	assert_int_equal(harness_said(&harness, "GPU 0 is drained by user 0"), 30);
	assert_int_equal(harness_said(&harness, "GPU 0 is resumed by user 0"), 30);
	assert_int_equal(harness_said(&harness, "'quiet'): job 1 is for a GPU"), 1);
	assert_in_range(harness_said(&harness, "'loud'): job"), 20, 50);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Return: a connection that is told of events, or -1: refused. */
static int subscribe(void) {
	Sbeet__Control__EventsRequest events = SBEET__CONTROL__EVENTS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Reply *reply = NULL;
	ProtobufCMessage *m = NULL;
	static uint8_t buffer[PROTO_PACKET_MAX];
	char path[128];
	int fd, n;

	request.id = 1;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_EVENTS;
	request.events = &events;
	check(packet_socket_path("control.sock", path, sizeof(path)) == 0, "find the socket");
	fd = packet_connect(path, 0);
	check(fd >= 0 && packet_send(fd, &request.base, -1) == 0, "ask for events");
	n = packet_receive(fd, buffer, NULL);
	check(n > 0 &&
		      packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m) == 0,
	      "get an answer");
	reply = (Sbeet__Control__Reply *)m;
	if (reply->body_case != SBEET__CONTROL__REPLY__BODY_EVENTS) {
		close(fd);
		fd = -1;
	}
	packet_free(m);
	return fd;
}

static void other_subscribes(void *data) {
	check(subscribe() >= 0, "be told of events");
}

static void one_user_leaves_subscriptions_to_others(void **state) {
	int fds[100];
	size_t n = 0;

	if (geteuid() != 0) {
		skip();
	}
	start("");
	while ((fds[n] = subscribe()) >= 0) {
		assert_true(++n < 100);
	}
	assert_true(n > 0);
	as_user(OTHER, 0, other_subscribes, NULL);
	while (n > 0) {
		close(fds[--n]);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void declare_kernel(int fd, uint32_t id) {
	Sbeet__KernelDef kernel = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	kernel.id = id;
	kernel.enforcement_mask = MASK_ALL;
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &kernel;
	shim_send(fd, &m);
}

/* The highest kernel takes 16 KiB of a session, and its name a little more: four have room, and the
 * fifth goes on without. */
static void the_memory_is_kept(void **state) {
	struct shim s[5];

	start("[users]\nbytes = 72K\n");
	for (int i = 0; i < 5; i++) {
		s[i] = shim_open("s", MASK_ALL);
		declare_kernel(s[i].fd, PROTO_KERNELS_MAX);
		if (i < 4) {
			shim_expect_silence(s[i].fd);
		}
	}
	shim_error(s[4].fd, 0, SBEET__ERROR_CODE__ERROR_CODE_QUOTA);
	shim_request(s[4].fd, 1, 0, MASK_ALL);
	shim_granted(s[4].fd, 1);
	for (int i = 0; i < 5; i++) {
		shim_close(&s[i]);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Time can only be longer than the rate makes it, so this holds on any machine. */
static void the_rate_is_kept(void **state) {
	nsec_t began;
	struct shim s;

	start("[users]\nrate = 1000\n");
	s = shim_open("a", MASK_ALL);
	began = nsec_now();
	for (uint64_t job = 1; job <= 800; job++) { /* two packets each, 1000 of them at once */
		shim_request(s.fd, job, 0, MASK_ALL);
		shim_granted(s.fd, job);
		shim_done(s.fd, job);
	}
	assert_true(nsec_now() - began >= 590 * NSEC_PER_MSEC);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* It is read from slowly, and must not take sbeetd for one that is stopped. */
static void a_program_that_is_slowed_down_hears_of_sbeetd(void **state) {
	Sbeet__ToShim *m;
	struct shim s;
	bool told;

	start("[users]\nrate = 1\n");
	s = shim_open("a", MASK_ALL);
	for (uint64_t job = 1; job <= 8; job++) { /* all but the first wait for its GPU */
		shim_request(s.fd, job, 0, MASK_WHOLE);
	}
	do {
		m = shim_receive(s.fd);
		assert_non_null(m);
		told = m->body_case == SBEET__TO_SHIM__BODY_PONG;
		packet_free(&m->base);
	} while (!told);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(draining_lets_jobs_end_and_starts_none),
		CASE(tasks_change_and_sessions_end),
		CASE(files_say_what_programs_are),
		CASE(files_bound_the_sms_of_tasks),
		CASE(others_are_denied_and_admins_are_not),
		CASE(users_change_their_own_within_their_rights),
		CASE(rights_are_kept),
		CASE(the_number_of_jobs_is_kept),
		CASE(the_memory_is_kept),
		CASE(the_rate_is_kept),
		CASE(a_program_that_is_slowed_down_hears_of_sbeetd),
		CASE(mistakes_of_one_user_hide_no_changes),
		CASE(one_user_leaves_subscriptions_to_others),
	};

	return cmocka_run_group_tests_name("daemon-access", tests, NULL, NULL);
}
