/* core-sim.c: see core-sim.h. */
#include "core-sim.h"
#include "daemon/core/sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

void core_sim_init(struct core_sim *sim, struct sched *s, uint64_t seed) {
	*sim = (struct core_sim){
		.s = s, .best_permille = 1000, .random = seed * 2654435769u + 88172645463325252ull};
}

uint64_t core_sim_random(struct core_sim *sim, uint64_t below) {
	sim->random ^= sim->random << 13;
	sim->random ^= sim->random >> 7;
	sim->random ^= sim->random << 17;
	return (sim->random >> 11) % below;
}

void core_sim_add(struct core_sim *sim, const struct sched_task *task) {
	struct core_sim_task *t = &sim->tasks[sim->n_tasks++];

	assert_true(sim->n_tasks <= CORE_SIM_TASKS_MAX);
	*t = (struct core_sim_task){
		.period = task->period, .deadline = task->deadline, .next = task->first_release};
	assert_int_equal(sched_add_task(sim->s, task, &t->id), 0);
}

static bool has_waiting(const struct core_sim *sim, size_t task) {
	for (size_t i = 0; i < CORE_SIM_JOBS_MAX; i++) {
		if (sim->jobs[i].used && !sim->jobs[i].running && sim->jobs[i].task == task) {
			return true;
		}
	}
	return false;
}

static void release_due(struct core_sim *sim, nsec_t until) {
	for (size_t i = 0; i < sim->n_tasks; i++) {
		struct core_sim_task *t = &sim->tasks[i];

		while (t->next <= sim->now) {
			struct sched_job job = {
				.task = t->id,
				.owner = i + 1,
				.gpu_wanted = -1,
				.divisible = !t->whole,
				.spec = sched_task(sim->s, t->id)->spec,
				.job_class = SCHED_CLASS_REALTIME,
				.stop = i % 4 ? SCHED_STOP_KERNEL : SCHED_STOP_NEVER,
				.release = t->next,
				.deadline = t->next + t->deadline,
			};
			sched_job_id id;

			if (sim->choosy) {
				uint32_t all = (1u << sched_n_gpus(sim->s)) - 1;

				job.gpus = 1 + (uint32_t)core_sim_random(sim, all);
			}
			if (sim->one_waits && has_waiting(sim, i)) {
				t->next += t->period;
				continue;
			}
			assert_int_equal(sched_arrive(sim->s, &job, &id), 0);
			assert_true(id < CORE_SIM_JOBS_MAX);
			sim->jobs[id] = (struct core_sim_job){.used = true,
							      .task = (unsigned)i,
							      .release = t->next,
							      .deadline = job.deadline};
			if (job.deadline <= until) {
				t->released++;
				sim->released++;
			}
			t->next += t->period;
		}
	}
}

static void count_end(struct core_sim *sim, const struct core_sim_job *job, bool done,
		      nsec_t until) {
	struct core_sim_task *t = &sim->tasks[job->task];

	if (job->deadline > until) {
		return;
	}
	sim->completed += done;
	if (!done || sim->now > job->deadline) {
		t->missed++;
		sim->missed++;
	}
	if (done && sim->now - job->release > t->worst_response) {
		t->worst_response = sim->now - job->release;
	}
}

static void end_due(struct core_sim *sim, nsec_t until) {
	for (sched_job_id id = 0; id < CORE_SIM_JOBS_MAX; id++) {
		struct core_sim_job *job = &sim->jobs[id];

		if (!job->used) {
			continue;
		}
		if (job->running && !job->kernel_over && job->kernel_end <= sim->now) {
			job->kernel_over = true;
			if (sched_get_params(sim->s)->free_at_kernel_end) {
				sched_release_sms(sim->s, id);
			}
		}
		if (job->running ? job->finish <= sim->now
				 : sim->drop_late && job->deadline <= sim->now) {
			count_end(sim, job, job->running, until);
			sched_finish(sim->s, id, 0, false);
			job->used = false;
		}
	}
}

/* What a task asks for at least and at most holds under every policy but the one that is told. */
static void check_bounds(const struct core_sim *sim, const struct sched_job *job) {
	const struct sched_gpu_model *model = &sched_gpu(sim->s, (size_t)job->gpu)->model;
	unsigned n = smset_count(&job->sms), step = model->step;

	if (!job->divisible || strcmp(sched_get_policy(sim->s)->name, "fixed") == 0) {
		return;
	}
	assert_true(job->spec.max_sms == 0 || n <= job->spec.max_sms || n <= step);
	assert_true(n >= job->spec.min_sms || n == model->limit ||
		    (job->spec.max_sms > 0 && (n + step > job->spec.max_sms)));
}

/* Every SM once, never above the limit, no job before its release; and when it will end. */
static void start(struct core_sim *sim, sched_job_id id) {
	const struct sched_job *job = sched_job(sim->s, id);
	const struct sched_gpu *gpu = sched_gpu(sim->s, (size_t)job->gpu);
	const struct profile_table *p = sched_task(sim->s, job->task)->profiles[job->gpu];
	struct core_sim_job *j = &sim->jobs[id];
	unsigned n = smset_count(&job->sms), taken = 0;

	assert_true(j->used && !j->running && sim->now >= j->release);
	assert_non_null(p);
	assert_true(job->gpus == 0 || (job->gpus >> job->gpu & 1));
	assert_true(n > 0 && (n % gpu->model.step == 0 || n == gpu->model.limit));
	assert_true(job->divisible || n == gpu->n_sms);
	check_bounds(sim, job);
	assert_true(n >= p->least || strcmp(sched_get_policy(sim->s)->name, "fixed") == 0);
	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		const struct sched_job *other = sched_job(sim->s, gpu->slots[i]);

		if (other) {
			taken += smset_count(&other->sms);
			assert_true(other == job || smset_disjoint(&other->sms, &job->sms));
		}
	}
	assert_true(taken <= gpu->model.limit);
	sim->tasks[j->task].n_sms = n;
	sim->tasks[j->task].last_start = sim->now;
	if (!job->continued) {
		j->left[0] = p->copy_in;
		j->left[1] = p->exec[n];
		j->left[1] -= j->left[1] * core_sim_random(sim, 1001 - sim->best_permille) / 1000;
		j->left[2] = p->copy_out;
	}
	j->running = true;
	j->kernel_start = sim->now + j->left[0];
	j->kernel_end = j->kernel_start + j->left[1];
	j->finish = j->kernel_end + j->left[2];
	sim->fingerprint = (sim->fingerprint * 1099511628211u) ^ (sim->now + id) ^
			   ((uint64_t)job->gpu << 40) ^ ((uint64_t)n << 48);
}

/* At once, wherever it is. Only for a job that goes before it under every one of those policies. */
static void stop(struct core_sim *sim, sched_job_id id) {
	const struct sched_job *job = sched_job(sim->s, id);
	struct core_sim_job *j = &sim->jobs[id];

	assert_true(sched_get_policy(sim->s)->stops);
	assert_true(j->used && j->running && job->stopping && job->stop != SCHED_STOP_NEVER);
	j->left[0] = j->kernel_start > sim->now ? j->kernel_start - sim->now : 0;
	j->left[1] = j->kernel_end > sim->now ? j->kernel_end - sim->now - j->left[0] : 0;
	j->left[2] = j->finish - (sim->now > j->kernel_end ? sim->now : j->kernel_end);
	j->running = false;
	sim->stopped++;
	sched_stopped(sim->s, id);
}

static bool carry_out(struct core_sim *sim, const struct sched_actions *actions) {
	bool stopped = false;

	for (size_t i = 0; i < actions->n; i++) {
		if (actions->list[i].kind == SCHED_ACTION_STOP) {
			stop(sim, actions->list[i].job);
			stopped = true;
		} else {
			start(sim, actions->list[i].job);
		}
	}
	return stopped;
}

static void note_waits(struct core_sim *sim) {
	for (size_t i = 0; i < CORE_SIM_JOBS_MAX; i++) {
		const struct core_sim_job *job = &sim->jobs[i];
		struct core_sim_task *t = &sim->tasks[job->task];

		if (job->used && !job->running) {
			nsec_t since = job->release > t->last_start ? job->release : t->last_start;

			if (sim->now - since > t->passed_over) {
				t->passed_over = sim->now - since;
			}
		}
	}
}

static nsec_t sooner(nsec_t a, nsec_t b) {
	return a < b ? a : b;
}

static nsec_t next_event(const struct core_sim *sim, nsec_t until) {
	nsec_t next = until;

	for (size_t i = 0; i < sim->n_tasks; i++) {
		next = sooner(next, sim->tasks[i].next);
	}
	for (size_t i = 0; i < CORE_SIM_JOBS_MAX; i++) {
		const struct core_sim_job *j = &sim->jobs[i];

		if (!j->used) {
			continue;
		}
		if (!j->running) {
			if (sim->drop_late) {
				next = sooner(next, j->deadline);
			}
			continue;
		}
		if (j->kernel_start > sim->now) {
			next = sooner(next, j->kernel_start);
		}
		next = sooner(next, j->kernel_over ? j->finish : j->kernel_end);
	}
	return next;
}

/* Eq. 3.2-3.4, from now to @to: between two events nothing changes. */
static void spend(struct core_sim *sim, nsec_t to) {
	for (size_t k = 0; k < sched_n_gpus(sim->s); k++) {
		uint64_t dynamic_mw = 0;
		unsigned busy = 0;

		for (sched_job_id id = 0; id < CORE_SIM_JOBS_MAX; id++) {
			const struct core_sim_job *j = &sim->jobs[id];
			const struct sched_job *job = sched_job(sim->s, id);
			unsigned n;

			if (!j->used || !j->running || j->kernel_over || job->gpu != (int)k ||
			    j->kernel_start > sim->now) {
				continue;
			}
			n = smset_count(&job->sms);
			busy += n;
			dynamic_mw += sched_task(sim->s, job->task)->profiles[k]->power_mw[n];
		}
		sim->energy_pj +=
			power_now_mw(&sched_gpu(sim->s, k)->model.power, busy, dynamic_mw) *
			(to - sim->now);
	}
	sim->now = to;
}

void core_sim_run(struct core_sim *sim, nsec_t until) {
	for (;;) {
		struct sched_actions actions;

		end_due(sim, until);
		release_due(sim, until);
		note_waits(sim);
		do {
			sched_decide(sim->s, sim->now, &actions);
			sim->decisions++;
		} while (carry_out(sim, &actions));
		if (sim->now >= until) {
			break;
		}
		spend(sim, next_event(sim, until));
	}
	for (size_t i = 0; i < CORE_SIM_JOBS_MAX; i++) {
		if (sim->jobs[i].used) { /* not complete at its deadline */
			count_end(sim, &sim->jobs[i], false, until);
		}
	}
}
