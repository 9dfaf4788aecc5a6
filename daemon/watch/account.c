/* account.c: see account.h. */
#include "daemon/watch/account.h"

#include "daemon/gpu/inventory.h"
#include "daemon/session/session.h"

#define PJ_PER_MJ 1000000000ull

static struct account_point *last_point(struct account_gpu *g) {
	return &g->points[(g->n - 1) % ACCOUNT_POINTS];
}

/* Energy at @time, not before the point. A GPU of 1 kW takes five hours to fill 64 bits of pJ, and
 * stands still for longer. */
static void energy_at(const struct account_point *p, nsec_t time, uint64_t *ret_mj,
		      uint64_t *ret_rest_pj) {
	unsigned __int128 pj = (unsigned __int128)p->mw * (time - p->time) + p->rest_pj;

	*ret_mj = p->mj + (uint64_t)(pj / PJ_PER_MJ);
	*ret_rest_pj = (uint64_t)(pj % PJ_PER_MJ);
}

void account_gpu_init(struct account_gpu *g, const struct power_gpu *power, nsec_t start) {
	*g = (struct account_gpu){.power = *power, .n = 1};
	g->points[0] = (struct account_point){.time = start, .mw = power->static_mw};
}

/* What it draws has changed. */
static void add_point(struct account_gpu *g, nsec_t now) {
	const struct account_point *last = last_point(g);
	struct account_point p = {.time = now > last->time ? now : last->time};

	energy_at(last, p.time, &p.mj, &p.rest_pj);
	p.mw = power_now_mw(&g->power, g->busy, g->dynamic_mw);
	g->n++;
	*last_point(g) = p;
}

void account_gpu_add(struct account_gpu *g, unsigned n_sms, uint32_t dynamic_mw, nsec_t now) {
	g->busy += n_sms;
	g->dynamic_mw += dynamic_mw;
	if (dynamic_mw == 0 && g->n_unknown++ == 0) {
		g->unknown_since = now;
	}
	add_point(g, now);
}

void account_gpu_remove(struct account_gpu *g, unsigned n_sms, uint32_t dynamic_mw, nsec_t now) {
	g->busy -= n_sms;
	g->dynamic_mw -= dynamic_mw;
	if (dynamic_mw == 0 && --g->n_unknown == 0) {
		g->unknown += now - g->unknown_since;
	}
	add_point(g, now);
}

bool account_gpu_at(const struct account_gpu *g, nsec_t time, uint64_t *ret_mj) {
	unsigned long long oldest = g->n > ACCOUNT_POINTS ? g->n - ACCOUNT_POINTS : 0;
	uint64_t rest;

	if (g->power.static_mw == 0) {
		return false;
	}
	for (unsigned long long i = g->n; i-- > oldest;) {
		const struct account_point *p = &g->points[i % ACCOUNT_POINTS];

		if (p->time <= time) {
			energy_at(p, time, ret_mj, &rest);
			return true;
		}
	}
	return false;
}

nsec_t account_gpu_unknown(const struct account_gpu *g, nsec_t now) {
	return g->unknown + (g->n_unknown > 0 ? now - g->unknown_since : 0);
}

void account_start(struct account *account, const struct inventory *inventory,
		   const struct sched *sched, nsec_t now) {
	for (size_t i = 0; i < inventory_n_gpus(inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(inventory, i);

		account_gpu_init(&account->gpus[i], &sched_gpu(sched, i)->model.power,
				 gpu->read_at ? gpu->read_at : now);
	}
}

/* Jobs under terms may share SMs with others, so the model says nothing of their power: they only
 * count as unknown. */
static unsigned accounted_sms(const struct job *job) {
	return job->terms == 0 ? smset_count(&job->record.sms) : 0;
}

static uint32_t accounted_mw(const struct job *job) {
	return job->terms == 0 ? job->dynamic_mw : 0;
}

/* Of the job itself, also under terms where no other program is in its allocation. 0: not known. */
static uint32_t power_of(const struct job *job, const struct profile_table *profile) {
	bool own = job->terms == 0 || (job->allocation > 0 && job->alone);
	unsigned n_sms = own ? smset_count(&job->record.sms) : 0;

	return profile && n_sms > 0 && n_sms <= profile->n_sms ? profile->power_mw[n_sms] : 0;
}

void account_job_begins(struct account *account, const struct sched *sched, struct job *job,
			nsec_t now) {
	const struct sched_task *task = sched_task(sched, job->task);
	const struct profile_table *profile = task ? task->profiles[job->gpu] : job->profile;

	if (job->accounted) {
		return;
	}
	job->dynamic_mw = power_of(job, profile);
	job->accounted = now;
	account_gpu_add(&account->gpus[job->gpu], accounted_sms(job), accounted_mw(job), now);
}

void account_job_ends(struct account *account, struct job *job, nsec_t now) {
	struct account_point since = {.time = job->accounted, .mw = job->dynamic_mw};
	uint64_t mj, rest;

	if (job->accounted) {
		energy_at(&since, now, &mj, &rest);
		job->session->counters.energy_mj += mj;
		account_gpu_remove(&account->gpus[job->gpu], accounted_sms(job), accounted_mw(job),
				   now);
		job->accounted = 0;
	}
}
