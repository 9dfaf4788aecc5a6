/* test-partition.c: the offline parts on random tasks, against the rules spelt out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/partition.h"
#include "daemon/sim/sim.h"

#define GPUS_MAX  3
#define TASKS_MAX 24
#define PROFILES  4
#define SMS	  12
#define CASES	  4000

static struct profile_table profiles[PROFILES][GPUS_MAX];

static unsigned between(uint64_t *random, unsigned low, unsigned high) {
	return low + (unsigned)(sim_random(random) % (high - low + 1));
}

static void make_profiles(uint64_t *random) {
	for (unsigned i = 0; i < PROFILES; i++) {
		for (unsigned k = 0; k < GPUS_MAX; k++) {
			struct profile_table *p = &profiles[i][k];

			assert_int_equal(profile_table_init(p, SMS, 5, 5), 0);
			for (unsigned m = 1; m <= SMS; m++) {
				nsec_t t = between(random, 100, 2000);

				assert_int_equal(
					profile_table_set(p, m, t, t, between(random, 1, 9000)), 0);
			}
			assert_int_equal(profile_table_finish(p), 0);
		}
	}
}

struct scene {
	struct sched *s;
	size_t n_gpus, n_tasks;
	uint64_t used[GPUS_MAX];
	int home[TASKS_MAX];
};

/* Few priorities and profiles, so that many tasks are equal to each other; some run on some GPUs
 * only, some nowhere, some only where they are told, and some are gone again. */
static void make_scene(struct scene *w, uint64_t seed, const char *policy) {
	uint64_t random = seed;
	struct sched_params params;

	*w = (struct scene){.n_gpus = between(&random, 1, GPUS_MAX),
			    .n_tasks = between(&random, 0, TASKS_MAX)};
	make_profiles(&random);
	assert_int_equal(sched_new(&w->s, sched_policy_find(policy), TASKS_MAX), 0);
	for (size_t k = 0; k < w->n_gpus; k++) {
		unsigned n_sms = between(&random, 2, SMS);
		struct sched_gpu_model model = {.power = {n_sms, 5000, 300},
						.limit = between(&random, 1, n_sms),
						.step = between(&random, 1, 2)};

		assert_int_equal(sched_add_gpu(w->s, n_sms, SCHED_SHARING_MPS), k);
		assert_int_equal(sched_set_gpu_model(w->s, k, &model), 0);
	}
	for (size_t i = 0; i < w->n_tasks; i++) {
		unsigned app = between(&random, 0, PROFILES - 1);
		struct sched_task task = {.period = between(&random, 0, 3) *
						    between(&random, 1, 3) * 1500,
					  .spec.priority = (int)between(&random, 0, 4) - 2,
					  .fixed_gpu = -1};
		sched_task_id id;

		task.deadline = task.period / between(&random, 1, 3);
		for (size_t k = 0; k < w->n_gpus; k++) {
			task.profiles[k] = between(&random, 0, 4) ? &profiles[app][k] : NULL;
		}
		assert_int_equal(sched_add_task(w->s, &task, &id), 0);
		assert_int_equal(id, i);
	}
	for (size_t i = 0; i < w->n_tasks; i++) {
		if (between(&random, 0, 5) == 0) {
			policy_tasks(w->s)->list[i].gpu_wanted =
				(int)between(&random, 0, (unsigned)w->n_gpus - 1);
		}
		if (between(&random, 0, 9) == 0) {
			sched_remove_task(w->s, (sched_task_id)i);
		}
	}
	sched_params_default(&params);
	params.reading = (enum sched_reading)between(&random, 0, _SCHED_READING_N - 1);
	params.reference_sms = between(&random, 0, 1) * between(&random, 1, SMS);
	assert_int_equal(sched_set_params(w->s, &params), 0);
}

/* The same rules, slowly: each round looks for the next task among all that have no home yet. */

static bool to_place(const struct scene *w, size_t i) {
	const struct sched_task *task = sched_task(w->s, (sched_task_id)i);

	return task && task->n_gpus > 0 && w->home[i] < 0;
}

static void expect_given(struct scene *w) {
	for (size_t i = 0; i < w->n_tasks; i++) {
		const struct sched_task *task = sched_task(w->s, (sched_task_id)i);
		int k = task ? task->gpu_wanted : -1;

		w->home[i] = -1;
		if (k >= 0 && task->profiles[k]) {
			w->home[i] = k;
			w->used[k] += partition_utilisation_at(task, (size_t)k, task->m_opt[k]);
		}
	}
}

static uint64_t size_of(const struct scene *w, size_t i) {
	const struct sched_task *task = sched_task(w->s, (sched_task_id)i);
	size_t reference = 0;
	uint64_t sum = 0;
	unsigned most;

	for (size_t k = 1; k < w->n_gpus; k++) {
		if (sched_gpu(w->s, k)->n_sms > sched_gpu(w->s, reference)->n_sms) {
			reference = k;
		}
	}
	most = sched_get_params(w->s)->reference_sms;
	if (most == 0 || !task->profiles[reference]) {
		return partition_utilisation_mean(
			w->s, task, task->profiles[reference] ? reference : task->order[0]);
	}
	most = most < task->profiles[reference]->n_sms ? most : task->profiles[reference]->n_sms;
	for (unsigned m = 1; m <= most; m++) {
		sum += partition_utilisation_at(task, reference, m);
	}
	return sum / most;
}

/* How much @rule likes GPU @k; ties go to the bigger, then to the first. */
static int64_t appeal(const struct scene *w, enum partition_rule rule, size_t k) {
	int64_t limit = sched_gpu(w->s, k)->model.limit, used = (int64_t)w->used[k];

	switch (rule) {
	case PARTITION_BIGGEST:
		return limit;
	case PARTITION_LITTLEST:
		return -limit;
	case PARTITION_FIRST_FIT:
		return -(int64_t)k;
	case PARTITION_BEST_FIT:
		return used * 1000 + limit;
	default:
		return -used * 1000 + limit;
	}
}

static void expect_by_size(struct scene *w, enum partition_rule rule) {
	expect_given(w);
	for (;;) {
		int next = -1, best = -1, least = -1;

		for (size_t i = 0; i < w->n_tasks; i++) {
			if (to_place(w, i) &&
			    (next < 0 || size_of(w, i) > size_of(w, (size_t)next))) {
				next = (int)i;
			}
		}
		if (next < 0) {
			return;
		}
		for (size_t k = 0; k < w->n_gpus; k++) {
			if (!sched_task(w->s, (sched_task_id)next)->profiles[k]) {
				continue;
			}
			if (least < 0 || appeal(w, PARTITION_WORST_FIT, k) >
						 appeal(w, PARTITION_WORST_FIT, (size_t)least)) {
				least = (int)k;
			}
			if (w->used[k] + size_of(w, (size_t)next) <= PARTITION_WHOLE &&
			    (best < 0 || appeal(w, rule, k) > appeal(w, rule, (size_t)best))) {
				best = (int)k;
			}
		}
		w->home[next] = best >= 0 ? best : least;
		w->used[w->home[next]] += size_of(w, (size_t)next);
	}
}

/* Alg. 4's choice for one task. */
static void expect_one(struct scene *w, size_t i) {
	enum sched_reading reading = sched_get_params(w->s)->reading;
	const struct sched_task *task = sched_task(w->s, (sched_task_id)i);

	for (int pass = 0; w->home[i] < 0; pass++) {
		int best = -1;

		for (size_t j = 0; j < task->n_gpus; j++) {
			size_t k = task->order[j];
			bool fits =
				profile_total(task->profiles[k], task->m_opt[k]) <= task->deadline;
			uint64_t u = reading == SCHED_READING_AUTHORS
					     ? partition_utilisation_mean(w->s, task, k)
					     : partition_utilisation_at(task, k, task->m_opt[k]);
			uint64_t than = 0;

			if (best >= 0) {
				than = w->used[best] +
				       (reading == SCHED_READING_AUTHORS
						? partition_utilisation_mean(w->s, task,
									     (size_t)best)
						: partition_utilisation_at(task, (size_t)best,
									   task->m_opt[best]));
			}
			/* in the order of energy, within capacity; then the least used; both first
			 * where the deadline fits */
			if (reading == SCHED_READING_FIT && !fits && pass < 2) {
				continue;
			}
			if (pass % 2 == 0 ? best < 0 && w->used[k] + u <= PARTITION_WHOLE
					  : best < 0 || w->used[k] + u < than) {
				best = (int)k;
			}
		}
		if (best >= 0) {
			w->home[i] = best;
			w->used[best] +=
				reading == SCHED_READING_AUTHORS
					? partition_utilisation_mean(w->s, task, (size_t)best)
					: partition_utilisation_at(task, (size_t)best,
								   task->m_opt[best]);
		}
	}
}

static void expect_by_energy(struct scene *w) {
	expect_given(w);
	for (;;) {
		int next = -1;

		for (size_t i = 0; i < w->n_tasks; i++) {
			if (to_place(w, i) &&
			    (next < 0 ||
			     sched_task(w->s, (sched_task_id)i)->spec.priority >
				     sched_task(w->s, (sched_task_id)next)->spec.priority)) {
				next = (int)i;
			}
		}
		if (next < 0) {
			return;
		}
		expect_one(w, (size_t)next);
	}
}

static void assert_homes(const struct scene *w) {
	for (size_t i = 0; i < w->n_tasks; i++) {
		const struct sched_task *task = sched_task(w->s, (sched_task_id)i);

		if (task) {
			assert_int_equal(task->home, w->home[i]);
		}
	}
}

static void partition_by_size_takes_largest_first(void **state) {
	static const struct {
		const char *policy;
		enum partition_rule rule;
	} policies[] = {
		{"bcf", PARTITION_BIGGEST},	    {"lcf", PARTITION_LITTLEST},
		{"ffd-sbeet", PARTITION_FIRST_FIT}, {"bfd-sbeet", PARTITION_BEST_FIT},
		{"wfd-sbeet", PARTITION_WORST_FIT},
	};

	(void)state;
	for (uint64_t seed = 0; seed < CASES; seed++) {
		size_t i = seed % (sizeof(policies) / sizeof(policies[0]));
		struct scene w;

		make_scene(&w, seed, policies[i].policy);
		sched_distribute(w.s);
		expect_by_size(&w, policies[i].rule);
		assert_homes(&w);
		sched_free(w.s);
	}
}

static void partition_by_energy_takes_most_urgent_first(void **state) {
	(void)state;
	for (uint64_t seed = 0; seed < CASES; seed++) {
		struct scene w;

		make_scene(&w, seed, "sbeet-mg");
		sched_distribute(w.s);
		expect_by_energy(&w);
		assert_homes(&w);
		sched_free(w.s);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(partition_by_size_takes_largest_first),
		cmocka_unit_test(partition_by_energy_takes_most_urgent_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
