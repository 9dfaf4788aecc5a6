/*
 * test-daemon-kernels.c: what a real sbeetd knows of programs' kernels and tells those who may ask,
 * and what programs count themselves.
 */
#include "harness.h"

#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/session/kernels.h"
#include "proto/packet.h"

#define OTHER 65533 /* nobody on this machine */

static struct harness harness;

static int start(void **state) {
	harness_start(&harness, (const char *const[]){"--gpus", "8", "--sharing", "mps", NULL});
	return 0;
}

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

static void count_job(int fd, uint64_t job, uint64_t launches, bool unconfined) {
	Sbeet__JobCount count = SBEET__JOB_COUNT__INIT, *list[] = {&count};
	Sbeet__Counts counts = SBEET__COUNTS__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	count.job = job;
	count.launches = launches;
	count.unconfined = unconfined;
	counts.jobs = list;
	counts.n_jobs = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_COUNTS;
	m.counts = &counts;
	shim_send(fd, &m);
}

/* All packets of the answer. */
struct answer {
	Sbeet__Control__Reply *replies[64];
	size_t n;
	const Sbeet__Control__Kernel *list[2 * KERNELS_KEPT];
	size_t n_kernels;
	uint64_t left_out, hidden;
	Sbeet__ErrorCode error;
};

static void answer_add(struct answer *a, const Sbeet__Control__Reply *reply) {
	if (reply->body_case == SBEET__CONTROL__REPLY__BODY_ERROR) {
		a->error = reply->error->code;
		return;
	}
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_KERNELS);
	for (size_t i = 0; i < reply->kernels->n_kernels; i++) {
		assert_true(a->n_kernels < 2 * KERNELS_KEPT);
		a->list[a->n_kernels++] = reply->kernels->kernels[i];
	}
	a->left_out = reply->kernels->left_out;
	a->hidden = reply->kernels->hidden;
}

static struct answer ask(uint64_t session) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	Sbeet__Control__KernelsRequest body = SBEET__CONTROL__KERNELS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	struct answer a = {.n = 0};
	char path[128];
	bool last = false;
	int fd;

	harness_settle();
	assert_int_equal(packet_socket_path("control.sock", path, sizeof(path)), 0);
	fd = packet_connect(path, 0);
	assert_true(fd >= 0);
	body.session = session;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_KERNELS;
	request.kernels = &body;
	assert_int_equal(packet_send(fd, &request.base, -1), 0);
	while (!last) {
		ProtobufCMessage *m = NULL;
		int n = packet_receive(fd, buffer, NULL);

		assert_true(n > 0 && a.n < 64);
		assert_int_equal(
			packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m),
			0);
		a.replies[a.n++] = (Sbeet__Control__Reply *)m;
		last = a.replies[a.n - 1]->last;
		answer_add(&a, a.replies[a.n - 1]);
	}
	close(fd);
	return a;
}

static void answer_free(struct answer *a) {
	while (a->n > 0) {
		packet_free(&a->replies[--a->n]->base);
	}
}

static void kernels_are_listed_by_session(void **state) {
	struct shim a = shim_open("a", MASK_ALL), b = shim_open("b", MASK_ALL);
	struct answer all, one;

	shim_declare(a.fd, 7, "_Z3addPf", "");
	shim_declare(a.fd, 3, "scan", "it synchronises the grid");
	shim_declare(b.fd, 7, "other", "");
	shim_count(a.fd, 7, 5, 120);
	shim_count(a.fd, 7, 4, 100); /* older */
	shim_count(a.fd, 9, 1, 1);   /* never declared */
	all = ask(0);
	assert_int_equal(all.n_kernels, 3);
	assert_int_equal(all.list[0]->session, a.session);
	assert_int_equal(all.list[0]->id, 3);
	assert_string_equal(all.list[0]->name, "scan");
	assert_string_equal(all.list[0]->refusal, "it synchronises the grid");
	assert_int_equal(all.list[0]->enforcement_mask, MASK_WHOLE);
	assert_false(all.list[0]->dependent);
	assert_int_equal(all.list[0]->launches, 0);
	assert_string_equal(all.list[1]->name, "_Z3addPf");
	assert_int_equal(all.list[1]->enforcement_mask, MASK_ALL);
	assert_true(all.list[1]->dependent);
	assert_int_equal(all.list[1]->launches, 5);
	assert_int_equal(all.list[1]->blocks, 120);
	assert_int_equal(all.list[1]->block_threads, 64);
	assert_int_equal(all.list[2]->session, b.session);
	assert_int_equal(all.left_out + all.hidden, 0);
	one = ask(b.session);
	assert_int_equal(one.n_kernels, 1);
	assert_string_equal(one.list[0]->name, "other");
	answer_free(&all);
	answer_free(&one);
	one = ask(99);
	assert_int_equal(one.error, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT);
	answer_free(&one);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Returns when all that was sent over @fd has been read: more than a moment's worth. */
static void settle_session(int fd) {
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__Ping ping = SBEET__PING__INIT;
	Sbeet__ToShim *answer;

	ping.number = 5;
	m.body_case = SBEET__TO_DAEMON__BODY_PING;
	m.ping = &ping;
	shim_send(fd, &m);
	do {
		answer = shim_receive(fd);
		assert_non_null(answer);
		assert_int_equal(answer->body_case, SBEET__TO_SHIM__BODY_PONG);
		m.ping->number = answer->pong->number;
		packet_free(&answer->base);
	} while (m.ping->number != 5);
}

static void kernels_beyond_what_is_kept_are_counted(void **state) {
	struct shim s = shim_open("a", MASK_ALL);
	char name[2000];
	struct answer a;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memcpy(name + KERNELS_TEXT_MAX - 1, "\xc3\xa9", 2); /* not cut in two */
	for (uint32_t id = 1; id <= KERNELS_KEPT + 76; id++) {
		shim_declare(s.fd, id, name, name + sizeof(name) - 1 - PROTO_TEXT_MAX);
	}
	settle_session(s.fd);
	a = ask(0);
	assert_int_equal(a.n_kernels, KERNELS_KEPT);
	assert_int_equal(a.left_out, 76);
	assert_int_equal(strlen(a.list[0]->name), KERNELS_TEXT_MAX - 1);
	assert_int_equal(strlen(a.list[0]->refusal), KERNELS_TEXT_MAX);
	answer_free(&a);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* In another user's process an assertion of cmocka has nowhere to jump to. */
static int ask_as_other(uint64_t session) {
	struct answer a;

	if (setgroups(0, NULL) < 0 || setresgid(OTHER, OTHER, OTHER) < 0 ||
	    setresuid(OTHER, OTHER, OTHER) < 0) {
		return 99;
	}
	harness.pid = 0;
	a = ask(0);
	if (a.n_kernels != 0 || a.hidden != 1) {
		return 1;
	}
	a = ask(session);
	return a.error == SBEET__ERROR_CODE__ERROR_CODE_DENIED ? 0 : 2;
}

static void kernels_of_other_users_are_not_told(void **state) {
	struct shim s;
	char path[128];
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		skip();
	}
	assert_int_equal(chmod(harness.directory, 0755), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", harness.directory,
			 i ? "shim.sock" : "control.sock");
		assert_int_equal(chmod(path, 0666), 0);
	}
	s = shim_open("a", MASK_ALL);
	shim_declare(s.fd, 1, "secret", "");
	harness_settle();
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		_exit(ask_as_other(s.session));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void jobs_are_counted_while_they_run(void **state) {
	struct shim s = shim_open("a", MASK_ALL), other = shim_open("b", MASK_ALL);
	Sbeet__Control__Status *status;
	struct grant g;

	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_granted(other.fd, 1);
	shim_request(s.fd, 1, 0, MASK_ALL);
	g = shim_granted(s.fd, 1);
	assert_int_not_equal(g.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE);
	count_job(s.fd, 1, 12, false);
	count_job(s.fd, 2, 99, true); /* no such job */
	harness_settle();
	status = status_get();
	assert_int_equal(status->n_jobs, 2);
	for (size_t i = 0; i < 2; i++) {
		if (status->jobs[i]->session == s.session) {
			assert_int_equal(status->jobs[i]->launches, 12);
			assert_int_equal(status->jobs[i]->enforcement, g.enforcement);
		}
	}
	status_free(status);
	count_job(s.fd, 1, 13, true);
	count_job(s.fd, 1, 14, false);
	harness_settle();
	status = status_get();
	for (size_t i = 0; i < 2; i++) {
		if (status->jobs[i]->session == s.session) {
			assert_int_equal(status->jobs[i]->launches, 14);
			assert_int_equal(status->jobs[i]->enforcement,
					 SBEET__ENFORCEMENT__ENFORCEMENT_NONE);
		}
	}
	status_free(status);
	shim_close(&s);
	shim_close(&other);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(kernels_are_listed_by_session),
		CASE(kernels_beyond_what_is_kept_are_counted),
		CASE(kernels_of_other_users_are_not_told),
		CASE(jobs_are_counted_while_they_run),
	};

	return cmocka_run_group_tests_name("daemon-kernels", tests, NULL, NULL);
}
