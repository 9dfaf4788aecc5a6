/*
 * test-daemon-terms.c: policy `steer`, with scripted programs: what their pages say, and what comes
 * of the jobs that they tell of afterwards.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/session/work-seen.h"
#include "proto/enforcement.h"
#include "proto/packet.h"

#define MASK_GREEN (MASK_WHOLE | ENFORCEMENT_BIT(GREEN))
#define MS	   NSEC_PER_MSEC

static struct harness harness;

/* 132 SMs, cut into 14 groups of 8 and one of 20. */
static int setup(void **state) {
	harness_prepare(&harness);
	setenv("SIMGPU", "h200:mps", 1);
	setenv("SIMGPU_DIR", harness.directory, 1);
	setenv("LD_LIBRARY_PATH", SIMGPU_LIBRARIES, 1);
	harness_start(&harness, (const char *[]){"--policy", "steer", "--drain", "10s",
						 "--max-hold", "200ms", NULL});
	return 0;
}

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

/* With a deadline, or without if that is 0. */
static struct steered open_task(const char *name, nsec_t deadline, unsigned max_sms) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;

	task.name = (char *)(uintptr_t)name;
	task.task_class = deadline ? SBEET__TASK_CLASS__TASK_CLASS_REALTIME
				   : SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT;
	task.deadline_ns = deadline;
	task.max_sms = max_sms;
	return steered_open("app", &task, MASK_GREEN);
}

static void assert_terms(const struct steered *s, unsigned level, const char *sms) {
	struct terms t = steered_terms(s, 0);
	char text[SMSET_TEXT_MAX];
	struct smset set;

	assert_true(t.steered);
	assert_int_equal(terms_sms(&t, 132, &set), 0);
	smset_print(&set, text, sizeof(text));
	assert_string_equal(text, sms);
	assert_int_equal(t.level, level);
	assert_int_equal(t.n == 0, strcmp(sms, "0-131") == 0);
}

static bool is_steered(const struct steered *s) {
	return steered_terms(s, 0).steered;
}

static bool session_gone(const Sbeet__Control__Status *status, void *data) {
	const uint64_t *id = data;

	for (size_t i = 0; i < status->n_sessions; i++) {
		if (status->sessions[i]->id == *id) {
			return false;
		}
	}
	return true;
}

static void leave(struct steered *s) {
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	m.body_case = SBEET__TO_DAEMON__BODY_GOODBYE;
	m.goodbye = &goodbye;
	shim_send(s->fd, &m);
	status_until(session_gone, &s->session);
	steered_close(s);
}

static void terms_keep_tasks_with_a_deadline_apart_from_others(void **state) {
	struct steered a = open_task("a", 0, 0), b, c;
	uint16_t epoch;

	assert_terms(&a, 0, "0-131");
	b = open_task("b", 50 * MS, 0);
	assert_terms(&a, 0, "56-131");
	assert_terms(&b, 0, "0-131");
	epoch = steered_terms(&b, 0).epoch;
	c = open_task("c", 20 * MS, 0);
	assert_terms(&a, 0, "56-131");
	assert_terms(&b, 0, "0-131");
	assert_terms(&c, 0, "0-131");
	assert_int_equal(steered_terms(&b, 0).epoch, epoch);
	leave(&c);
	leave(&b);
	assert_terms(&a, 0, "0-131");
	leave(&a);
}

static void terms_keep_bounds(void **state) {
	struct steered s = open_task("t", 90 * MS, 0), bounded, other;

	bounded = open_task("bounded", 100 * MS, 30); /* whole groups, at most */
	assert_terms(&bounded, PROTO_TERMS_LEVEL_MAX - 1, "0-23");
	other = open_task("other", 0, 8);
	assert_terms(&other, 0, "112-131"); /* the last group is the larger one */
	assert_terms(&bounded, 0, "0-23");
	assert_terms(&s, 0, "0-131");
	steered_close(&s);
	steered_close(&bounded);
	steered_close(&other);
}

static void terms_are_no_sets_for_programs_that_make_none(void **state) {
	struct steered a = steered_open("a", NULL, MASK_WHOLE), b = open_task("b", 50 * MS, 0);

	/* It can't be kept out: whoever is urgent goes before it. */
	assert_terms(&a, 0, "0-131");
	assert_terms(&b, 5, "0-131");
	steered_close(&a);
	steered_close(&b);
}

static void page_cannot_be_changed(void **state) {
	struct steered a = open_task("a", 0, 0);
	char byte = 1;
	struct stat st;

	assert_int_equal(fstat(a.page_fd, &st), 0);
	assert_true(st.st_size >= (off_t)sizeof(struct terms_page));
	assert_int_equal(fcntl(a.page_fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW),
			 F_SEAL_SHRINK | F_SEAL_GROW);
	assert_int_equal(ftruncate(a.page_fd, 0), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a.page_fd, 0),
			 MAP_FAILED);
	assert_int_equal(write(a.page_fd, &byte, 1), -1);
	steered_close(&a);
}

static void drain_gpu(bool resume) {
	Sbeet__Control__GpuDrain drain = SBEET__CONTROL__GPU_DRAIN__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	drain.resume = resume;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN;
	request.gpu_drain = &drain;
	control_do(&request);
	harness_settle();
}

static void terms_end_with_the_policy_and_a_drained_gpu(void **state) {
	struct steered a = open_task("a", 0, 0);
	uint16_t epoch = steered_terms(&a, 0).epoch;

	policy_set("fcfs", SBEET__ERROR_CODE__ERROR_CODE_NONE);
	harness_settle();
	assert_int_equal(atomic_load(&a.page->gpu[0].word), 0);
	shim_request(a.fd, 1, 0, MASK_GREEN); /* the UUID is another one's */
	shim_error(a.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_NO_GPU);
	policy_set("steer", SBEET__ERROR_CODE__ERROR_CODE_NONE);
	harness_settle();
	assert_terms(&a, 0, "0-131");
	assert_int_not_equal(steered_terms(&a, 0).epoch, epoch);
	drain_gpu(false);
	assert_false(is_steered(&a));
	drain_gpu(true);
	assert_true(is_steered(&a));
	steered_close(&a);
}

static void terms_follow_a_task_that_is_changed(void **state) {
	struct steered a = open_task("a", 0, 0), b = open_task("b", 50 * MS, 0);
	Sbeet__Control__TaskChange change = SBEET__CONTROL__TASK_CHANGE__INIT;
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT; /* best effort */
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	change.task = (char[]){"b"};
	change.mask = 1u << 2;
	change.spec = &spec;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE;
	request.task_change = &change;
	control_do(&request);
	harness_settle();
	assert_terms(&a, 0, "0-131");
	assert_terms(&b, 0, "0-131");
	steered_close(&a);
	steered_close(&b);
}

static const Sbeet__Control__Session *find_session(const Sbeet__Control__Status *status,
						   uint64_t id) {
	for (size_t i = 0; i < status->n_sessions; i++) {
		if (status->sessions[i]->id == id) {
			return status->sessions[i];
		}
	}
	fail_msg("no session %llu", (unsigned long long)id);
	return NULL;
}

static void jobs_under_terms_are_counted(void **state) {
	struct steered a = open_task("a", 50 * MS, 0);
	uint64_t word = atomic_load(&a.page->gpu[0].word);
	nsec_t now = nsec_now(), old = now - 5 * NSEC_PER_SEC;
	Sbeet__Control__Status *status;
	const Sbeet__Control__Session *s;

	/* Accounts may come late: sbeetd was stopped, or the program busy. */
	steered_began(&a, 0, &(struct began){1, word, old, old + 10 * MS});
	steered_began(&a, 0, &(struct began){2, word, old + 100 * MS, old + 151 * MS});
	steered_began(&a, 0, &(struct began){3, word, now, 0});
	shim_expect_silence(a.fd);
	status = status_get();
	s = find_session(status, a.session);
	assert_int_equal(s->jobs, 2);
	assert_int_equal(s->misses, 1);
	assert_int_equal(s->launches, 6);
	assert_int_equal(s->max_response_ns, 51 * MS);
	assert_int_equal(s->max_wait_ns, 0);
	assert_int_equal(status->service->jobs_done, 2);
	assert_int_equal(status->service->misses, 1);
	assert_int_equal(status->n_jobs, 1);
	assert_int_equal(status->jobs[0]->job, 3);
	assert_string_equal(status->jobs[0]->state, "running");
	assert_int_equal(status->jobs[0]->deadline_ns, now + 50 * MS);
	assert_int_equal(status->jobs[0]->enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE);
	status_free(status);

	shim_done_at(a.fd, 3, now + 1);
	shim_expect_silence(a.fd);
	status = status_get();
	assert_int_equal(status->n_jobs, 0);
	assert_int_equal(status->service->jobs_done, 3);
	status_free(status);
	steered_close(&a);
}

/* However late the account: what it marks counts up to a second before the job was called. */
static void jobs_under_terms_are_released_where_they_are_marked(void **state) {
	struct steered a = open_task("a", 50 * MS, 0);
	uint64_t word = atomic_load(&a.page->gpu[0].word);
	nsec_t old = nsec_now() - 5 * NSEC_PER_SEC;
	const struct {
		struct began began;
		nsec_t response;
		unsigned misses; /* so far */
	} cases[] = {
		{{1, word, old, old + 10 * MS, .marked = old - 41 * MS}, 51 * MS, 1},
		{{2, word, old, old + 10 * MS, .marked = 1}, NSEC_PER_SEC + 10 * MS, 2},
		{{3, word, old, old + 10 * MS, old - 1 * MS, 11 * MS}, 11 * MS, 2},
		{{4, word, old, old + 10 * MS, old - 1 * MS, 11 * MS - 1}, 11 * MS, 3},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		Sbeet__Control__Status *status;

		steered_began(&a, 0, &cases[i].began);
		shim_expect_silence(a.fd);
		status = status_get();
		assert_int_equal(find_session(status, a.session)->last_response_ns,
				 cases[i].response);
		assert_int_equal(find_session(status, a.session)->misses, cases[i].misses);
		assert_int_equal(find_session(status, a.session)->max_wait_ns, 0);
		status_free(status);
	}
	steered_close(&a);
}

static void status_tells_what_holds(void **state) {
	struct steered a = open_task("a", 50 * MS, 0), b = open_task("b", 0, 0);
	uint64_t word = atomic_load(&b.page->gpu[0].word);
	struct shim asks = shim_open("asks", MASK_ALL);
	Sbeet__Control__Status *status;
	const Sbeet__Control__Session *s;

	steered_began(&b, 0, &(struct began){1, word, nsec_now(), 0});
	harness_settle();
	leave(&a);
	status = status_get();
	assert_int_equal(find_session(status, asks.session)->n_terms, 0);
	s = find_session(status, b.session);
	assert_int_equal(s->n_terms, 1);
	assert_int_equal(s->terms[0]->gpu, 0);
	assert_int_equal(s->terms[0]->word, atomic_load(&b.page->gpu[0].word));
	assert_int_not_equal(s->terms[0]->word, word);
	assert_int_equal(s->terms[0]->began, word);
	assert_true(s->terms[0]->since_ns > 0);
	assert_true(strlen(s->terms[0]->reason) > 0);
	assert_int_equal(status->n_jobs, 1);
	assert_int_equal(status->jobs[0]->terms, word);
	assert_int_equal(status->jobs[0]->enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_GREEN);
	assert_int_equal(status->jobs[0]->exact, 1);
	status_free(status);
	shim_close(&asks);
	steered_close(&b);
}

/* A program that is about to be ended asks, and waits. */
static void terms_end_when_a_program_is_to_be_ended(void **state) {
	struct steered a = open_task("a", 0, 0);
	Sbeet__Control__SessionKill kill = SBEET__CONTROL__SESSION_KILL__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	uint64_t word = atomic_load(&a.page->gpu[0].word);
	Sbeet__Control__Reply *reply;
	int fd;

	steered_began(&a, 0, &(struct began){1, word, nsec_now(), 0});
	harness_settle();
	kill.session = a.session;
	kill.terminate = true;
	kill.drain_ns = 60 * NSEC_PER_SEC;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_SESSION_KILL;
	request.session_kill = &kill;
	fd = control_begin(&request);
	harness_settle();
	assert_false(is_steered(&a));
	shim_done(a.fd, 1);
	reply = control_end(fd);
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_DONE);
	packet_free(&reply->base);
	harness_settle();
	assert_true(is_steered(&a)); /* who asked has gone without ending it */
	steered_close(&a);
}

/* Jobs under terms hold no SMs: others ask, and are granted what is free among those that ask. What
 * these hold for too long (--max-hold) is taken back, and from nobody else. */
static void programs_without_terms_ask(void **state) {
	struct steered a = open_task("a", 50 * MS, 0);
	struct shim b = shim_open("b", MASK_WHOLE), c = shim_open("c", MASK_WHOLE);
	uint64_t word = atomic_load(&a.page->gpu[0].word);
	Sbeet__ToShim *m;

	steered_began(&a, 0, &(struct began){1, word, nsec_now() - NSEC_PER_SEC, 0});
	steered_request(b.fd, &a, 1);
	shim_granted(b.fd, 1);
	steered_request(c.fd, &a, 1);
	m = shim_receive(b.fd);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_REVOKE);
	packet_free(&m->base);
	shim_expect_silence(a.fd);
	shim_done(b.fd, 1);
	shim_granted(c.fd, 1);
	shim_done(c.fd, 1);
	shim_close(&b);
	shim_close(&c);
	steered_close(&a);
}

static void rude_accounts_harm_nobody_else(void **state) {
	struct terms beyond = {.steered = true, .first = 14, .n = 2, .group = 8};
	struct steered a = open_task("a", 0, 0), b = open_task("b", 0, 0);
	uint64_t word = atomic_load(&a.page->gpu[0].word);
	struct steered without = {.fd = shim_open("without", MASK_ALL).fd, .page = a.page};
	nsec_t now = nsec_now();

	/* a program that was given no terms */
	steered_began(&without, 0, &(struct began){1, word, now, now});
	shim_error(without.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(without.fd);
	close(without.fd);
	/* twice the same job; times that can't be; an end of what nobody knows */
	steered_began(&a, 0, &(struct began){1, word, now, 0});
	steered_began(&a, 0, &(struct began){1, word, now, 0});
	shim_error(a.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_DUPLICATE);
	steered_began(&a, 0, &(struct began){2, word, now + NSEC_PER_SEC, 1});
	shim_done(a.fd, 77);
	shim_expect_silence(a.fd);
	/* SMs that the GPU does not have */
	steered_began(&a, 0, &(struct began){3, terms_pack(&beyond), now, now});
	shim_error(a.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
	shim_closed(a.fd);
	/* a word that no page says */
	steered_began(&b, 0, &(struct began){4, UINT64_MAX, now, now});
	shim_error(b.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
	shim_closed(b.fd);
	steered_close(&a);
	steered_close(&b);
	harness_settle();
}

/* More jobs than a program may have. */
static void open_jobs_are_bounded(void **state) {
	struct steered a = open_task("a", 0, 0);
	uint64_t word = atomic_load(&a.page->gpu[0].word);
	Sbeet__Control__Status *status;

	for (unsigned i = 1; i <= PROTO_JOBS_PER_SESSION; i++) {
		steered_began(&a, 0, &(struct began){i, word, nsec_now(), 0});
	}
	shim_expect_silence(a.fd);
	steered_began(&a, 0, &(struct began){1000, word, nsec_now(), 0});
	shim_error(a.fd, 1000, SBEET__ERROR_CODE__ERROR_CODE_QUOTA);
	status = status_get();
	assert_int_equal(status->n_jobs, PROTO_JOBS_PER_SESSION);
	status_free(status);
	steered_close(&a);
}

/* A job that its process had open when the connection was lost: its end counts once, and nobody
 * can claim SMs by it. */
static void an_open_job_outlives_the_connection(void **state) {
	struct steered a = open_task("a", 50 * MS, 0);
	uint64_t word = atomic_load(&a.page->gpu[0].word);
	struct grant g = {.sms = smset_range(0, 132),
			  .gpu_sms = 132,
			  .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE};
	Sbeet__Control__Status *status;
	struct claim claim;
	int fd;

	steered_began(&a, 0, &(struct began){1, word, nsec_now(), 0});
	steered_began(&a, 0, &(struct began){2, word, nsec_now(), 0});
	harness_settle();
	claim_init(&claim, 2, 0, &g);
	memcpy(claim.uuid, a.page->gpu[0].uuid, sizeof(claim.uuid));
	steered_close(&a);
	fd = shim_come_back("app", &claim, 1);
	shim_done(fd, 2);
	shim_expect_silence(fd);
	close(fd);
	status = status_get();
	assert_int_equal(status->service->jobs_done, 1);
	assert_int_equal(status->service->jobs_abandoned, 1);
	status_free(status);
}

static struct steered open_holder(const char *name, nsec_t deadline) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;

	task.name = (char *)(uintptr_t)name;
	task.task_class = deadline ? SBEET__TASK_CLASS__TASK_CLASS_REALTIME
				   : SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT;
	task.deadline_ns = deadline;
	return steered_open_taking_boards("app", &task, MASK_GREEN);
}

static void wait_for_empty_slot(struct board *board, unsigned slot) {
	while (atomic_load(&board->slots[0][slot].due_ns) != 0) {
		harness_settle();
	}
}

static void programs_share_a_board_while_copies_are_held(void **state) {
	struct steered a = open_holder("a", 0), b, c, old = open_task("old", 0, 0);
	unsigned slot_a, slot_b, slot_c;
	struct board *board_a, *board_b, *board_c;

	shim_expect_silence(a.fd); /* no copies are held */
	assert_int_equal(steered_terms(&a, 0).copies, TERMS_COPIES_WHOLE);
	b = open_holder("b", 50 * MS);
	assert_int_equal(steered_terms(&a, 0).copies, TERMS_COPIES_HELD);
	assert_int_equal(steered_terms(&b, 0).copies, TERMS_COPIES_HELD);
	assert_int_equal(atomic_load(&a.page->gpu[0].copy_due_ns), 0);
	assert_int_equal(atomic_load(&b.page->gpu[0].copy_due_ns), 50 * MS);
	assert_int_equal(atomic_load(&a.page->copy_late_due_ns[0]), 0);
	assert_int_equal(atomic_load(&b.page->copy_late_due_ns[0]), 0);
	board_a = steered_board(&a, &slot_a);
	board_b = steered_board(&b, &slot_b);
	assert_int_not_equal(slot_a, slot_b);
	shim_expect_silence(old.fd); /* does not know what to do with it */
	atomic_store(&board_a->slots[0][slot_a].due_ns, 1);
	atomic_store(&board_b->slots[0][slot_b].due_ns, 77);
	assert_int_equal(atomic_load(&board_a->slots[0][slot_b].due_ns), 77);
	/* Who is gone is off the board; the next one has its slot. */
	close(b.fd);
	b.fd = -1;
	wait_for_empty_slot(board_a, slot_b);
	assert_int_equal(atomic_load(&board_a->slots[0][slot_a].due_ns), 1);
	c = open_holder("c", 20 * MS);
	board_c = steered_board(&c, &slot_c);
	assert_int_equal(slot_c, slot_b);
	assert_int_equal(atomic_load(&board_c->slots[0][slot_a].due_ns), 1);
	munmap(board_a, sizeof(*board_a));
	munmap(board_b, sizeof(*board_b));
	munmap(board_c, sizeof(*board_c));
	steered_close(&a);
	steered_close(&c);
	steered_close(&old);
	munmap((void *)(uintptr_t)b.page, sizeof(*b.page));
	close(b.page_fd);
}

struct told {
	uint64_t session, jobs;
};

static bool are_told(const Sbeet__Control__Status *status, void *data) {
	const struct told *told = data;

	return find_session(status, told->session)->jobs >= told->jobs;
}

/* @n jobs of @s, numbered from @first, are over. */
static void tell_jobs(const struct steered *s, uint64_t first, unsigned n, uint64_t copies) {
	const struct work work = {.launches = 2, .waves = 2, .copies = copies};
	uint64_t word = atomic_load(&s->page->gpu[0].word);
	struct told last;

	for (unsigned i = 0; i < n; i++) {
		nsec_t now = nsec_now();

		steered_began(s, 0,
			      &(struct began){.job = first + i,
					      .terms = word,
					      .release = now - MS,
					      .finished = now,
					      .work = &work});
	}
	last = (struct told){s->session, first + n - 1};
	status_until(are_told, &last); /* each turn sbeetd hears only so many */
	harness_settle();	       /* and sets the terms behind that */
}

/* Nobody's copies are held for a program that makes none, until it does. */
static void copies_are_whole_beside_a_program_that_makes_none(void **state) {
	struct steered a = open_task("a", 0, 0), b = open_task("b", 50 * MS, 0);

	assert_int_equal(steered_terms(&a, 0).copies, TERMS_COPIES_HELD);
	tell_jobs(&b, 1, 1, 7);
	tell_jobs(&b, 2, WORK_SEEN_COPIES - 1, 0);
	assert_int_equal(steered_terms(&a, 0).copies, TERMS_COPIES_HELD);
	tell_jobs(&b, 1 + WORK_SEEN_COPIES, 1, 0);
	assert_int_equal(steered_terms(&a, 0).copies, TERMS_COPIES_WHOLE);
	tell_jobs(&b, 2 + WORK_SEEN_COPIES, 1, 1);
	assert_int_equal(steered_terms(&a, 0).copies, TERMS_COPIES_HELD);
	steered_close(&a);
	steered_close(&b);
}

static void pages_outlive_a_daemon_that_is_killed(void **state) {
	struct steered a = open_task("a", 0, 0), b = open_task("b", 50 * MS, 0);

	harness_stop(&harness, SIGKILL);
	assert_terms(&a, 0, "56-131");
	assert_terms(&b, 0, "0-131");
	steered_close(&a);
	steered_close(&b);
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, setup, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		STARTED(terms_keep_tasks_with_a_deadline_apart_from_others),
		STARTED(terms_keep_bounds),
		STARTED(terms_are_no_sets_for_programs_that_make_none),
		STARTED(page_cannot_be_changed),
		STARTED(terms_end_with_the_policy_and_a_drained_gpu),
		STARTED(terms_follow_a_task_that_is_changed),
		STARTED(jobs_under_terms_are_counted),
		STARTED(jobs_under_terms_are_released_where_they_are_marked),
		STARTED(status_tells_what_holds),
		STARTED(terms_end_when_a_program_is_to_be_ended),
		STARTED(programs_without_terms_ask),
		STARTED(rude_accounts_harm_nobody_else),
		STARTED(open_jobs_are_bounded),
		STARTED(an_open_job_outlives_the_connection),
		STARTED(programs_share_a_board_while_copies_are_held),
		STARTED(copies_are_whole_beside_a_program_that_makes_none),
		STARTED(pages_outlive_a_daemon_that_is_killed),
	};

	return cmocka_run_group_tests_name("daemon-terms", tests, NULL, NULL);
}
