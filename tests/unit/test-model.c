/*
 * test-model.c: the model of a shared GPU against an H200: what was measured there with known tasks
 * (tests/gpu/evaluation).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/profile.h"
#include "tests/unit/steer-tasks.h"

static const struct {
	const char *name;
	unsigned launches, waves; /* of all SMs, of each launch */
} works[] = {
	{"vecadd", 20, 15},  {"stream", 400, 4},  {"matmul", 3, 4},  {"matmul-small", 6, 1},
	{"hotspot", 101, 4}, {"histogram", 4, 1}, {"compute", 8, 2}, {"compute-long", 24, 2},
};
#define N_WORKS (sizeof(works) / sizeof(works[0]))

static struct profile_table profiles[N_WORKS];

static size_t work_of(const char *name) {
	size_t i = 0;

	while (i < N_WORKS && strcmp(works[i].name, name) != 0) {
		i++;
	}
	assert_true(i < N_WORKS);
	return i;
}

static FILE *open_data(const char *name) {
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", getenv("SBEET_EVALUATION"), name);
	f = fopen(path, "re");
	assert_non_null(f);
	return f;
}

static int read_profiles(void **state) {
	uint64_t copy_in, best, worst, copy_out;
	FILE *f = open_data("measured.txt");
	char name[64];
	unsigned sms;

	(void)state;
	while (fscanf(f, "%63s %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %*f", name, &sms,
		      &copy_in, &best, &worst, &copy_out) == 6) {
		struct profile_table *p = &profiles[work_of(name)];

		if (p->n_sms == 0) {
			assert_int_equal(profile_table_init(p, SMS, copy_in, copy_out), 0);
		}
		p->copy_in = copy_in; /* on all SMs at last, as it was measured last */
		p->copy_out = copy_out;
		assert_int_equal(profile_table_set(p, sms, best, best, 1), 0);
	}
	fclose(f);
	for (size_t i = 0; i < N_WORKS; i++) {
		assert_int_equal(profile_table_finish(&profiles[i]), 0);
	}
	return 0;
}

struct cell {
	char column[32], set[32];
	struct plan_task tasks[8];
	struct terms terms[8];
	unsigned n, missed;
};

static bool read_line(FILE *f, struct cell *c, unsigned *missed) {
	char line[512], work[32], groups[32], copies[32];
	struct plan_task *t = &c->tasks[0];
	unsigned first, last;
	const struct profile_table *p;
	size_t w;

	do {
		if (!fgets(line, sizeof(line), f)) {
			return false;
		}
	} while (line[0] == '#');
	*c = (struct cell){.n = 0};
	assert_int_equal(sscanf(line, "%31s %31s %31s %" SCNu64 " %" SCNu64 " %31s %31s %*u %u",
				c->column, c->set, work, &t->model.period, &t->model.deadline,
				groups, copies, missed),
			 8);
	w = work_of(work);
	p = &profiles[w];
	t->known = true;
	t->model.copy_in = p->copy_in;
	t->model.copy_out = p->copy_out;
	t->model.launches = works[w].launches;
	t->model.kernels = p->exec;
	t->model.block = p->exec[SMS] / works[w].launches / works[w].waves;
	t->model.gap = 2500;
	c->terms[0] = (struct terms){.steered = true};
	c->terms[0].copies = strcmp(copies, "held") == 0 ? TERMS_COPIES_HELD : TERMS_COPIES_WHOLE;
	if (sscanf(groups, "%u-%u", &first, &last) == 2) {
		/* The driver's cut in that run counted what is left over as group 16. */
		last = last == 16 ? terms_groups(SMS, GROUP) - 1 : last;
		c->terms[0].first = first;
		c->terms[0].n = last - first + 1;
		c->terms[0].group = GROUP;
	}
	return true;
}

/* Sums over the task sets of @column; those are whole lines of the file, one after the other. */
static void sum_column(const char *column, double *ret_predicted, double *ret_measured) {
	FILE *f = open_data("terms.txt");
	struct cell one, cell = {.n = 0};
	unsigned missed;
	bool more;

	*ret_predicted = *ret_measured = 0;
	do {
		more = read_line(f, &one, &missed);
		if (cell.n > 0 && (!more || strcmp(one.set, cell.set) != 0 ||
				   strcmp(one.column, cell.column) != 0)) {
			struct model_result r[MODEL_TASKS_MAX];
			double released = 0, late = 0;

			assert_true(plan_predict(&h200, cell.tasks, cell.terms, cell.n, r));
			for (unsigned i = 0; i < cell.n; i++) {
				released = (double)r[i].released;
				late += released > 0 ? r[i].missed / released * 2e9 /
							       (double)cell.tasks[i].model.period
						     : 0;
			}
			print_message("%s %s: predicted %.0f, measured %u\n", cell.column, cell.set,
				      late, cell.missed);
			*ret_predicted += late;
			*ret_measured += cell.missed;
			cell.n = cell.missed = 0;
		}
		if (more && strcmp(one.column, column) == 0) {
			strcpy(cell.column, one.column);
			strcpy(cell.set, one.set);
			cell.tasks[cell.n] = one.tasks[0];
			cell.terms[cell.n++] = one.terms[0];
			cell.missed += missed;
		}
	} while (more);
	fclose(f);
	assert_true(*ret_measured > 0);
}

/* Jobs that are late in 2 s, of all task sets, if every program has at most half of the SMs. */
static double predict_capped(void) {
	static const struct model_wake wake = {80 * NSEC_PER_USEC, 130 * NSEC_PER_USEC};
	const struct model_gpu gpu = {.sms = {SMS, 0}, .back = 20 * NSEC_PER_USEC};
	struct model_place places[MODEL_TASKS_MAX];
	struct model_result results[MODEL_TASKS_MAX];
	struct model_task tasks[8];
	FILE *f = open_data("terms.txt");
	struct cell one, cell = {.n = 0};
	unsigned missed, late = 0;
	bool more;

	for (unsigned i = 0; i < MODEL_TASKS_MAX; i++) {
		places[i] = (struct model_place){.regions = {true, false}, .most_sms = SMS / 2};
	}
	do {
		more = read_line(f, &one, &missed);
		if (cell.n > 0 && (!more || strcmp(one.set, cell.set) != 0)) {
			model_run(&gpu, &wake, tasks, places, cell.n, 2 * NSEC_PER_SEC, 1, NULL,
				  results);
			for (unsigned i = 0; i < cell.n; i++) {
				late += results[i].missed;
			}
			cell.n = 0;
		}
		if (more && strcmp(one.column, "mps") == 0) {
			strcpy(cell.set, one.set);
			tasks[cell.n++] = one.tasks[0].model;
		}
	} while (more);
	fclose(f);
	return late;
}

static void a_cap_is_near_what_was_measured(void **state) {
	double predicted = predict_capped(), measured = 0;
	FILE *f = open_data("capped.txt");
	char line[512];
	unsigned missed;

	(void)state;
	while (fgets(line, sizeof(line), f)) {
		if (line[0] != '#') {
			assert_int_equal(sscanf(line, "mps-50 %*s %u", &missed), 1);
			measured += missed;
		}
	}
	fclose(f);
	print_message("mps-50: %.0f predicted, %.0f measured\n", predicted, measured);
	assert_true(measured > 0);
	assert_true(predicted > measured * 2 / 3 && predicted < measured * 4 / 3);
}

static void predictions_are_near_what_was_measured(void **state) {
	static const char *const columns[] = {"mps", "own"};
	double predicted, measured;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		sum_column(columns[i], &predicted, &measured);
		print_message("%s: %.0f predicted, %.0f measured\n", columns[i], predicted,
			      measured);
		assert_true(predicted > measured * 2 / 3 && predicted < measured * 4 / 3);
	}
	/* Which of two ways is better is what plans need most. */
	sum_column("planh-held", &predicted, &measured);
	print_message("planh-held: %.0f predicted, %.0f measured\n", predicted, measured);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(predictions_are_near_what_was_measured, read_profiles),
		cmocka_unit_test(a_cap_is_near_what_was_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
