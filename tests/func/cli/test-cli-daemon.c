/*
 * test-cli-daemon.c: sbeetctl against the real sbeetd, with scripted programs at work.
 */
#include "harness.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "spawn.h"

static const char *sbeetctl;

static json_t *status_json(void) {
	struct spawned s = spawn(ARGS(sbeetctl, "--json"), NULL);
	json_t *o;

	assert_int_equal(s.code, 0);
	assert_string_equal(s.err, "");
	o = json_loads(s.out, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	spawned_deinit(&s);
	return o;
}

static json_t *job(const json_t *status, size_t i, const char *key) {
	json_t *value = json_object_get(json_array_get(json_object_get(status, "jobs"), i), key);

	assert_non_null(value);
	return value;
}

static void assert_contains(const char *text, const char *part) {
	if (!strstr(text, part)) {
		fail_msg("expected '%s' in:\n%s", part, text);
	}
}

/* Two programs on a GPU under MPS hold a number of SMs, and that is what is shown. */
static void status_shows_jobs_side_by_side(void **state) {
	static const char *const args[] = {"--gpus", "46", "--sharing", "mps", NULL};
	struct harness h = {0};
	struct shim a, b, c;
	struct spawned s;
	json_t *o;

	harness_start(&h, args);
	a = shim_open("first", MASK_ALL);
	b = shim_open("second", MASK_ALL);
	c = shim_open("third", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_granted(b.fd, 1);
	shim_request(c.fd, 1, 0, MASK_ALL);
	shim_expect_silence(c.fd);

	o = status_json();
	assert_int_equal(json_array_size(json_object_get(o, "sessions")), 3);
	assert_int_equal(json_array_size(json_object_get(o, "jobs")), 3);
	assert_string_equal(json_string_value(job(o, 0, "sms")), "0-22");
	assert_string_equal(json_string_value(job(o, 1, "sms")), "23-45");
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(json_string_value(job(o, i, "state")), "running");
		assert_string_equal(json_string_value(job(o, i, "enforcement")), "count");
		assert_true(json_is_false(job(o, i, "exact")));
	}
	assert_string_equal(json_string_value(job(o, 2, "state")), "waiting");
	assert_true(json_is_null(job(o, 2, "sms")));
	json_decref(o);

	s = spawn(ARGS(sbeetctl, "status"), NULL);
	assert_int_equal(s.code, 0);
	assert_contains(s.out, "any 23  count    no ");
	assert_contains(s.out, "[aaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbb]");
	assert_null(strstr(s.out, "0-22"));
	spawned_deinit(&s);
	shim_close(&a);
	shim_close(&b);
	shim_close(&c);
	assert_int_equal(harness_stop(&h, SIGTERM), 0);
	harness_clean(&h);
}

/* One process, two jobs: exactly these SMs. */
static void status_shows_exact_sets_in_one_process(void **state) {
	static const char *const args[] = {"--gpus", "46", "--sharing", "exclusive", NULL};
	struct harness h = {0};
	struct shim a;
	struct spawned s;
	json_t *o;

	harness_start(&h, args);
	a = shim_open("lanes", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(a.fd, 2, 0, MASK_ALL);
	shim_granted(a.fd, 2);
	o = status_json();
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(json_string_value(job(o, i, "sms")), i ? "23-45" : "0-22");
		assert_string_equal(json_string_value(job(o, i, "enforcement")), "smid");
		assert_true(json_is_true(job(o, i, "exact")));
	}
	json_decref(o);
	s = spawn(ARGS(sbeetctl, "status"), NULL);
	assert_contains(s.out, "0-22   smid     yes");
	assert_contains(s.out, "23-45  smid     yes");
	spawned_deinit(&s);
	shim_close(&a);
	harness_stop(&h, SIGTERM);
	harness_clean(&h);
}

static void status_tells_when_the_daemon_has_stopped(void **state) {
	static const char *const args[] = {"--gpus", "4", NULL};
	struct harness h = {0};
	struct spawned s;

	harness_start(&h, args);
	s = spawn(ARGS(sbeetctl), NULL);
	assert_int_equal(s.code, 0);
	spawned_deinit(&s);
	harness_stop(&h, SIGTERM);
	s = spawn(ARGS(sbeetctl), NULL);
	assert_int_equal(s.code, 3);
	spawned_deinit(&s);
	harness_clean(&h);
	h = (struct harness){0};

	/* killed, it leaves its socket behind */
	harness_start(&h, args);
	harness_stop(&h, SIGKILL);
	s = spawn(ARGS(sbeetctl), NULL);
	assert_int_equal(s.code, 3);
	assert_contains(s.err, "nobody listens there any more");
	spawned_deinit(&s);
	harness_clean(&h);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_shows_jobs_side_by_side),
		cmocka_unit_test(status_shows_exact_sets_in_one_process),
		cmocka_unit_test(status_tells_when_the_daemon_has_stopped),
	};

	sbeetctl = getenv("SBEETCTL");
	if (!sbeetctl) {
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
