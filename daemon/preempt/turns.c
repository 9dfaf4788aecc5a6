/*
 * turns.c: see turns.h.
 */
#include "daemon/preempt/turns.h"

#include <string.h>

#include "daemon/preempt/slices.h"
#include "proto/board.h"

/* Of the time with a job open: 3/4. */
#define BUSY_PART  3
#define BUSY_WHOLE 4

static uint32_t n_open(const struct rule_owner *o, unsigned gpu) {
	return (uint32_t)(o->jobs[gpu] & (BOARD_JOBS_UNSEEN - 1));
}

static bool may_take(const struct rule *rule, unsigned owner, unsigned gpu) {
	const struct rule_owner *o = &rule->owners[owner];

	return o->used && o->turn > 0 && o->turn_state[gpu] & BOARD_TURN_TAKES &&
	       rule_has_group(rule, owner, gpu);
}

/* The one for whom others take turns: those that may are at least two, of one urgency, and this
 * owner alone is more urgent, and works. NULL: there is no reason for turns. */
static const struct rule_owner *find_urgent(const struct rule *rule, unsigned gpu, nsec_t now) {
	const struct rule_owner *found = NULL;
	uint64_t urgency = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < rule->n_owners; i++) {
		if (may_take(rule, i, gpu)) {
			if (n++ > 0 && rule->owners[i].urgency != urgency) {
				return NULL;
			}
			urgency = rule->owners[i].urgency;
		}
	}
	for (unsigned i = 0; n >= 2 && i < rule->n_owners; i++) {
		const struct rule_owner *o = &rule->owners[i];

		if (o->used && o->urgency > urgency && rule_has_group(rule, i, gpu)) {
			if (found) {
				return NULL;
			}
			found = o;
		}
	}
	return found && slices_works(found, gpu, now) ? found : NULL;
}

/* When jobs of @o open. */
static void note_opened(struct turns *t, const struct rule_owner *o, unsigned gpu, nsec_t now) {
	uint32_t n = (uint32_t)(o->jobs[gpu] >> 32) - t->n_opened;

	if (n > 0) {
		t->every = t->opened > 0 ? (now - t->opened) / n : 0;
		t->opened = now;
		t->n_opened += n;
	}
}

/* Whether a job should open before the GPU could be handed over. */
static bool is_expected(const struct turns *t, nsec_t now) {
	nsec_t next = t->opened + t->every;

	return now < next && next - now < TURNS_CLEAR_NS;
}

/* What has been since the last look was as it was then. */
static void measure(struct turns *t, const struct rule *rule, unsigned gpu, nsec_t now) {
	bool ends = now - t->window >= TURNS_WINDOW_NS;

	for (unsigned i = 0; i < rule->n_owners; i++) {
		struct turns_owner *o = &t->owners[i];

		o->open_ns += o->open ? now - t->looked : 0;
		o->open = rule->owners[i].used && n_open(&rule->owners[i], gpu) > 0;
		if (ends) {
			o->busy = o->open_ns * BUSY_WHOLE >= (now - t->window) * BUSY_PART;
			o->open_ns = 0;
		}
	}
	t->window = ends ? now : t->window;
	t->looked = now;
}

static bool takes(const struct turns *t, const struct rule *rule, unsigned owner, unsigned gpu) {
	return t->owners[owner].busy && may_take(rule, owner, gpu);
}

/* The next one that takes turns after @owner, which may be that one itself; RULE_NONE. */
static int find_next(const struct turns *t, const struct rule *rule, unsigned owner, unsigned gpu) {
	for (unsigned i = 1; i <= rule->n_owners; i++) {
		unsigned next = (owner + i) % rule->n_owners;

		if (takes(t, rule, next, gpu)) {
			return (int)next;
		}
	}
	return RULE_NONE;
}

/* @ended: the urgent job has, at this moment. */
static bool is_over(const struct turns *t, const struct rule *rule, unsigned gpu, nsec_t now,
		    bool ended) {
	return t->began == 0 || !takes(t, rule, t->turn, gpu) ||
	       (now >= t->due && (ended || now - t->due >= t->due - t->began) &&
		!is_expected(t, now));
}

/* Whether @owner, which is not told to wait so far, leaves the GPU by itself once it should. */
static bool leaves(const struct rule *rule, unsigned owner, unsigned gpu) {
	for (unsigned i = 0; i < rule->n_groups; i++) {
		const struct rule_group *g = &rule->groups[i];

		if (g->used && g->owner == owner && g->gpu == gpu && !rule_is_short(g)) {
			return false;
		}
	}
	return rule->slices_suffice[gpu];
}

static void begin(struct turns *t, const struct rule *rule, int owner, nsec_t now) {
	t->turn = owner != RULE_NONE ? (unsigned)owner : 0;
	t->began = owner != RULE_NONE ? now : 0;
	t->due = owner != RULE_NONE ? now + rule->owners[owner].turn : 0;
	t->goes = now;
}

/* @owner waits, or does so no more. */
static void set_wait(struct turns *t, struct rule *rule, unsigned owner, unsigned gpu, bool waits) {
	struct rule_owner *o = &rule->owners[owner];

	if (waits && !o->waits[gpu]) {
		t->owners[owner].stays = leaves(rule, owner, gpu);
	}
	o->waits[gpu] = waits;
}

bool turns_look(struct turns *t, struct rule *rule, unsigned gpu, nsec_t now) {
	/* One that was open before may be over for long, and the next one near. */
	bool awaited = t->urgent && turns_want_end(t);
	const struct rule_owner *top = find_urgent(rule, gpu, now);
	bool changed = false, urgent;
	unsigned last = t->turn;
	int next;

	if (!top) {
		memset(t, 0, sizeof(*t));
	} else if (t->looked == 0) {
		t->looked = t->window = now;
		measure(t, rule, gpu, now);
	} else {
		measure(t, rule, gpu, now);
		urgent = n_open(top, gpu) > 0;
		note_opened(t, top, gpu, now);
		if (is_over(t, rule, gpu, now, awaited && !urgent)) {
			next = find_next(t, rule, t->turn, gpu);
			changed = next != RULE_NONE && (unsigned)next != t->turn && t->began > 0;
			begin(t, rule, next, now);
			if (changed && takes(t, rule, last, gpu) && leaves(rule, last, gpu)) {
				t->goes = now + TURNS_HAND_OVER_NS;
			}
		}
		t->urgent = urgent;
	}
	for (unsigned i = 0; i < rule->n_owners; i++) {
		set_wait(t, rule, i, gpu,
			 t->began > 0 && (i != t->turn || now < t->goes) && takes(t, rule, i, gpu));
	}
	return changed;
}

bool turns_want_end(const struct turns *t) {
	return t->began > 0 && t->looked >= t->due;
}

nsec_t turns_again(const struct turns *t) {
	nsec_t again = t->looked + TURNS_LOOK_NS;

	if (t->looked == 0) {
		return RULE_NEVER;
	}
	again = t->looked < t->due && t->due < again ? t->due : again;
	return t->looked < t->goes && t->goes < again ? t->goes : again;
}
