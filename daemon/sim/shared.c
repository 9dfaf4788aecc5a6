/* shared.c: see shared.h. */
#include "daemon/sim/shared.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/steer/plan.h"
#include "daemon/core/steer/share.h"
#include "daemon/sim/arbiter.h"
#include "daemon/sim/boundary.h"

/* Between two kernels of a job: launches under MPS (tests/gpu/HARDWARE.md). */
#define LAUNCH_GAP 2500

#define NEVER UINT64_MAX
#define NONE  UINT32_MAX

_Static_assert(SIM_SHARED_TASKS_MAX == MODEL_TASKS_MAX, "one model is one GPU");

struct shared_gpu {
	struct model model;
	struct model_gpu gpu;
	struct model_task tasks[MODEL_TASKS_MAX];
	struct model_place places[MODEL_TASKS_MAX];
	nsec_t kernels[MODEL_TASKS_MAX][PROTO_SMS_MAX + 1];
	size_t index[MODEL_TASKS_MAX];	   /* the task in the setup */
	struct smset sms[MODEL_TASKS_MAX]; /* that its kernel holds */
	nsec_t since[MODEL_TASKS_MAX];	   /* it holds just these */
	unsigned n;
	nsec_t pending; /* the next event that was pushed; NEVER: none */

	/* With SIM_TERMS_SHARED. */
	struct plan_gpu cut;
	struct share share;			 /* share.n 0: the rule holds for good */
	struct share_seen seen[MODEL_TASKS_MAX]; /* since the last look */
	nsec_t pause;
};

/* A task's jobs, in the order in which they run. */
struct line {
	unsigned gpu, place; /* index in that GPU's arrays */
	uint32_t first, last;
	bool open; /* the first one runs */
};

struct shared {
	struct shared_gpu *gpus; /* owned */
	struct line *lines;	 /* owned; by task */
	uint32_t *next;		 /* owned; by job: in its line, or in the list of free numbers */
	uint32_t free, n_used;
};

/* ---- SMs, as the meters and segments see them ---- */

static uint32_t power_of(const struct sim *s, const struct shared_gpu *g, unsigned i) {
	const struct shared *shared = s->arbiter_state;
	const struct profile_table *p = s->setup->tasks[g->index[i]].profiles[g - shared->gpus];
	unsigned n = smset_count(&g->sms[i]);

	return p->power_mw[n < p->n_sms ? n : p->n_sms];
}

static void segment_ends(struct sim *s, const struct shared_gpu *g, unsigned i) {
	const struct shared *shared = s->arbiter_state;
	const struct line *line = &shared->lines[g->index[i]];
	struct sim_segment segment = {
		.gpu = (unsigned)(g - shared->gpus),
		.sms = g->sms[i],
		.task = g->index[i],
		.start = g->since[i],
		.end = s->now,
		.kernel_start = g->since[i],
		.kernel_end = s->now,
		.dynamic_mw = power_of(s, g, i),
	};

	if (s->setup->on_segment && !smset_empty(&g->sms[i]) && s->now > g->since[i]) {
		segment.job = s->jobs[line->first].number;
		s->setup->on_segment(s->setup->userdata, &segment);
	}
}

/* The SMs of a region. */
static struct smset region(const struct shared_gpu *g, unsigned k) {
	return smset_range(k == 0 ? 0 : g->gpu.sms[0], g->gpu.sms[k]);
}

static unsigned held(const struct shared_gpu *g, unsigned i, unsigned k) {
	struct smset of = region(g, k);

	of = smset_and(&of, &g->sms[i]);
	return smset_count(&of);
}

static bool has_other(const struct shared_gpu *g, unsigned i) {
	return held(g, i, 0) != g->model.jobs[i].held[0] ||
	       held(g, i, 1) != g->model.jobs[i].held[1];
}

/* @n SMs of region @k are its own from now on: those that it has stay, as far as they do. */
static void hold(struct shared_gpu *g, unsigned i, unsigned k, unsigned n) {
	struct smset of = region(g, k), mine = smset_and(&of, &g->sms[i]), more;
	unsigned has = smset_count(&mine);

	g->sms[i] = smset_minus(&g->sms[i], &mine);
	if (n <= has) {
		more = smset_lowest(&mine, n);
	} else {
		for (unsigned j = 0; j < g->n; j++) {
			of = smset_minus(&of, &g->sms[j]);
		}
		of = smset_minus(&of, &mine);
		more = smset_lowest(&of, n - has);
		more = smset_or(&more, &mine);
	}
	assert(smset_count(&more) == n);
	g->sms[i] = smset_or(&g->sms[i], &more);
}

/* The model has handed SMs out anew: first they come free, then they are taken. */
static void follow(struct sim *s, struct shared_gpu *g) {
	const struct shared *shared = s->arbiter_state;
	struct meter *meter = &s->meters[g - shared->gpus];
	bool other[MODEL_TASKS_MAX];

	for (unsigned i = 0; i < g->n; i++) {
		other[i] = has_other(g, i);
		if (other[i] && !smset_empty(&g->sms[i])) {
			segment_ends(s, g, i);
			meter_stop(meter, s->now, smset_count(&g->sms[i]), power_of(s, g, i));
		}
		for (unsigned k = 0; k < MODEL_REGIONS; k++) {
			if (g->model.jobs[i].held[k] < held(g, i, k)) {
				hold(g, i, k, g->model.jobs[i].held[k]);
			}
		}
	}
	for (unsigned i = 0; i < g->n; i++) {
		for (unsigned k = 0; k < MODEL_REGIONS; k++) {
			hold(g, i, k, g->model.jobs[i].held[k]);
		}
		if (other[i] && !smset_empty(&g->sms[i])) {
			g->since[i] = s->now;
			meter_start(meter, s->now, smset_count(&g->sms[i]), power_of(s, g, i));
		}
	}
}

/* ---- jobs ---- */

static int shared_arrive(struct sim *s, const struct sim_job *job, nsec_t seen, uint32_t *ret_id) {
	struct shared *shared = s->arbiter_state;
	struct line *line = &shared->lines[job->task];
	uint32_t id = shared->free;

	(void)seen; /* nobody asks which release it is */
	if (id == NONE) {
		id = shared->n_used++;
	} else {
		shared->free = shared->next[id];
	}
	shared->next[id] = NONE;
	if (line->first == NONE) {
		line->first = id;
	} else {
		shared->next[line->last] = id;
	}
	line->last = id;
	s->changed = true;
	*ret_id = id;
	return 0;
}

/* @before: the one before it in the line; NONE: it is the first. */
static void leave(struct shared *shared, struct line *line, uint32_t before, uint32_t id) {
	uint32_t next = shared->next[id];

	if (before == NONE) {
		line->first = next;
	} else {
		shared->next[before] = next;
	}
	line->last = line->last == id ? before : line->last;
	shared->next[id] = shared->free;
	shared->free = id;
}

static bool shared_drop(struct sim *s, uint32_t id) {
	struct shared *shared = s->arbiter_state;
	struct line *line = &shared->lines[s->jobs[id].task];
	uint32_t before = NONE;

	if (line->open && line->first == id) {
		return false;
	}
	for (uint32_t i = line->first; i != id; i = shared->next[i]) {
		before = i;
	}
	leave(shared, line, before, id);
	return true;
}

/* How long its kernels take, as a share of the times in the profile. */
static double share_of(const struct sim *s, const struct profile_table *p,
		       const struct sim_job *job) {
	return (double)sim_exec_time(s, p, p->n_sms, job) / (double)p->exec[p->n_sms];
}

/* As sbeetd counts what a program did. */
static void see_end(struct shared_gpu *g, unsigned i, nsec_t response) {
	struct share_seen *seen = &g->seen[i];
	nsec_t deadline = g->tasks[i].deadline;

	seen->jobs++;
	seen->missed += deadline && response > deadline;
	seen->launches += g->tasks[i].launches;
	seen->response += response;
	seen->longest = response > seen->longest ? response : seen->longest;
}

static int job_ends(struct sim *s, struct shared_gpu *g, unsigned i) {
	struct shared *shared = s->arbiter_state;
	struct line *line = &shared->lines[g->index[i]];
	uint32_t id = line->first;
	int r;

	line->open = false;
	see_end(g, i, s->now - s->jobs[id].release);
	r = sim_job_done(s, id); /* may add to the line, while this number is still taken */
	leave(shared, line, NONE, id);
	s->changed = true;
	return r;
}

/* All that happens on @g at this moment by itself. */
static int advance(struct sim *s, struct shared_gpu *g) {
	int r = 0;

	do {
		uint32_t ended = model_advance(&g->model, s->now);

		follow(s, g);
		for (unsigned i = 0; r == 0 && i < g->n; i++) {
			if (ended & 1u << i) {
				r = job_ends(s, g, i);
			}
		}
	} while (r == 0 && model_next(&g->model) == s->now);
	return r;
}

static int push_next(struct sim *s, struct shared_gpu *g) {
	const struct shared *shared = s->arbiter_state;
	nsec_t next = model_next(&g->model);

	if (next >= g->pending) {
		return 0;
	}
	g->pending = next;
	return event_push(&s->events, (struct event){.at = next,
						     .kind = EVENT_SHARED,
						     .index = (uint32_t)(g - shared->gpus)});
}

/* The setup's overhead stands for all that the host takes. */
static void set_host(struct shared_gpu *g, const struct sim_setup *setup) {
	g->gpu.wake = setup->overhead;
	g->gpu.back = 0;
}

/* Where steer has the tasks without their profiles, by what was seen so far. */
static void place_shared(struct shared_gpu *g, const struct sim_setup *setup) {
	struct plan_task tasks[MODEL_TASKS_MAX];
	struct terms terms[MODEL_TASKS_MAX];
	nsec_t deadlines[MODEL_TASKS_MAX];
	bool fits;

	for (unsigned i = 0; i < g->n; i++) {
		deadlines[i] = g->tasks[i].deadline;
		tasks[i] = (struct plan_task){
			.model = {.period = g->tasks[i].period, .deadline = deadlines[i]}};
		terms[i] = (struct terms){.steered = true};
	}
	plan_rule(&g->cut, tasks, g->n, terms);
	if (g->share.n > 0) {
		share_apply(&g->share, deadlines, g->cut.group, terms);
	}
	fits = plan_places(&g->cut, terms, g->n, &g->gpu, g->places);
	assert(fits);
	(void)fits;
	set_host(g, setup);
}

static int push_look(struct sim *s, const struct shared_gpu *g) {
	const struct shared *shared = s->arbiter_state;

	return event_push(&s->events, (struct event){.at = s->now + g->pause,
						     .kind = EVENT_LOOK,
						     .index = (uint32_t)(g - shared->gpus)});
}

static int look(struct sim *s, struct shared_gpu *g) {
	const struct shared *shared = s->arbiter_state;
	bool busy = false;
	int r = 0;

	for (unsigned i = 0; i < g->n; i++) {
		g->seen[i].deadline = g->tasks[i].deadline;
		g->seen[i].busy = shared->lines[g->index[i]].first != NONE;
		busy |= g->seen[i].busy || g->seen[i].jobs > 0;
	}
	if (share_look(&g->share, g->seen, g->pause)) {
		place_shared(g, s->setup);
		model_moved(&g->model, s->now);
		r = advance(s, g);
	}
	memset(g->seen, 0, sizeof(g->seen));
	g->pause = share_pause(g->pause, busy);
	r = r < 0 ? r : push_look(s, g);
	return r < 0 ? r : push_next(s, g);
}

static int shared_happen(struct sim *s, const struct event *event) {
	struct shared *shared = s->arbiter_state;
	struct shared_gpu *g = &shared->gpus[event->index];
	int r = 0;

	if (event->kind == EVENT_LOOK) {
		return look(s, g);
	}
	if (event->at != g->pending) {
		return 0; /* something sooner came up after it was pushed */
	}
	g->pending = NEVER;
	if (model_next(&g->model) == s->now) {
		r = advance(s, g);
	}
	return r < 0 ? r : push_next(s, g);
}

static bool begin_jobs(struct sim *s, struct shared_gpu *g) {
	struct shared *shared = s->arbiter_state;
	bool any = false;

	for (unsigned i = 0; i < g->n; i++) {
		const struct sched_task *task = &s->setup->tasks[g->index[i]];
		struct line *line = &shared->lines[g->index[i]];
		const struct sim_job *job;

		if (line->open || line->first == NONE) {
			continue;
		}
		job = &s->jobs[line->first];
		line->open = any = true;
		/* Whoever begins late has woken up long ago. */
		model_begin(&g->model, i, s->now, job->release,
			    s->now == job->release ? s->setup->overhead : 0,
			    share_of(s, task->profiles[line->gpu], job));
	}
	return any;
}

static int shared_decide(struct sim *s) {
	struct shared *shared = s->arbiter_state;
	int r = 0;

	for (size_t k = 0; r == 0 && k < s->setup->n_gpus; k++) {
		struct shared_gpu *g = &shared->gpus[k];

		/* A job that ends at once lets the next one begin. */
		while (r == 0 && begin_jobs(s, g)) {
			r = advance(s, g);
		}
		r = r < 0 ? r : push_next(s, g);
	}
	return r;
}

/* ---- setting up ---- */

static int place_task(struct sim *s, size_t index) {
	const struct sched_task *task = &s->setup->tasks[index];
	struct shared *shared = s->arbiter_state;
	struct line *line = &shared->lines[index];
	const struct profile_table *p;
	struct shared_gpu *g;
	struct model_task *t;
	unsigned gpu = 0;

	if (task->fixed_gpu >= 0) {
		gpu = (unsigned)task->fixed_gpu;
	}
	while (task->fixed_gpu < 0 && gpu < s->setup->n_gpus && !task->profiles[gpu]) {
		gpu++;
	}
	if (gpu >= s->setup->n_gpus || !task->profiles[gpu]) {
		return -EINVAL;
	}
	g = &shared->gpus[gpu];
	if (g->n == MODEL_TASKS_MAX) {
		return -EUSERS;
	}
	*line = (struct line){.gpu = gpu, .place = g->n, .first = NONE, .last = NONE};
	p = task->profiles[gpu];
	for (unsigned m = 1; m <= s->setup->gpus[gpu].power.n_sms; m++) {
		g->kernels[g->n][m] = profile_exec(p, m);
	}
	g->index[g->n] = index;
	t = &g->tasks[g->n];
	*t = (struct model_task){
		.period = task->period,
		.deadline = task->deadline,
		.copy_in = p->copy_in,
		.copy_out = p->copy_out,
		.launches = p->launches,
		.block = p->block ? p->block : p->exec[p->n_sms] / p->launches,
		.kernels = g->kernels[g->n],
	};
	/* Launches that are shorter than the gap have less of one. */
	t->gap = p->exec[p->n_sms] / p->launches / 2;
	t->gap = t->gap < LAUNCH_GAP ? t->gap : LAUNCH_GAP;
	g->n++;
	return 0;
}

/* Everybody everywhere. */
static void share(struct shared_gpu *g, const struct sim_setup *setup, unsigned n_sms) {
	unsigned cap = setup->cap_percent ? n_sms * setup->cap_percent / 100 : 0;

	g->gpu = (struct model_gpu){.sms = {n_sms, 0}};
	for (unsigned i = 0; i < g->n; i++) {
		g->places[i] = (struct model_place){
			.regions = {true, false},
			.level = setup->terms == SIM_TERMS_LEVELS ? model_level(g->tasks, g->n, i)
								  : 0,
			.most_sms = setup->cap_percent && cap == 0 ? 1 : cap,
		};
	}
}

static struct plan_gpu cut_of(const struct sched_gpu_model *model) {
	return (struct plan_gpu){
		.sms = model->power.n_sms,
		.group = sched_n_groups(model) > 0 ? model->step : 1,
	};
}

/* As sbeetd begins where nobody has profiled the tasks. Programs without a deadline get more only
 * beside some that have one. */
static int begin_sharing(struct sim *s, struct shared_gpu *g, const struct sched_gpu_model *model) {
	unsigned urgent = 0;

	g->cut = cut_of(model);
	g->cut.gates = s->setup->params.yield;
	g->cut.guards = s->setup->params.guard;
	for (unsigned i = 0; i < g->n; i++) {
		urgent += g->tasks[i].deadline > 0;
	}
	if (urgent > 0 && urgent < g->n && terms_groups(g->cut.sms, g->cut.group) >= 2) {
		share_start(&g->share, g->n, &g->cut);
	}
	place_shared(g, s->setup);
	g->pause = share_pause(0, true);
	return g->share.n > 0 ? push_look(s, g) : 0;
}

/* Each task where the policy steer would have it. */
static void steer(struct shared_gpu *g, const struct sched_gpu_model *model,
		  const struct sim_setup *setup) {
	struct plan_gpu cut = cut_of(model);
	struct plan_task tasks[MODEL_TASKS_MAX];
	struct plan plan;
	bool fits;

	cut.gates = setup->params.yield;
	cut.guards = setup->params.guard;
	for (unsigned i = 0; i < g->n; i++) {
		tasks[i] = (struct plan_task){.model = g->tasks[i], .known = true};
	}
	plan_make(&cut, tasks, g->n, PLAN_WHOLE, 0, NULL, &plan);
	fits = plan_places(&cut, plan.terms, g->n, &g->gpu, g->places);
	assert(fits);
	(void)fits;
	set_host(g, setup);
}

static int shared_open(struct sim *s) {
	const struct sim_setup *setup = s->setup;
	struct shared *shared = calloc(1, sizeof(*shared));
	int r = 0;

	if (!shared) {
		return -ENOMEM;
	}
	s->arbiter_state = shared;
	shared->free = NONE;
	shared->gpus = calloc(setup->n_gpus, sizeof(*shared->gpus));
	shared->lines = calloc(setup->n_tasks + 1, sizeof(*shared->lines));
	shared->next = calloc(s->max_jobs, sizeof(*shared->next));
	if (!shared->gpus || !shared->lines || !shared->next) {
		return -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < setup->n_tasks; i++) {
		r = place_task(s, i);
	}
	for (size_t k = 0; r == 0 && k < setup->n_gpus; k++) {
		struct shared_gpu *g = &shared->gpus[k];

		g->pending = NEVER;
		if (setup->terms == SIM_TERMS_PLANNED && g->n > 0) {
			steer(g, &setup->gpus[k], setup);
		} else if (setup->terms == SIM_TERMS_SHARED && g->n > 0) {
			r = begin_sharing(s, g, &setup->gpus[k]);
		} else {
			share(g, setup, setup->gpus[k].power.n_sms);
		}
		model_init(&g->model, &g->gpu, g->tasks, g->places, g->n);
	}
	return r;
}

static void shared_close(void *state) {
	struct shared *shared = state;

	if (shared) {
		free(shared->gpus);
		free(shared->lines);
		free(shared->next);
		free(shared);
	}
}

/* ---- at boundaries, and at the end ---- */

static void add_double(struct cycle *c, double value) {
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	cycle_add(c, bits);
}

static void describe_task(struct sim *s, const struct shared_gpu *g, unsigned i, nsec_t at) {
	const struct shared *shared = s->arbiter_state;
	const struct model_job *job = &g->model.jobs[i];
	struct cycle *c = &s->cycle;

	cycle_add(c, job->phase);
	for (uint32_t id = shared->lines[g->index[i]].first; id != NONE; id = shared->next[id]) {
		boundary_add_job(s, id, at);
	}
	if (job->phase == MODEL_IDLE) {
		return;
	}
	cycle_add(c, job->next == NEVER ? NEVER : job->next - at);
	cycle_add(c, job->wants - at);
	cycle_add(c, job->kernel);
	add_double(c, job->share);
	cycle_add(c, job->copy_left);
	cycle_add(c, g->model.copying[0] == job);
	cycle_add(c, g->model.copying[1] == job);
	if (job->phase == MODEL_QUEUED || job->phase == MODEL_RUNNING) {
		add_double(c, job->left);
		cycle_add(c, job->since - at);
	}
	if (job->phase == MODEL_RUNNING) {
		cycle_add(c, job->began - at);
		for (size_t w = 0; w < sizeof(g->sms[i].words) / sizeof(g->sms[i].words[0]); w++) {
			cycle_add(c, g->sms[i].words[w]);
		}
	}
}

static int shared_describe(struct sim *s, nsec_t at) {
	const struct shared *shared = s->arbiter_state;

	for (size_t k = 0; k < s->setup->n_gpus; k++) {
		if (shared->gpus[k].share.n > 0) {
			cycle_add(&s->cycle, at); /* what was seen is never quite the same */
		}
		for (unsigned i = 0; i < shared->gpus[k].n; i++) {
			if (!sim_task_is_over(s, shared->gpus[k].index[i])) {
				describe_task(s, &shared->gpus[k], i, at);
			}
		}
	}
	return 0;
}

static void shared_conclude(struct sim *s) {
	const struct shared *shared = s->arbiter_state;

	for (size_t k = 0; k < s->setup->n_gpus; k++) {
		const struct shared_gpu *g = &shared->gpus[k];

		for (unsigned i = 0; i < g->n; i++) {
			segment_ends(s, g, i);
			s->result.tasks[g->index[i]].home = (int)k;
		}
	}
}

const struct sim_arbiter sim_shared = {
	.open = shared_open,
	.close = shared_close,
	.arrive = shared_arrive,
	.drop = shared_drop,
	.happen = shared_happen,
	.decide = shared_decide,
	.describe = shared_describe,
	.conclude = shared_conclude,
};
