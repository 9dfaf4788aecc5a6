/* drawn-tasks.c: see drawn-tasks.h. */
#include "tests/unit/drawn-tasks.h"

#include <stdio.h>

#include "daemon/sim/sim.h"

static unsigned below(uint64_t *random, unsigned n) {
	return (unsigned)(sim_random(random) % n);
}

static void draw_segments(struct rta_segment *segments, struct rta_task *t, unsigned size,
			  uint64_t *random) {
	const size_t n = 1 + below(random, DRAWN_SEGMENTS);
	bool gpu = below(random, 2), ever = below(random, 3) > 0;

	for (size_t j = 0; j < n; j++, gpu = ever && !gpu) {
		if (gpu) {
			nsec_t misc = below(random, size), exec = 1 + below(random, size);
			nsec_t most = misc < exec ? misc : exec;
			nsec_t beside = below(random, 3) ? 0 : below(random, (unsigned)most + 1);

			segments[j] = (struct rta_segment){.gpu = true,
							   .misc = misc,
							   .exec = exec,
							   .total = misc + exec - beside};
		} else {
			segments[j] = (struct rta_segment){.cpu = 1 + below(random, size)};
		}
	}
	t->segments = segments;
	t->n_segments = n;
}

/* Only calls: of a best-effort task whose next call can come at any time. */
static void draw_caller(struct rta_segment *segments, struct rta_task *t) {
	segments[0] = (struct rta_segment){.gpu = true, .exec = 1, .total = 1};
	t->segments = segments;
	t->n_segments = 1;
}

void drawn_tasks(struct drawn *d, enum rta_mode mode, uint64_t *random) {
	const size_t n = 2 + below(random, DRAWN_TASKS_MAX - 1);
	const unsigned n_cpus = 1 + below(random, DRAWN_CPUS);
	const unsigned stretch = 1 + below(random, 3);
	const size_t n_best_effort = below(random, 2) ? below(random, (unsigned)n) : 0;
	const bool calls = below(random, 2);

	for (size_t i = 0; i < n; i++) {
		struct rta_task *t = &d->tasks[i];

		*t = (struct rta_task){.cpu = below(random, n_cpus), .priority = (int)(n - i)};
		t->period = stretch * (30 + below(random, 30) + 30 * i);
		t->deadline = below(random, 2) ? t->period : 1 + below(random, (unsigned)t->period);
		t->busy = mode == RTA_MODE_OWN ? below(random, 2) : mode == RTA_MODE_BUSY;
		if (i + n_best_effort >= n) {
			t->priority = 0;
		}
		if (t->priority == 0 && calls) {
			draw_caller(d->segments[i], t);
		} else {
			draw_segments(d->segments[i], t, 2 + below(random, 5), random);
		}
	}
	d->set = (struct rta_set){.tasks = d->tasks,
				  .n_tasks = n,
				  .kthread_cpu = below(random, n_cpus),
				  .epsilon = below(random, calls ? 6 : 3)};
	rta_sum(&d->set);
}

void drawn_print(const struct drawn *d) {
	for (size_t k = 0; k < d->set.n_tasks; k++) {
		const struct rta_task *t = &d->tasks[k];

		printf("task %zu: cpu %u priority %d period %u %s:", k, t->cpu, t->priority,
		       (unsigned)t->period, t->busy ? "busy" : "suspend");
		for (size_t j = 0; j < t->n_segments; j++) {
			const struct rta_segment *s = &t->segments[j];

			if (s->gpu) {
				printf(" GPU %u+%u=%u", (unsigned)s->misc, (unsigned)s->exec,
				       (unsigned)s->total);
			} else {
				printf(" CPU %u", (unsigned)s->cpu);
			}
		}
		printf("\n");
	}
	printf("epsilon %u, kernel thread on CPU %u\n", (unsigned)d->set.epsilon,
	       d->set.kthread_cpu);
}
