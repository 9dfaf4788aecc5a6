/* schedule.c: see schedule.h. */
#include "daemon/sim/schedule.h"

#include "daemon/sim/sim.h"

#define NOBODY	(-1)
#define KTHREAD (-2) /* has a CPU */

enum phase {
	ON_CPU, /* a CPU segment */
	BEGIN,	/* ioctl: the call; locks: asks for the lock */
	WAIT,	/* locks: for the lock */
	LAUNCH, /* first part of G^m */
	EXEC,	/* G^e */
	FINISH, /* last part of G^m */
	END,	/* ioctl: the call; locks: gives the lock back */
	IDLE,
};

struct running {
	enum phase phase;
	bool busy, best_effort;
	bool asked; /* it has spun in this call */
	size_t segment;
	nsec_t left;	 /* of the phase */
	nsec_t left_cpu; /* of G^m beside G^e */
	nsec_t finish;	 /* of G^m after G^e */
	nsec_t release;	 /* of the job; while idle, of the next one */
	uint64_t ticket; /* of its request for the lock */
	uint64_t random;
};

struct world {
	const struct schedule_setup *setup;
	const struct rta_set *set;
	struct schedule_result *result;
	struct running tasks[RTA_TASKS_MAX];
	int on[RTA_CPUS_MAX]; /* who has each CPU */
	unsigned n_cpus;
	int owner;    /* of the lock */
	bool calling; /* the owner has begun its update, so it can't be preempted */
	uint64_t n_tickets;
	bool updating; /* the kernel thread */
	nsec_t update_left;
	int installed, target; /* whose TSGs are on the runlist; NOBODY: those of best effort */
	int gpu;	       /* who runs on it */
	nsec_t now;
};

static bool is_locking(const struct world *w) {
	return w->setup->approach == SCHEDULE_MPCP || w->setup->approach == SCHEDULE_FMLP;
}

static bool is_hostile(const struct world *w, size_t i) {
	return w->setup->hostile && i >= w->set->n_real_time;
}

static bool in_call(const struct running *r) {
	return r->phase == BEGIN || r->phase == END;
}

static nsec_t draw(struct running *r, nsec_t least, nsec_t most) {
	return least >= most ? most : least + sim_random(&r->random) % (most - least + 1);
}

static nsec_t actual(const struct world *w, struct running *r, nsec_t best, nsec_t worst) {
	if (!w->setup->drawn || worst == RTA_FOREVER || sim_random(&r->random) % 2) {
		return worst;
	}
	return draw(r, best, worst);
}

/* Splits the G^m of a segment into what comes before, beside and after its G^e. */
static void start_gpu_segment(struct world *w, struct running *r, const struct rta_segment *s) {
	nsec_t beside = s->exec == RTA_FOREVER ? 0 : s->misc + s->exec - s->total;
	nsec_t rest = actual(w, r, 0, s->misc - beside);
	nsec_t before = rest / 2;

	if (w->setup->seed != 0) {
		uint64_t kind = sim_random(&r->random) % 4;

		before = kind == 0 ? 0 : kind == 1 ? rest : kind == 2 ? rest / 2 : draw(r, 0, rest);
	}
	r->left_cpu = beside;
	r->finish = rest - before;
	r->left = before;
}

static void enter(struct world *w, size_t i, enum phase phase) {
	const nsec_t call = w->setup->approach == SCHEDULE_IOCTL ? w->set->epsilon : 0;
	const struct rta_task *t = &w->set->tasks[i];
	struct running *r = &w->tasks[i];
	const struct rta_segment *s = &t->segments[r->segment];

	r->phase = phase;
	r->asked = false;
	switch (phase) {
	case ON_CPU:
		r->left = actual(w, r, s->best, s->cpu);
		break;
	case LAUNCH:
		start_gpu_segment(w, r, s);
		break;
	case EXEC:
		r->left = actual(w, r, s->best_exec, s->exec);
		break;
	case FINISH:
		r->left = r->finish;
		break;
	default:
		r->left = call;
	}
}

static void start_segment(struct world *w, size_t i) {
	enter(w, i, w->set->tasks[i].segments[w->tasks[i].segment].gpu ? BEGIN : ON_CPU);
}

static void complete(struct world *w, size_t i) {
	const nsec_t period = w->set->tasks[i].period;
	struct running *r = &w->tasks[i];
	nsec_t response = w->now - r->release;

	if (w->result->first[i] == RTA_FOREVER) {
		w->result->first[i] = response;
	}
	w->result->longest[i] = response > w->result->longest[i] ? response : w->result->longest[i];
	w->result->jobs++;
	r->phase = IDLE;
	r->release = is_hostile(w, i) ? RTA_FOREVER : rta_add(r->release, period);
	if (w->setup->drawn && sim_random(&r->random) % 3 == 0) {
		r->release = rta_add(r->release, draw(r, 0, period));
	}
}

/* Whether the phase is over. A lock is asked for on the CPU only, see ask(). */
static bool is_over(const struct world *w, const struct running *r) {
	if (r->phase == IDLE) {
		return r->release <= w->now;
	}
	if (is_locking(w) && (r->phase == BEGIN || r->phase == WAIT)) {
		return false;
	}
	return r->left == 0 && (r->phase != EXEC || r->left_cpu == 0);
}

static void next_phase(struct world *w, size_t i) {
	struct running *r = &w->tasks[i];

	if (w->owner == (int)i && (r->phase == END || (!is_locking(w) && r->phase == BEGIN))) {
		w->owner = NOBODY;
		w->calling = false;
	}
	switch (r->phase) {
	case IDLE:
		r->segment = 0;
		start_segment(w, i);
		return;
	case BEGIN:
		enter(w, i, LAUNCH);
		return;
	case ON_CPU:
	case END:
		if (++r->segment < w->set->tasks[i].n_segments) {
			start_segment(w, i);
		} else {
			complete(w, i);
		}
		return;
	default:
		enter(w, i, r->phase + 1);
	}
}

/* Return: whether any task has come to another phase. */
static bool advance(struct world *w) {
	bool changed = false;

	for (size_t i = 0; i < w->set->n_tasks; i++) {
		/* A task of zero length throughout does not keep us here: periods are not 0. */
		while (is_over(w, &w->tasks[i])) {
			next_phase(w, i);
			changed = true;
		}
	}
	return changed;
}

static bool wants_cpu(const struct running *r) {
	return r->phase != IDLE && r->phase != WAIT &&
	       (r->phase != EXEC || r->busy || r->left_cpu > 0);
}

static void assign_cpus(struct world *w) {
	for (unsigned c = 0; c < w->n_cpus; c++) {
		w->on[c] = NOBODY;
	}
	if (w->updating) {
		w->on[w->set->kthread_cpu] = KTHREAD;
	}
	if (w->owner >= 0 && wants_cpu(&w->tasks[w->owner]) && (is_locking(w) || w->calling)) {
		w->on[w->set->tasks[w->owner].cpu] = w->owner;
	}
	for (size_t i = 0; i < w->set->n_tasks; i++) {
		int *on = &w->on[w->set->tasks[i].cpu];

		if (*on == NOBODY && wants_cpu(&w->tasks[i])) {
			*on = (int)i;
		}
	}
}

/* Alg. 6, line 4: the task that should have the GPU. */
static int first_ready(const struct world *w) {
	for (size_t i = 0; i < w->set->n_real_time; i++) {
		if (w->set->tasks[i].n_gpu > 0 && w->tasks[i].phase != IDLE) {
			return (int)i;
		}
	}
	return NOBODY;
}

static void run_kernel_thread(struct world *w) {
	if (w->updating && w->update_left == 0) {
		w->updating = false;
		w->installed = w->target;
	}
	if (!w->updating && first_ready(w) != w->installed) {
		w->target = first_ready(w);
		w->update_left = w->set->epsilon;
		w->updating = w->update_left > 0;
		w->installed = w->updating ? w->installed : w->target;
	}
}

/* Gives the lock of the runlist away. */
static void grant_call(struct world *w) {
	int best = NOBODY;

	for (unsigned c = 0; c < w->n_cpus; c++) {
		if (w->on[c] >= 0 && in_call(&w->tasks[w->on[c]])) {
			w->tasks[w->on[c]].asked = true;
		}
	}
	for (size_t i = 0; w->owner < 0 && best < 0 && i < w->set->n_tasks; i++) {
		const struct running *r = &w->tasks[i];

		if (in_call(r) && r->asked &&
		    (w->setup->hand_over || w->on[w->set->tasks[i].cpu] == (int)i)) {
			best = (int)i;
		}
	}
	w->owner = best >= 0 ? best : w->owner;
	w->calling = w->owner >= 0 && w->on[w->set->tasks[w->owner].cpu] == w->owner;
}

/* Tasks on their CPU ask for the lock of the GPU. Return: whether any did, or got it. */
static bool ask(struct world *w) {
	bool changed = false;
	int best = NOBODY;

	for (unsigned c = 0; c < w->n_cpus; c++) {
		if (w->on[c] >= 0 && w->tasks[w->on[c]].phase == BEGIN) {
			enter(w, (size_t)w->on[c], WAIT);
			w->tasks[w->on[c]].ticket = w->n_tickets++;
			changed = true;
		}
	}
	for (size_t i = 0; w->owner < 0 && i < w->set->n_tasks; i++) {
		if (w->tasks[i].phase == WAIT &&
		    (best < 0 || (w->setup->approach == SCHEDULE_FMLP &&
				  w->tasks[i].ticket < w->tasks[best].ticket))) {
			best = (int)i;
		}
	}
	if (best >= 0) {
		w->owner = best;
		enter(w, (size_t)best, LAUNCH);
	}
	return changed || best >= 0;
}

/* Alg. 7: the begun segment of highest priority, unless a higher one is about to preempt it. */
static int preemptible_gpu(const struct world *w) {
	for (size_t i = 0; i < w->set->n_tasks; i++) {
		enum phase phase = w->tasks[i].phase;

		if (phase >= LAUNCH && phase <= END) {
			return w->calling && w->owner < (int)i ? NOBODY : (int)i;
		}
	}
	return NOBODY;
}

static int kthread_gpu(const struct world *w) {
	if (w->updating || w->installed != NOBODY) {
		return w->updating ? NOBODY : w->installed;
	}
	for (size_t i = w->set->n_real_time; i < w->set->n_tasks; i++) {
		if (w->tasks[i].phase == EXEC) {
			return (int)i;
		}
	}
	return NOBODY;
}

/* Whether the phase of a task that is not of best effort ends, or begins, in a nanosecond. */
static bool is_about_to(const struct world *w) {
	for (size_t i = 0; i < w->set->n_real_time; i++) {
		const struct running *r = &w->tasks[i];

		if (r->phase == IDLE ? r->release == w->now + 1 : r->left == 1) {
			return true;
		}
	}
	return false;
}

static void release_hostile(struct world *w) {
	if (w->setup->hostile && is_about_to(w)) {
		for (size_t i = w->set->n_real_time; i < w->set->n_tasks; i++) {
			struct running *r = &w->tasks[i];

			if (r->phase == IDLE && sim_random(&r->random) % 2) {
				r->release = w->now;
			}
		}
	}
}

/* All that happens at this moment. */
static void settle(struct world *w) {
	release_hostile(w);
	do {
		advance(w);
		if (w->setup->approach == SCHEDULE_KTHREAD) {
			run_kernel_thread(w);
		}
		assign_cpus(w);
	} while (is_locking(w) && ask(w));
	if (w->setup->approach == SCHEDULE_IOCTL) {
		grant_call(w);
	}
	w->gpu = is_locking(w)				  ? w->owner
		 : w->setup->approach == SCHEDULE_KTHREAD ? kthread_gpu(w)
							  : preemptible_gpu(w);
	if (w->gpu >= 0 && w->tasks[w->gpu].phase != EXEC) {
		w->gpu = NOBODY;
	}
}

/* What of task @i goes on while it has its CPU; NULL: nothing, it waits there. */
static nsec_t *cpu_work(struct world *w, int i) {
	struct running *r = &w->tasks[i];

	if (r->phase == EXEC) {
		return r->left_cpu > 0 ? &r->left_cpu : NULL;
	}
	return in_call(r) && w->owner != i ? NULL : &r->left;
}

/* How long to go on: up to what ends after @left, or a nanosecond before that. */
static nsec_t step(const struct world *w, nsec_t left) {
	return w->setup->hostile && left > 1 && left != RTA_FOREVER ? left - 1 : left;
}

/* Lets @dt pass for all that runs, or, with 0, returns how long nothing changes. */
static nsec_t pass(struct world *w, nsec_t dt, nsec_t until) {
	nsec_t least = until - w->now;
	nsec_t *work[RTA_CPUS_MAX + 2];
	size_t n = 0;

	for (unsigned c = 0; c < w->n_cpus; c++) {
		nsec_t *left = w->on[c] >= 0 ? cpu_work(w, w->on[c]) : NULL;

		if (left) {
			work[n++] = left;
		}
	}
	if (w->gpu >= 0 && w->tasks[w->gpu].left > 0) {
		work[n++] = &w->tasks[w->gpu].left;
	}
	if (w->updating) {
		work[n++] = &w->update_left;
	}
	for (size_t k = 0; k < n; k++) {
		least = step(w, *work[k]) < least ? step(w, *work[k]) : least;
		*work[k] -= *work[k] == RTA_FOREVER ? 0 : dt;
	}
	for (size_t i = 0; i < w->set->n_tasks && dt == 0; i++) {
		const struct running *r = &w->tasks[i];

		if (r->phase == IDLE && step(w, r->release - w->now) < least) {
			least = step(w, r->release - w->now);
		}
	}
	return least;
}

static void start(struct world *w) {
	for (size_t i = 0; i < w->set->n_tasks; i++) {
		const struct rta_task *t = &w->set->tasks[i];
		bool busy =
			w->setup->mode == RTA_MODE_OWN ? t->busy : w->setup->mode == RTA_MODE_BUSY;

		w->tasks[i] = (struct running){
			.phase = IDLE,
			.busy = busy || w->setup->approach == SCHEDULE_KTHREAD,
			.release = is_hostile(w, i) ? RTA_FOREVER : w->setup->offsets[i],
			.random = w->setup->seed + i * 0x9e3779b97f4a7c15ull,
		};
		w->n_cpus = t->cpu >= w->n_cpus ? t->cpu + 1 : w->n_cpus;
		w->result->first[i] = RTA_FOREVER;
		w->result->longest[i] = 0;
	}
	w->n_cpus = w->set->kthread_cpu >= w->n_cpus ? w->set->kthread_cpu + 1 : w->n_cpus;
}

void schedule_simulate(const struct schedule_setup *setup, struct schedule_result *ret) {
	struct world w = {.setup = setup, .set = setup->set, .result = ret};

	w.owner = w.installed = w.target = NOBODY;
	ret->jobs = 0;
	start(&w);
	while (w.now < setup->duration) {
		nsec_t dt;

		settle(&w);
		dt = pass(&w, 0, setup->duration);
		pass(&w, dt, setup->duration);
		w.now += dt;
	}
	advance(&w);
	for (size_t i = 0; i < w.set->n_tasks; i++) {
		const struct running *r = &w.tasks[i];

		if (r->phase != IDLE && w.now - r->release > ret->longest[i]) {
			ret->longest[i] = w.now - r->release;
		}
	}
}
