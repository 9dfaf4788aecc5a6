/*
 * rule.c: see rule.h.
 */
#include "daemon/preempt/rule.h"

#include "proto/board.h"

static uint32_t n_open(uint64_t jobs) {
	return (uint32_t)(jobs & (BOARD_JOBS_UNSEEN - 1));
}

/* It has a job open, or may have work that it does not mark. */
static bool may_have_work(uint64_t jobs) {
	return n_open(jobs) > 0 || jobs & BOARD_JOBS_UNSEEN;
}

/* The same, and it has begun some of late. */
static bool works(const struct rule_owner *o, unsigned gpu, nsec_t now) {
	return n_open(o->jobs[gpu]) > 0 ||
	       (o->jobs[gpu] & BOARD_JOBS_UNSEEN && o->unseen[gpu] > 0 &&
		(o->unseen[gpu] > now || now - o->unseen[gpu] < RULE_QUIET_NS));
}

/* When others may be preempted for @o, which has a job open. */
static nsec_t presses_at(const struct rule_owner *o, unsigned gpu) {
	return o->since[gpu] + o->patience;
}

/* Of the owners for whose open jobs others may be preempted, the highest urgency. @ret_next: when
 * another one may join them, unless something changes. Return: whether there are any. */
static bool find_top(const struct rule *rule, unsigned gpu, nsec_t now, uint64_t *ret,
		     nsec_t *ret_next) {
	bool found = false;

	*ret_next = RULE_NEVER;
	for (unsigned i = 0; i < rule->n_owners; i++) {
		const struct rule_owner *o = &rule->owners[i];

		if (!o->used || n_open(o->jobs[gpu]) == 0) {
			continue;
		}
		if (presses_at(o, gpu) > now) {
			*ret_next = presses_at(o, gpu) < *ret_next ? presses_at(o, gpu) : *ret_next;
		} else if (!found || o->urgency > *ret) {
			*ret = o->urgency;
			found = true;
		}
	}
	return found;
}

/* A job has opened: less urgent groups have had their turn again since they were last preempted. */
static void forget_turns(struct rule *rule, const struct rule_owner *opened, unsigned gpu) {
	for (unsigned i = 0; i < rule->n_groups; i++) {
		struct rule_group *g = &rule->groups[i];

		if (g->used && g->gpu == gpu && rule->owners[g->owner].urgency < opened->urgency) {
			g->began = 0;
			g->times = 0;
		}
	}
}

void rule_look(struct rule *rule, unsigned gpu, nsec_t now) {
	for (unsigned i = 0; i < rule->n_owners; i++) {
		struct rule_owner *o = &rule->owners[i];
		uint32_t opened = (uint32_t)(o->jobs[gpu] >> 32), open = n_open(o->jobs[gpu]);
		bool fresh = opened != o->seen[gpu];

		if (!o->used) {
			continue;
		}
		if (open == 0) {
			o->since[gpu] = 0;
		} else if (o->since[gpu] == 0 || (fresh && open == 1)) {
			o->since[gpu] = now;
		}
		if (fresh || works(o, gpu, now)) {
			o->worked[gpu] = now;
		}
		if (fresh && o->patience == 0) {
			forget_turns(rule, o, gpu);
		}
		o->seen[gpu] = opened;
	}
}

static bool group_works(const struct rule *rule, const struct rule_group *g, nsec_t now) {
	return works(&rule->owners[g->owner], g->gpu, now);
}

/* When @g should be preempted. */
static nsec_t turn_at(const struct rule *rule, const struct rule_group *g, nsec_t now) {
	nsec_t after = group_works(rule, g, now) ? RULE_AGAIN_NS : RULE_UNSEEN_NS;

	return g->began ? g->began + after : 0;
}

/* When the driver may be asked to. */
static nsec_t due_at(const struct rule *rule, const struct rule_group *g, nsec_t now) {
	nsec_t again = turn_at(rule, g, now);
	nsec_t pause = g->times >= RULE_BURST ? rule->ended[g->gpu] + RULE_PAUSE_NS : 0;

	return again > pause ? again : pause;
}

/* Whether @a is preempted before @b, both due. Where a job has just opened, the most urgent of the
 * others that work was on the GPU. */
static bool goes_before(const struct rule *rule, const struct rule_group *a,
			const struct rule_group *b, nsec_t now) {
	nsec_t at = turn_at(rule, a, now), other = turn_at(rule, b, now);

	if (at != other) {
		return at < other;
	}
	if (group_works(rule, a, now) != group_works(rule, b, now)) {
		return group_works(rule, a, now);
	}
	return rule->owners[a->owner].urgency > rule->owners[b->owner].urgency;
}

int rule_next(struct rule *rule, unsigned gpu, nsec_t now, nsec_t *ret_again) {
	nsec_t first;
	int found = RULE_NONE;
	uint64_t top = 0;
	bool any;

	rule_look(rule, gpu, now);
	any = find_top(rule, gpu, now, &top, &first);
	for (unsigned i = 0; any && i < rule->n_groups; i++) {
		const struct rule_group *g = &rule->groups[i];
		const struct rule_owner *o = &rule->owners[g->owner];
		nsec_t due;

		if (!g->used || g->gpu != gpu || o->urgency >= top ||
		    rule_is_off(rule, g->owner, gpu) ||
		    (rule->slices_suffice[gpu] && rule_is_short(g))) {
			continue;
		}
		/* One without work may have some soon, and doesn't ring. */
		due = may_have_work(o->jobs[gpu]) ? due_at(rule, g, now) : now + RULE_AGAIN_NS;
		first = due < first ? due : first;
		if (due <= now &&
		    (found == RULE_NONE || goes_before(rule, g, &rule->groups[found], now))) {
			found = (int)i;
		}
	}
	*ret_again = first;
	return found;
}

void rule_done(struct rule *rule, int group, nsec_t began, nsec_t ended) {
	rule->groups[group].began = began;
	rule->groups[group].times++;
	rule->ended[rule->groups[group].gpu] = ended;
}

int rule_add_owner(struct rule *rule, uint64_t urgency, nsec_t patience) {
	unsigned i = 0;

	while (i < RULE_OWNERS_MAX && rule->owners[i].used) {
		i++;
	}
	if (i == RULE_OWNERS_MAX) {
		return -1;
	}
	rule->owners[i] =
		(struct rule_owner){.used = true, .urgency = urgency, .patience = patience};
	rule->n_owners = i >= rule->n_owners ? i + 1 : rule->n_owners;
	return (int)i;
}

int rule_add_group(struct rule *rule, unsigned owner, unsigned gpu) {
	unsigned i = 0;

	while (i < RULE_GROUPS_MAX && rule->groups[i].used) {
		i++;
	}
	if (i == RULE_GROUPS_MAX || gpu >= PROTO_GPUS_MAX) {
		return -1;
	}
	rule->groups[i] = (struct rule_group){.used = true, .owner = owner, .gpu = gpu};
	rule->n_groups = i >= rule->n_groups ? i + 1 : rule->n_groups;
	return (int)i;
}

bool rule_is_short(const struct rule_group *g) {
	return g->slice > 0 && g->slice <= RULE_SHORT_SLICE_NS;
}

bool rule_is_off(const struct rule *rule, unsigned owner, unsigned gpu) {
	const struct rule_owner *o = &rule->owners[owner];

	return o->waits[gpu] && o->turn_state[gpu] & BOARD_TURN_OFF;
}

bool rule_has_group(const struct rule *rule, unsigned owner, unsigned gpu) {
	for (unsigned i = 0; i < rule->n_groups; i++) {
		const struct rule_group *g = &rule->groups[i];

		if (g->used && g->owner == owner && g->gpu == gpu) {
			return true;
		}
	}
	return false;
}

bool rule_has_groups(const struct rule *rule, unsigned gpu) {
	for (unsigned i = 0; i < rule->n_groups; i++) {
		if (rule->groups[i].used && rule->groups[i].gpu == gpu) {
			return true;
		}
	}
	return false;
}

void rule_remove_owner(struct rule *rule, unsigned owner) {
	rule->owners[owner].used = false;
	for (unsigned i = 0; i < rule->n_groups; i++) {
		if (rule->groups[i].owner == owner) {
			rule->groups[i].used = false;
		}
	}
}
