/*
 * test-preempt-rule.c: whose channel groups are preempted when, and what time slices they have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/preempt/rule.h"
#include "daemon/preempt/slices.h"
#include "proto/board.h"

#define OPENED (UINT64_C(1) << 32)
#define US     NSEC_PER_USEC
#define TOOK   (200 * US) /* an ioctl */

static struct rule rule;
static nsec_t now;

/* An owner with a group on @gpu. Return: both have this number. */
static unsigned add(uint64_t urgency, unsigned gpu) {
	int owner = rule_add_owner(&rule, urgency, 0);

	assert_in_range(owner, 0, RULE_OWNERS_MAX - 1);
	assert_int_equal(rule_add_group(&rule, (unsigned)owner, gpu), owner);
	return (unsigned)owner;
}

static void open_job(unsigned owner, unsigned gpu) {
	rule.owners[owner].jobs[gpu] += OPENED + 1;
}

static void close_job(unsigned owner, unsigned gpu) {
	rule.owners[owner].jobs[gpu] -= 1;
}

/* What is preempted on @gpu now, which then takes its time; @ret_again as of the rule. */
static int step_on(unsigned gpu, nsec_t *ret_again) {
	int group = rule_next(&rule, gpu, now, ret_again);

	if (group != RULE_NONE) {
		rule_done(&rule, group, now, now + TOOK);
		now += TOOK;
	}
	return group;
}

static int step(nsec_t *ret_again) {
	return step_on(0, ret_again);
}

static int setup(void **state) {
	memset(&rule, 0, sizeof(rule));
	now = 1000 * US;
	return 0;
}

static void assert_idle(void) {
	nsec_t again;

	assert_int_equal(step(&again), RULE_NONE);
	assert_true(again == RULE_NEVER);
}

static void nobody_is_preempted_without_a_more_urgent_job(void **state) {
	unsigned low = add(1, 0), high = add(2, 0);

	assert_idle();
	open_job(low, 0);
	assert_idle();
	open_job(high, 0);
	close_job(high, 0);
	assert_idle();
}

static void equals_share(void **state) {
	unsigned a = add(1, 0), b = add(1, 0);

	open_job(a, 0);
	open_job(b, 0);
	assert_idle();
}

static void a_job_preempts_at_once_and_again(void **state) {
	unsigned low = add(1, 0), high = add(2, 0);
	nsec_t again, began = now;

	open_job(low, 0);
	open_job(high, 0);
	assert_int_equal(step(&again), low);
	assert_int_equal(step(&again), RULE_NONE);
	assert_true(again == began + RULE_AGAIN_NS);
	now = again;
	assert_int_equal(step(&again), low);
	close_job(high, 0);
	now += RULE_AGAIN_NS;
	assert_idle();
}

static void the_next_job_does_not_wait_for_the_interval(void **state) {
	unsigned low = add(1, 0), high = add(2, 0);
	nsec_t again;

	open_job(low, 0);
	open_job(high, 0);
	assert_int_equal(step(&again), low);
	close_job(high, 0);
	open_job(high, 0);
	assert_int_equal(step(&again), low);
}

/* At first one ioctl follows the other; later the driver gets to what programs ask of it. */
static void a_pause_comes_after_a_burst(void **state) {
	unsigned a = add(1, 0), b = add(1, 0), high = add(2, 0);
	nsec_t again;

	open_job(a, 0);
	open_job(b, 0);
	open_job(high, 0);
	for (unsigned i = 0; i < RULE_BURST; i++) {
		assert_int_equal(step(&again), a);
		assert_int_equal(step(&again), b);
	}
	assert_int_equal(step(&again), RULE_NONE);
	assert_true(again == now + RULE_PAUSE_NS);
	close_job(high, 0);
	open_job(high, 0);
	assert_int_equal(step(&again), a);
	assert_int_equal(step(&again), b);
}

/* Where short time slices do it alone. */
static void short_slices_may_suffice(void **state) {
	unsigned a = add(1, 0), high = add(2, 0);
	nsec_t again;

	open_job(a, 0);
	open_job(high, 0);
	rule.groups[a].slice = SLICES_SHORT_NS;
	assert_int_equal(step(&again), a);
	rule.slices_suffice[0] = true;
	now += RULE_AGAIN_NS;
	assert_idle();
	rule.groups[a].slice = 0;
	assert_int_equal(step(&again), a);
}

static void a_job_of_no_more_urgency_changes_nothing(void **state) {
	unsigned low = add(1, 0), high = add(2, 0);
	nsec_t again, began = now;

	open_job(low, 0);
	open_job(high, 0);
	assert_int_equal(step(&again), low);
	close_job(low, 0);
	open_job(low, 0);
	assert_int_equal(step(&again), RULE_NONE);
	assert_true(again == began + RULE_AGAIN_NS);
}

static void those_without_work_are_left_alone(void **state) {
	unsigned low = add(1, 0), high = add(2, 0);
	nsec_t again;

	open_job(high, 0);
	assert_int_equal(step(&again), RULE_NONE);
	assert_true(again > now && again <= now + RULE_AGAIN_NS); /* it may have some by then */
	open_job(low, 0);
	assert_int_equal(step(&again), low);
}

static void work_outside_of_marked_jobs_counts(void **state) {
	unsigned low = add(1, 0), high = add(2, 0);
	nsec_t again;

	rule.owners[low].jobs[0] = BOARD_JOBS_UNSEEN;
	assert_idle();
	open_job(high, 0);
	assert_int_equal(step(&again), low);
	setup(NULL);
	low = add(1, 0), high = add(2, 0);
	rule.owners[high].jobs[0] = BOARD_JOBS_UNSEEN; /* no job of it is open */
	open_job(low, 0);
	assert_idle();
}

/* Whoever marks its jobs may have no work without one: it delays none that has. */
static void open_jobs_go_before_work_that_may_be_there(void **state) {
	unsigned a = add(1, 0), b = add(3, 0), low = add(2, 0), high = add(4, 0), n[3] = {0};
	nsec_t again, until;

	rule.owners[a].jobs[0] = rule.owners[b].jobs[0] = BOARD_JOBS_UNSEEN;
	open_job(low, 0);
	open_job(high, 0);
	assert_int_equal(step(&again), low);
	assert_int_equal(step(&again), b);
	assert_int_equal(step(&again), a);
	assert_int_equal(step(&again), low);
	for (until = now + 10 * RULE_UNSEEN_NS; now < until;) {
		int group = step(&again);

		if (group == RULE_NONE) {
			now = again;
			continue;
		}
		n[group]++;
	}
	assert_in_range(n[a], 8, 10);
	assert_in_range(n[b], 8, 10);
	assert_true(n[low] > 4 * n[a]);
}

/* It had the GPU. */
static nsec_t slice(unsigned owner);

/* Until it has begun nothing for some time. */
static void work_that_was_begun_of_late_counts_as_a_job(void **state) {
	unsigned a = add(1, 0), low = add(2, 0), high = add(3, 0);
	nsec_t again, began;

	rule.owners[a].jobs[0] = BOARD_JOBS_UNSEEN;
	rule.owners[a].unseen[0] = now;
	open_job(low, 0);
	open_job(high, 0);
	assert_int_equal(slice(high), SLICES_LONG_NS);
	assert_int_equal(slice(low), SLICES_LONG_NS); /* two work */
	assert_int_equal(step(&again), low);
	began = now;
	assert_int_equal(step(&again), a);
	close_job(low, 0);
	assert_int_equal(step(&again), RULE_NONE);
	assert_true(again == began + RULE_AGAIN_NS);
	now = again;
	assert_int_equal(step(&again), a);
	now = rule.owners[a].unseen[0] + RULE_QUIET_NS + RULE_UNSEEN_NS;
	began = now;
	assert_int_equal(step(&again), a);
	assert_int_equal(step(&again), RULE_NONE);
	assert_true(again > began + RULE_AGAIN_NS && again <= began + RULE_UNSEEN_NS);
	now += SLICES_QUIET_NS;
	open_job(low, 0);
	assert_int_equal(slice(low), SLICES_SHORT_NS); /* it alone works */
}

static void the_most_urgent_job_below_goes_first(void **state) {
	unsigned low = add(1, 0), middle = add(2, 0), high = add(3, 0);
	nsec_t again;

	open_job(low, 0);
	open_job(middle, 0);
	open_job(high, 0);
	assert_int_equal(step(&again), middle);
	assert_int_equal(step(&again), low);
}

static void all_below_take_turns(void **state) {
	unsigned a = add(1, 0), b = add(2, 0), c = add(3, 0), high = add(4, 0);
	unsigned n[3] = {0};
	nsec_t again;

	open_job(a, 0);
	open_job(b, 0);
	open_job(c, 0);
	open_job(high, 0);
	for (unsigned i = 0; i < 30; i++) {
		int group = step(&again);

		if (group == RULE_NONE) {
			now = again;
			i--;
			continue;
		}
		assert_int_not_equal(group, high);
		n[group]++;
	}
	assert_int_equal(n[a], 10);
	assert_int_equal(n[b], 10);
	assert_int_equal(n[c], 10);
}

static void only_the_most_urgent_open_job_counts(void **state) {
	unsigned low = add(1, 0), middle = add(2, 0), high = add(3, 0);
	nsec_t again;

	open_job(low, 0);
	open_job(middle, 0);
	assert_int_equal(step(&again), low);
	open_job(high, 0);
	now += RULE_PAUSE_NS;
	assert_int_equal(step(&again), middle); /* both anew; it was on the GPU */
	now += RULE_PAUSE_NS;
	assert_int_equal(step(&again), low);
	close_job(high, 0);
	now += RULE_AGAIN_NS;
	assert_int_equal(step(&again), low);
	assert_int_equal(step(&again), RULE_NONE);
	assert_true(again <= now + RULE_AGAIN_NS);
}

static void gpus_are_apart(void **state) {
	unsigned low = add(1, 1), high = add(2, 0), other = add(1, 0);
	nsec_t again;

	open_job(low, 1);
	open_job(low, 0); /* where it has no group */
	open_job(other, 0);
	assert_idle();
	open_job(high, 0);
	assert_int_equal(step_on(1, &again), RULE_NONE);
	assert_true(again == RULE_NEVER);
	assert_int_equal(step_on(0, &again), other);
	open_job(high, 1);
	now -= TOOK; /* what is done on one GPU delays nothing on the other */
	assert_int_equal(step_on(1, &again), low);
}

/* Whoever can wait is preempted for once that is no longer so, and not before. */
static void a_patient_job_waits(void **state) {
	unsigned low = add(1, 0), high = add(2, 0);
	nsec_t again, opened = now;

	rule.owners[high].patience = 5000 * US;
	open_job(low, 0);
	open_job(high, 0);
	assert_int_equal(step(&again), RULE_NONE);
	assert_true(again == opened + 5000 * US);
	now = again - 1;
	assert_int_equal(step(&again), RULE_NONE);
	now++;
	assert_int_equal(step(&again), low);
	now += RULE_AGAIN_NS;
	assert_int_equal(step(&again), low);
	/* The next job has its own time. */
	close_job(high, 0);
	open_job(high, 0);
	opened = now;
	assert_int_equal(step(&again), RULE_NONE);
	assert_true(again == opened + 5000 * US);
	close_job(high, 0);
	assert_idle();
}

/* While one that is more urgent can wait, it is not preempted for another, which preempts those
 * below itself. */
static void a_patient_job_is_still_more_urgent(void **state) {
	unsigned low = add(1, 0), middle = add(2, 0), high = add(3, 0);
	nsec_t again;

	rule.owners[high].patience = 5000 * US;
	open_job(low, 0);
	open_job(high, 0);
	open_job(middle, 0);
	assert_int_equal(step(&again), low);
	assert_int_equal(step(&again), RULE_NONE);
}

/* ---- time slices ---- */

static nsec_t slice(unsigned owner) {
	nsec_t again;

	rule_next(&rule, 0, now, &again);
	return slices_wanted(&rule, owner, now);
}

static void slices_follow_the_ranks(void **state) {
	unsigned low = add(1, 0), high;

	open_job(low, 0);
	assert_int_equal(slice(low), 0); /* alone */
	high = add(3, 0);
	assert_int_equal(slice(low), SLICES_SHORT_NS);
	assert_int_equal(slice(high), SLICES_LONG_NS);
	rule_remove_owner(&rule, high);
	assert_int_equal(slice(low), 0);
}

static void equals_keep_their_slices(void **state) {
	unsigned a = add(3, 0), b = add(3, 0), low;

	assert_int_equal(slice(a), 0);
	low = add(1, 0);
	assert_int_equal(slice(a), 0);
	assert_int_equal(slice(b), 0);
	assert_int_equal(slice(low), SLICES_SHORT_NS);
}

/* Two that work would lose most of the GPU by switching. */
static void several_that_work_keep_their_slices(void **state) {
	unsigned a = add(1, 0), b = add(1, 0), high = add(3, 0);
	nsec_t again;

	open_job(a, 0);
	assert_int_equal(slice(a), SLICES_SHORT_NS);
	again = slices_again(&rule, 0, now);
	assert_true(again > now && again < now + SLICES_QUIET_NS);
	now = again;
	open_job(b, 0);
	assert_int_equal(slice(a), 0);
	assert_int_equal(slice(b), 0);
	assert_int_equal(slice(high), SLICES_LONG_NS);
	close_job(b, 0);
	now += SLICES_QUIET_NS / 2;
	assert_int_equal(slice(a), 0); /* it may be back soon */
	now += SLICES_QUIET_NS;
	assert_int_equal(slice(a), SLICES_SHORT_NS);
}

/* Else those below would have the GPU each time that its slice ends. */
static void a_job_between_others_keeps_the_gpu(void **state) {
	unsigned low = add(1, 0), middle = add(2, 0), high = add(3, 0), equal;
	nsec_t again;

	open_job(low, 0);
	open_job(middle, 0);
	assert_int_equal(slice(low), 0);
	assert_int_equal(slice(middle), SLICES_LONG_NS);
	assert_int_equal(slice(high), SLICES_LONG_NS);
	rule.slices_suffice[0] = true;
	assert_int_equal(slice(middle), 0);
	rule.groups[middle].slice = SLICES_LONG_NS; /* still: that is no reason to leave it alone */
	open_job(high, 0);
	assert_int_equal(step(&again), middle);
	rule.slices_suffice[0] = false;
	rule.owners[middle].patience = 1;
	assert_int_equal(slice(middle), 0);
	rule.owners[middle].patience = 0;
	equal = add(2, 0);
	assert_int_equal(slice(middle), 0);
	assert_int_equal(slice(equal), 0);
}

static void who_can_wait_changes_no_slice(void **state) {
	unsigned low = add(1, 0), high = add(3, 0);

	rule.owners[high].patience = 1;
	open_job(low, 0);
	open_job(high, 0);
	assert_int_equal(slice(low), 0);
	assert_int_equal(slice(high), 0);
	assert_true(slices_again(&rule, 0, now) == RULE_NEVER);
}

static void slices_of_gpus_are_apart(void **state) {
	unsigned low = add(1, 1), high = add(3, 0);

	open_job(low, 1);
	assert_int_equal(slices_wanted(&rule, low, now), 0);
	assert_int_equal(slices_wanted(&rule, high, now), 0);
}

static void an_owner_that_goes_takes_its_groups_along(void **state) {
	unsigned low = add(1, 0), high = add(2, 0);
	int more = rule_add_group(&rule, low, 0);
	nsec_t again;

	open_job(low, 0);
	open_job(high, 0);
	assert_int_equal(step(&again), low);
	now += RULE_PAUSE_NS;
	assert_int_equal(step(&again), more);
	rule_remove_owner(&rule, low);
	now += RULE_AGAIN_NS;
	assert_idle();
	assert_int_equal(rule_add_owner(&rule, 9, 0), low);
	now += RULE_AGAIN_NS;
	assert_idle(); /* nothing is left of the one before */
	rule_remove_owner(&rule, high);
	assert_idle();
}

static void there_is_room_for_so_many(void **state) {
	for (unsigned i = 0; i < RULE_OWNERS_MAX; i++) {
		assert_int_equal(rule_add_owner(&rule, i, 0), i);
	}
	assert_int_equal(rule_add_owner(&rule, 1, 0), -1);
	for (unsigned i = 0; i < RULE_GROUPS_MAX; i++) {
		assert_int_equal(rule_add_group(&rule, 0, 0), i);
	}
	assert_int_equal(rule_add_group(&rule, 0, 0), -1);
	setup(NULL);
	assert_int_equal(rule_add_group(&rule, 0, PROTO_GPUS_MAX), -1);
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(nobody_is_preempted_without_a_more_urgent_job),
		CASE(equals_share),
		CASE(a_job_preempts_at_once_and_again),
		CASE(the_next_job_does_not_wait_for_the_interval),
		CASE(a_pause_comes_after_a_burst),
		CASE(short_slices_may_suffice),
		CASE(a_job_of_no_more_urgency_changes_nothing),
		CASE(those_without_work_are_left_alone),
		CASE(work_outside_of_marked_jobs_counts),
		CASE(open_jobs_go_before_work_that_may_be_there),
		CASE(work_that_was_begun_of_late_counts_as_a_job),
		CASE(the_most_urgent_job_below_goes_first),
		CASE(all_below_take_turns),
		CASE(only_the_most_urgent_open_job_counts),
		CASE(gpus_are_apart),
		CASE(a_patient_job_waits),
		CASE(a_patient_job_is_still_more_urgent),
		CASE(slices_follow_the_ranks),
		CASE(equals_keep_their_slices),
		CASE(several_that_work_keep_their_slices),
		CASE(a_job_between_others_keeps_the_gpu),
		CASE(who_can_wait_changes_no_slice),
		CASE(slices_of_gpus_are_apart),
		CASE(an_owner_that_goes_takes_its_groups_along),
		CASE(there_is_room_for_so_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
