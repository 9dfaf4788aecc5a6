/*
 * bench-settle.c DATA [FIRST [SETS [BESIDE [THREADS [SLOWER]]]]]: how many jobs are late from the
 * moment that programs start, until steer has settled, and then.
 *
 * A GPU that is the model (core/steer/model.h), but on which kernels take BESIDE (1.4) times as
 * long while others run, and SLOWER (1) times as long at all times, which those who plan do not
 * know. Random sets of six of the evaluation's works (DATA: tests/gpu/evaluation; Table 3.5), SETS
 * (20) for each utilisation, of seeds from FIRST (1) on, run for 17 s each: under MPS alone, under
 * stream priorities by deadline, and under steer as sbeetd closes its loop (session/planning.c):
 * tune.h judges, and plans come as long after they were asked for as the planner
 * (session/planner.h) needs with THREADS (4) on a machine with work to do. A JSON line for each
 * set, and their sums: late jobs in the first 5 s, in the window of 4 to 7 s, and of 14 to 17 s;
 * and in that last window the tasks of which a fifth more is late than under MPS alone.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/steer/tune.h"
#include "tests/bench/measured.h"

#define TASKS 6
#define NEVER UINT64_MAX

/* Of one task (Table 3.5). */
#define U_MIN 0.01
#define U_MAX 0.5

#define WINDOW	   (2 * NSEC_PER_SEC) /* --steer-window */
#define SEEN_MIN   3		      /* jobs after which a task is known */
#define WORSE_PART 0.2

/* What a search takes, and how many whole ones there are. */
static const nsec_t search_time[] = {
	[PLAN_QUICK] = NSEC_PER_SEC / 2,
	[PLAN_MEDIUM] = NSEC_PER_SEC,
	[PLAN_WHOLE] = 2 * NSEC_PER_SEC,
};
#define N_WHOLE 8

static const nsec_t parts[][2] = {{0, 5 * NSEC_PER_SEC},
				  {4 * NSEC_PER_SEC, 7 * NSEC_PER_SEC},
				  {14 * NSEC_PER_SEC, 17 * NSEC_PER_SEC}};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))
#define END	(17 * NSEC_PER_SEC)

enum column {
	COLUMN_MPS,
	COLUMN_LEVELS,
	COLUMN_STEER,
	_COLUMN_N,
};

static const char *const column_names[] = {
	[COLUMN_MPS] = "mps", [COLUMN_LEVELS] = "mps-level", [COLUMN_STEER] = "steer"};

/* ---- the world ---- */

struct world {
	struct model model;
	struct model_gpu gpu;
	struct model_task tasks[TASKS]; /* as they are */
	nsec_t kernels[TASKS][PROTO_SMS_MAX + 1];
	struct model_place places[TASKS];
	nsec_t releases[TASKS]; /* of the open job, or of the next one */
	nsec_t begins[TASKS];	/* the next one; NEVER: one is open */
	struct seen seen[TASKS];
	uint64_t late[N_PARTS], jobs[N_PARTS];
	uint64_t task_late[TASKS], task_jobs[TASKS]; /* in the last part */
	uint64_t random;
};

static double draw(uint64_t *random) {
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(*random >> 33) + 1) / 2147483649.0;
}

/* What the GPU does that those who plan do not know. */
struct unknown {
	double beside, slower;
};

static void world_init(struct world *w, const struct plan_task *known, const struct unknown *u,
		       uint64_t seed) {
	memset(w, 0, sizeof(*w));
	w->random = seed;
	for (unsigned i = 0; i < TASKS; i++) {
		w->tasks[i] = known[i].model;
		w->tasks[i].beside = u->beside;
		w->tasks[i].block = (nsec_t)((double)w->tasks[i].block * u->slower);
		w->tasks[i].kernels = w->kernels[i];
		for (unsigned m = 1; m <= MEASURED_SMS; m++) {
			w->kernels[i][m] = (nsec_t)((double)known[i].model.kernels[m] * u->slower);
		}
		w->releases[i] = w->begins[i] =
			1 + (nsec_t)(draw(&w->random) * (double)known[i].model.period / 2);
	}
}

static void world_place(struct world *w, const struct terms *terms) {
	if (!plan_places(&measured_gpu, terms, TASKS, &w->gpu, w->places)) {
		fprintf(stderr, "terms of another form\n");
		exit(1);
	}
}

static void job_begins(struct world *w, unsigned i, nsec_t now) {
	nsec_t wake = 0;

	if (w->releases[i] == now) {
		wake = PLAN_WAKE_MIN +
		       (nsec_t)(draw(&w->random) * (double)(PLAN_WAKE_MAX - PLAN_WAKE_MIN));
	}
	w->begins[i] = NEVER;
	model_begin(&w->model, i, now, w->releases[i], wake, 1);
}

static void job_ends(struct world *w, unsigned i, nsec_t now) {
	nsec_t response = now - w->releases[i];
	bool late = response > w->tasks[i].deadline;

	w->seen[i].jobs++;
	w->seen[i].missed += late;
	w->seen[i].response += response;
	for (unsigned k = 0; k < N_PARTS; k++) {
		if (now >= parts[k][0] && now < parts[k][1]) {
			w->jobs[k]++;
			w->late[k] += late;
			w->task_jobs[i] += k == N_PARTS - 1;
			w->task_late[i] += k == N_PARTS - 1 && late;
		}
	}
	w->releases[i] += w->tasks[i].period;
	w->begins[i] = w->releases[i] > now ? w->releases[i] : now;
}

static nsec_t world_next(const struct world *w) {
	nsec_t next = model_next(&w->model);

	for (unsigned i = 0; i < TASKS; i++) {
		next = w->begins[i] < next ? w->begins[i] : next;
	}
	return next;
}

static void world_run(struct world *w, nsec_t until) {
	for (nsec_t now = world_next(w); now < until; now = world_next(w)) {
		uint32_t ended;

		for (unsigned i = 0; i < TASKS; i++) {
			if (w->begins[i] == now) {
				job_begins(w, i, now);
			}
		}
		ended = model_advance(&w->model, now);
		for (unsigned i = 0; i < TASKS; i++) {
			if (ended & 1u << i) {
				job_ends(w, i, now);
			}
		}
	}
}

/* ---- the loop, as in session/planning.c ---- */

struct loop {
	struct world *world;
	const struct plan_task *known;
	struct tune tune;
	nsec_t now, since, judge_at, plan_at;
	struct plan plan; /* what comes at plan_at */
	unsigned threads, n_searched;
	enum plan_effort effort; /* of `plan` */
	struct seen before[TASKS];
	nsec_t times[MODEL_TASKS_MAX][PROTO_SMS_MAX + 1];
	struct plan_task asked[TASKS];
	unsigned n_plans, n_tries;
};

/* Releases that have passed and whose jobs come next. */
static uint64_t waiting(const struct world *w, unsigned i, nsec_t now) {
	return w->begins[i] == NEVER ? (now - w->releases[i]) / w->tasks[i].period : 0;
}

/* What they have done by now. */
static void see(const struct loop *l, struct seen *seen) {
	memcpy(seen, l->world->seen, sizeof(l->world->seen));
	for (unsigned i = 0; i < TASKS; i++) {
		seen[i].waiting = waiting(l->world, i, l->now);
		seen[i].behind = (int64_t)seen[i].waiting;
	}
}

static void write_way(struct loop *l) {
	struct world *w = l->world;

	l->since = l->now;
	see(l, l->before);
	l->judge_at = l->now + tune_step(&l->tune);
	world_place(w, tune_way(&l->tune)->terms);
	model_moved(&w->model, l->now);
	model_advance(&w->model, l->now);
}

/* The best of the next searches, one in each thread, if that is better than the ones before. */
static void search_on(struct loop *l) {
	static struct plan plan;
	nsec_t after = 0;

	while (l->plan_at == NEVER && l->n_searched < 2 * l->threads + N_WHOLE) {
		unsigned stage = l->n_searched / l->threads;
		enum plan_effort effort = stage < 2 ? (enum plan_effort)stage : PLAN_WHOLE;

		after += search_time[effort];
		for (unsigned i = 0; i < l->threads; i++) {
			unsigned which = l->n_searched++;

			plan_make(&measured_gpu, l->asked, TASKS, effort, which, NULL, &plan);
			if (which == 0 ||
			    plan_is_better(effort, plan.badness, l->effort, l->plan.badness)) {
				l->plan = plan;
				l->effort = effort;
				l->plan_at = l->now + after;
			}
		}
	}
}

static void ask(struct loop *l) {
	l->n_plans++;
	memcpy(l->asked, l->known, sizeof(l->asked));
	tune_apply(&l->tune, l->asked, MEASURED_SMS, l->times);
	l->n_searched = 0;
	l->plan_at = NEVER;
	search_on(l);
}

/* What they did since then, and under these terms. */
static void see_since(const struct loop *l, struct seen *seen) {
	see(l, seen);
	for (unsigned i = 0; i < TASKS; i++) {
		seen[i] = seen_since(&seen[i], &l->before[i]);
	}
}

static void on_planned(struct loop *l) {
	struct seen seen[TASKS];

	l->plan_at = NEVER;
	see_since(l, seen);
	if (tune_plan(&l->tune, &l->plan, seen, l->now - l->since)) {
		write_way(l);
	} else if (l->judge_at == NEVER) {
		l->judge_at = l->now + tune_step(&l->tune);
	}
	if (!l->plan.is_whole || l->plan.badness >= 1) {
		search_on(l);
	}
}

static void judge(struct loop *l) {
	struct seen seen[TASKS];
	enum tune_action action;
	bool asks;

	see_since(l, seen);
	action = tune_judge(&l->tune, seen, l->now - l->since, &asks);
	l->judge_at = l->now + tune_step(&l->tune);
	if (asks) {
		ask(l);
	}
	l->n_tries += action == TUNE_TRY;
	if (action == TUNE_TRY || action == TUNE_BACK) {
		write_way(l);
	}
}

static bool all_are_known(const struct world *w) {
	for (unsigned i = 0; i < TASKS; i++) {
		if (w->seen[i].jobs < SEEN_MIN) {
			return false;
		}
	}
	return true;
}

static void run_steer(struct loop *l) {
	struct plan_task unknown[TASKS];
	struct terms terms[TASKS];

	for (unsigned i = 0; i < TASKS; i++) {
		unknown[i] = (struct plan_task){.model = {.period = l->known[i].model.period,
							  .deadline = l->known[i].model.deadline}};
	}
	plan_rule(&measured_gpu, unknown, TASKS, terms);
	world_place(l->world, terms);
	model_init(&l->world->model, &l->world->gpu, l->world->tasks, l->world->places, TASKS);
	tune_start(&l->tune, TASKS, WINDOW);
	l->judge_at = l->plan_at = NEVER;
	while (!all_are_known(l->world) && l->now < END) {
		l->now += 10 * NSEC_PER_MSEC;
		world_run(l->world, l->now);
	}
	plan_rule(&measured_gpu, l->known, TASKS, terms);
	world_place(l->world, terms);
	model_moved(&l->world->model, l->now);
	tune_rule(&l->tune, terms);
	l->since = l->now;
	see(l, l->before);
	ask(l);
	while (l->now < END) {
		nsec_t next = l->judge_at < l->plan_at ? l->judge_at : l->plan_at;

		l->now = next < END ? next : END;
		world_run(l->world, l->now);
		if (l->now == l->plan_at) {
			on_planned(l);
		}
		if (l->now == l->judge_at) {
			judge(l);
		}
	}
}

static void run_mps(struct world *w, bool levels) {
	struct terms terms[TASKS];

	for (unsigned i = 0; i < TASKS; i++) {
		terms[i] = (struct terms){.steered = true,
					  .level = levels ? model_level(w->tasks, TASKS, i) : 0};
	}
	world_place(w, terms);
	model_init(&w->model, &w->gpu, w->tasks, w->places, TASKS);
	world_run(w, END);
}

/* ---- the sets ---- */

/* Utilisations by UUniFast, each between U_MIN and U_MAX; periods by the mean time over the numbers
 * of SMs that were measured; deadlines of half a period. */
static void draw_set(double u, uint64_t seed, struct plan_task *ret) {
	uint64_t random = seed * 7919 + (uint64_t)(u * 10);
	double us[TASKS];
	bool fits = false;

	for (unsigned i = 0; i < 8; i++) {
		draw(&random);
	}
	while (!fits) {
		double left = u;

		fits = true;
		for (unsigned i = 0; i < TASKS; i++) {
			double next = i + 1 < TASKS
					      ? left * pow(draw(&random), 1.0 / (TASKS - i - 1))
					      : 0;

			us[i] = left - next;
			left = next;
			fits &= us[i] >= U_MIN && us[i] <= U_MAX;
		}
	}
	for (unsigned i = 0; i < TASKS; i++) {
		size_t work = (size_t)(draw(&random) * MEASURED_WORKS) % MEASURED_WORKS;
		const struct profile_table *p = measured_profile(work);
		double mean = 0;
		nsec_t period;

		for (unsigned m = 16; m <= MEASURED_SMS; m += 16) {
			mean += (double)(p->exec[m] + p->copy_in + p->copy_out);
		}
		mean /= MEASURED_SMS / 16;
		period = (nsec_t)(mean / us[i]);
		ret[i] = measured_task(work, period, period / 2);
	}
}

/* What is counted of one set, or of all. */
struct counts {
	uint64_t late[_COLUMN_N][N_PARTS], jobs[N_PARTS];
	unsigned worse[_COLUMN_N]; /* tasks */
};

static void print(const char *set, double u, const struct counts *counts) {
	const uint64_t *jobs = counts->jobs;

	printf("{\"bench\": \"settle\", \"set\": \"%s\", \"u\": %.1f, \"jobs\": [%" PRIu64
	       ", %" PRIu64 ", %" PRIu64 "]",
	       set, u, jobs[0], jobs[1], jobs[2]);
	for (unsigned c = 0; c < _COLUMN_N; c++) {
		const uint64_t *late = counts->late[c];

		printf(", \"%s\": [%" PRIu64 ", %" PRIu64 ", %" PRIu64 "], \"%s worse\": %u",
		       column_names[c], late[0], late[1], late[2], column_names[c],
		       counts->worse[c]);
	}
	printf("}\n");
	fflush(stdout);
}

static void add_counts(struct counts *sum, const struct counts *one) {
	for (unsigned k = 0; k < N_PARTS; k++) {
		sum->jobs[k] += one->jobs[k];
		for (unsigned c = 0; c < _COLUMN_N; c++) {
			sum->late[c][k] += one->late[c][k];
		}
	}
	for (unsigned c = 0; c < _COLUMN_N; c++) {
		sum->worse[c] += one->worse[c];
	}
}

static void run_set(double u, uint64_t seed, const struct unknown *unknown, unsigned threads,
		    struct counts *sum) {
	static struct loop loop;
	static struct world w;
	struct plan_task tasks[TASKS];
	char name[32];
	double mps[TASKS];
	struct counts one = {0};

	draw_set(u, seed, tasks);
	for (unsigned c = 0; c < _COLUMN_N; c++) {
		world_init(&w, tasks, unknown, seed);
		if (c == COLUMN_STEER) {
			memset(&loop, 0, sizeof(loop));
			loop.world = &w;
			loop.known = tasks;
			loop.threads = threads;
			run_steer(&loop);
		} else {
			run_mps(&w, c == COLUMN_LEVELS);
		}
		memcpy(one.late[c], w.late, sizeof(w.late));
		memcpy(one.jobs, w.jobs, sizeof(w.jobs));
		for (unsigned i = 0; i < TASKS; i++) {
			double part = w.task_jobs[i] ? (double)w.task_late[i] / w.task_jobs[i] : 0;

			mps[i] = c == COLUMN_MPS ? part : mps[i];
			one.worse[c] += part > mps[i] + WORSE_PART;
		}
	}
	snprintf(name, sizeof(name), "%" PRIu64, seed);
	print(name, u, &one);
	add_counts(sum, &one);
	fprintf(stderr, "set %s u %.1f: %u plans, %u tries\n", name, u, loop.n_plans, loop.n_tries);
}

int main(int argc, char **argv) {
	static const double us[] = {1.2, 1.6, 2.0};
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 10) : 20;
	const struct unknown unknown = {
		.beside = argc > 4 ? strtod(argv[4], NULL) : 1.4,
		.slower = argc > 6 ? strtod(argv[6], NULL) : 1,
	};
	unsigned threads = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 4;

	if (argc < 2) {
		fprintf(stderr,
			"usage: bench-settle DATA [FIRST [SETS [BESIDE [THREADS [SLOWER]]]]]\n");
		return 2;
	}
	measured_read(argv[1]);
	for (size_t k = 0; k < sizeof(us) / sizeof(us[0]); k++) {
		struct counts sum = {0};

		for (uint64_t seed = first; seed < first + n; seed++) {
			run_set(us[k], seed, &unknown, threads, &sum);
		}
		print("all", us[k], &sum);
	}
	return 0;
}
