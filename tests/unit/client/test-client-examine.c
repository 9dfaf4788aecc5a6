/*
 * test-client-examine.c: what is made of a GPU's blocks: which rules hold, how programs share it;
 * and the experiments that come as files.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/examine/examiner.h"
#include "client/examine/rules.h"
#include "client/examine/study.h"

#define MS	  NSEC_PER_MSEC
#define TOLERANCE (50 * MS)

static const struct experiment_gpu tx2 = {.sms = 2,
					  .sm_threads = 2048,
					  .sm_shared = 64 * 1024,
					  .block_shared_max = 48 * 1024,
					  .copy_in_bytes_per_s = 1e9,
					  .copy_out_bytes_per_s = 1e9,
					  .rounds_per_s = 1e6,
					  .priority_high = -1};

/* What the paper says came out (Figures 3 to 10), in ms: kernels and blocks as "NAME SM START END",
 * copies without an SM. */
static const char *const logs[] = {
	"K1 0 0 1000,K1 1 0 1000,K1 0 0 1000,K1 1 0 1000,K1 0 1000 2000,K1 1 1000 2000,"
	"K4 0 1000 2000,K4 1 1000 2000,K4 0 1000 2000,K4 1 1000 2000,K5 0 2000 3000,K5 1 2000 3000,"
	"K2 0 2000 3000,K2 1 2000 3000,C5o - 3000 3200,C2o - 3200 3400,C3i - 3400 3600,"
	"K6 0 2800 3800,K6 1 2800 3800,C6o - 3800 4000,K3 0 3600 4600,K3 1 3600 4600,C3o - 4600 "
	"4800",
	"K1 0 0 1000,K1 1 0 1000,K1 0 0 1000,K1 1 0 1000,K1 0 1000 2000,K1 1 1000 2000,"
	"K2 0 2000 3000,K3 0 3000 4000,K3 1 3000 4000,K3 0 3000 4000,K3 1 3000 4000,K4 0 4000 5000,"
	"K4 1 4000 5000,K4 0 4000 5000,K4 1 4000 5000,K5 0 5000 6000,K6 0 6000 7000,K6 1 6000 7000",
	"K1 0 0 500,K1 1 0 500,K1 0 0 500,K1 1 0 500,"
	"K2 0 500 1000,K2 1 500 1000,K2 0 500 1000,K2 1 500 1000,"
	"K2 0 1000 1500,K2 1 1000 1500,K2 0 1000 1500,K2 1 1000 1500,"
	"K2 0 1500 2000,K2 1 1500 2000,K2 0 1500 2000,K2 1 1500 2000,"
	"K2 0 2000 2500,K2 1 2000 2500,K2 0 2000 2500,K2 1 2000 2500,"
	"K3 0 2500 3000,K3 1 2500 3000,K3 0 2500 3000,K3 1 2500 3000,"
	"K3 0 3000 3500,K3 1 3000 3500,K3 0 3000 3500,K3 1 3000 3500,"
	"K3 0 3500 4000,K3 1 3500 4000,K3 0 3500 4000,K3 1 3500 4000,"
	"K3 0 4000 4500,K3 1 4000 4500,K3 0 4000 4500,K3 1 4000 4500,"
	"K1 0 4500 5000,K1 1 4500 5000,K1 0 4500 5000,K1 1 4500 5000",
	"K1 0 0 500,K1 1 0 500,K1 0 0 500,K1 1 0 500,"
	"K3 0 500 1000,K3 1 500 1000,K3 0 500 1000,K3 1 500 1000,"
	"K3 0 1000 1500,K3 1 1000 1500,K3 0 1000 1500,K3 1 1000 1500,"
	"K1 0 1500 2000,K1 1 1500 2000,K1 0 1500 2000,K1 1 1500 2000,"
	"K2 0 2000 2500,K2 1 2000 2500,K2 0 2000 2500,K2 1 2000 2500,"
	"K2 0 2500 3000,K2 1 2500 3000,K2 0 2500 3000,K2 1 2500 3000,"
	"K4 0 3000 3500,K4 1 3000 3500,K4 0 3000 3500,K4 1 3000 3500,"
	"K4 0 3500 4000,K4 1 3500 4000,K4 0 3500 4000,K4 1 3500 4000",
	"K1 0 0 1000,K2 1 100 1100,K3 0 200 1200,K4 1 300 1300,K5 0 400 1400,K6 1 500 1500,"
	"K7 0 600 1600,K8 1 1100 1600,K9 0 1100 2100",
	"P1 0 0 500,P1 1 0 500,P1 0 0 500,P1 1 0 500,P1 0 500 1000,P1 1 500 1000,P1 0 500 1000,"
	"P1 1 500 1000,P1 0 1000 1500,P1 1 1000 1500,P1 0 1000 1500,P1 1 1000 1500,"
	"P1 0 1500 2000,P1 1 1500 2000,P1 0 1500 2000,P1 1 1500 2000,"
	"P2 0 2000 2500,P2 1 2000 2500,P2 0 2000 2500,P2 1 2000 2500,"
	"P2 0 2500 3000,P2 1 2500 3000,P2 0 2500 3000,P2 1 2500 3000,"
	"P2 0 3000 3500,P2 1 3000 3500,P2 0 3000 3500,P2 1 3000 3500,"
	"P2 0 3500 4000,P2 1 3500 4000,P2 0 3500 4000,P2 1 3500 4000",
};

#define START (1000 * MS) /* of each experiment, by the GPU's clock */

struct seen {
	struct experiment e;
	struct experiment_run run;
};

static uint64_t release_of(const struct experiment *e, unsigned op) {
	for (unsigned t = 0; t < e->n_tasks; t++) {
		const struct experiment_task *task = &e->tasks[t];
		uint64_t at = START + task->release;

		for (unsigned i = task->first_op; i < task->first_op + task->n_ops; i++) {
			at += e->ops[i].delay;
			if (i == op) {
				return at + i; /* not two at the same time */
			}
		}
	}
	fail();
	return 0;
}

static void add(struct seen *s, const char *name, const char *sm, uint64_t start, uint64_t end) {
	int op = experiment_find(&s->e, name);
	struct experiment_record *r;

	assert_true(op >= 0);
	r = &s->run.records[op];
	start = START + start * MS;
	end = START + end * MS;
	r->start = r->start && r->start < start ? r->start : start;
	r->end = r->end > end ? r->end : end;
	if (*sm != '-') {
		assert_true(r->n_blocks < s->e.ops[op].blocks);
		r->blocks[r->n_blocks++] =
			(struct experiment_block){start, end, (uint32_t)atoi(sm), 0};
	}
}

static void see(struct seen *s, unsigned table) {
	char *text = strdup(logs[table - 1]), *rest = text, *part;

	assert_int_equal(experiment_table(&s->e, table, &tx2, 1000 * MS), 0);
	s->run = (struct experiment_run){.n_iterations = 1, .n_records = s->e.n_ops};
	s->run.records = calloc(s->e.n_ops, sizeof(*s->run.records));
	s->run.blocks = calloc((size_t)s->e.n_ops * 32, sizeof(*s->run.blocks));
	for (unsigned i = 0; i < s->e.n_ops; i++) {
		s->run.records[i].launched = release_of(&s->e, i);
		s->run.records[i].blocks = s->run.blocks + (size_t)i * 32;
	}
	while ((part = strsep(&rest, ",")) != NULL) {
		char name[8], sm[8];
		unsigned start, end;

		assert_int_equal(sscanf(part, "%7s %7s %u %u", name, sm, &start, &end), 4);
		add(s, name, sm, start, end);
	}
	for (unsigned i = 0; i < s->e.n_ops; i++) {
		assert_int_equal(s->run.records[i].n_blocks, s->e.ops[i].blocks);
	}
	free(text);
}

static enum rules_verdict judge(const struct seen *s, const struct rules_claim *claim) {
	int64_t off;

	return rules_judge(claim, &s->e, &s->run, &tx2, TOLERANCE, &off);
}

/* All that is the operation's, or its last blocks only. */
static void shift(struct seen *s, const struct rules_claim *claim, int64_t ms) {
	struct experiment_record *r = &s->run.records[experiment_find(&s->e, claim->op)];
	uint64_t last = 0;

	for (unsigned b = 0; b < r->n_blocks; b++) {
		last = r->blocks[b].start > last ? r->blocks[b].start : last;
	}
	for (unsigned b = 0; b < r->n_blocks; b++) {
		if (claim->until != RULES_OWN_END && claim->until != RULES_LAST_ENDS) {
			r->blocks[b].start += (uint64_t)(ms * (int64_t)MS);
		} else if (r->blocks[b].start == last) {
			r->blocks[b].start += (uint64_t)(ms * (int64_t)MS);
		}
	}
	r->start += (uint64_t)(ms * (int64_t)MS);
}

static void the_paper_keeps_its_rules(void **state) {
	(void)state;
	for (const struct rules_claim *c = rules_claims; c->table; c++) {
		struct seen s;

		see(&s, c->table);
		if (judge(&s, c) != RULES_HOLDS) {
			fail_msg("%s of table %u, %s: %s", c->rule, c->table, c->op,
				 rules_verdict_name(judge(&s, c)));
		}
		experiment_run_deinit(&s.run);
	}
}

static void what_does_not_wait_breaks_its_rule(void **state) {
	(void)state;
	for (const struct rules_claim *c = rules_claims; c->table; c++) {
		struct seen s;

		see(&s, c->table);
		shift(&s, c, -60);
		if (judge(&s, c) != RULES_EARLIER) {
			fail_msg("%s of table %u, %s: %s", c->rule, c->table, c->op,
				 rules_verdict_name(judge(&s, c)));
		}
		shift(&s, c, 120);
		assert_int_equal(judge(&s, c),
				 c->until == RULES_TURNS ? RULES_NOT_TESTED : RULES_LATER);
		shift(&s, c, -20); /* 40 ms late */
		assert_int_equal(judge(&s, c), RULES_HOLDS);
		experiment_run_deinit(&s.run);
	}
}

static void what_is_launched_too_late_tells_nothing(void **state) {
	(void)state;
	for (const struct rules_claim *c = rules_claims; c->table; c++) {
		struct seen s;

		if (c->until == RULES_OWN_END || c->until == RULES_LAST_ENDS ||
		    c->until == RULES_ROOM) {
			continue;
		}
		see(&s, c->table);
		s.run.records[experiment_find(&s.e, c->op)].launched = START + 100000 * MS;
		assert_int_equal(judge(&s, c), RULES_NOT_TESTED);
		if (c->until != RULES_TURNS) {
			s.run.records[experiment_find(&s.e, c->op)].launched = START;
			s.run.records[experiment_find(&s.e, c->other)].launched = START + 1;
			assert_int_equal(judge(&s, c), RULES_NOT_TESTED);
		}
		experiment_run_deinit(&s.run);
	}
}

static void one_claim_decides(void **state) {
	(void)state;
	assert_int_equal(rules_both(RULES_HOLDS, RULES_HOLDS), RULES_HOLDS);
	assert_int_equal(rules_both(RULES_HOLDS, RULES_NOT_TESTED), RULES_NOT_TESTED);
	assert_int_equal(rules_both(RULES_EARLIER, RULES_NOT_TESTED), RULES_EARLIER);
	assert_int_equal(rules_both(RULES_LATER, RULES_EARLIER), RULES_EARLIER);
	assert_int_equal(rules_both(RULES_LATER, RULES_NOT_TESTED), RULES_LATER);
}

static void every_claim_has_a_rule_and_every_rule_a_claim(void **state) {
	(void)state;
	for (const struct rules_claim *c = rules_claims; c->table; c++) {
		const struct rules_text *t = rules_texts;

		while (t->rule && strcmp(t->rule, c->rule) != 0) {
			t++;
		}
		assert_non_null(t->rule);
	}
	for (const struct rules_text *t = rules_texts; t->rule; t++) {
		const struct rules_claim *c = rules_claims;

		while (c->table && strcmp(t->rule, c->rule) != 0) {
			c++;
		}
		assert_true(c->table > 0);
	}
}

/* What fills the paper's GPU fills every other, too. */
static void experiments_scale_with_the_gpu(void **state) {
	static const struct experiment_gpu gpus[] = {
		{.sms = 132,
		 .sm_threads = 2048,
		 .sm_shared = 228 * 1024,
		 .block_shared_max = 227 * 1024,
		 .block_shared_reserved = 1024},
		{.sms = 46,
		 .sm_threads = 1536,
		 .sm_shared = 100 * 1024,
		 .block_shared_max = 99 * 1024,
		 .block_shared_reserved = 1024},
		{.sms = 5,
		 .sm_threads = 1024,
		 .sm_shared = 64 * 1024,
		 .block_shared_max = 64 * 1024},
	};
	struct experiment e;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const struct experiment_gpu *g = &gpus[i];
		unsigned blocks = 0;
		const struct experiment_op *k;

		assert_int_equal(experiment_table(&e, 1, g, 20 * MS), 0);
		k = &e.ops[experiment_find(&e, "K1")];
		assert_int_equal(g->sm_threads / k->threads, 2);
		assert_true(k->blocks > 2 * g->sms);
		/* Two of K4 take all shared memory, beside what the system keeps of each block. */
		k = &e.ops[experiment_find(&e, "K4")];
		assert_true(2 * (k->shared_bytes + g->block_shared_reserved) +
				    2 * g->block_shared_reserved <=
			    g->sm_shared);
		assert_true(3 * (k->shared_bytes + g->block_shared_reserved) > g->sm_shared);
		assert_true(k->shared_bytes <= g->block_shared_max);

		assert_int_equal(experiment_table(&e, 5, g, 20 * MS), 0);
		for (unsigned op = 0; op < e.n_ops; op++) {
			k = &e.ops[op];
			if (strcmp(k->name, "K8") != 0 && strcmp(k->name, "K9") != 0) {
				blocks += k->blocks;
				assert_int_equal(k->threads, g->sm_threads / 4);
			}
		}
		assert_int_equal(4 * g->sms - blocks, g->sms / 2);
	}
	assert_int_equal(experiment_table(&e, 5,
					  &(struct experiment_gpu){
						  .sms = 1, .sm_threads = 2048, .sm_shared = 65536},
					  20 * MS),
			 -ENOTSUP);
}

/* ---- how programs share ---- */

static enum study_way way_of(const struct experiment_block *blocks, size_t n, unsigned holds) {
	struct study_shared s = {.holds = holds};

	study_overlap(blocks, 2, n, 256, &s.overlap, &s.threads);
	return study_way(&s);
}

static void overlap_tells_how_programs_share(void **state) {
	static const struct experiment_block in_turn[] = {
		{0, 10, 0, 0}, {20, 30, 0, 0}, {10, 20, 0, 0}, {30, 40, 0, 0}};
	static const struct experiment_block together[] = {
		{0, 10, 0, 0}, {10, 20, 0, 0}, {0, 10, 1, 0}, {10, 20, 1, 0}};
	double overlap;
	unsigned threads;

	(void)state;
	study_overlap(in_turn, 2, 2, 256, &overlap, &threads);
	assert_true(overlap == 0);
	assert_int_equal(threads, 256);
	study_overlap(together, 2, 2, 256, &overlap, &threads);
	assert_true(overlap == 1);
	assert_int_equal(threads, 512);
	assert_int_equal(way_of(in_turn, 2, 256), STUDY_ONE_AT_A_TIME);
	assert_int_equal(way_of(together, 2, 512), STUDY_TOGETHER);
	assert_int_equal(way_of(together, 2, 256), STUDY_PREEMPTED);
	study_overlap(in_turn, 2, 0, 256, &overlap, &threads);
	assert_int_equal(threads, 0);
}

static void figures_of_times(void **state) {
	uint64_t list[] = {40, 10, 30, 20};
	struct study_times t = {list, 4}, none = {NULL, 0};

	(void)state;
	study_sort(&t);
	assert_int_equal(study_percentile(&t, 0), 10);
	assert_int_equal(study_percentile(&t, 100), 40);
	assert_true(study_mean(&t) == 25);
	assert_true(study_deviation(&t) > 12.9 && study_deviation(&t) < 12.92);
	assert_int_equal(study_percentile(&none, 50), 0);
	assert_true(study_mean(&none) == 0 && study_deviation(&none) == 0);
}

/* ---- files of the cuda_scheduling_examiner ---- */

#define HEAD "{\"name\": \"x\", \"max_iterations\": 1, \"max_time\": 0, \"benchmarks\": ["
#define SPIN "{\"filename\": \"./bin/timer_spin.so\", \"thread_count\": 100, \"block_count\": 4, "

static int parse(const char *text, struct experiment *e, char *error) {
	return examiner_parse(e, "f", text, strlen(text), error, 512);
}

static void a_configuration_is_read(void **state) {
	static const char text[] =
		"{\"name\": \"two\", \"max_iterations\": 3, \"max_time\": 1.5, \"use_processes\": "
		"true,"
		"\"cuda_device\": 2, \"pin_cpus\": true, \"benchmarks\": ["
		"{\"filename\": \"./bin/timer_spin_default_stream.so\", \"log_name\": \"a.json\", "
		"\"label\": \"A\", \"thread_count\": 100, \"block_count\": 4, \"data_size\": 0, "
		"\"additional_info\": \"5000\", \"release_time\": 0.25, \"max_iterations\": 2},"
		"{\"filename\": \"multikernel.so\", \"thread_count\": 0, \"block_count\": 0, "
		"\"data_size\": 0, \"stream_priority\": -1, \"additional_info\": ["
		"{\"kernel_label\": \"K1\", \"duration\": 7, \"block_count\": 2, \"thread_count\": "
		"512,"
		"\"copy_in_count\": 8, \"delay\": 0.5, \"shared_memory_size\": 8192},"
		"{\"kernel_label\": \"K2\", \"duration\": 9, \"block_count\": 1, \"thread_count\": "
		"32,"
		"\"copy_out_count\": 16}]}]}";
	char error[512] = "";
	struct experiment e;

	(void)state;
	assert_int_equal(parse(text, &e, error), 0);
	assert_string_equal(e.name, "two");
	assert_true(e.processes);
	assert_int_equal(e.gpu, 2);
	assert_int_equal(e.n_tasks, 2);
	assert_true(e.tasks[0].null_stream && !e.tasks[0].has_priority);
	assert_int_equal(e.tasks[0].release, 250 * MS);
	assert_int_equal(e.tasks[0].iterations, 2);
	assert_int_equal(e.tasks[1].iterations, 3);
	assert_int_equal(e.tasks[1].max_time, 1500 * MS);
	assert_int_equal(e.tasks[1].priority, -1);
	assert_int_equal(e.tasks[1].first_op, 1);
	assert_int_equal(e.tasks[1].n_ops, 4);
	assert_int_equal(e.ops[0].work, 5000);
	assert_int_equal(e.ops[0].threads, 128); /* whole warps, as there */
	assert_int_equal(e.ops[1].kind, EXPERIMENT_COPY_IN);
	assert_int_equal(e.ops[1].bytes, 32);
	assert_int_equal(e.ops[1].delay, 500 * MS);
	assert_int_equal(e.ops[2].shared_bytes, 32768);
	assert_int_equal(e.ops[2].delay, 0);
	assert_string_equal(e.ops[3].name, "K2");
	assert_int_equal(e.ops[4].kind, EXPERIMENT_COPY_OUT);
	assert_int_equal(e.ops[4].bytes, 64);
}

static void what_is_wrong_in_a_configuration_is_named(void **state) {
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"{", "f:"},
		{"{\"max_iterations\": 1}", "max_time"},
		{HEAD "]}", "expected a list of benchmarks"},
		{HEAD "{\"filename\": \"./bin/mandelbrot.so\"}]}",
		 "f:1: benchmarks[0].filename: expected timer_spin.so, "
		 "timer_spin_default_stream.so "
		 "or multikernel.so, found './bin/mandelbrot.so'"},
		{HEAD SPIN "\"additional_info\": \"fast\"}]}", "expected a number of nanoseconds"},
		{HEAD SPIN "\"additional_info\": -1}]}", "additional_info"},
		{HEAD SPIN "\"release_time\": -1}]}",
		 "expected a number of seconds from 0 to 3600"},
		{HEAD SPIN "\"max_iterations\": 0}]}", "it would never end"},
		{HEAD SPIN "\"max_iterations\": 999999999}]}", "max_iterations"},
		{HEAD SPIN "\"unknown\": 0}]}", "unknown"},
		{HEAD
		 "{\"filename\": \"timer_spin.so\", \"thread_count\": 2048, \"block_count\": 1}]}",
		 "thread_count"},
		{HEAD
		 "{\"filename\": \"timer_spin.so\", \"thread_count\": 32, \"block_count\": 4096, "
		 "\"max_iterations\": 10000}]}",
		 "blocks in all iterations"},
		{HEAD "{\"filename\": \"multikernel.so\", \"thread_count\": 0, \"block_count\": 0, "
		      "\"additional_info\": \"K1,5,1,512\"}]}",
		 "additional_info"},
		{HEAD "{\"filename\": \"multikernel.so\", \"additional_info\": []}]}",
		 "expected a list of kernels"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct experiment e = {.n_ops = 77};
		char error[512] = "";

		assert_int_equal(parse(cases[i].text, &e, error), -EINVAL);
		if (!strstr(error, cases[i].error)) {
			fail_msg("'%s': '%s', not '%s'", cases[i].text, error, cases[i].error);
		}
		assert_int_equal(e.n_ops, 77);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_paper_keeps_its_rules),
		cmocka_unit_test(what_does_not_wait_breaks_its_rule),
		cmocka_unit_test(what_is_launched_too_late_tells_nothing),
		cmocka_unit_test(one_claim_decides),
		cmocka_unit_test(every_claim_has_a_rule_and_every_rule_a_claim),
		cmocka_unit_test(experiments_scale_with_the_gpu),
		cmocka_unit_test(overlap_tells_how_programs_share),
		cmocka_unit_test(figures_of_times),
		cmocka_unit_test(a_configuration_is_read),
		cmocka_unit_test(what_is_wrong_in_a_configuration_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
