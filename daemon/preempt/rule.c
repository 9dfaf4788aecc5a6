/*
 * rule.c: see rule.h.
 */
#include "daemon/preempt/rule.h"

#include "proto/board.h"

static uint32_t n_open(uint64_t jobs) {
	return (uint32_t)(jobs & (BOARD_JOBS_UNSEEN - 1));
}

static bool has_work(uint64_t jobs) {
	return n_open(jobs) > 0 || jobs & BOARD_JOBS_UNSEEN;
}

/* Of the owners with a job open on @gpu, the highest. Return: whether there are any. */
static bool find_top(const struct rule *rule, unsigned gpu, uint64_t *ret) {
	bool found = false;

	for (unsigned i = 0; i < rule->n_owners; i++) {
		const struct rule_owner *o = &rule->owners[i];

		if (o->used && n_open(o->jobs[gpu]) > 0 && (!found || o->urgency > *ret)) {
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
		}
	}
}

static void note_opened(struct rule *rule) {
	for (unsigned i = 0; i < rule->n_owners; i++) {
		struct rule_owner *o = &rule->owners[i];

		for (unsigned gpu = 0; o->used && gpu < PROTO_GPUS_MAX; gpu++) {
			uint32_t opened = (uint32_t)(o->jobs[gpu] >> 32);

			if (opened != o->seen[gpu]) {
				o->seen[gpu] = opened;
				forget_turns(rule, o, gpu);
			}
		}
	}
}

/* When @g may be preempted. */
static nsec_t due_at(const struct rule *rule, const struct rule_group *g) {
	nsec_t again = g->began ? g->began + RULE_AGAIN_NS : 0;
	nsec_t pause = rule->ended ? rule->ended + RULE_PAUSE_NS : 0;

	return again > pause ? again : pause;
}

int rule_next(struct rule *rule, nsec_t now, nsec_t *ret_again) {
	uint64_t top[PROTO_GPUS_MAX];
	bool any[PROTO_GPUS_MAX];
	nsec_t first = RULE_NEVER, oldest = RULE_NEVER;
	int found = RULE_NONE;

	note_opened(rule);
	for (unsigned gpu = 0; gpu < PROTO_GPUS_MAX; gpu++) {
		any[gpu] = find_top(rule, gpu, &top[gpu]);
	}
	for (unsigned i = 0; i < rule->n_groups; i++) {
		const struct rule_group *g = &rule->groups[i];
		const struct rule_owner *o = &rule->owners[g->owner];
		nsec_t due;

		if (!g->used || !any[g->gpu] || o->urgency >= top[g->gpu]) {
			continue;
		}
		/* One without work may have some soon, and doesn't ring. */
		due = has_work(o->jobs[g->gpu]) ? due_at(rule, g) : now + RULE_AGAIN_NS;
		first = due < first ? due : first;
		if (due <= now && g->began < oldest) {
			oldest = g->began;
			found = (int)i;
		}
	}
	*ret_again = first;
	return found;
}

void rule_done(struct rule *rule, int group, nsec_t began, nsec_t ended) {
	rule->groups[group].began = began;
	rule->ended = ended;
}

int rule_add_owner(struct rule *rule, uint64_t urgency) {
	unsigned i = 0;

	while (i < RULE_OWNERS_MAX && rule->owners[i].used) {
		i++;
	}
	if (i == RULE_OWNERS_MAX) {
		return -1;
	}
	rule->owners[i] = (struct rule_owner){.used = true, .urgency = urgency};
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

void rule_remove_owner(struct rule *rule, unsigned owner) {
	rule->owners[owner].used = false;
	for (unsigned i = 0; i < rule->n_groups; i++) {
		if (rule->groups[i].owner == owner) {
			rule->groups[i].used = false;
		}
	}
}
