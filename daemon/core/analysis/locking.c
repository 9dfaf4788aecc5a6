/* locking.c: see locking.h. */
#include "daemon/core/analysis/locking.h"

struct window {
	const struct rta_locking *p;
	const struct rta_bound *bounds; /* of the tasks above */
	const struct rta_bound *below;	/* corrected: of those below */
	nsec_t request;			/* MPCP: B_{i,j}, equal for all requests */
};

static nsec_t longer(nsec_t a, nsec_t b) {
	return a > b ? a : b;
}

static nsec_t shorter(nsec_t a, nsec_t b) {
	return a < b ? a : b;
}

/* How long a section keeps the CPU of its task. */
static nsec_t boosted(const struct rta_locking *p, const struct rta_segment *s) {
	return !s->gpu ? 0 : p->busy ? s->total : s->misc;
}

static nsec_t longest_boosted(const struct rta_locking *p, size_t x) {
	const struct rta_task *t = &p->set->tasks[x];
	nsec_t longest = 0;

	for (size_t j = 0; j < t->n_segments; j++) {
		longest = longer(longest, boosted(p, &t->segments[j]));
	}
	return longest;
}

static nsec_t longest_section(const struct rta_task *t) {
	nsec_t longest = 0;

	for (size_t j = 0; j < t->n_segments; j++) {
		if (t->segments[j].gpu) {
			longest = longer(longest, t->segments[j].total);
		}
	}
	return longest;
}

/* What the reading mpcp_boosted_section puts on top of each section of @x. */
static nsec_t above_section(const struct rta_locking *p, size_t x) {
	nsec_t sum = 0;

	for (size_t h = 0; p->readings->mpcp_boosted_section && h < x; h++) {
		if (p->set->tasks[h].cpu == p->set->tasks[x].cpu) {
			sum = rta_add(sum, longest_boosted(p, h));
		}
	}
	return sum;
}

/* The sum of W_{x,u} over the sections of @x. */
static nsec_t all_sections(const struct rta_locking *p, size_t x) {
	const struct rta_task *t = &p->set->tasks[x];

	return rta_add(t->g, rta_mul(t->n_gpu, above_section(p, x)));
}

/* The longest W_{l,u} of tasks below @i. */
static nsec_t longest_below(const struct rta_locking *p, size_t i) {
	nsec_t longest = 0;

	for (size_t l = i + 1; l < p->set->n_tasks; l++) {
		if (p->set->tasks[l].n_gpu > 0) {
			longest = longer(longest, rta_add(longest_section(&p->set->tasks[l]),
							  above_section(p, l)));
		}
	}
	return longest;
}

/* R_x where @i is analysed. */
static nsec_t response_of(const struct window *w, size_t x, size_t i) {
	if (x < i) {
		return w->bounds[x].response;
	}
	return w->p->corrected ? w->below[x].response : w->p->set->tasks[x].deadline;
}

/* The most jobs of @x that are pending in a window @r of @i. */
static nsec_t jobs_of(const struct window *w, size_t x, size_t i, nsec_t r) {
	const struct rta_task *t = &w->p->set->tasks[x];

	return t->priority == 0 ? RTA_FOREVER : rta_jobs(r, response_of(w, x, i), t->period);
}

/* The most jobs of @h that a request of @i waits for, for @r. */
static nsec_t jobs_of_request(const struct window *w, size_t h, size_t i, nsec_t r) {
	return w->p->corrected ? jobs_of(w, h, i, r)
			       : rta_add(rta_jobs(r, 0, w->p->set->tasks[h].period), 1);
}

/* B_{i,j} of MPCP, in the response of the bound. */
static void request(const void *userdata, size_t i, nsec_t r, struct rta_bound *ret) {
	const struct window *w = userdata;

	rta_charge(ret, RTA_DIRECT, longest_below(w->p, i));
	for (size_t h = 0; h < i; h++) {
		rta_charge(ret, RTA_DIRECT,
			   rta_mul(jobs_of_request(w, h, i, r), all_sections(w->p, h)));
	}
}

static nsec_t mpcp_direct(const struct window *w, size_t i, nsec_t r) {
	const unsigned requests = w->p->set->tasks[i].n_gpu;
	nsec_t sum = rta_mul(requests, longest_below(w->p, i));

	for (size_t h = 0; h < i; h++) {
		nsec_t each = jobs_of_request(w, h, i, w->request);
		nsec_t jobs = shorter(rta_mul(requests, each), jobs_of(w, h, i, r));

		sum = rta_add(sum, rta_mul(jobs, all_sections(w->p, h)));
	}
	return sum;
}

/* Sections of @x, at most @most, each as long as the longest. */
static nsec_t sections(const struct window *w, size_t x, size_t i, nsec_t r, unsigned most,
		       nsec_t longest) {
	nsec_t there = rta_mul(jobs_of(w, x, i, r), w->p->set->tasks[x].n_gpu);

	return rta_mul(shorter(most, there), longest);
}

static nsec_t fmlp_direct(const struct window *w, size_t i, nsec_t r) {
	const struct rta_set *set = w->p->set;
	nsec_t sum = 0;

	for (size_t x = 0; x < set->n_tasks; x++) {
		if (x != i) {
			sum = rta_add(sum, sections(w, x, i, r, set->tasks[i].n_gpu,
						    longest_section(&set->tasks[x])));
		}
	}
	return sum;
}

static void response(const void *userdata, size_t i, nsec_t r, struct rta_bound *ret) {
	const struct window *w = userdata;
	const struct rta_set *set = w->p->set;
	const struct rta_task *t = &set->tasks[i];

	rta_charge(ret, RTA_OWN, rta_add(t->c, t->g));
	for (size_t h = 0; h < i; h++) {
		const struct rta_task *other = &set->tasks[h];
		nsec_t work = rta_add(other->c, w->p->busy ? other->g : other->gm);

		if (other->cpu == t->cpu) {
			bool steady = w->p->corrected && other->n_gpu == 0;
			nsec_t jitter = steady ? 0 : rta_jitter(w->bounds[h].response, work);

			rta_charge(ret, RTA_CPU, rta_mul(rta_jobs(r, jitter, other->period), work));
		}
	}
	if (t->n_gpu > 0) {
		rta_charge(ret, RTA_DIRECT,
			   w->p->protocol == RTA_MPCP ? mpcp_direct(w, i, r)
						      : fmlp_direct(w, i, r));
	}
	for (size_t l = i + 1; l < set->n_tasks; l++) {
		if (set->tasks[l].cpu == t->cpu && set->tasks[l].n_gpu > 0) {
			rta_charge(ret, RTA_BOOST,
				   sections(w, l, i, r, t->n_gpu + 1, longest_boosted(w->p, l)));
		}
	}
}

static void pass(const void *userdata, const struct rta_bound *below, struct rta_bound *ret) {
	const struct rta_locking *p = userdata;

	for (size_t i = 0; i < p->set->n_real_time; i++) {
		const struct rta_task *t = &p->set->tasks[i];
		struct window w = {.p = p, .bounds = ret, .below = below};

		if (p->protocol == RTA_MPCP && t->n_gpu > 0) {
			static const struct rta_task empty = {0};

			w.request = rta_solve(request, &w, i, &empty, t->period).response;
		}
		ret[i] = rta_solve(response, &w, i, t, t->period);
	}
}

void rta_locking_all(const struct rta_locking *p, struct rta_bound *ret) {
	if (p->corrected) {
		rta_assume_deadlines(pass, p, p->set, ret);
	} else {
		pass(p, NULL, ret);
	}
}
