/*
 * owner.c: see owner.h.
 */
#include "daemon/session/owner.h"

#include "daemon/base/quota.h"
#include "daemon/preempt/preempter.h"
#include "daemon/session/board.h"
#include "proto/task-spec.h"

/* From the highest bits: class, priority, deadline. */
#define CLASS_SHIFT    63
#define PRIORITY_SHIFT 50
#define DEADLINE_MAX   ((UINT64_C(1) << PRIORITY_SHIFT) - 1)

_Static_assert(PROTO_PERIOD_MAX_NS < DEADLINE_MAX, "deadlines have room");
_Static_assert(PROTO_PRIORITY_MAX - PROTO_PRIORITY_MIN < 1 << (CLASS_SHIFT - PRIORITY_SHIFT),
	       "priorities have room");

uint64_t owner_urgency(const struct task_spec *task, int priority) {
	uint64_t u = (uint64_t)(priority - PROTO_PRIORITY_MIN) << PRIORITY_SHIFT;

	if (task->task_class != SBEET__TASK_CLASS__TASK_CLASS_REALTIME) {
		return u;
	}
	return u | UINT64_C(1) << CLASS_SHIFT |
	       (task->deadline > 0 ? DEADLINE_MAX - task->deadline : 0);
}

uint64_t owner_rank(const struct task_spec *task, int priority) {
	bool realtime = task->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME;

	return (uint64_t)(priority - PROTO_PRIORITY_MIN) << 1 | realtime;
}

bool owner_is_wanted(const struct session_owner *o, const struct preempter *p) {
	return o->start != 0 && o->start == preempter_starts(p);
}

nsec_t owner_patience(const struct task_spec *task, nsec_t needed) {
	nsec_t left = OWNER_SLACK_TIMES * needed + OWNER_SLACK_NS;

	if (needed == 0 || task->deadline <= left ||
	    (task->period > 0 && task->deadline >= task->period)) {
		return 0;
	}
	return task->deadline - left;
}

nsec_t owner_turn(const struct task_spec *task, nsec_t turn) {
	return task->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME || task->deadline > 0 ||
			       task->period > 0
		       ? 0
		       : turn;
}

bool owner_want(struct session_owner *o, struct preempter *p, const struct preempter_rank *rank) {
	bool changed = rank->urgency != o->rank.urgency || rank->patience != o->rank.patience ||
		       rank->turn != o->rank.turn;

	o->rank = *rank;
	if (owner_is_wanted(o, p)) {
		if (changed && o->placed) {
			preempter_set_rank(p, o->id, rank);
		}
		return false;
	}
	o->start = preempter_starts(p);
	return true;
}

int owner_hand_over(struct session_owner *o, struct preempter *p, struct quota_user *user,
		    int pidfd, const struct board_seat *seat) {
	int r = preempter_add_owner(p, o->id, &o->rank, pidfd, board_fd(seat), seat->slot);

	if (r == 0) {
		o->placed = true;
		quota_charge(user, QUOTA_PREEMPTED, 1); /* it has no limit */
	}
	return r;
}

void owner_take_back(struct session_owner *o, struct preempter *p, struct quota_user *user) {
	if (!o->placed) {
		return;
	}
	if (owner_is_wanted(o, p)) {
		preempter_remove_owner(p, o->id);
	}
	quota_release(user, QUOTA_PREEMPTED, 1);
	o->placed = false;
	o->n_groups = 0;
}

/* Its index, or the number of groups. */
static unsigned find_group(const struct session_owner *o, uint32_t client, uint32_t object) {
	unsigned i = 0;

	while (i < o->n_groups &&
	       (o->groups[i].client != client || o->groups[i].object != object)) {
		i++;
	}
	return i;
}

int owner_add_group(struct session_owner *o, struct preempter *p, size_t gpu, uint32_t client,
		    uint32_t object, int fd) {
	int r;

	if (find_group(o, client, object) < o->n_groups) {
		return 0;
	}
	if (o->n_groups == PROTO_GROUPS_MAX) {
		return OWNER_E_FULL;
	}
	r = preempter_add_group(p, o->id, (unsigned)gpu, client, object, fd);
	if (r < 0) {
		return r;
	}
	o->groups[o->n_groups].gpu = gpu;
	o->groups[o->n_groups].client = client;
	o->groups[o->n_groups++].object = object;
	return 0;
}

bool owner_has_group(const struct session_owner *o, size_t gpu) {
	for (unsigned i = 0; i < o->n_groups; i++) {
		if (o->groups[i].gpu == gpu) {
			return true;
		}
	}
	return false;
}

void owner_remove_group(struct session_owner *o, struct preempter *p, uint32_t client,
			uint32_t object) {
	unsigned i = find_group(o, client, object);

	if (i < o->n_groups) {
		o->groups[i] = o->groups[--o->n_groups];
		preempter_remove_group(p, o->id, client, object);
	}
}
