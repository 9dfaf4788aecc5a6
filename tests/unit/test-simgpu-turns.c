/*
 * test-simgpu-turns.c: the model of a GPU without MPS: contexts take turns, and a turn can be ended
 * early by preempting the context's channel group. Times are virtual.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/simgpu-world.h"

#define OWNERS_MAX 4

/* Owners "A" to "D" with a kernel each that fills the GPU for @ms. */
struct owners {
	struct world w;
	struct second others[OWNERS_MAX]; /* the first one is the world's own */
	struct test_op ops[OWNERS_MAX];
	unsigned n;
};

static struct device_space *space(struct owners *o, unsigned i) {
	return i == 0 ? o->w.space : o->others[i].space;
}

static void launch(struct owners *o, unsigned i) {
	struct device_stream *st = i == 0 ? o->w.streams[1] : o->others[i].stream;

	device_submit(st, &o->ops[i].base);
}

static void owners_init(struct owners *o, unsigned n, unsigned ms, uint64_t switch_ns) {
	static const char *const names[OWNERS_MAX] = {"A", "B", "C", "D"};
	struct device_config c = tx2;

	c.switch_ns = switch_ns;
	o->n = n;
	world_init(&o->w, &c);
	for (unsigned i = 0; i < n; i++) {
		o->ops[i] = kernel(names[i], 2, 2048, 0, ms);
		if (i > 0) {
			second_init(&o->others[i], &o->w);
		}
	}
}

static void owners_deinit(struct owners *o) {
	for (unsigned i = 0; i < o->n; i++) {
		assert_true(o->ops[i].done && o->ops[i].ok);
		if (i > 0) {
			device_space_free(o->others[i].space);
		}
	}
	world_deinit(&o->w);
}

static void owners_launch(struct owners *o) {
	for (unsigned i = 0; i < o->n; i++) {
		launch(o, i);
	}
}

/* ---- time slices ---- */

/* 4 ms each in slices of 2 ms: A B C D A B C D. */
static void turns_go_round(void **state) {
	struct owners o = {0};

	owners_init(&o, 4, 4, 0);
	owners_launch(&o);
	world_run(&o.w);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(o.ops[i].done_ns, (10 + 2 * i) * MS);
	}
	assert_int_equal(device_turns(o.w.device), 8);
	assert_int_equal(device_preemptions(o.w.device), 0);
	owners_deinit(&o);
}

static void turns_pass_over_who_has_no_work(void **state) {
	struct owners o = {0};

	owners_init(&o, 3, 4, 0);
	launch(&o, 0);
	launch(&o, 2);
	world_run(&o.w);
	assert_int_equal(o.ops[0].done_ns, 6 * MS);
	assert_int_equal(o.ops[2].done_ns, 8 * MS);
	assert_int_equal(device_turns(o.w.device), 4);
	launch(&o, 1);
	world_run(&o.w);
	assert_int_equal(o.ops[1].done_ns, 12 * MS); /* alone: no turn ends */
	assert_int_equal(device_turns(o.w.device), 5);
	owners_deinit(&o);
}

/* ---- preemption ---- */

/* A is stopped in the middle of its blocks; it goes on where it was. */
static void preempt_gives_the_gpu_to_the_next_at_once(void **state) {
	struct owners o = {0};

	owners_init(&o, 2, 3, 0);
	owners_launch(&o);
	world_run_until(&o.w, 1);
	device_space_preempt(space(&o, 0));
	world_run(&o.w);
	/* A 0-1, B 1-3, A 3-5, B 5-6. */
	assert_string_equal(o.w.log, "A:0 sm0 0-5\nA:1 sm1 0-5\nB:0 sm0 1-6\nB:1 sm1 1-6\n");
	assert_int_equal(device_turns(o.w.device), 4);
	assert_int_equal(device_preemptions(o.w.device), 1);
	owners_deinit(&o);
}

/* With three below it, an urgent owner runs after as many preemptions. */
static void preempt_puts_at_the_end_of_the_round(void **state) {
	struct owners o = {0};

	owners_init(&o, 4, 1, 0);
	for (unsigned i = 0; i < 3; i++) {
		o.ops[i].duration_ns = 10 * MS;
		launch(&o, i);
	}
	world_run_until(&o.w, 1);
	launch(&o, 3);
	for (unsigned i = 0; i < 3; i++) {
		device_space_preempt(space(&o, i));
		while (device_turns(o.w.device) < i + 2) {
			device_step(o.w.device);
		}
	}
	world_run(&o.w);
	assert_int_equal(o.ops[3].done_ns, 2 * MS + 2 * DEVICE_TURN_MIN_NS);
	assert_int_equal(device_preemptions(o.w.device), 3);
	owners_deinit(&o);
}

static void preempt_leaves_those_alone_that_do_not_run(void **state) {
	struct owners o = {0};

	owners_init(&o, 3, 3, 0);
	launch(&o, 0);
	launch(&o, 1);
	world_run_until(&o.w, 1);
	device_space_preempt(space(&o, 1)); /* waits */
	device_space_preempt(space(&o, 2)); /* has nothing */
	world_run(&o.w);
	assert_int_equal(o.ops[0].done_ns, 5 * MS);
	assert_int_equal(device_turns(o.w.device), 4);
	assert_int_equal(device_preemptions(o.w.device), 0);
	launch(&o, 2);
	world_run(&o.w);
	device_space_preempt(space(&o, 2)); /* has done it */
	assert_int_equal(device_preemptions(o.w.device), 0);
	owners_deinit(&o);
}

/* Nobody else wants the GPU: the switch off and on again is all that it costs. */
static void preempt_costs_a_lonely_owner_the_switch(void **state) {
	struct owners o = {0};

	owners_init(&o, 1, 10, 174000);
	owners_launch(&o);
	world_run_until(&o.w, 1);
	device_space_preempt(space(&o, 0));
	world_run_until(&o.w, 5);
	device_space_preempt(space(&o, 0));
	world_run(&o.w);
	assert_int_equal(o.ops[0].done_ns, 10 * MS + 2 * 174000);
	assert_int_equal(device_turns(o.w.device), 3);
	owners_deinit(&o);
}

/* While the GPU changes hands, whoever is to get it has its moment first. */
static void preempt_waits_for_a_turn_to_begin(void **state) {
	struct owners o = {0};

	owners_init(&o, 2, 3, 500000);
	owners_launch(&o);
	world_run_until(&o.w, 1);
	device_space_preempt(space(&o, 0));
	device_step(o.w.device); /* B has it, from 1.5 ms on */
	device_space_preempt(space(&o, 1));
	device_space_preempt(space(&o, 1));
	assert_int_equal(device_preemptions(o.w.device), 2);
	world_run(&o.w);
	/* A 0-1, B 1.5-1.52, A 2.02-4.02 (done), B 4.02-7. */
	assert_int_equal(o.ops[0].done_ns, 4 * MS + DEVICE_TURN_MIN_NS);
	assert_int_equal(o.ops[1].done_ns, 7 * MS);
	owners_deinit(&o);
}

static void preempt_does_nothing_under_mps(void **state) {
	struct device_config c = tx2;
	struct test_op a = kernel("A", 2, 2048, 0, 4);
	struct world w;

	c.shared = true;
	c.switch_ns = 174000;
	world_init(&w, &c);
	submit(&w, 1, &a);
	world_run_until(&w, 1);
	device_space_preempt(w.space);
	world_run(&w);
	assert_int_equal(a.done_ns, 4 * MS);
	assert_int_equal(device_preemptions(w.device), 0);
	world_deinit(&w);
}

/* Whoever runs is preempted before each event. All work is done, and none of it twice. */
static void preempt_storm(unsigned n) {
	struct owners o = {0};

	owners_init(&o, n, 1, 174000);
	owners_launch(&o);
	while (device_next_ns(o.w.device) != DEVICE_NEVER) {
		for (unsigned i = 0; i < n; i++) {
			device_space_preempt(space(&o, i));
		}
		device_step(o.w.device);
	}
	/* Every turn but the last of each lasts the shortest time that there is. */
	assert_int_equal(device_turns(o.w.device), n * MS / DEVICE_TURN_MIN_NS);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(o.ops[i].base.done_blocks, 2);
	}
	owners_deinit(&o);
}

static void preempt_storms_end(void **state) {
	preempt_storm(1);
	preempt_storm(2);
	preempt_storm(4);
}

/* ---- without turns ---- */

/* A stands still for 4 ms in the middle of its kernel, of which it has done 1 ms. */
static void a_disabled_space_goes_on_where_it_was(void **state) {
	struct owners o = {0};

	owners_init(&o, 3, 4, 0);
	launch(&o, 0);
	launch(&o, 1);
	device_space_enable(space(&o, 2), DEVICE_NO_TURNS);
	launch(&o, 2);
	world_run_until(&o.w, 1);
	device_space_enable(space(&o, 0), DEVICE_NO_TURNS);
	device_space_enable(space(&o, 0), DEVICE_NO_TURNS);
	world_run(&o.w);
	assert_true(o.ops[1].done && o.ops[1].done_ns == 5 * MS);
	assert_false(o.ops[0].done || o.ops[2].done);
	device_space_enable(space(&o, 0), DEVICE_TURNS);
	world_run(&o.w);
	assert_true(o.ops[0].done && o.ops[0].done_ns == 8 * MS);
	device_space_enable(space(&o, 2), DEVICE_TURNS);
	world_run(&o.w);
	assert_int_equal(o.ops[2].done_ns, 12 * MS);
	owners_deinit(&o);
}

/* A's last turn lasts beyond its time slice of 2 ms while nobody else has work; then B has the GPU,
 * and A does not get it back. */
static void a_last_turn_ends_with_anothers(void **state) {
	struct owners o = {0};

	owners_init(&o, 2, 6, 0);
	launch(&o, 0);
	world_run_until(&o.w, 1);
	device_space_enable(space(&o, 0), DEVICE_LAST_TURN);
	world_run_until(&o.w, 3);
	assert_int_equal(device_turns(o.w.device), 1);
	launch(&o, 1);
	world_run(&o.w);
	assert_true(o.ops[1].done && o.ops[1].done_ns == 10 * MS);
	assert_false(o.ops[0].done);
	device_space_enable(space(&o, 0), DEVICE_TURNS);
	world_run(&o.w);
	assert_int_equal(o.ops[0].done_ns, 12 * MS);
	owners_deinit(&o);
}

/* Nor when it is preempted, nobody else having work. */
static void a_last_turn_ends_by_preemption(void **state) {
	struct owners o = {0};

	owners_init(&o, 1, 4, 0);
	launch(&o, 0);
	world_run_until(&o.w, 1);
	device_space_enable(space(&o, 0), DEVICE_LAST_TURN);
	device_space_preempt(space(&o, 0));
	world_run(&o.w);
	assert_false(o.ops[0].done);
	device_space_enable(space(&o, 0), DEVICE_TURNS);
	world_run(&o.w);
	assert_int_equal(o.ops[0].done_ns, 4 * MS);
	owners_deinit(&o);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_go_round),
		cmocka_unit_test(turns_pass_over_who_has_no_work),
		cmocka_unit_test(preempt_gives_the_gpu_to_the_next_at_once),
		cmocka_unit_test(preempt_puts_at_the_end_of_the_round),
		cmocka_unit_test(preempt_leaves_those_alone_that_do_not_run),
		cmocka_unit_test(preempt_costs_a_lonely_owner_the_switch),
		cmocka_unit_test(preempt_waits_for_a_turn_to_begin),
		cmocka_unit_test(preempt_does_nothing_under_mps),
		cmocka_unit_test(preempt_storms_end),
		cmocka_unit_test(a_disabled_space_goes_on_where_it_was),
		cmocka_unit_test(a_last_turn_ends_with_anothers),
		cmocka_unit_test(a_last_turn_ends_by_preemption),
	};

	return cmocka_run_group_tests_name("simgpu-turns", tests, NULL, NULL);
}
