/*
 * test-daemon-events.c: a real sbeetd tells what happens: everything, in order; to who reads too
 * slowly, how much it missed; and to nobody at the cost of others.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/watch/feed.h"
#include "proto/packet.h"
#include "proto/validate.h"

#define KIND(name) SBEET__CONTROL__EVENT_KIND__EVENT_KIND_##name

static const char *const args[] = {"--gpus", "46", "--sharing", "mps", "--drain", "1ms", NULL};
#define SUBSCRIPTIONS 8 /* default of the key in sbeetd.conf */

static struct harness harness;

static int start(void **state) {
	harness = (struct harness){0};
	harness_start(&harness, args);
	return 0;
}

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

static int subscribe(void) {
	Sbeet__Control__EventsRequest ask = SBEET__CONTROL__EVENTS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	char path[128];
	int fd;

	assert_int_equal(packet_socket_path("control.sock", path, sizeof(path)), 0);
	fd = packet_connect(path, 0);
	assert_true(fd >= 0);
	request.id = 5;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_EVENTS;
	request.events = &ask;
	assert_int_equal(packet_send(fd, &request.base, -1), 0);
	return fd;
}

static Sbeet__Control__Reply *receive(int fd) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	ProtobufCMessage *m = NULL;
	Sbeet__Control__Reply *reply;
	char why[256];
	int n = packet_receive(fd, buffer, NULL);

	assert_true(n > 0);
	assert_int_equal(packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m),
			 0);
	reply = (Sbeet__Control__Reply *)m;
	if (validate_control_reply(reply, why, sizeof(why)) != 0) {
		fail_msg("%s", why);
	}
	assert_int_equal(reply->id, 5);
	assert_false(reply->last);
	return reply;
}

/* One event after the other, across packets. */
struct reading {
	int fd;
	Sbeet__Control__Reply *reply;
	size_t next;
	uint64_t lost;
};

static const Sbeet__Control__Event *next_event(struct reading *r) {
	while (!r->reply || r->next == r->reply->events->n_events) {
		if (r->reply) {
			packet_free(&r->reply->base);
		}
		r->reply = receive(r->fd);
		assert_int_equal(r->reply->body_case, SBEET__CONTROL__REPLY__BODY_EVENTS);
		r->lost += r->reply->events->lost;
		r->next = 0;
	}
	return r->reply->events->events[r->next++];
}

static struct reading reading_start(void) {
	struct reading r = {.fd = subscribe()};

	assert_int_equal(next_event(&r)->kind, KIND(GPU));
	assert_non_null(r.reply->events->start);
	assert_string_equal(r.reply->events->start->policy, "even");
	assert_int_equal(r.reply->events->events[0]->gpu_sms, 46);
	return r;
}

static void reading_end(struct reading *r) {
	if (r->reply) {
		packet_free(&r->reply->base);
	}
	close(r->fd);
}

static void expect(struct reading *r, Sbeet__Control__EventKind kind, const char *task,
		   uint64_t job) {
	const Sbeet__Control__Event *e = next_event(r);

	assert_int_equal(e->kind, kind);
	assert_string_equal(e->task, task);
	assert_int_equal(e->job, job);
	assert_false(e->before);
}

static void a_watcher_sees_a_program_from_start_to_end(void **state) {
	struct reading r = reading_start();
	struct shim s = shim_open("camera", MASK_ALL);
	const Sbeet__Control__Event *e;

	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_done(s.fd, 1);
	shim_request(s.fd, 2, 0, MASK_ALL);
	shim_granted(s.fd, 2);
	shim_close(&s);
	policy_set("fcfs", SBEET__ERROR_CODE__ERROR_CODE_NONE);

	expect(&r, KIND(SESSION_START), "camera", 0);
	expect(&r, KIND(JOB_REQUEST), "camera", 1);
	e = next_event(&r);
	assert_int_equal(e->kind, KIND(JOB_GRANT));
	assert_int_equal(e->sms.len, 3); /* 23 SMs */
	assert_int_equal(e->enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT);
	assert_true(e->granted_ns >= e->release_ns);
	e = next_event(&r);
	assert_int_equal(e->kind, KIND(JOB_DONE));
	assert_true(e->finished_ns >= e->granted_ns);
	expect(&r, KIND(JOB_REQUEST), "camera", 2);
	expect(&r, KIND(JOB_GRANT), "camera", 2);
	/* the harness's policy_set() and the program's end come in either order */
	e = next_event(&r);
	if (e->kind == KIND(POLICY)) {
		assert_string_equal(e->text, "fcfs");
		e = next_event(&r);
	}
	assert_int_equal(e->kind, KIND(JOB_ABANDON));
	expect(&r, KIND(SESSION_END), "camera", 0);
	assert_int_equal(r.lost, 0);
	reading_end(&r);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void change(Sbeet__Control__Request__BodyCase body, void *message) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Reply *reply;

	request.body_case = body;
	request.config = message; /* all of the union are pointers */
	reply = control_ask(&request);
	assert_int_not_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
	packet_free(&reply->base);
}

static void a_watcher_sees_what_is_changed(void **state) {
	Sbeet__Control__ConfigRequest reload = SBEET__CONTROL__CONFIG_REQUEST__INIT;
	Sbeet__Control__SessionKill end = SBEET__CONTROL__SESSION_KILL__INIT;
	Sbeet__Control__GpuDrain drain = SBEET__CONTROL__GPU_DRAIN__INIT;
	struct shim s = shim_open("camera", MASK_ALL);
	struct reading r = reading_start();
	const Sbeet__Control__Event *e = next_event(&r);

	assert_true(e->before && e->kind == KIND(SESSION_START));
	change(SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN, &drain);
	change(SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN, &drain); /* is so already */
	drain.resume = true;
	change(SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN, &drain);
	reload.reload = true;
	change(SBEET__CONTROL__REQUEST__BODY_CONFIG, &reload);
	end.session = s.session;
	change(SBEET__CONTROL__REQUEST__BODY_SESSION_KILL, &end);

	expect(&r, KIND(GPU_DRAIN), "", 0);
	expect(&r, KIND(GPU_RESUME), "", 0);
	expect(&r, KIND(CONFIG), "", 0);
	expect(&r, KIND(SESSION_KILL), "camera", 0);
	expect(&r, KIND(SESSION_END), "camera", 0);
	reading_end(&r);
	close(s.fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static int start_impatient(void **state) {
	harness = (struct harness){0};
	harness_start(&harness, (const char *const[]){"--gpus", "46", "--sharing", "mps",
						      "--max-hold", "50ms", NULL});
	return 0;
}

static void a_watcher_sees_a_revoke(void **state) {
	struct shim a = shim_open("a", MASK_ALL), b = shim_open("b", MASK_ALL);
	const Sbeet__Control__Event *e;
	struct reading r;

	shim_request(a.fd, 1, 0, MASK_WHOLE);
	shim_granted(a.fd, 1);
	r = reading_start();
	shim_request(b.fd, 1, 0, MASK_WHOLE);
	do {
		e = next_event(&r);
	} while (e->before || e->kind == KIND(JOB_REQUEST));
	assert_int_equal(e->kind, KIND(JOB_REVOKE));
	assert_string_equal(e->task, "a");
	assert_int_equal(e->job, 1);
	reading_end(&r);
	shim_done(a.fd, 1);
	shim_granted(b.fd, 1);
	shim_done(b.fd, 1);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void a_late_watcher_is_told_what_there_is(void **state) {
	struct shim a = shim_open("first", MASK_ALL), b = shim_open("second", MASK_ALL);
	struct reading r;
	const Sbeet__Control__Event *e;

	shim_request(a.fd, 1, 0, MASK_WHOLE);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 7, 0, MASK_WHOLE);
	harness_settle();
	r = reading_start();
	for (int i = 0; i < 4; i++) {
		static const struct {
			Sbeet__Control__EventKind kind;
			const char *task;
		} expected[] = {{KIND(SESSION_START), "first"},
				{KIND(JOB_GRANT), "first"},
				{KIND(SESSION_START), "second"},
				{KIND(JOB_REQUEST), "second"}};

		e = next_event(&r);
		assert_int_equal(e->kind, expected[i].kind);
		assert_string_equal(e->task, expected[i].task);
		assert_true(e->before);
	}
	shim_done(a.fd, 1);
	expect(&r, KIND(JOB_DONE), "first", 1);
	expect(&r, KIND(JOB_GRANT), "second", 7);
	reading_end(&r);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static struct shim open_task(const char *name, nsec_t deadline) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	struct shim s = {.fd = shim_connect()};

	task.name = (char *)(uintptr_t)name;
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.period_ns = deadline;
	task.deadline_ns = deadline;
	shim_hello(s.fd, "app", &task, MASK_ALL);
	packet_free(&shim_receive(s.fd)->base);
	return s;
}

/* The next event of this kind. */
static const Sbeet__Control__Event *next_of(struct reading *r, Sbeet__Control__EventKind kind) {
	const Sbeet__Control__Event *e;

	do {
		e = next_event(r);
	} while (e->kind != kind);
	return e;
}

static void expect_late(struct reading *r, const char *task, bool runs, bool before) {
	const Sbeet__Control__Event *e = next_of(r, KIND(JOB_LATE));

	assert_string_equal(e->task, task);
	assert_int_equal(e->before, before);
	assert_int_equal(e->granted_ns != 0, runs);
	assert_true(e->deadline_ns > 0 && e->deadline_ns <= e->time_ns);
	assert_int_equal(e->finished_ns, 0);
}

/* No job ends before it is told to be late, so nobody can have waited for its end to tell. */
static void a_watcher_hears_of_a_deadline_when_it_passes(void **state) {
	struct reading r = reading_start(), second;
	struct shim a = open_task("runs", 50 * NSEC_PER_MSEC);
	struct shim b = open_task("waits", 50 * NSEC_PER_MSEC);

	shim_request(a.fd, 1, 0, MASK_WHOLE);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_WHOLE);
	expect_late(&r, "runs", true, false);
	expect_late(&r, "waits", false, false);
	second = reading_start();
	expect_late(&second, "runs", true, true);
	expect_late(&second, "waits", false, true);
	shim_done(a.fd, 1);
	for (int i = 0; i < 2; i++) {
		struct reading *each = i ? &second : &r;

		expect(each, KIND(JOB_DONE), "runs", 1);
		expect(each, KIND(JOB_MISS), "runs", 1);
		expect(each, KIND(JOB_GRANT), "waits", 1);
	}
	shim_granted(b.fd, 1);
	reading_end(&r);
	reading_end(&second);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void what_nobody_saw_becoming_late_is_told_once(void **state) {
	struct shim a = open_task("runs", NSEC_PER_MSEC);
	nsec_t deadline;
	struct reading r;

	shim_request(a.fd, 1, 0, MASK_WHOLE);
	deadline = shim_granted(a.fd, 1).deadline_ns;
	while (nsec_now() <= deadline) {
		usleep(1000);
	}
	r = reading_start();
	expect_late(&r, "runs", true, true);
	shim_done(a.fd, 1);
	expect(&r, KIND(JOB_DONE), "runs", 1);
	reading_end(&r);
	shim_close(&a);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static int start_planned(void **state) {
	static const char text[] =
		"{\"profiles\": [{\"name\": \"short\", \"on\": {\"fixed\": "
		"{\"linear\": \"80ms\", \"watts_per_sm\": 1}}}]}\n";
	const char *directory;

	harness = (struct harness){0};
	directory = harness_write_profiles(&harness, text);
	harness_start(&harness, (const char *const[]){"--gpus", "8", "--sharing", "mps", "--policy",
						      "sbeet", "--profile-dir", directory, NULL});
	return 0;
}

static void a_watcher_hears_of_an_overrun_when_it_happens(void **state) {
	struct reading r = {.fd = subscribe()};
	struct shim a = open_task("short", 10 * NSEC_PER_SEC);
	const Sbeet__Control__Event *e;

	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	e = next_of(&r, KIND(JOB_OVERRUN));
	assert_string_equal(e->task, "short");
	assert_int_equal(e->finished_ns, 0);
	shim_done(a.fd, 1);
	shim_close(&a);
	/* and once only */
	expect(&r, KIND(JOB_DONE), "short", 1);
	expect(&r, KIND(SESSION_END), "short", 0);
	reading_end(&r);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Jobs enough to fill the ring several times; the watcher reads none of it until they are over. */
static void a_watcher_that_sleeps_loses_events_and_nothing_else(void **state) {
	enum { N_JOBS = 4 * FEED_EVENTS };
	struct reading r = reading_start();
	struct shim s = shim_open("busy", MASK_ALL);
	const Sbeet__Control__Event *e;
	uint64_t n = 0, last = 0;

	for (uint64_t job = 1; job <= N_JOBS; job++) {
		shim_request(s.fd, job, 0, MASK_ALL);
		shim_granted(s.fd, job);
		shim_done(s.fd, job);
	}
	harness_settle();
	/* What was sent before it stopped to read comes first, then the newest ones. */
	do {
		e = next_event(&r);
		assert_true(e->job >= last);
		last = e->job;
		n += e->kind != KIND(GPU);
	} while (e->job != N_JOBS || e->kind != KIND(JOB_DONE));
	assert_true(r.lost > 0);
	/* request, grant and done of each job, and the session's start */
	assert_int_equal(n + r.lost, 3 * N_JOBS + 1);
	reading_end(&r);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Of one user. Another one has its own: test-daemon-access. */
static void no_more_watchers_than_allowed(void **state) {
	int fds[SUBSCRIPTIONS], fd;
	Sbeet__Control__Reply *reply;
	struct reading r;

	for (size_t i = 0; i < SUBSCRIPTIONS; i++) {
		fds[i] = subscribe();
		packet_free(&receive(fds[i])->base);
	}
	fd = subscribe();
	{
		static uint8_t buffer[PROTO_PACKET_MAX];
		ProtobufCMessage *m = NULL;
		int n = packet_receive(fd, buffer, NULL);

		assert_true(n > 0);
		assert_int_equal(
			packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m),
			0);
		reply = (Sbeet__Control__Reply *)m;
		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
		assert_int_equal(reply->error->code, SBEET__ERROR_CODE__ERROR_CODE_QUOTA);
		packet_free(m);
	}
	close(fd);
	for (size_t i = 0; i < SUBSCRIPTIONS; i++) {
		close(fds[i]);
	}
	harness_settle();
	r = reading_start();
	reading_end(&r);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_watcher_sees_a_program_from_start_to_end, start,
						clean),
		cmocka_unit_test_setup_teardown(a_watcher_sees_what_is_changed, start, clean),
		cmocka_unit_test_setup_teardown(a_watcher_sees_a_revoke, start_impatient, clean),
		cmocka_unit_test_setup_teardown(a_late_watcher_is_told_what_there_is, start, clean),
		cmocka_unit_test_setup_teardown(a_watcher_hears_of_a_deadline_when_it_passes, start,
						clean),
		cmocka_unit_test_setup_teardown(what_nobody_saw_becoming_late_is_told_once, start,
						clean),
		cmocka_unit_test_setup_teardown(a_watcher_hears_of_an_overrun_when_it_happens,
						start_planned, clean),
		cmocka_unit_test_setup_teardown(a_watcher_that_sleeps_loses_events_and_nothing_else,
						start, clean),
		cmocka_unit_test_setup_teardown(no_more_watchers_than_allowed, start, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
