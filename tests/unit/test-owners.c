/*
 * test-owners.c: the last job of each owner, against a plain search, with more owners than buckets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/owners.h"

#define JOBS   6000
#define OWNERS 5000
#define STEPS  200000

static struct owners owners;
static struct sched_job jobs[JOBS];
static unsigned added[JOBS]; /* the step in which it was; 0: not there */

static uint32_t draw(uint32_t below) {
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % below;
}

static sched_job_id search(uint64_t owner) {
	sched_job_id found = SCHED_JOB_NONE;

	for (sched_job_id id = 0; id < JOBS; id++) {
		if (added[id] && jobs[id].owner == owner &&
		    (found == SCHED_JOB_NONE || added[id] > added[found])) {
			found = id;
		}
	}
	return found;
}

static void owners_finds_the_newest_of_each(void **state) {
	for (unsigned step = 1; step <= STEPS; step++) {
		sched_job_id id = draw(JOBS);

		if (added[id]) {
			owners_remove(&owners, jobs, id);
			added[id] = 0;
		} else {
			/* a few have many jobs, many have a few */
			jobs[id].owner = draw(2) ? draw(4) : draw(OWNERS);
			owners_add(&owners, jobs, id);
			added[id] = step;
		}
		if (step % 50 == 0) {
			uint64_t owner = draw(2) ? jobs[id].owner : draw(OWNERS);

			assert_int_equal(owners_last(&owners, jobs, owner), search(owner));
		}
	}
	for (sched_job_id id = 0; id < JOBS; id++) {
		if (added[id]) {
			owners_remove(&owners, jobs, id);
		}
	}
	for (size_t i = 0; i < OWNERS_BUCKETS; i++) {
		assert_int_equal(owners.newest[i], 0);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_finds_the_newest_of_each),
	};

	return cmocka_run_group_tests_name("owners", tests, NULL, NULL);
}
