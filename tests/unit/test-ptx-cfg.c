/*
 * test-ptx-cfg.c: blocks, edges and control dependence of small functions, and the bounds on large
 * and strange ones.
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

#include "shim/ptx/cfg.h"

#define HEAD ".version 8.3\n.target sm_75\n.address_size 64\n"

struct subject {
	char *text;
	struct ptx_module *m;
	struct module_facts facts;
	struct cfg c;
};

/* The graph of the last function of @text. Return: what cfg_init() said. */
static int make(struct subject *s, const char *text) {
	int r;

	*s = (struct subject){0};
	assert_true(asprintf(&s->text, HEAD "%s", text) > 0);
	assert_int_equal(ptx_module_new(&s->m, s->text, strlen(s->text), NULL, 0), 0);
	assert_int_equal(module_facts_init(&s->facts, s->m), 0);
	r = cfg_init(&s->c, &s->facts, &s->m->funcs[s->m->n_funcs - 1]);
	return r;
}

static void subject_deinit(struct subject *s) {
	cfg_deinit(&s->c);
	module_facts_deinit(&s->facts);
	ptx_module_free(s->m);
	free(s->text);
}

/* "1 2" for the blocks after block @b. The end is the number behind the last block. */
static void assert_edges(const struct subject *s, uint32_t b, const char *edges) {
	char text[200] = "";

	for (uint32_t i = 0; i < s->c.blocks[b].n_edges; i++) {
		size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "%s%u", i ? " " : "",
			 s->c.edges[s->c.blocks[b].edges + i]);
	}
	assert_string_equal(text, edges);
}

static void assert_control(const struct subject *s, uint32_t b, const char *blocks) {
	char text[200] = "";

	assert_non_null(s->c.control);
	for (uint32_t i = s->c.control[b]; i < s->c.control[b + 1]; i++) {
		size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "%s%u", n ? " " : "", s->c.controlled[i]);
	}
	assert_string_equal(text, blocks);
}

static void cfg_splits_at_labels_branches_and_events(void **state) {
	struct subject s;

	/* 0: mov bra; 1: bar.sync; 2: ret; 3: L add; falls to the end */
	assert_int_equal(make(&s,
			      ".entry k() { mov a, b; @p bra L; bar.sync 0; ret;\n"
			      "L: add a, b, c; }"),
			 0);
	assert_int_equal(s.c.n_blocks, 4);
	assert_edges(&s, 0, "3 1");
	assert_edges(&s, 1, "2");
	assert_edges(&s, 2, "4");
	assert_edges(&s, 3, "4");
	assert_int_equal(s.c.blocks[1].event, CFG_BARRIER);
	assert_int_equal(s.c.blocks[0].event, CFG_NONE);
	assert_control(&s, 0, "3 1 2");
	assert_control(&s, 1, "");
	subject_deinit(&s);
}

static void cfg_names_events(void **state) {
	struct subject s;

	assert_int_equal(
		make(&s,
		     ".func f() { bar.sync 0; } .func g() { ret; }\n"
		     ".entry k() { call f; call g; bar.sync 1, 32; bar.red.or.pred p, 0, q;\n"
		     "bar.red.or.pred p, 0, 64, q; shfl.sync.idx.b32 a, b, c, d, e; }"),
		0);
	assert_int_equal(s.c.n_blocks, 5);
	assert_int_equal(s.c.blocks[0].event, CFG_CALL);
	assert_int_equal(s.c.blocks[1].event, CFG_BARRIER_COUNTED);
	assert_int_equal(s.c.blocks[2].event, CFG_BARRIER);
	assert_int_equal(s.c.blocks[3].event, CFG_BARRIER_COUNTED);
	assert_int_equal(s.c.blocks[4].event, CFG_WARP);
	subject_deinit(&s);
}

static void cfg_follows_tables(void **state) {
	struct subject s;

	assert_int_equal(make(&s,
			      ".entry k() { T: .branchtargets A, B, A; brx.idx %r1, T;\n"
			      "A: ret; B: ret; }"),
			 0);
	assert_edges(&s, 0, "1 2 1");
	subject_deinit(&s);
}

/* A loop: the branch at its foot decides whether its body runs again. */
static void cfg_knows_what_a_loop_controls(void **state) {
	struct subject s;

	assert_int_equal(make(&s,
			      ".entry k() { mov a, b; L: add a, b, c; @p bra M; sub a, b, c;\n"
			      "M: @q bra L; ret; }"),
			 0);
	/* 0: mov; 1: L; 2: sub; 3: M; 4: ret */
	assert_edges(&s, 3, "1 4");
	assert_control(&s, 1, "2");
	assert_control(&s, 3, "1 3");
	assert_control(&s, 0, "");
	subject_deinit(&s);
}

static void cfg_gives_endless_loops_a_way_out(void **state) {
	struct subject s;

	assert_int_equal(make(&s, ".entry k() { @p bra L; ret; L: bra L; }"), 0);
	assert_edges(&s, 2, "2 3");
	assert_control(&s, 0, "2 1");
	subject_deinit(&s);
}

static void cfg_takes_a_label_twice_and_a_branch_to_nowhere(void **state) {
	struct subject s;

	assert_int_equal(make(&s, ".entry k() { { L: bra L; } { L: @p bra L; } bra N; }"), 0);
	/* 0: {; 1: L bra; 2: } {; 3: L bra; 4: } bra */
	assert_edges(&s, 0, "1");
	assert_edges(&s, 1, "3 1");
	assert_edges(&s, 3, "3 1 4");
	assert_edges(&s, 4, "5");
	subject_deinit(&s);
}

static void cfg_finds_ways_round(void **state) {
	struct subject s;
	bool barred[] = {false, true, false, false, false}, reach[5];

	/* 0: branch; 1: barrier; 2: A branch; 3: ret */
	assert_int_equal(make(&s, ".entry k() { @p bra A; bar.sync 0; A: @q bra A; ret; }"), 0);
	assert_int_equal(s.c.n_blocks, 4);
	assert_int_equal(cfg_reach_end(&s.c, barred, reach), 0);
	assert_true(reach[0] && !reach[1] && reach[2] && reach[3] && reach[4]);
	barred[1] = false;
	barred[2] = true;
	assert_int_equal(cfg_reach_end(&s.c, barred, reach), 0);
	assert_true(!reach[0] && !reach[1] && !reach[2] && reach[3]);
	subject_deinit(&s);
}

/* Each of n branches may go to each of n labels of one name. */
static void cfg_refuses_more_ways_than_instructions(void **state) {
	enum { N = 3000 };
	static const char part[] = "{ L: @p bra L; }\n";
	size_t n = sizeof(part) - 1;
	char *text = malloc(N * n + 64);
	struct subject s;

	assert_non_null(text);
	memcpy(text, ".entry k() {\n", 13);
	for (size_t i = 0; i < N; i++) {
		memcpy(text + 13 + i * n, part, n);
	}
	memcpy(text + 13 + N * n, "}", 2);
	assert_int_equal(make(&s, text), -E2BIG);
	subject_deinit(&s);
	free(text);
}

/* Nested ifs, as deep as they are many: answered in time, exact or not. */
static void cfg_bounds_its_work(void **state) {
	enum { N = 20000 };
	char *text = malloc(N * 64), *at = text;
	struct subject s;

	assert_non_null(text);
	at += sprintf(at, ".entry k() {\n");
	for (int i = 0; i < N; i++) {
		at += sprintf(at, "@p bra L%d;\n", i);
	}
	for (int i = N; i-- > 0;) {
		at += sprintf(at, "L%d: mov a, b;\n", i);
	}
	at += sprintf(at, "}");
	assert_int_equal(make(&s, text), 0);
	assert_int_equal(s.c.n_blocks, 2 * N);
	subject_deinit(&s);
	free(text);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cfg_splits_at_labels_branches_and_events),
		cmocka_unit_test(cfg_names_events),
		cmocka_unit_test(cfg_follows_tables),
		cmocka_unit_test(cfg_knows_what_a_loop_controls),
		cmocka_unit_test(cfg_gives_endless_loops_a_way_out),
		cmocka_unit_test(cfg_takes_a_label_twice_and_a_branch_to_nowhere),
		cmocka_unit_test(cfg_finds_ways_round),
		cmocka_unit_test(cfg_refuses_more_ways_than_instructions),
		cmocka_unit_test(cfg_bounds_its_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
