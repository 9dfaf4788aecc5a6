/* test-timeline.c: predicted placements and their energy against Eq. 3.3 computed directly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/sched.h"
#include "daemon/core/task.h"
#include "daemon/core/timeline.h"
#include "energy.h"

#define GPU_SMS 12

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_below(uint64_t n) {
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % n;
}

static struct sched *make(unsigned limit, unsigned step) {
	struct sched_gpu_model model = {
		.power = {.n_sms = GPU_SMS, .static_mw = 9000, .idle_mw_per_sm = 700},
		.limit = limit,
		.step = step};
	struct sched *s;

	assert_int_equal(sched_new(&s, sched_policy_find("fcfs"), 16), 0);
	assert_int_equal(sched_add_gpu(s, GPU_SMS, SCHED_SHARING_MPS), 0);
	assert_int_equal(sched_set_gpu_model(s, 0, &model), 0);
	return s;
}

static struct timeline_job job_of(struct sched *s, const struct profile_table *profile,
				  nsec_t release, nsec_t deadline) {
	struct sched_task task = {.period = 1000, .deadline = 1000, .fixed_gpu = -1};
	sched_task_id id;

	task.profiles[0] = profile;
	assert_int_equal(sched_add_task(s, &task, &id), 0);
	return (struct timeline_job){.task = sched_task(s, id),
				     .gpu_wanted = -1,
				     .divisible = true,
				     .release = release,
				     .deadline = deadline};
}

static void timeline_finds_the_first_moment_with_room(void **state) {
	struct sched *s = make(10, 4);
	const struct sched_params *params = sched_get_params(s);
	struct profile_table profile;
	struct timeline t;
	struct timeline_job job;
	struct timeline_place place;

	assert_int_equal(profile_table_linear(&profile, GPU_SMS, 1, 2, 80, 100), 0);
	job = job_of(s, &profile, 5, 0);
	timeline_init(&t, s, 3);
	assert_true(timeline_earliest(&t, params, &job, 0, 1, &place));
	assert_int_equal(place.start, 5);
	assert_int_equal(place.n_sms, 10); /* the limit, though no multiple of the step */
	place.n_sms = 8;
	timeline_predict(&t, params, &job, &place);
	assert_int_equal(place.draws_from, 5 + 1);
	assert_int_equal(place.draws_until, 5 + 1 + 10);
	assert_int_equal(place.finish, 5 + 1 + 10 + 2);
	timeline_take(&t, &job, &place);
	/* 2 SMs are left, less than a step */
	assert_true(timeline_earliest(&t, params, &job, 0, 1, &place));
	assert_int_equal(place.start, 18);
	job.divisible = false; /* the whole GPU, whatever its limit */
	assert_true(timeline_earliest(&t, params, &job, 0, 1, &place));
	assert_int_equal(place.n_sms, GPU_SMS);
	job.divisible = true;
	assert_false(timeline_earliest(&t, params, &job, 0, 11, &place));
	job.gpu_wanted = 1;
	assert_false(timeline_earliest(&t, params, &job, 0, 1, &place));
	sched_free(s);
}

/* When the second of two jobs of different owners starts, each with its mask of GPUs where it is
 * apart.
 */
static nsec_t start_of_second(enum sched_sharing sharing, uint32_t first, uint32_t second) {
	struct sched *s;
	struct sched_task task = {.period = 100, .deadline = 100, .fixed_gpu = -1};
	struct timeline_job job = {.gpu_wanted = -1, .divisible = true, .apart = first, .owner = 1};
	struct profile_table profile;
	struct timeline t;
	struct timeline_place place;
	sched_task_id id;

	assert_int_equal(sched_new(&s, sched_policy_find("fcfs"), 16), 0);
	assert_int_equal(sched_add_gpu(s, 8, sharing), 0);
	assert_int_equal(profile_table_linear(&profile, 8, 0, 0, 80, 0), 0);
	task.profiles[0] = &profile;
	assert_int_equal(sched_add_task(s, &task, &id), 0);
	job.task = sched_task(s, id);
	timeline_init(&t, s, 0);
	assert_true(timeline_earliest(&t, sched_get_params(s), &job, 0, 1, &place));
	place.n_sms = 4;
	timeline_predict(&t, sched_get_params(s), &job, &place);
	timeline_take(&t, &job, &place);
	assert_true(timeline_earliest(&t, sched_get_params(s), &job, 0, 1, &place));
	assert_int_equal(place.start, 0);
	job.owner = 2;
	job.apart = second;
	assert_true(timeline_earliest(&t, sched_get_params(s), &job, 0, 1, &place));
	sched_free(s);
	return place.start;
}

static void timeline_keeps_owners_apart_without_mps(void **state) {
	assert_int_equal(start_of_second(SCHED_SHARING_EXCLUSIVE, 0, 0), 20);
	assert_int_equal(start_of_second(SCHED_SHARING_MPS, 1, 0), 20);
	assert_int_equal(start_of_second(SCHED_SHARING_MPS, 0, 1), 20);
	assert_int_equal(start_of_second(SCHED_SHARING_MPS, 2, 2), 0); /* on another GPU */
}

/* Whatever is placed, the sum of the differences is the energy of the schedule above static power.
 */
static void timeline_energy_is_that_of_the_schedule(void **state) {
	struct sched *s = make(GPU_SMS, 1);
	struct sched_params params = *sched_get_params(s);
	struct profile_table profiles[4];
	struct timeline_job jobs[4];

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(profile_table_linear(&profiles[i], GPU_SMS, i, 3 - i,
						      100 + 150 * i, 500 + (uint32_t)i * 300),
				 0);
		jobs[i] = job_of(s, &profiles[i], 0, 0);
	}
	for (int round = 0; round < 2000; round++) {
		struct power_segment segments[12];
		nsec_t edges[24];
		struct timeline t;
		size_t n = 1 + random_below(12);
		nsec_t end;

		params.free_at_kernel_end = random_below(2);
		params.power = (enum sched_power)random_below(_SCHED_POWER_N);
		timeline_init(&t, s, 10);
		for (size_t i = 0; i < n; i++) {
			size_t j = random_below(4);
			struct timeline_place place;
			nsec_t kernel_end;

			jobs[j].release = 10 + random_below(400);
			assert_true(timeline_earliest(&t, &params, &jobs[j], 0,
						      1 + (unsigned)random_below(GPU_SMS), &place));
			place.n_sms = 1 + (unsigned)random_below(place.n_sms);
			timeline_predict(&t, &params, &jobs[j], &place);
			timeline_take(&t, &jobs[j], &place);
			kernel_end = place.finish - profiles[j].copy_out;
			segments[i] = (struct power_segment){
				.gpu = 0,
				.n_sms = place.n_sms,
				.dynamic_mw = profiles[j].power_mw[place.n_sms],
				.start = kernel_end - profiles[j].exec[place.n_sms],
				.end = kernel_end,
			};
			if (params.power == SCHED_POWER_HELD) {
				segments[i].start = place.start;
				segments[i].end = place.sms_end;
			}
		}
		end = t.latest;
		assert_int_equal(t.energy_pj + 9000 * (int64_t)(end - 10),
				 power_energy_pj(&sched_gpu(s, 0)->model.power, 0, segments, n, 10,
						 end, edges));
	}
	sched_free(s);
}

/* A job on all SMs: 10 ns of copies, 10 of kernel, 20 of copies. */
static void timeline_knows_when_running_jobs_draw(void **state) {
	for (int power = 0; power < _SCHED_POWER_N; power++) {
		struct sched *s = make(GPU_SMS, 1);
		struct sched_job job = {.gpu_wanted = -1, .divisible = true};
		struct sched_params params = *sched_get_params(s);
		struct sched_task task = {.period = 1000, .fixed_gpu = -1};
		struct profile_table profile;
		struct sched_actions actions;
		struct timeline t;
		sched_job_id id;

		params.power = (enum sched_power)power;
		assert_int_equal(sched_set_params(s, &params), 0);
		assert_int_equal(profile_table_linear(&profile, GPU_SMS, 10, 20, 10 * GPU_SMS, 100),
				 0);
		task.profiles[0] = &profile;
		assert_int_equal(sched_add_task(s, &task, &job.task), 0);
		assert_int_equal(sched_arrive(s, &job, &id), 0);
		sched_decide(s, 0, &actions);
		timeline_init(&t, s, 0);
		assert_int_equal(timeline_running_pj(&t, 50),
				 50 * 9000 + (power == SCHED_POWER_HELD ? 40 : 10) * GPU_SMS * 100);
		sched_free(s);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeline_finds_the_first_moment_with_room),
		cmocka_unit_test(timeline_keeps_owners_apart_without_mps),
		cmocka_unit_test(timeline_energy_is_that_of_the_schedule),
		cmocka_unit_test(timeline_knows_when_running_jobs_draw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
