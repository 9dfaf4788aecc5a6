/*
 * test-daemon-restart.c: sbeetd is killed and started again: what ran under the first one keeps its
 * SMs under the second, and nobody gets what is not his.
 *
 * All clients here are one process, so the first that connects again speaks for all of them.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"

static struct harness harness;

static const char *const plain[] = {"--gpus", "8", "--sharing", "mps", "--drain", "1h", NULL};

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

static void restart(void) {
	assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
	harness_start(&harness, plain);
}

static void expect_revoke(int fd, uint64_t job) {
	Sbeet__ToShim *m = shim_receive(fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_REVOKE);
	assert_int_equal(m->revoke->job, job);
	packet_free(&m->base);
}

static unsigned busy(void) {
	Sbeet__Control__Status *status = status_get();
	struct smset sms;
	unsigned n;

	assert_int_equal(status->n_gpus, 1);
	assert_int_equal(smset_from_bytes(status->gpus[0]->sms_busy.data,
					  status->gpus[0]->sms_busy.len, &sms),
			 0);
	n = smset_count(&sms);
	status_free(status);
	return n;
}

static struct grant start_with_job(uint64_t job, uint32_t mask, int *ret_fd) {
	struct shim s;
	struct grant g;

	harness_start(&harness, plain);
	s = shim_open("before", MASK_ALL);
	shim_request(s.fd, job, 0, mask);
	g = shim_granted(s.fd, job);
	*ret_fd = s.fd;
	return g;
}

/* Nobody else gets the SMs, neither before nor after the process is back, until its job ends. */
static void daemon_keeps_sms_of_running_jobs(void **state) {
	struct claim claim;
	struct shim other;
	struct grant g, whole;
	int fd;

	g = start_with_job(7, MASK_ALL, &fd);
	assert_int_equal(smset_count(&g.sms), 4);
	restart();
	shim_closed(fd);
	close(fd);
	assert_int_equal(busy(), 4);
	claim_init(&claim, 7, 0, &g);
	fd = shim_come_back("again", &claim, 1);
	assert_int_equal(busy(), 4);
	other = shim_open("other", MASK_ALL);
	shim_request(other.fd, 1, 0, MASK_WHOLE);
	shim_expect_silence(other.fd);
	shim_expect_silence(fd);
	shim_done(fd, 7);
	whole = shim_granted(other.fd, 1);
	assert_int_equal(smset_count(&whole.sms), 8);
	shim_close(&other);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* How the one run ended that sbeetd knows of; "" while it goes on. */
static void expect_end(const char *end, bool restarted) {
	Sbeet__Control__HistoryRequest body = SBEET__CONTROL__HISTORY_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Reply *reply;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_HISTORY;
	request.history = &body;
	harness_settle();
	reply = control_ask(&request);
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_HISTORY);
	assert_int_equal(reply->history->n_runs, 1);
	assert_string_equal(reply->history->runs[0]->ended, end);
	assert_int_equal(reply->history->runs[0]->restarted, restarted);
	assert_int_equal(reply->history->runs[0]->jobs, 1);
	packet_free(&reply->base);
}

/* Also if it has no further job. */
static void daemon_knows_how_a_program_ended_that_came_back(void **state) {
	struct shim s;
	int fd;

	harness_start(&harness, plain);
	s = shim_open("before", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_done(s.fd, 1);
	expect_end("", false);
	restart();
	expect_end("restart", false);
	close(s.fd);
	fd = shim_come_back("before", NULL, 0);
	expect_end("", true);
	close(fd);
	expect_end("killed", true);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Through several daemons, and one that stops in peace. */
static void daemon_hands_jobs_on_and_on(void **state) {
	struct claim claim;
	struct grant g;
	int fd;

	g = start_with_job(1, MASK_WHOLE, &fd);
	for (int i = 0; i < 5; i++) {
		if (i % 2) {
			assert_int_equal(harness_stop(&harness, SIGTERM), 0);
			harness_start(&harness, plain);
		} else {
			restart();
		}
		close(fd);
		assert_int_equal(busy(), 8);
		if (i % 3 < 2) { /* else nobody comes before the next one */
			claim_init(&claim, 1, 0, &g);
			fd = shim_come_back("again", &claim, 1);
		} else {
			fd = shim_connect();
		}
	}
	shim_done(fd, 1);
	harness_settle();
	assert_int_equal(busy(), 0);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void expect_counted(uint64_t done, uint64_t abandoned) {
	Sbeet__Control__Status *status = status_get();

	assert_int_equal(status->service->jobs_done, done);
	assert_int_equal(status->service->jobs_abandoned, abandoned);
	status_free(status);
}

/* Its end, which the daemon before did not read, counts here; one that it did read does not. */
static void daemon_hears_what_ended_meanwhile(void **state) {
	int fd;

	start_with_job(7, MASK_WHOLE, &fd);
	restart();
	close(fd);
	fd = shim_come_back_ended("again", 6);
	expect_counted(0, 1); /* 7, of which it said nothing */
	close(fd);
	fd = shim_connect();
	shim_hello(fd, "again", NULL, MASK_ALL);
	packet_free(&shim_receive(fd)->base);
	shim_request(fd, 8, 0, MASK_WHOLE);
	shim_granted(fd, 8);
	restart();
	close(fd);
	fd = shim_come_back_ended("again", 8);
	expect_counted(1, 0);
	assert_int_equal(busy(), 0);
	close(fd);
	fd = shim_come_back_ended("again", 8); /* told twice, counted once */
	expect_counted(1, 0);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_frees_what_is_not_named_again(void **state) {
	struct shim s;
	int fd;

	start_with_job(1, MASK_WHOLE, &fd);
	restart();
	close(fd);
	s = shim_open("again", MASK_ALL);
	shim_request(s.fd, 2, 0, MASK_WHOLE);
	shim_granted(s.fd, 2);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* A process that holds all SMs, and lives until it is killed. */
static pid_t start_mortal(void) {
	struct shim s;
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		s = shim_open("mortal", MASK_ALL);
		shim_request(s.fd, 1, 0, MASK_WHOLE);
		shim_granted(s.fd, 1);
		assert_int_equal(write(ready[1], "", 1), 1);
		for (;;) {
			pause();
		}
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void expect_heir(void) {
	struct shim s = shim_open("heir", MASK_ALL);

	shim_request(s.fd, 1, 0, MASK_WHOLE);
	shim_granted(s.fd, 1);
	shim_close(&s);
}

static void daemon_frees_sms_of_who_died_meanwhile(void **state) {
	pid_t pid;

	harness_start(&harness, plain);
	pid = start_mortal();
	restart();
	assert_int_equal(busy(), 8); /* it lives */
	assert_int_equal(kill(pid, SIGKILL), 0);
	expect_heir();
	waitpid(pid, NULL, 0);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Another process of this number, which is free. Return: whether that is allowed here. */
static bool start_namesake(pid_t pid) {
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
	long r = syscall(SYS_clone3, &args, sizeof(args));

	if (r == 0) {
		for (;;) {
			pause();
		}
	}
	assert_true(r == pid || errno == EPERM || errno == ENOSYS);
	return r == pid;
}

/* While there was no daemon the process died, and its number is another's. */
static void daemon_tells_a_process_from_its_namesake(void **state) {
	pid_t pid;

	harness_start(&harness, plain);
	pid = start_mortal();
	assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	if (!start_namesake(pid)) {
		print_message("no process of a chosen number here\n");
		skip();
	}
	harness_start(&harness, plain);
	expect_heir();
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Whoever says that he holds what he was not granted is told to end, and hurts nobody. */
static void daemon_believes_no_claim_that_it_does_not_know(void **state) {
	struct claim claims[3];
	struct grant g, wrong;
	int fd;

	g = start_with_job(7, MASK_ALL, &fd);
	wrong = g;
	wrong.sms = smset_range(0, 8);
	wrong.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	restart();
	close(fd);
	claim_init(&claims[0], 8, 0, &g);     /* another job */
	claim_init(&claims[1], 9, 0, &wrong); /* all the SMs */
	claim_init(&claims[2], 7, 0, &g);
	fd = shim_come_back("again", claims, 3);
	expect_revoke(fd, 8);
	expect_revoke(fd, 9);
	shim_expect_silence(fd);
	assert_int_equal(busy(), 4);
	shim_done(fd, 8);
	shim_done(fd, 7);
	shim_expect_silence(fd);
	assert_int_equal(busy(), 0);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Also without any restart: who closes his connection and comes back keeps his jobs. */
static void daemon_resumes_a_connection_that_broke(void **state) {
	struct claim claim;
	struct grant g;
	int fd;

	g = start_with_job(3, MASK_ALL, &fd);
	close(fd);
	claim_init(&claim, 3, 0, &g);
	fd = shim_come_back("again", &claim, 1);
	assert_int_equal(busy(), 4);
	shim_done(fd, 3);
	shim_expect_silence(fd);
	assert_int_equal(busy(), 0);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void spoil(size_t offset, const void *bytes, size_t n) {
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/sbeetd.jobs", harness.directory);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	if (n == 0) {
		assert_int_equal(ftruncate(fd, (off_t)offset), 0);
	} else {
		assert_int_equal(pwrite(fd, bytes, n, (off_t)offset), n);
	}
	close(fd);
}

/* Return: false if we came too late to be believed, which a slow machine can do. */
static bool is_believed(int fd) {
	Sbeet__ToShim *m = shim_receive(fd);
	uint64_t job;

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_REVOKE);
	job = m->revoke->job;
	packet_free(&m->base);
	return job == 6;
}

/* The file is of no use: programs are believed as long as what they say fits together. */
static void check_spoilt(size_t offset, const void *bytes, size_t n) {
	struct claim claims[2];
	struct grant g, whole;
	struct shim other;
	bool believed;
	int fd;

	do {
		g = start_with_job(5, MASK_ALL, &fd);
		assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
		close(fd);
		spoil(offset, bytes, n);
		harness_start(&harness, plain);
		claim_init(&claims[0], 5, 0, &g);
		claim_init(&claims[1], 6, 0, &g);
		fd = shim_come_back("again", claims, 2);
		believed = is_believed(fd);
		if (!believed) {
			close(fd);
			harness_clean(&harness);
		}
	} while (!believed);
	other = shim_open("other", MASK_ALL);
	shim_request(other.fd, 1, 0, MASK_WHOLE);
	shim_expect_silence(other.fd);
	shim_done(fd, 5);
	whole = shim_granted(other.fd, 1);
	assert_int_equal(smset_count(&whole.sms), 8);
	shim_close(&other);
	close(fd);
	harness_clean(&harness);
}

static void daemon_asks_programs_when_its_file_is_unusable(void **state) {
	static const uint8_t newer[4] = {99}, noise[64] = {[0 ... 63] = 0xa5};

	check_spoilt(0, NULL, 0);	       /* empty */
	check_spoilt(100, NULL, 0);	       /* cut */
	check_spoilt(0, noise, 8);	       /* something else */
	check_spoilt(8, newer, sizeof(newer)); /* of a later sbeetd */
	check_spoilt(56 + 20, noise, 16);      /* an entry scribbled over */
}

/* Claims that can't be true, while programs are believed, hurt nobody else: the next daemon still
 * knows what this one has granted. */
static void impossible_claim_hurts_its_sender_alone(void **state) {
	struct claim claim;
	struct grant g;
	struct shim s;
	int fd;

	g = start_with_job(5, MASK_ALL, &fd);
	assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
	close(fd);
	spoil(0, NULL, 0);
	harness_start(&harness, plain);
	claim_init(&claim, 5, 0, &g);
	claim.held.sequence = INT64_MAX - 1;
	fd = shim_come_back("again", &claim, 1);
	expect_revoke(fd, 5);
	close(fd);
	s = shim_open("victim", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	g = shim_granted(s.fd, 1); /* when programs are not believed any more */
	restart();
	shim_close(&s);
	claim_init(&claim, 1, 0, &g);
	fd = shim_come_back("victim", &claim, 1);
	shim_expect_silence(fd);
	assert_int_equal(busy(), 4);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_starts_when_it_cannot_write_its_file(void **state) {
	char path[128];
	struct shim s;

	harness_prepare(&harness);
	snprintf(path, sizeof(path), "%s/sbeetd.jobs.new", harness.directory);
	assert_int_equal(mkdir(path, 0700), 0);
	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_done(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_keeps_sms_of_running_jobs),
		CASE(daemon_knows_how_a_program_ended_that_came_back),
		CASE(daemon_hands_jobs_on_and_on),
		CASE(daemon_hears_what_ended_meanwhile),
		CASE(daemon_frees_what_is_not_named_again),
		CASE(daemon_frees_sms_of_who_died_meanwhile),
		CASE(daemon_tells_a_process_from_its_namesake),
		CASE(daemon_believes_no_claim_that_it_does_not_know),
		CASE(daemon_resumes_a_connection_that_broke),
		CASE(daemon_asks_programs_when_its_file_is_unusable),
		CASE(impossible_claim_hurts_its_sender_alone),
		CASE(daemon_starts_when_it_cannot_write_its_file),
	};

	return cmocka_run_group_tests_name("daemon-restart", tests, NULL, NULL);
}
