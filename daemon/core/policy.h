/*
 * policy.h: what a policy may see and do; included by the core only. What it sees is in books.c,
 * grants are in grant.c and fill.c, explanations in explain-job.c.
 *
 * A policy walks the waiting jobs, looks at the GPUs through sched.h, and hands out SMs with
 * policy_grant(), which keeps the state's books. It allocates nothing and keeps nothing between
 * decisions but what stands in the state.
 */
#pragma once

#include "daemon/core/explain.h"
#include "daemon/core/state.h"
#include "daemon/core/task.h"
#include "daemon/core/waiting.h"

/* Policy `steer` decides as this one does. */
extern const struct sched_policy policy_lookahead;

/* The first of the waiting jobs in the order of their arrival, best-effort owners in turn (see
 * sched_arrive()), without those that need a GPU which can start nothing now; SCHED_JOB_NONE: there
 * is none. waiting_next() has the others. Of them, the one that was returned last may be granted.
 */
sched_job_id policy_first_waiting(const struct sched *s, struct waiting_walk *ret_walk);

/* The order of the ready queue, as params.queue says; ties in order of arrival. */
bool policy_goes_before(const struct sched *s, const struct sched_job *a,
			const struct sched_job *b);

/* The declared tasks and the queue of their releases. Only distribute() changes anything there: the
 * tasks' homes. */
struct task_table *policy_tasks(struct sched *s);

/* Whether @job may run on this GPU: it asks for it or for any, and if its task is planned with,
 * that has a profile there. */
bool policy_may_use(const struct sched *s, const struct sched_job *job, size_t gpu);

/* Whether the sharing mode lets @job run beside what runs on this GPU now. */
bool policy_may_share(const struct sched *s, size_t gpu, const struct sched_job *job);

/* NULL: there is none. */
struct timetable;
struct timetable *policy_timetable(struct sched *s);

/*
 * Gives @sms of @gpu to the waiting job @id and adds the action.
 * @slot must be free, @sms not empty and free, the sharing mode kept; a job that is not divisible
 * gets the whole GPU. All this is asserted: a policy that errs is our bug, never a client's.
 * The job's end is predicted where its task has a profile.
 */
void policy_grant(struct sched *s, sched_job_id id, size_t gpu, unsigned slot,
		  const struct smset *sms, nsec_t now, struct sched_actions *actions);

/*
 * Stops the running job for the waiting job @by: adds the action. Nothing may have stopped it yet,
 * and something must be able to (sched_job.stop). It keeps its slot and SMs until sched_stopped();
 * then it waits again, and goes on when it is granted. How long that takes depends on what stops
 * it.
 */
void policy_stop(struct sched *s, sched_job_id id, sched_job_id by, struct sched_actions *actions);

/* Whether @a goes before @b. */
typedef bool (*policy_before_fn)(const struct sched *s, const struct sched_job *a,
				 const struct sched_job *b);

/* Each idle GPU, whole, to the waiting job that may use it and goes before all others. */
void policy_start_whole(struct sched *s, policy_before_fn before, nsec_t now,
			struct sched_actions *actions);

/* As policy_first_waiting(), but of all that wait for a GPU which is not drained. */
sched_job_id policy_first_of_all(const struct sched *s, struct waiting_walk *ret_walk);

/* The number of SMs that jobs may still be given on a GPU, within its limit and in whole steps. */
unsigned policy_room(const struct sched *s, size_t gpu);

/* How many of them @job may have: all, or, if it can't be divided, the whole idle GPU whatever its
 * limit, or 0: also if they are fewer than it wants at least. */
unsigned policy_offer(const struct sched *s, size_t gpu, const struct sched_job *job);

/* The fewest SMs of a GPU that the divisible job may be given: see task_least_sms(). */
unsigned policy_least(const struct sched *s, size_t gpu, const struct sched_job *job);

/* A slot of the GPU that may be used, within sched_slots(), or -1. */
int policy_free_slot(const struct sched *s, size_t gpu);

/*
 * policy_grant() for @n_sms SMs, at most policy_offer(), or for as many as the job wants at least.
 * Which ones: slot 0 takes the lowest free SMs within the GPU's limit, others the highest, so as
 * long as there are two, each job's are contiguous, and what is left between them too. On a GPU of
 * groups, see groups.h.
 */
void policy_start(struct sched *s, sched_job_id id, size_t gpu, unsigned slot, unsigned n_sms,
		  nsec_t now, struct sched_actions *actions);

/* Decide again at @time, if nothing happens before. The soonest of a decision counts. */
void policy_look_at(struct sched *s, nsec_t time);

/* ---- explanations; all of it does nothing unless somebody has asked for them ---- */

/* For explain_begin() and the like; NULL: nobody has asked. */
struct explain *policy_explain(const struct sched *s);

/* The job is left waiting. The first reason given in a decision counts; a policy need not give any:
 * then it is policy_obstacle(). */
void policy_wait(struct sched *s, sched_job_id id, enum explain_reason reason, nsec_t now);

/* What keeps @job from starting now, judged by the GPUs that it may use: EXPLAIN_WAIT_DRAINED if
 * all of them are drained; else, of those that are not, EXPLAIN_WAIT_TURN if one has room, _FULL if
 * one may be shared, _OWNER. */
enum explain_reason policy_obstacle(const struct sched *s, const struct sched_job *job);

/* What is predicted of the job if it starts there now and nothing after. */
struct explain_try policy_predict_place(const struct sched *s, sched_job_id id, size_t gpu,
					unsigned n_sms, nsec_t now);

/* explain_try() with that. */
void policy_try_place(struct sched *s, sched_job_id id, size_t gpu, unsigned n_sms, nsec_t now);

/*
 * Starts jobs about which nothing is known, in order of arrival, on GPUs where no job with a
 * deadline wants to go: @wanted[k] says that one waits for GPU k. As such a job may run for long,
 * it gets at most half of a GPU as long as real-time tasks are declared, unless it can't be
 * divided or wants more at least.
 */
void policy_fill(struct sched *s, const bool *wanted, nsec_t now, struct sched_actions *actions);

/* Whether a job with a profile waits for each GPU: see policy_fill(). */
void policy_wanted(struct sched *s, bool ret_wanted[static SCHED_GPUS_MAX]);
