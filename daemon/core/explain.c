/* explain.c: see explain.h. */
#include "daemon/core/explain.h"

#include <errno.h>
#include <stdlib.h>

struct explain {
	size_t size;
	uint64_t last; /* number of the newest entry; entry x stands at (x - 1) % size */

	/* What a policy says of the job that it looks at. */
	uint64_t order;
	bool begun;
	enum explain_reason reason;
	size_t n_tries, n_left_out;
	struct explain_try tries[EXPLAIN_TRIES_MAX];

	struct explain_entry ring[];
};

/* clang-format off */
static const struct {
	const char *name, *text;
} reasons[_EXPLAIN_REASON_N] = {
	[EXPLAIN_NONE] = {"none", "nothing was said"},
	[EXPLAIN_START_NEXT] =
		{"start-next", "it was the next one in the policy's order, and this place was free"},
	[EXPLAIN_START_CHEAPEST] =
		{"start-cheapest", "of the places where everybody is in time, this one costs least energy"},
	[EXPLAIN_START_FEWEST_MISSES] =
		{"start-fewest-misses",
		 "fewest deadlines are expected to be missed so, then least energy"},
	[EXPLAIN_START_LEAST_BAD] =
		{"start-least-bad", "no choice keeps all deadlines; this is the least bad one"},
	[EXPLAIN_START_LATE] =
		{"start-late", "it can't be in time any more, and makes nobody else late here"},
	[EXPLAIN_START_AWAY] =
		{"start-away",
		 "everybody is in time on this GPU; on its home somebody would be late, or it costs "
		 "more energy"},
	[EXPLAIN_START_WHOLE] =
		{"start-whole",
		 "neither its best part of its home nor a GPU that is active keeps all deadlines, "
		 "so it gets all SMs of its home"},
	[EXPLAIN_START_FILLER] =
		{"start-filler", "no job with a known profile waits for this GPU"},
	[EXPLAIN_START_OVERDUE] =
		{"start-overdue",
		 "it has been passed over for as many periods as it may be (max_wait), so it goes first"},
	[EXPLAIN_START_ALLOCATED] =
		{"start-allocated", "the SMs of its allocation were free"},
	[EXPLAIN_START_TABLE] =
		{"start-table", "the table has a job of its task start now"},
	[EXPLAIN_WAIT_FULL] =
		{"wait-full", "no GPU that it may use has a free slot and enough free SMs"},
	[EXPLAIN_WAIT_OWNER] =
		{"wait-owner", "another process runs on the GPU, which is not shared (no MPS)"},
	[EXPLAIN_WAIT_DRAINED] =
		{"wait-drained",
		 "every GPU that it may use is drained; it waits until 'sbeetctl gpu resume'"},
	[EXPLAIN_WAIT_TURN] =
		{"wait-turn", "the policy keeps what is free for jobs that go before it"},
	[EXPLAIN_WAIT_BETTER] =
		{"wait-better", "waiting for the next event is expected to cost fewer misses or less energy"},
	[EXPLAIN_WAIT_INFEASIBLE] =
		{"wait-infeasible", "if it started now, it or a job known to come would be late"},
	[EXPLAIN_WAIT_LATE] =
		{"wait-late", "it can't be in time any more, and would make others late"},
	[EXPLAIN_WAIT_DEADLINES] =
		{"wait-deadlines",
		 "how long it takes is not known, and jobs with a profile need the GPU or a part of it"},
	[EXPLAIN_WAIT_PRIORITY] =
		{"wait-priority", "a job has the GPU whose priority is not lower"},
	[EXPLAIN_WAIT_STOPPING] =
		{"wait-stopping",
		 "a job of lower priority is stopped for it: what that has queued on the GPU runs first"},
	[EXPLAIN_WAIT_TABLE] =
		{"wait-table",
		 "it starts when the table says so; what is not in the table gets the SMs that it leaves alone"},
};
/* clang-format on */

const char *explain_reason_name(enum explain_reason reason) {
	return reasons[reason].name;
}

const char *explain_reason_text(enum explain_reason reason) {
	return reasons[reason].text;
}

int explain_new(struct explain **ret, size_t n) {
	struct explain *e;

	if (n == 0 || n > (SIZE_MAX - sizeof(*e)) / sizeof(e->ring[0])) {
		return -EINVAL;
	}
	e = calloc(1, sizeof(*e) + n * sizeof(e->ring[0]));
	if (!e) {
		return -ENOMEM;
	}
	e->size = n;
	*ret = e;
	return 0;
}

struct explain *explain_free(struct explain *e) {
	free(e);
	return NULL;
}

size_t explain_count(const struct explain *e) {
	return e->last < e->size ? (size_t)e->last : e->size;
}

const struct explain_entry *explain_get(const struct explain *e, size_t i) {
	return &e->ring[(e->last - explain_count(e) + i) % e->size];
}

void explain_begin(struct explain *e, uint64_t order) {
	if (e) {
		e->order = order;
		e->begun = true;
		e->reason = EXPLAIN_NONE;
		e->n_tries = e->n_left_out = 0;
	}
}

static bool same_choice(const struct explain_try *a, const struct explain_try *b) {
	return a->wait == b->wait && a->gpu == b->gpu && a->n_sms == b->n_sms &&
	       a->start == b->start;
}

void explain_try(struct explain *e, const struct explain_try *try) {
	if (!e) {
		return;
	}
	if (e->n_tries > 0 && same_choice(&e->tries[e->n_tries - 1], try)) {
		e->tries[e->n_tries - 1] = *try; /* its energy was asked for once more */
		return;
	}
	if (e->n_tries == EXPLAIN_TRIES_MAX) {
		e->n_left_out++;
	} else {
		e->tries[e->n_tries++] = *try;
	}
}

void explain_choose(struct explain *e, bool wait, unsigned gpu, unsigned n_sms) {
	bool found = false;

	for (size_t i = e ? e->n_tries : 0; i-- > 0;) {
		struct explain_try *t = &e->tries[i];

		t->chosen =
			!found && t->wait == wait && (wait || (t->gpu == gpu && t->n_sms == n_sms));
		found |= t->chosen;
	}
}

void explain_because(struct explain *e, enum explain_reason reason) {
	if (e) {
		e->reason = reason;
	}
}

enum explain_reason explain_drafted(const struct explain *e, uint64_t order) {
	return e->begun && e->order == order ? e->reason : EXPLAIN_NONE;
}

static struct explain_entry *find(struct explain *e, uint64_t number) {
	return number != 0 && number <= e->last && e->last - number < e->size
		       ? &e->ring[(number - 1) % e->size]
		       : NULL;
}

/* Two entries in which a job waits, for the same. */
static bool repeats(const struct explain_entry *a, const struct explain_entry *b) {
	return a->gpu < 0 && b->gpu < 0 && a->reason == b->reason && a->policy == b->policy;
}

bool explain_again(struct explain *e, uint64_t number, uint64_t order, const char *policy,
		   enum explain_reason reason, nsec_t now) {
	struct explain_entry *entry = find(e, number);

	if (!entry || entry->gpu >= 0 || entry->reason != reason || entry->policy != policy ||
	    (e->begun && e->order == order)) {
		return false;
	}
	entry->last = now;
	entry->times++;
	entry->n_tries = entry->n_left_out = 0;
	return true;
}

uint64_t explain_commit(struct explain *e, const struct explain_entry *entry, uint64_t previous) {
	struct explain_entry *to = find(e, previous);

	if (!to || !repeats(to, entry)) {
		to = &e->ring[e->last % e->size];
		*to = *entry;
		to->number = ++e->last;
		to->first = entry->last;
		to->times = 0;
	}
	to->last = entry->last;
	to->times++;
	to->n_tries = to->n_left_out = 0;
	if (e->begun && e->order == entry->order) {
		to->n_tries = e->n_tries;
		to->n_left_out = e->n_left_out;
		for (size_t i = 0; i < e->n_tries; i++) {
			to->tries[i] = e->tries[i];
		}
		e->begun = false;
	}
	return to->number;
}

void explain_stop(struct explain *e, uint64_t number, const char *stop, nsec_t takes) {
	struct explain_entry *entry = find(e, number);

	if (entry && entry->gpu >= 0) {
		entry->stop = stop;
		entry->stop_takes = takes;
	}
}

void explain_ended(struct explain *e, uint64_t number, nsec_t now, bool completed) {
	struct explain_entry *entry = find(e, number);

	if (entry) {
		entry->ended = now;
		entry->completed = completed;
	}
}
