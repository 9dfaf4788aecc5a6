/*
 * test-simgpu-device.c: the model of a GPU: limits, engines, streams, and what comes on top of the
 * TX2 paper's rules. The paper's experiments are in test-simgpu-paper.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/simgpu-world.h"

static void device_respects_every_limit_of_an_sm(void **state) {
	struct device_config c = tx2;
	struct device_kernel k = {.threads = 32, .n_blocks = 1};

	assert_int_equal(device_occupancy(&c, &k), 32); /* block slots */
	k.threads = 256;
	assert_int_equal(device_occupancy(&c, &k), 8); /* threads */
	k.regs = 256 * 64;
	assert_int_equal(device_occupancy(&c, &k), 4); /* registers */
	k.shared_bytes = 24 * KIB;
	assert_int_equal(device_occupancy(&c, &k), 2); /* shared memory */
	k.shared_bytes = 65 * KIB;
	assert_int_equal(device_occupancy(&c, &k), 0);
}

static void device_runs_two_copies_at_once_with_two_engines(void **state) {
	struct device_config c = tx2;
	struct test_op in = copy("in", DEVICE_COPY_IN, 10), in2 = copy("in2", DEVICE_COPY_IN, 10),
		       out = copy("out", DEVICE_COPY_OUT, 10),
		       local = copy("local", DEVICE_COPY_LOCAL, 15);
	struct world w;

	c.copy_engines = 2;
	world_init(&w, &c);
	submit(&w, 1, &in);
	submit(&w, 2, &in2);
	submit(&w, 3, &out);
	submit(&w, 4, &local);
	world_run(&w);
	assert_string_equal(w.log, "in 0-10\nout 0-10\nlocal 0-15\nin2 10-20\n");
	world_deinit(&w);
}

static void device_exempts_non_blocking_streams(void **state) {
	struct test_op k1 = kernel("K1", 1, 32, 0, 10), k2 = kernel("K2", 1, 32, 0, 10);
	struct device_stream *st;
	struct world w;

	world_init(&w, &tx2);
	assert_int_equal(device_stream_new(&st, w.space, DEVICE_STREAM_NON_BLOCKING, 0), 0);
	device_submit(st, &k1.base);
	submit(&w, 0, &k2);
	world_run(&w);
	assert_int_equal(k2.base.start_ns, 0);
	assert_int_equal(k2.done_ns, 10 * MS);
	world_deinit(&w);
}

static void device_orders_streams_by_events(void **state) {
	struct device_event event = {.recorded = 1};
	struct test_op k1 = kernel("K1", 1, 32, 0, 10), k2 = kernel("K2", 1, 32, 0, 10),
		       record = {.base = {.kind = DEVICE_EVENT,
					  .event = &event,
					  .event_number = 1}},
		       wait = {.base = {.kind = DEVICE_WAIT, .event = &event, .event_number = 1}};
	struct world w;

	world_init(&w, &tx2);
	submit(&w, 2, &wait);
	submit(&w, 2, &k2);
	submit(&w, 1, &k1);
	submit(&w, 1, &record);
	world_run(&w);
	assert_int_equal(event.done, 1);
	assert_int_equal(event.done_ns, 10 * MS);
	assert_int_equal(k2.base.start_ns, 10 * MS);
	world_deinit(&w);
}

static void device_holds_a_stream_for_a_host_function(void **state) {
	struct test_op host = {.base = {.kind = DEVICE_HOST}}, k = kernel("K", 1, 32, 0, 10);
	struct world w;

	world_init(&w, &tx2);
	submit(&w, 1, &host);
	submit(&w, 1, &k);
	assert_ptr_equal(w.host_op, &host);
	world_run(&w);
	assert_false(k.done);
	device_pass(w.device, 5 * MS);
	device_op_complete(&host.base);
	world_run(&w);
	assert_int_equal(k.done_ns, 15 * MS);
	world_deinit(&w);
}

static void device_frees_a_stream_after_its_work(void **state) {
	struct test_op k = kernel("K", 1, 32, 0, 10);
	struct world w;

	world_init(&w, &tx2);
	submit(&w, 1, &k);
	w.streams[1] = device_stream_free(w.streams[1]);
	world_run(&w);
	assert_true(k.done && k.ok);
	world_deinit(&w);
}

/* ---- several spaces ---- */

static void device_takes_turns_when_exclusive(void **state) {
	struct test_op a = kernel("A", 4, 1024, 0, 10), b = kernel("B", 4, 1024, 0, 10);
	struct second other;
	struct world w;

	world_init(&w, &tx2);
	second_init(&other, &w);
	submit(&w, 1, &a);
	device_submit(other.stream, &b.base);
	world_run(&w);
	/* Each has the whole GPU for itself, for half of the time: slices of 2 ms. */
	assert_int_equal(a.done_ns, 18 * MS);
	assert_int_equal(b.done_ns, 20 * MS);
	assert_string_equal(w.log,
			    "A:0 sm0 0-18\nA:1 sm1 0-18\nA:2 sm0 0-18\nA:3 sm1 0-18\n"
			    "B:0 sm0 2-20\nB:1 sm1 2-20\nB:2 sm0 2-20\nB:3 sm1 2-20\n");
	device_space_free(other.space);
	world_deinit(&w);
}

/* Each keeps 2 ms of 4.35: 46 % of what it does alone. */
static void device_loses_time_when_turns_change(void **state) {
	struct device_config c = tx2;
	struct test_op a = kernel("A", 4, 1024, 0, 20), b = kernel("B", 4, 1024, 0, 20);
	struct second other;
	struct world w;

	c.switch_ns = 174000;
	world_init(&w, &c);
	second_init(&other, &w);
	submit(&w, 1, &a);
	device_submit(other.stream, &b.base);
	world_run(&w);
	/* 10 turns of A and 9 of B, and a change between any two. */
	assert_int_equal(a.done_ns, 19 * 2 * MS + 18 * 174000);
	/* The last turn of B needs no saving: A has ended. */
	assert_int_equal(b.done_ns, 20 * 2 * MS + 18 * 174000);
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_gives_the_gpu_on_when_a_space_is_idle(void **state) {
	struct test_op a = kernel("A", 1, 1024, 0, 1), b = kernel("B", 1, 1024, 0, 10);
	struct second other;
	struct world w;

	world_init(&w, &tx2);
	second_init(&other, &w);
	submit(&w, 1, &a);
	device_submit(other.stream, &b.base);
	world_run(&w);
	assert_int_equal(a.done_ns, 1 * MS);
	assert_int_equal(b.done_ns, 11 * MS);
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_shares_sms_and_numbers_them_per_client_under_mps(void **state) {
	struct device_config c = tx2;
	struct test_op a = kernel("A", 2, 2048, 0, 10), b = kernel("B", 2, 2048, 0, 10);
	struct second other;
	struct world w;

	c.n_sms = 4;
	c.shared = true;
	world_init(&w, &c);
	second_init(&other, &w);
	submit(&w, 1, &a);
	device_submit(other.stream, &b.base);
	world_run(&w);
	assert_string_equal(w.log,
			    "A:0 sm0 0-10\nA:1 sm1 0-10\n"
			    "B:0 sm2 as 0 0-10\nB:1 sm3 as 1 0-10\n");
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_lets_higher_levels_of_other_clients_go_first(void **state) {
	struct test_op low = kernel("L", 6, 2048, 0, 10), high = kernel("H", 2, 2048, 0, 10);
	struct device_config c = tx2;
	struct device_stream *urgent;
	struct second other;
	struct world w;

	c.shared = true;
	world_init(&w, &c);
	second_init(&other, &w);
	assert_int_equal(
		device_stream_new(&urgent, other.space, DEVICE_STREAM_NON_BLOCKING, 5), 0);
	submit(&w, 1, &low);
	world_run_until(&w, 5);
	device_submit(urgent, &high.base);
	world_run(&w);
	assert_string_equal(w.log, "L:0 sm0 0-10\nL:1 sm1 0-10\n"
				   "H:0 sm0 10-20\nH:1 sm1 10-20\n"
				   "L:2 sm0 20-30\nL:3 sm1 20-30\n"
				   "L:4 sm0 30-40\nL:5 sm1 30-40\n");
	device_space_free(other.space);
	world_deinit(&w);
}

/* The urgent one's set overlaps with half of the other's: the other half goes on. */
static void device_keeps_only_the_sms_that_a_level_waits_for(void **state) {
	struct test_op low = kernel("L", 6, 2048, 0, 10), high = kernel("H", 2, 2048, 0, 10);
	const uint64_t upper[DEVICE_SMS_MAX / 64] = {2};
	struct device_config c = tx2;
	struct device_stream *urgent;
	struct second other;
	struct world w;

	c.shared = true;
	world_init(&w, &c);
	second_init(&other, &w);
	assert_int_equal(device_part_new(&high.base.part, other.space, upper), 0);
	assert_int_equal(
		device_stream_new(&urgent, other.space, DEVICE_STREAM_NON_BLOCKING, 5), 0);
	submit(&w, 1, &low);
	world_run_until(&w, 5);
	device_submit(urgent, &high.base);
	world_run(&w);
	assert_string_equal(w.log, "L:0 sm0 0-10\nL:1 sm1 0-10\n"
				   "L:2 sm0 10-20\nH:0 sm1 as 0 10-20\n"
				   "L:3 sm0 20-30\nH:1 sm1 as 0 20-30\n"
				   "L:4 sm0 30-40\nL:5 sm1 30-40\n");
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_numbers_sms_anew_when_a_client_left_them(void **state) {
	struct device_config c = tx2;
	struct test_op hold = kernel("H", 1, 2048, 0, 30), a = kernel("A", 1, 2048, 0, 10),
		       b = kernel("B", 1, 2048, 0, 10);
	struct second other;
	struct world w;

	c.shared = true;
	world_init(&w, &c);
	second_init(&other, &w);
	submit(&w, 1, &a); /* on SM 0 */
	world_run_until(&w, 0);
	submit(&w, 2, &b); /* on SM 1, its second one */
	world_run_until(&w, 20);
	device_submit(other.stream, &hold.base); /* on SM 0 */
	a.done = false;
	submit(&w, 1, &a); /* on SM 1, its only one now: number 0 */
	world_run(&w);
	assert_string_equal(w.log,
			    "A:0 sm0 0-10\nB:0 sm1 0-10\nA:0 sm1 as 0 20-30\nH:0 sm0 20-50\n");
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_stops_only_the_space_that_fails(void **state) {
	struct device_config c = tx2;
	struct test_op bad = kernel("bad", 4, 512, 0, 5), after = kernel("after", 1, 32, 0, 1),
		       late = kernel("late", 1, 32, 0, 1), good = kernel("good", 2, 512, 0, 10);
	struct second other;
	struct world w;

	c.shared = true;
	bad.faults = true;
	world_init(&w, &c);
	second_init(&other, &w);
	submit(&w, 1, &bad);
	submit(&w, 1, &after);
	device_submit(other.stream, &good.base);
	world_run(&w);
	assert_int_equal(w.n_failed, 1);
	assert_true(bad.done && !bad.ok && after.done && !after.ok);
	assert_true(device_space_has_failed(w.space));
	submit(&w, 1, &late);
	assert_true(late.done && !late.ok);
	assert_true(good.done && good.ok);
	assert_int_equal(good.done_ns, 10 * MS);
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_returns_what_a_freed_space_held(void **state) {
	struct device_config c = tx2;
	struct test_op a = kernel("A", 100, 1024, 0, 1000), ain = copy("ain", DEVICE_COPY_IN, 1000),
		       b = kernel("B", 4, 1024, 0, 10), bin = copy("bin", DEVICE_COPY_IN, 10);
	struct device_stream *stream;
	struct second other;
	struct world w;

	c.shared = true;
	world_init(&w, &c);
	second_init(&other, &w);
	device_submit(other.stream, &ain.base);
	assert_int_equal(device_stream_new(&stream, other.space, DEVICE_STREAM_BLOCKING, 0), 0);
	device_submit(stream, &a.base);
	world_run_until(&w, 5);
	submit(&w, 1, &b);
	submit(&w, 2, &bin);
	world_run_until(&w, 50);
	assert_false(b.done);
	device_space_free(other.space);
	assert_true(a.done && !a.ok && ain.done && !ain.ok);
	world_run(&w);
	assert_int_equal(b.done_ns, 60 * MS);
	assert_int_equal(bin.done_ns, 60 * MS);
	world_deinit(&w);
}

/* ---- energy ---- */

static void device_integrates_energy_over_time(void **state) {
	struct device_config c = tx2;
	struct test_op k = kernel("K", 1, 1024, 0, 1000);
	struct world w;

	c.power = (struct power_config){
		.static_mw = 10000, .idle_sm_uw = 500000, .busy_sm_uw = 4000000};
	world_init(&w, &c);
	device_pass(w.device, 1000 * MS); /* 10 W for a second */
	assert_int_equal(power_energy_mj(device_power(w.device)), 10000);
	submit(&w, 1, &k);
	assert_int_equal(power_now_mw(device_power(w.device)), 14500); /* one SM busy, one idle */
	world_run(&w);
	assert_int_equal(power_energy_mj(device_power(w.device)), 24500);
	assert_int_equal(power_now_mw(device_power(w.device)), 10000);
	world_deinit(&w);
}

/* ---- placement ---- */

static void run_placed(uint64_t seed, char log[LOG_MAX]) {
	struct device_config config = tx2;
	struct test_op k = kernel("K", 64, 256, 0, 10);
	struct world w;

	config.n_sms = 16;
	config.place_seed = seed;
	world_init(&w, &config);
	submit(&w, 1, &k);
	world_run(&w);
	assert_true(k.done && k.ok); /* each block has run, all of them */
	memcpy(log, w.log, LOG_MAX);
	world_deinit(&w);
}

static void device_places_unkindly_by_seed(void **state) {
	static char kind[LOG_MAX], one[LOG_MAX], again[LOG_MAX], two[LOG_MAX];

	run_placed(0, kind);
	run_placed(1, one);
	run_placed(1, again);
	run_placed(2, two);
	assert_string_equal(one, again);
	assert_string_not_equal(one, two);
	assert_string_not_equal(one, kind);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_respects_every_limit_of_an_sm),
		cmocka_unit_test(device_runs_two_copies_at_once_with_two_engines),
		cmocka_unit_test(device_exempts_non_blocking_streams),
		cmocka_unit_test(device_orders_streams_by_events),
		cmocka_unit_test(device_holds_a_stream_for_a_host_function),
		cmocka_unit_test(device_frees_a_stream_after_its_work),
		cmocka_unit_test(device_takes_turns_when_exclusive),
		cmocka_unit_test(device_loses_time_when_turns_change),
		cmocka_unit_test(device_gives_the_gpu_on_when_a_space_is_idle),
		cmocka_unit_test(device_shares_sms_and_numbers_them_per_client_under_mps),
		cmocka_unit_test(device_lets_higher_levels_of_other_clients_go_first),
		cmocka_unit_test(device_keeps_only_the_sms_that_a_level_waits_for),
		cmocka_unit_test(device_numbers_sms_anew_when_a_client_left_them),
		cmocka_unit_test(device_stops_only_the_space_that_fails),
		cmocka_unit_test(device_returns_what_a_freed_space_held),
		cmocka_unit_test(device_integrates_energy_over_time),
		cmocka_unit_test(device_places_unkindly_by_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
