/*
 * test-waiting.c: the order of jobs that wait, against a plain list that is searched from its end;
 * and walks over some GPUs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/waiting.h"

#define JOBS   400
#define OWNERS 30
#define GPUS   3
#define STEPS  60000

static struct waiting waiting;
static struct sched_job jobs[JOBS];
static sched_job_id list[JOBS]; /* those that wait, as they should stand */
static size_t n;
static bool used[JOBS];
static uint64_t order;

static uint32_t draw(uint32_t below) {
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % below;
}

static void start(void) {
	memset(&waiting, 0, sizeof(waiting));
	memset(used, 0, sizeof(used));
	n = 0;
	waiting_init(&waiting);
}

static void add(enum sched_class job_class, uint64_t owner, int gpu) {
	sched_job_id id = 0;
	size_t at = n;

	while (used[id]) {
		id++;
	}
	jobs[id] = (struct sched_job){
		.owner = owner, .order = ++order, .gpu_wanted = gpu, .job_class = job_class};
	waiting_add(&waiting, jobs, id);
	while (job_class == SCHED_CLASS_BEST_EFFORT && at > 0 &&
	       jobs[list[at - 1]].job_class == SCHED_CLASS_BEST_EFFORT &&
	       jobs[list[at - 1]].turn > jobs[id].turn) {
		at--;
	}
	memmove(&list[at + 1], &list[at], (n - at) * sizeof(*list));
	list[at] = id;
	used[id] = true;
	n++;
}

static void take(size_t at) {
	sched_job_id id = list[at];

	waiting_remove(&waiting, jobs, id);
	if (draw(2) == 0) {
		waiting_granted(&waiting, &jobs[id]);
	}
	used[id] = false;
	n--;
	memmove(&list[at], &list[at + 1], (n - at) * sizeof(*list));
}

static void check_walk(const bool gpus[static SCHED_GPUS_MAX]) {
	struct waiting_walk walk;
	sched_job_id id = waiting_first(&waiting, jobs, gpus, &walk);

	for (size_t i = 0; i < n; i++) {
		int gpu = jobs[list[i]].gpu_wanted;

		if (gpu < 0 || gpus[gpu]) {
			assert_int_equal(id, list[i]);
			id = waiting_next(&walk);
		}
	}
	assert_int_equal(id, SCHED_JOB_NONE);
	assert_int_equal(waiting_next(&walk), SCHED_JOB_NONE);
}

static void check(void) {
	bool gpus[SCHED_GPUS_MAX] = {false};
	size_t counts[GPUS] = {0}, any = 0;

	for (size_t i = 0; i < n; i++) {
		any += jobs[list[i]].gpu_wanted < 0;
		counts[0] += jobs[list[i]].gpu_wanted == 0;
	}
	assert_int_equal(waiting_any(&waiting, -1), n > 0);
	assert_int_equal(waiting_any(&waiting, 0), counts[0] + any > 0);
	check_walk(gpus);
	gpus[draw(GPUS)] = true;
	check_walk(gpus);
	memset(gpus, true, sizeof(gpus));
	check_walk(gpus);
}

/* Some owners have few jobs, one has most. */
static void waiting_keeps_turns(void **state) {
	start();
	for (unsigned i = 0; i < STEPS; i++) {
		if (n < JOBS && draw(2 * JOBS) >= n) {
			uint64_t owner = draw(3) == 0 ? 0 : draw(OWNERS);

			add(SCHED_CLASS_BEST_EFFORT, owner, (int)draw(GPUS + 1) - 1);
		} else if (n > 0) {
			take(draw(3) > 0 ? 0 : draw((uint32_t)n));
		}
		if (i % 16 == 0) {
			check();
		}
	}
}

/* What came later than a real-time job stands behind it, and behind its own owner's. */
static void waiting_lets_nobody_pass_real_time_jobs(void **state) {
	const bool all[SCHED_GPUS_MAX] = {true, true, true};

	start();
	for (unsigned i = 0; i < STEPS; i++) {
		struct waiting_walk walk;
		uint64_t latest[OWNERS] = {0}, realtime = 0, newest = 0;

		if (n < JOBS && draw(2 * JOBS) >= n) {
			add(draw(4) ? SCHED_CLASS_BEST_EFFORT : SCHED_CLASS_REALTIME, draw(OWNERS),
			    (int)draw(GPUS + 1) - 1);
		} else if (n > 0) {
			take(draw((uint32_t)n));
		}
		for (sched_job_id id = i % 16 ? SCHED_JOB_NONE
					      : waiting_first(&waiting, jobs, all, &walk);
		     id != SCHED_JOB_NONE; id = waiting_next(&walk)) {
			bool is_realtime = jobs[id].job_class == SCHED_CLASS_REALTIME;
			uint64_t *own = &latest[jobs[id].owner];

			assert_true(jobs[id].order > (is_realtime ? newest : realtime));
			assert_true(is_realtime || jobs[id].order > *own);
			newest = jobs[id].order > newest ? jobs[id].order : newest;
			realtime = is_realtime ? jobs[id].order : realtime;
			*own = is_realtime ? *own : jobs[id].order;
		}
	}
}

/* Always between the same two, until there is no place left and all have new ones. */
static void waiting_never_runs_out_of_places(void **state) {
	start();
	add(SCHED_CLASS_BEST_EFFORT, 1, 0);
	add(SCHED_CLASS_BEST_EFFORT, 1, 0);
	for (uint64_t owner = 2; owner < JOBS; owner++) {
		add(SCHED_CLASS_BEST_EFFORT, owner, (int)(owner % GPUS)); /* before the second */
	}
	assert_int_equal(jobs[list[n - 1]].owner, 1);
	check();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_keeps_turns),
		cmocka_unit_test(waiting_lets_nobody_pass_real_time_jobs),
		cmocka_unit_test(waiting_never_runs_out_of_places),
	};

	return cmocka_run_group_tests_name("waiting", tests, NULL, NULL);
}
