/*
 * sbeet.h: SM allocation and schedule generation of sBEET (Alg. 2 and 3), on one GPU for one job,
 * as sbeet and sbeet-mg use them.
 *
 * What the text leaves open is decided by params.reading:
 *
 *  literal  As printed: Q^w holds the jobs that wait and those released before f(m'). They start
 *           one after the other, the first when one of the running jobs is over (lines 8 and 16);
 *           one that finds no free SM then is ignored, and generation ends at t_fin.
 *  authors  As the authors' published code behaves: it reads the occupied count of an empty slot,
 *           so no job of Q^w ever enters the schedule, and SM counts are tried in steps of 4.
 *  fit      Jobs that find no SM start when SMs come free, also after t_fin, and count: what is
 *           ignored in the text includes everybody behind a job on all SMs, and Example 5 fails.
 *           And a job that is late on m_opt SMs gets more, if there are, as does one that makes
 *           others late: where an idle SM costs nothing, as on an H200, m_opt may be so few that no
 *           deadline can be met, and a queue grows while most of the GPU is empty.
 *           And a job that makes others late starts all the same if no fewer jobs, itself included,
 *           are late when it waits until those have gone. The text starts it only if all are in
 *           time (line 21), so two jobs can wait for each other until both are late.
 *
 *           And no GPU is left idle beside a late job that it can help: by the same rule a job
 *           starts that is late itself, where it ends no later than if it waited for all SMs. Of
 *           several places for a late job the one counts where it ends first, not the cheapest.
 */
#pragma once

#include "daemon/core/ready.h"

/* Jobs of Q^w that one schedule takes in. */
#define SBEET_KNOWN_MAX 12

/* What all calls of one decision share. Re-made after each grant. */
struct sbeet {
	struct sched *s;
	const struct sched_params *params;
	nsec_t now;
	struct timeline base; /* what runs */
	const struct ready *ready;
	const bool *started; /* of the ready jobs: no longer in Q^w */
	size_t n_coming;
	struct timeline_job coming[TASK_COMING_MAX]; /* by release */
	struct explain *explain;		     /* NULL: nobody asked */
};

/* S^cfg and E. */
struct sbeet_choice {
	bool found; /* else S^cfg is empty and E infinite */
	/* The job is in time, and nobody is late; in the fit reading, no fewer are if it waits. */
	bool feasible;
	/* The job is late, but no later than if it waited, and no fewer are late then. */
	bool keeps_busy;
	bool late;	 /* by its own deadline, which planning may have put off (ready.h) */
	unsigned misses; /* in the schedule */
	struct timeline_place place;
	/*
	 * E, to be compared with that of other choices of the same decision. As printed
	 * (SCHED_WINDOW_OWN): Eq. 3.4 over [now, f(m')), so that a short window is cheap. Over a
	 * common window what does not depend on the choice cancels out: what the job itself adds.
	 * Those of Q^w are left out there: each is decided about when it comes, and with them the
	 * misses are the same, but Examples 4 and 5 get 5 SMs instead of 6.
	 */
	int64_t energy_pj;
};

/* The lower E; nothing found is infinite. In the fit reading fewer misses count before that, and
 * then the sooner end if the job is late with both. */
bool sbeet_better(const struct sbeet *b, const struct sbeet_choice *x,
		  const struct sbeet_choice *y);

/* Alg. 2: the allocation on GPU @gpu for the ready job number @index, to start now. */
struct sbeet_choice sbeet_allocate(const struct sbeet *b, size_t index, unsigned gpu);

/* Alg. 3 and Eq. 2.5 for one given place, which may lie in the future (Alg. 5, line 26). */
struct sbeet_choice sbeet_generate(const struct sbeet *b, size_t index,
				   const struct timeline_place *place);

/* Whether a GPU runs nothing; whether no job can be added to what it runs. */
bool sbeet_idle(const struct sbeet *b, unsigned gpu);
bool sbeet_full(const struct sbeet *b, unsigned gpu);

/* The GPU a job belongs to: the one it asks for, else its task's home, else its cheapest one. */
unsigned sbeet_home(const struct timeline_job *job);

/* A job that no GPU can finish in time is started only where that makes nobody else late. */
bool sbeet_is_late(const struct sbeet *b, size_t index);

/* Why @c was chosen. */
enum explain_reason sbeet_reason(const struct sbeet *b, size_t index, const struct sbeet_choice *c);

/* What the policies differ in, of a ready job. */
struct sbeet_rules {
	bool (*passes)(const struct sbeet *b, size_t index); /* not looked at now; NULL: none */
	struct sbeet_choice (*choose)(const struct sbeet *b, size_t index);
	enum explain_reason (*reason)(const struct sbeet *b, size_t index,
				      const struct sbeet_choice *c);
};

/* One decision: each ready job in its turn, then what nobody with a profile needs. */
void sbeet_decide(struct sched *s, nsec_t now, const struct sbeet_rules *rules,
		  struct sched_actions *actions);
