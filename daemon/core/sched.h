/*
 * sched.h: the pure scheduling interface. State in, actions out.
 *
 * No I/O, no clock, no globals, no logging, and no allocation while deciding: the same state and
 * the same time give the same actions, so any trace replays exactly. The daemon's engine uses it
 * live, the simulator in virtual time.
 *
 * The caller owns the state and reports what happened (arrival, completion, GPUs) through the
 * functions below; sched_decide() alone hands out SMs, and records in the state what it handed out,
 * so a caller only has to carry the actions out.
 */
#pragma once

#include "daemon/core/groups.h"
#include "daemon/core/params.h"
#include "daemon/core/state.h"

/* Room for @max_jobs waiting and running jobs, all allocated here. Return: 0, -ENOMEM, -EINVAL. */
int sched_new(struct sched **ret, const struct sched_policy *policy, size_t max_jobs);
struct sched *sched_free(struct sched *s);

/* Return: the new GPU's index, -ENOSPC, or -EINVAL (0 or more than 256 SMs). */
int sched_add_gpu(struct sched *s, unsigned n_sms, enum sched_sharing sharing);
void sched_set_policy(struct sched *s, const struct sched_policy *policy);

struct timetable;

/* The schedule of policy `table`, checked for these GPUs (timetable.h). It must outlive @s, which
 * notes there what it has served. */
void sched_set_timetable(struct sched *s, struct timetable *t);

/* Return: 0; -EINVAL for no such GPU, a limit above its SMs or of 0, or a step of 0. What is derived
 * of it for tasks that are there already is derived anew. */
int sched_set_gpu_model(struct sched *s, size_t gpu, const struct sched_gpu_model *model);

/* The GPU is shared otherwise from now on: what is granted; what runs there goes on. Its model is
 * to be set again, and its jobs with sched_set_apart(). */
void sched_set_sharing(struct sched *s, size_t gpu, enum sched_sharing sharing);

/* The job, whose process may have become a client of MPS or be none any more. @divisible: as far as
 * it can be by now; a job that runs, or was not divisible before, stays as it is. */
void sched_set_apart(struct sched *s, sched_job_id id, uint32_t apart, bool divisible);

/* From now on no job starts on this GPU, or jobs start again. What runs there goes on. */
void sched_drain_gpu(struct sched *s, size_t gpu, bool drain);

/* Jobs of allocation @id (1 to SCHED_ALLOCATIONS_MAX) that start on GPU @gpu from now on may use
 * @sms only, and no policy decides about them: see allocated.h. Empty: any SM. */
void sched_set_allocation(struct sched *s, unsigned id, size_t gpu, const struct smset *sms);

/* Return: 0, or -EINVAL for a value outside its range. */
int sched_set_params(struct sched *s, const struct sched_params *params);

/*
 * Declares a task. Of @task only period to fixed_sms are read. Return: 0; -EINVAL (deadline beyond
 * the period, a fixed place that is not on the GPU, a profile shorter than the GPU's limit);
 * -ENOSPC; -ENOMEM. May allocate: not to be called while deciding.
 */
int sched_add_task(struct sched *s, const struct sched_task *task, sched_task_id *ret_id);

/* Its jobs that still wait or run become jobs of no task. */
void sched_remove_task(struct sched *s, sched_task_id id);

/* The policy's offline part (Alg. 4 for sbeet-mg, a partition for others): gives each task a home.
 * To be called after tasks, GPUs or the policy changed. O(n log n) for n tasks; stgm's choice of
 * SMs is quadratic while their utilisations sum up to 1 at most. */
void sched_distribute(struct sched *s);

/*
 * For tasks whose jobs can't move: chooses the GPU for all jobs of @id, by the policy's offline
 * part, or where it has none by Alg. 4. Tasks that have been placed, or whose last job asked for a
 * GPU, stay there and count. Return: the GPU, on which the task's jobs are expected from now on; -1
 * if the policy leaves that to the programs, or the task has no profile or a job already.
 */
int sched_place(struct sched *s, sched_task_id id);

/*
 * A running job's kernel is over: its slot and SMs are free, its last copy runs on outside.
 *
 * For the simulator so far: the daemon does not call it, because the shim seldom knows. A program
 * that launches and then copies back waits once, for both, and only a question to the driver more
 * (a synchronisation before the copy, or an event behind the kernel) would tell when the kernel was
 * over. Without one it is known only where a program waits for a stream that has all its kernels
 * while copies of the job go on in another one.
 */
void sched_release_sms(struct sched *s, sched_job_id id);

/*
 * A job is released. Of @job only task to label are read. Return: 0; -ENOSPC; -EINVAL: no such task
 * or GPU, or none of its GPUs that its task has a profile for.
 *
 * Jobs wait in order of arrival, but for best-effort jobs of several owners: they take turns
 * (start-time fair queueing, each job a turn). A job's turn is that of the last best-effort job
 * granted, or one more than that of the last job of its owner that waits, whichever is more; it
 * goes before best-effort jobs of later turns, not before real-time ones. So who asks for hundreds
 * of jobs at once is served one job later by each other owner's, and nobody waits for more than one
 * job of each owner and what is ahead of him in his own.
 */
int sched_arrive(struct sched *s, const struct sched_job *job, sched_job_id *ret_id);

/*
 * A job comes that was granted before, by a scheduler that is no more: it runs from now on, on just
 * these SMs. Of @job what sched_arrive() reads, and gpu, slot, sms and granted.
 * Return: 0; -EBUSY: the slot or an SM is taken, or the GPU may not be shared so; else as
 * sched_arrive().
 */
int sched_adopt(struct sched *s, const struct sched_job *job, sched_job_id *ret_id);

/* The running job is another owner's from now on, with this label, and @stop can stop it; whoever
 * was told to stop it is no more. */
void sched_set_owner(struct sched *s, sched_job_id id, uint64_t owner, const char *label,
		     enum sched_stop stop);

/* What can stop the running job changes, and how long that took at most so far (ns; 0: unknown). */
void sched_set_stop(struct sched *s, sched_job_id id, enum sched_stop stop, nsec_t takes);

/* The running job has been stopped as a policy wanted (SCHED_ACTION_STOP): nothing of it is on the
 * GPU any more. Its SMs are free, and it waits for the same GPU again, behind those who wait.
 * (Where its program asks again for the rest of the job, that is sched_finish(), and later
 * sched_arrive() with `continued`.) */
void sched_stopped(struct sched *s, sched_job_id id);

/* The same for a job whose work stays on the GPU, in gaps or behind that of others: it gets no part
 * of a GPU later, but the whole one. */
void sched_put_aside(struct sched *s, sched_job_id id);

/*
 * A job is @completed, or cancelled, or its process dead; its SMs are free from now on. The
 * explanations tell when it ended and whether it was complete.
 *
 * What complete jobs take beside their profiles is learned here: to open and close a job, to switch
 * to its SMs, to wait for copies of others. Each task has its own overhead, near the longest of its
 * recent jobs, which later ones are expected to take as well: up by a quarter of what is lacking,
 * down by a thirty-second. One job counts for no more than a quarter of what its profile says.
 */
void sched_finish(struct sched *s, sched_job_id id, nsec_t now, bool completed);

/* Keeps the last @n decisions about jobs with their reasons (explain.h) from now on; 0: none any
 * more. Has no effect on decisions. Return: 0, -ENOMEM. */
int sched_set_explain(struct sched *s, size_t n);

/*
 * When to decide again though no job has come or ended, because the policy leaves a job waiting
 * that could start; 0: not before something happens. This is the next release that the policy
 * expects. If that is overdue, an eighth of the time is waited that the job has left to start, so
 * that it is looked at more often as its time runs out; never sooner than a millisecond.
 */
nsec_t sched_next_look(const struct sched *s);

/* When the next job that holds SMs reaches its predicted end; 0: none has a prediction. */
nsec_t sched_next_overrun(const struct sched *s);

/* Marks the jobs that hold SMs and are past their predicted ends at @now: they keep their SMs, and
 * are expected to go on for an eighth of the time that they have run. Return: whether any was
 * marked or put off again: then sched_decide() has something new to consider. */
bool sched_mark_overruns(struct sched *s, nsec_t now);

/* Whether a job waits for the GPU of the running job @id that doesn't have to wait for it for ever.
 */
bool sched_is_awaited(const struct sched *s, sched_job_id id);

/* The turn of the best-effort job that was granted last: see sched_arrive(). */
uint64_t sched_turn(const struct sched *s);

/* NULL if none are kept. */
const struct explain *sched_explain(const struct sched *s);

/* To be called after each arrival and completion (one call may cover several), and at
 * sched_next_look(). */
void sched_decide(struct sched *s, nsec_t now, struct sched_actions *ret_actions);
