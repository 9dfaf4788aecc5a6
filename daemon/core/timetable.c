/* timetable.c: see timetable.h. */
#include "daemon/core/timetable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/groups.h"

/* The part of its length by which a job may begin late. */
#define LATE_SHARE 8

struct timetable *timetable_free(struct timetable *t) {
	if (t) {
		free(t->list);
		free(t);
	}
	return NULL;
}

/* From the end of @a to the next start of @b, on SMs that both have. */
static nsec_t gap(const struct timetable *t, const struct timetable_entry *a,
		  const struct timetable_entry *b) {
	nsec_t from_start = (b->start + t->hyperperiod - a->start) % t->hyperperiod;

	if (a == b) {
		from_start = t->hyperperiod;
	}
	return from_start - a->length; /* not below 0: see overlap() */
}

/* Whether @b starts while @a runs, or at the same time. */
static bool overlap(const struct timetable *t, const struct timetable_entry *a,
		    const struct timetable_entry *b) {
	return a != b && (b->start + t->hyperperiod - a->start) % t->hyperperiod < a->length;
}

static bool share_sms(const struct timetable_entry *a, const struct timetable_entry *b) {
	return a->gpu == b->gpu && !smset_disjoint(&a->sms, &b->sms);
}

/* NULL: all is well. */
static const char *fault_of(const struct timetable *t, const struct timetable_entry *e,
			    const struct sched *s) {
	const struct sched_gpu_model *model;
	struct smset within, picked;

	if (e->gpu >= sched_n_gpus(s)) {
		return "there is no such GPU";
	}
	model = &sched_gpu(s, e->gpu)->model;
	within = smset_range(0, model->limit);
	picked = sched_pick_sms(model, &e->sms, smset_count(&e->sms), false);
	if (smset_empty(&e->sms) || !smset_within(&e->sms, &within)) {
		return "its SMs are not within the GPU's limit";
	}
	if (!smset_equal(&picked, &e->sms)) {
		return "its SMs are not whole groups of the GPU";
	}
	if (e->task == 0 || e->start >= t->hyperperiod || e->length == 0 ||
	    e->length > t->hyperperiod) {
		return "its times are not within the hyperperiod";
	}
	return NULL;
}

static int check_pairs(struct timetable *t, char *why, size_t size) {
	for (size_t i = 0; i < t->n; i++) {
		struct timetable_entry *a = &t->list[i];
		nsec_t least = a->length / LATE_SHARE;

		a->latest = t->hyperperiod;
		for (size_t k = 0; k < t->n; k++) {
			const struct timetable_entry *b = &t->list[k];
			nsec_t idle;

			if (!share_sms(a, b)) {
				continue;
			}
			if (overlap(t, a, b)) {
				snprintf(why, size, "jobs %zu and %zu have SMs at the same time", i,
					 k);
				return -EINVAL;
			}
			idle = gap(t, a, b);
			a->latest = idle < a->latest ? idle : a->latest;
		}
		a->latest = a->latest > least ? a->latest : least;
		/* in its own repetition only */
		a->latest = a->latest < t->hyperperiod ? a->latest : t->hyperperiod - 1;
	}
	return 0;
}

int timetable_check(struct timetable *t, const struct sched *s, char *why, size_t size) {
	if (t->n == 0 || t->hyperperiod == 0) {
		snprintf(why, size, "it has no jobs");
		return -EINVAL;
	}
	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		t->others[k] = smset_range(0, sched_gpu(s, k)->model.limit);
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct timetable_entry *e = &t->list[i];
		const char *fault = fault_of(t, e, s);

		if (fault) {
			snprintf(why, size, "job %zu: %s", i, fault);
			return -EINVAL;
		}
		t->others[e->gpu] = smset_minus(&t->others[e->gpu], &e->sms);
	}
	return check_pairs(t, why, size);
}

uint64_t timetable_due(const struct timetable *t, const struct timetable_entry *e, nsec_t now) {
	uint64_t n = now / t->hyperperiod + 1;
	nsec_t begin;

	if (now % t->hyperperiod < e->start) {
		n--; /* the start that has been last was in the repetition before */
	}
	if (n == 0) {
		return 0;
	}
	begin = (n - 1) * t->hyperperiod + e->start;
	return now - begin <= e->latest && e->used < n ? n : 0;
}

nsec_t timetable_next(const struct timetable *t, nsec_t now) {
	nsec_t phase = now % t->hyperperiod, least = t->hyperperiod;

	for (size_t i = 0; i < t->n; i++) {
		nsec_t left = (t->list[i].start + t->hyperperiod - phase) % t->hyperperiod;

		left = left > 0 ? left : t->hyperperiod;
		least = left < least ? left : least;
	}
	return now + least;
}
