/*
 * planned.h: an sbeetd with policy `steer`, scripted programs whose tasks have profiles, and jobs
 * that took as long as the test says: what tests of plans share.
 */
#pragma once

#include "harness.h"

#include "daemon/core/steer/plan.h"

#define MS NSEC_PER_MSEC

/* Long enough for what must not happen: microseconds. */
#define A_WHILE 500000

extern struct harness harness;

/* What jobs consist of. */
extern const struct work short_work, long_work;

int planned_setup(void **state);
int planned_clean(void **state);

/* A program whose jobs were released one period apart since the machine was booted, which may be a
 * minute ago: times that have not come yet would not be believed. */
struct program {
	struct steered s;
	nsec_t period, next;
	uint64_t jobs;
	const struct work *work;
};

/* @period 0: best effort. */
struct program open_program(const char *task, nsec_t period, nsec_t deadline,
			    const struct work *work);

/* Every 5 ms, within 2 ms; and every 60 ms, which takes 36 ms on all SMs. */
struct program open_short(void);
struct program open_long(void);

void close_program(struct program *p);

/* Tells of @n more jobs. */
void report(struct program *p, unsigned n, nsec_t response);

/* Of enough for their shape to be known, and known well. */
void report_shape(struct program *p);

/* What is known of the terms of one program on GPU 0. */
struct told {
	uint64_t session;
	const char *verdict; /* waited for; NULL: any */
	unsigned plans;	     /* the same: at least */
	char reason[128];
	Sbeet__Control__TermsPlan plan;
	bool planned;
};

/* Of the session that @data, a struct told, names. Return: whether it is what is waited for. */
bool reads(const Sbeet__Control__Status *status, void *data);

/* Until there were so many plans, with this verdict. */
struct told wait_for(const struct program *p, unsigned plans, const char *verdict);

bool has_verdict(const struct program *p, const char *verdict);
struct told look(const struct program *p);

void assert_terms(const struct program *p, const struct terms *expected);

/* Until all of them have these. */
void wait_for_terms(const struct program *const *p, unsigned n, const struct terms *expected);

/* When the copies in of jobs of @deadline must be done, and if they can't be. */
void assert_due(const struct program *p, nsec_t period, nsec_t deadline, nsec_t tail);

/* The plan of a short and a long one, and the rule's terms. @third: also of one that nothing is
 * known of. @slow: so many times as long the long one's kernels take. */
void expect_plan(const struct program *a, const struct program *b, bool third, unsigned slow,
		 struct plan *ret, struct terms ret_rule[3]);

/* Both run, are known, and have a plan, which is not what the rule says. @late: so many jobs of the
 * long one are late while the rule holds. */
void open_planned_after(unsigned late, struct program *ret_a, struct program *ret_b,
			struct plan *ret_plan, struct terms ret_rule[3]);
void open_planned(struct program *ret_a, struct program *ret_b, struct plan *ret_plan);

/* How often @text is in the answer of `sbeetctl task explain` with these arguments. */
unsigned explained(const char *arguments, const char *text);

/* sbeetctl's: it holds when this returns. */
void set_deadline(const char *task, nsec_t deadline);
