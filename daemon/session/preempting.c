/*
 * preempting.c: see preempting.h.
 */
#include "daemon/session/preempting.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/preempt/known.h"
#include "daemon/preempt/preempter.h"
#include "daemon/preempt/rule.h"
#include "daemon/session/session-say.h"
#include "daemon/session/session-task.h"
#include "daemon/session/session.h"

uint64_t preempting_urgency(const struct session *s) {
	bool stops = sched_get_policy(engine_sched(s->all->engine))->stops;

	return (stops ? owner_rank : owner_urgency)(&s->task, session_task_priority(s));
}

bool preempting_is_sliced(const struct sessions *all, size_t gpu) {
	return inventory_gpu(all->inventory, gpu)->sharing != SCHED_SHARING_MPS;
}

/* What was found out about GPUs. */
static void keep_effects(const struct preempting *p) {
	const struct inventory *inventory = p->sessions->inventory;
	const struct preempter *preempter = p->sessions->preempter;
	struct order_report report;
	int r;

	if (!preempter) {
		return;
	}
	report = preempter_report(preempter);
	for (size_t i = 0; i < inventory_n_gpus(inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(inventory, i);

		if (report.gpus[i].effect_ns[0][EFFECT_LEFT] == 0) {
			continue;
		}
		r = known_save(p->state, gpu->uuid, gpu->driver, &report.gpus[i]);
		if (r < 0) {
			log_warning("Can't keep in '%s' what preempting does on GPU %zu: %s",
				    p->state, i, strerror(-r));
		}
	}
}

void preempting_init(struct preempting *p, struct sessions *sessions, struct event_base *base,
		     bool may_start, nsec_t turn, const char *state) {
	*p = (struct preempting){
		.sessions = sessions, .base = base, .may_start = may_start, .turn = turn};
	snprintf(p->state, sizeof(p->state), "%s", state);
}

void preempting_deinit(struct preempting *p) {
	keep_effects(p);
	p->sessions->preempter = preempter_free(p->sessions->preempter);
}

/* Where a GPU that is there is not shared through MPS. */
static void start(struct preempting *p, void (*changed)(void *userdata), void *userdata) {
	const struct inventory *inventory = p->sessions->inventory;
	bool any = false, simulated = true;
	int r;

	for (size_t i = 0; i < inventory_n_gpus(inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(inventory, i);

		any |= preempting_is_sliced(p->sessions, i) && !gpu->fixed;
		simulated &= gpu->simulated;
	}
	if (!any || !p->may_start || !(p->policy->steers || p->policy->stops)) {
		return;
	}
	p->may_start = false; /* once */
	r = preempter_new(&p->sessions->preempter, p->base, simulated, changed, userdata);
	if (r < 0) {
		p->failed = true;
		log_warning(
			"programs are not preempted without MPS, they ask for their jobs "
			"there: %s",
			strerror(-r));
	}
}

/* The first jobs on a GPU show what preempting does for them; a policy that stops jobs relies on
 * it.
 */
static void tell_effects(struct preempting *p) {
	struct preempter *preempter = p->sessions->preempter;

	if (!preempter_works(preempter) ||
	    (preempter_starts(preempter) == p->told_start && p->policy == p->told_policy)) {
		return;
	}
	for (size_t i = 0; i < inventory_n_gpus(p->sessions->inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(p->sessions->inventory, i);
		struct order_gpu known = {0};
		int r = known_load(p->state, gpu->uuid, gpu->driver, &known);

		if (r < 0 && r != -ENOENT) {
			log_warning(
				"What '%s' keeps of preempting on GPU %zu can't be read, it is "
				"found out again: %s",
				p->state, i, strerror(-r));
		}
		preempter_set_effect(preempter, (unsigned)i, p->policy->steers, &known);
	}
	p->told_start = preempter_starts(preempter);
	p->told_policy = p->policy;
}

void preempting_start(struct preempting *p, const struct sched_policy *policy,
		      void (*changed)(void *userdata), void *userdata) {
	p->policy = policy;
	if (!p->sessions->preempter) {
		start(p, changed, userdata);
	}
	tell_effects(p);
}

/* ---- places ---- */

static uint64_t n_places(const struct session *s) {
	return quota_charged(s->user, QUOTA_PREEMPTED);
}

/* Of the programs that have a place, the least urgent of a user that has the most; NULL: none has
 * one. */
static struct session *find_richest(const struct sessions *all, unsigned *ret_taken) {
	struct session *s, *found = NULL;
	unsigned n = 0;

	TAILQ_FOREACH(s, &all->list, link) {
		if (!s->owner.placed) {
			continue;
		}
		n++;
		if (!found || n_places(s) > n_places(found) ||
		    (n_places(s) == n_places(found) &&
		     s->owner.rank.urgency <= found->owner.rank.urgency)) {
			found = s;
		}
	}
	*ret_taken = n;
	return found;
}

static void take_back(struct session *s) {
	owner_take_back(&s->owner, s->all->preempter, s->user);
}

/* It is not preempted any more. */
static void unwant(struct session *s) {
	take_back(s);
	s->owner.start = 0;
}

/* It asks for its jobs. */
static void leave_out(struct session *s, const char *why) {
	unwant(s);
	s->owner.left_out = true;
	log_client(quota_log(s->user), LOG_LEVEL_WARNING,
		   "session %llu (pid %d, '%s') can't be preempted: %s; it asks for its jobs",
		   (unsigned long long)s->id, s->cred.pid, s->task.name, why);
	session_tell(s, SESSION_EVENT_TERMS, NULL);
}

/* Whether @s could have a place; then *@ret_instead is the program that loses it, or NULL. */
static bool may_have_place(const struct session *s, struct session **ret_instead) {
	unsigned taken;
	struct session *richest = find_richest(s->all, &taken);

	*ret_instead = taken < RULE_OWNERS_MAX ? NULL : richest;
	return taken < RULE_OWNERS_MAX || n_places(richest) > n_places(s) + 1;
}

/* Return: 0; -EBUSY: there is none; or another negative errno. */
static int take_place(struct session *s) {
	struct session *instead;

	if (!may_have_place(s, &instead)) {
		return -EBUSY;
	}
	if (instead) {
		leave_out(instead, "another user's program needs its place, and its user has more");
	}
	return owner_hand_over(&s->owner, s->all->preempter, s->user, s->pidfd, &s->seat);
}

void preempting_need_place(struct session *s) {
	if (take_place(s) == -EBUSY) {
		leave_out(s, "all places are taken, by users that have no more of them");
	}
}

/* ---- all programs ---- */

/* Where its jobs run by time slices, or are stopped by those of others. */
static bool runs_sliced(const struct preempting *p, const struct session *s) {
	size_t n = inventory_n_gpus(p->sessions->inventory);

	for (size_t i = 0; i < n; i++) {
		if (s->terms.now[i].sliced ||
		    (p->policy->stops && preempting_is_sliced(p->sessions, i))) {
			return true;
		}
	}
	return false;
}

/* Without one its jobs are not heard of. May end the session. Return: whether it has one. */
static bool need_board(struct session *s) {
	if (!s->seat.board && board_join(&s->all->boards, s->cred.uid, &s->seat) == 0) {
		session_say_board(s);
	}
	return s->seat.board;
}

/* It runs by time slices. May end the session. */
static void hand_over(const struct preempting *p, struct session *s) {
	struct preempter *preempter = s->all->preempter;
	struct preempter_rank rank;

	if (!preempter_works(preempter) || !s->owner.offers || s->owner.left_out || s->pidfd < 0 ||
	    s->fd < 0 || s->state != SESSION_ACTIVE) {
		return;
	}
	if (!need_board(s)) {
		if (s->fd >= 0) {
			leave_out(s, "its user has as many programs with a board as there may be");
		}
		return;
	}
	rank = (struct preempter_rank){
		.urgency = preempting_urgency(s),
		.patience = owner_patience(&s->task, s->owner.needed),
		.turn = p->policy->steers ? owner_turn(&s->task, p->turn) : 0,
	};
	if (owner_want(&s->owner, preempter, &rank)) {
		session_say_want_groups(s, p->turn > 0);
	}
}

/* It was left out. May end the session. */
static void readmit(const struct preempting *p, struct session *s) {
	const struct preempter_rank rank = s->owner.rank;
	struct session *instead;

	if (s->fd < 0 || s->state != SESSION_ACTIVE || !may_have_place(s, &instead) ||
	    !need_board(s)) {
		return;
	}
	s->owner.left_out = false;
	owner_want(&s->owner, s->all->preempter, &rank);
	take_place(s);
	session_tell(s, SESSION_EVENT_TERMS, NULL);
	session_say_want_groups(s, p->turn > 0);
}

void preempting_readmit(struct preempting *p) {
	struct sessions *all = p->sessions;
	struct session *s, *next;

	TAILQ_FOREACH(s, &all->list, link) {
		if (!owner_is_wanted(&s->owner, all->preempter)) {
			take_back(s); /* the process that it had it in is gone */
		}
	}
	for (s = TAILQ_FIRST(&all->list); s && preempter_works(all->preempter); s = next) {
		next = TAILQ_NEXT(s, link);
		if (s->owner.left_out) {
			readmit(p, s); /* may end it */
		}
	}
}

void preempting_hand_over(struct preempting *p) {
	struct sessions *all = p->sessions;
	struct session *s, *next;

	for (s = TAILQ_FIRST(&all->list); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (runs_sliced(p, s)) {
			hand_over(p, s); /* may end it */
		} else {
			unwant(s);
		}
	}
}

nsec_t preempting_turn(const struct preempting *p, size_t gpu) {
	const struct sessions *all = p->sessions;

	return preempting_is_sliced(all, gpu) && preempter_works(all->preempter) &&
			       sched_get_policy(engine_sched(all->engine))->steers
		       ? p->turn
		       : 0;
}

const char *preempting_state(const struct preempting *p, size_t gpu, unsigned *ret_programs) {
	const struct sessions *all = p->sessions;
	const struct session *s;
	struct order_gpu done;

	*ret_programs = 0;
	if (!preempting_is_sliced(p->sessions, gpu)) {
		return "mps";
	}
	if (!sched_get_policy(engine_sched(all->engine))->steers &&
	    !sched_get_policy(engine_sched(all->engine))->stops) {
		return "policy";
	}
	if (!all->preempter) {
		return p->failed ? "failed" : "off";
	}
	if (!preempter_works(all->preempter)) {
		return preempter_failure(all->preempter);
	}
	TAILQ_FOREACH(s, &all->list, link) {
		*ret_programs += owner_has_group(&s->owner, gpu);
	}
	done = preempter_report(all->preempter).gpus[gpu];
	return done.preempted > 0  ? "works"
	       : done.refused > 0  ? "refused"
	       : *ret_programs > 0 ? "ready"
				   : "unseen";
}

const char *preempting_session_state(const struct session *s) {
	const struct preempter *preempter = s->all->preempter;

	return !preempter_works(preempter)		? ""
	       : s->owner.left_out			? "no-place"
	       : !owner_is_wanted(&s->owner, preempter) ? ""
	       : s->owner.placed			? "yes"
							: "unseen";
}
