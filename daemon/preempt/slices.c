/*
 * slices.c: see slices.h.
 */
#include "daemon/preempt/slices.h"

/* Two that work with short slices lose most of the GPU: that must not last. */
#define LOOK_SHORT_NS (20 * NSEC_PER_MSEC)
#define LOOK_NS	      (500 * NSEC_PER_MSEC)

/* Who has groups on a GPU. */
struct ranks {
	uint64_t top;	  /* the highest urgency of those that don't wait */
	unsigned n_top;	  /* how many have it; 0: there is none */
	unsigned owner;	  /* the first of them */
	unsigned lower;	  /* less urgent ones */
	unsigned working; /* of these, those that work */
};

bool slices_works(const struct rule_owner *o, unsigned gpu, nsec_t now) {
	return o->worked[gpu] > 0 && o->worked[gpu] + SLICES_QUIET_NS > now;
}

/* One that waits for its turn leaves the GPU to others. */
static bool works(const struct rule_owner *o, unsigned gpu, nsec_t now) {
	return slices_works(o, gpu, now) && !o->waits[gpu];
}

static struct ranks rank(const struct rule *rule, unsigned gpu, nsec_t now) {
	struct ranks r = {0};

	for (unsigned i = 0; i < rule->n_owners; i++) {
		const struct rule_owner *o = &rule->owners[i];

		if (!o->used || o->patience > 0 || !rule_has_group(rule, i, gpu)) {
			continue;
		}
		if (r.n_top == 0 || o->urgency > r.top) {
			r.top = o->urgency;
			r.n_top = 1;
			r.owner = i;
		} else if (o->urgency == r.top) {
			r.n_top++;
		}
	}
	for (unsigned i = 0; i < rule->n_owners; i++) {
		const struct rule_owner *o = &rule->owners[i];

		if (o->used && r.n_top > 0 && o->urgency < r.top && rule_has_group(rule, i, gpu)) {
			r.lower++;
			r.working += works(o, gpu, now);
		}
	}
	return r;
}

/* Whether @owner has others below it on @gpu, and none beside it. */
static bool is_between(const struct rule *rule, unsigned owner, unsigned gpu) {
	uint64_t urgency = rule->owners[owner].urgency;
	bool any_below = false;

	for (unsigned i = 0; i < rule->n_owners; i++) {
		const struct rule_owner *o = &rule->owners[i];

		if (i == owner || !o->used || o->urgency > urgency ||
		    !rule_has_group(rule, i, gpu)) {
			continue;
		}
		if (o->urgency == urgency) {
			return false;
		}
		any_below = true;
	}
	return any_below;
}

/* Of a group below the top. */
static nsec_t lower_wanted(const struct rule *rule, unsigned group, unsigned working) {
	const struct rule_group *g = &rule->groups[group];

	if (working <= 1) {
		return SLICES_SHORT_NS;
	}
	return !rule->slices_suffice[g->gpu] && rule->owners[g->owner].patience == 0 &&
			       is_between(rule, g->owner, g->gpu)
		       ? SLICES_LONG_NS
		       : 0;
}

nsec_t slices_wanted(const struct rule *rule, unsigned group, nsec_t now) {
	const struct rule_group *g = &rule->groups[group];
	const struct rule_owner *o = &rule->owners[g->owner];
	struct ranks r = rank(rule, g->gpu, now);

	if (r.lower == 0) {
		return 0;
	}
	if (o->urgency < r.top) {
		return lower_wanted(rule, group, r.working);
	}
	/* Those of equal urgency share. One that waits is no reason for anything. */
	return o->urgency == r.top && r.n_top == 1 && o->patience == 0 ? SLICES_LONG_NS : 0;
}

bool slices_top(const struct rule *rule, unsigned gpu, nsec_t now, unsigned *ret_owner,
		unsigned *ret_working) {
	struct ranks r = rank(rule, gpu, now);

	if (r.n_top != 1 || r.lower == 0) {
		return false;
	}
	*ret_owner = r.owner;
	*ret_working = r.working;
	return true;
}

nsec_t slices_again(const struct rule *rule, unsigned gpu, nsec_t now) {
	struct ranks r = rank(rule, gpu, now);

	if (r.lower < 2) {
		return RULE_NEVER;
	}
	return now + (r.working <= 1 ? LOOK_SHORT_NS : LOOK_NS);
}
