/*
 * owner.h: a program that runs by time slices on a GPU without MPS, as the process that preempts
 * (daemon/preempt) knows it: the turns of those that are less urgent are taken away while a more
 * urgent one has a job open.
 *
 * A program is asked for its channel groups. With the first one it is handed over, with its slot on
 * its user's board, where it says that it has jobs open: that process has RULE_OWNERS_MAX places,
 * and only programs that can be preempted take one (preempting.h). The descriptors of groups go to
 * that process at once: none stays here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/preempt/preempter.h"
#include "proto/limits.h"
#include "proto/units.h"

struct board_seat;
struct quota_user;
struct task_spec;

struct session_owner {
	bool offers;		    /* its library sees channel groups */
	bool told;		    /* the log, that it has none to show */
	unsigned start;		    /* of the process that its groups were asked for; 0: of none */
	bool placed;		    /* it has a place there, which is charged to its user */
	bool left_out;		    /* there was no place for it: it asks for its jobs */
	uint64_t id;		    /* by which that one knows it: the session's */
	struct preempter_rank rank; /* as that one was told */
	nsec_t needed; /* by a job of it alone, where it runs by time slices; 0: not known */
	struct {
		uint32_t client, object;
		size_t gpu;
	} groups[PROTO_GROUPS_MAX]; /* handed over */
	unsigned n_groups;
};

/* How urgent the jobs of a task of this @priority are among those of others: a job of a real-time
 * task is more urgent than one of a task that is best effort, then priority counts, then, of
 * real-time tasks, the shorter deadline; none is the longest. */
uint64_t owner_urgency(const struct task_spec *task, int priority);

/* The same under a policy that stops jobs: priority counts, then the class. */
uint64_t owner_rank(const struct task_spec *task, int priority);

/*
 * How long a job may be open before others are preempted for it, because it can still be in time:
 * until what is left to its deadline is OWNER_SLACK_TIMES as long as the job takes alone
 * (@needed), and OWNER_SLACK_NS, a time slice and some preemptions. 0: at once. So it is where a
 * job's time is not known (@needed is 0), and for a task with a period alone: its deadline was
 * given by nobody.
 */
nsec_t owner_patience(const struct task_spec *task, nsec_t needed);

#define OWNER_SLACK_TIMES 3
#define OWNER_SLACK_NS	  (4 * NSEC_PER_MSEC)

/* How long the turns of a task are where those of others are @turn: 0 for one with a deadline or a
 * period, which takes no turns. */
nsec_t owner_turn(const struct task_spec *task, nsec_t turn);

/* Whether the process that runs now wants its channel groups. @p may be NULL. */
bool owner_is_wanted(const struct session_owner *o, const struct preempter *p);

/* Sets its rank, and tells it where it was handed over. Return: whether its channel groups have to
 * be asked for: the process that runs now does not know it. */
bool owner_want(struct session_owner *o, struct preempter *p, const struct preempter_rank *rank);

/* Hands it over, and charges @user for its place; it is wanted. @pidfd: of its process; @seat: with
 * a board. Return: 0; or negative errno: the process is started again. */
int owner_hand_over(struct session_owner *o, struct preempter *p, struct quota_user *user,
		    int pidfd, const struct board_seat *seat);

/* Everything of it is forgotten there, and @user is not charged any more; it is still wanted. */
void owner_take_back(struct session_owner *o, struct preempter *p, struct quota_user *user);

/* It has as many channel groups as are taken. */
#define OWNER_E_FULL 1

/* A channel group of it, on GPU @gpu. @fd, for which preempter_is_control() holds, stays the
 * caller's. It is handed over. Return: 0, OWNER_E_FULL, or negative errno: see
 * preempter_add_group(). */
int owner_add_group(struct session_owner *o, struct preempter *p, size_t gpu, uint32_t client,
		    uint32_t object, int fd);

/* Whether it has one on @gpu. */
bool owner_has_group(const struct session_owner *o, size_t gpu);

/* The group is no more, if it was one. */
void owner_remove_group(struct session_owner *o, struct preempter *p, uint32_t client,
			uint32_t object);
