/*
 * state.h: what the scheduling core knows: GPUs, tasks, jobs, parameters, actions, and how to read
 * them. What changes them is in sched.h for callers and in policy.h for policies.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/power.h"
#include "daemon/core/profile.h"
#include "proto/job-spec.h"
#include "proto/limits.h"
#include "proto/smset.h"
#include "proto/units.h"

#define SCHED_GPUS_MAX PROTO_GPUS_MAX

/*
 * Jobs on one GPU at once, at most, and where nobody says. Section 2.4.2 of the dissertation argues
 * for two, of GPUs of 8 to 46 SMs; where there are many more, two jobs leave most of them empty
 * while they copy, and a short job waits behind two long ones. Section 2.5.5 gives STGM, which has
 * no limit, eight workers for the 8 SMs of its GPU.
 */
#define SCHED_SLOTS_MAX	    8
#define SCHED_SLOTS_MIN	    2
#define SCHED_SLOTS_MANY    4
#define SCHED_SLOTS_PER_SMS 32

typedef uint32_t sched_job_id; /* index into the state's job table; SCHED_JOB_NONE: none */
#define SCHED_JOB_NONE UINT32_MAX

typedef uint32_t sched_task_id; /* index into the state's task table; SCHED_TASK_NONE: none */
#define SCHED_TASK_NONE UINT32_MAX

/* Whether a job may run on GPU @gpu: it needs GPU @wanted, or if that is -1, one of the mask @gpus;
 * 0: any. */
static inline bool sched_may_run(int wanted, uint32_t gpus, size_t gpu) {
	return wanted >= 0 ? (size_t)wanted == gpu : gpus == 0 || (gpus >> gpu & 1);
}

/* Allocations are numbered from 1; 0: none. */
#define SCHED_ALLOCATIONS_MAX 128

struct explain;

/* How SM sets hold on a GPU. */
enum sched_sharing {
	SCHED_SHARING_EXCLUSIVE, /* one owner (process) at a time; its jobs may split the SMs */
	SCHED_SHARING_MPS,	 /* several owners side by side */
	_SCHED_SHARING_N,
};

enum sched_class {
	SCHED_CLASS_BEST_EFFORT,
	SCHED_CLASS_REALTIME,
};

/* What energy-aware policies know of a GPU beside its size. */
struct sched_gpu_model {
	struct power_gpu power; /* power.n_sms: physical SMs, the GPU's n_sms */
	unsigned limit;		/* M_limit: SMs that jobs may use together, 1 to n_sms */
	unsigned step; /* SM counts are multiples of this (or the limit itself), at least 1 */
	/* Sets are made of whole groups of `step` SMs, from SM 0 on; the last group has so many,
	 * and a job that gets it for fewer has the rest of it besides. 0: of any SMs. */
	unsigned last_group;
};

/* Whether two jobs of different owners may run side by side on GPU @gpu; @apart: the masks of both
 * (sched_job), together. */
static inline bool sched_may_be_beside(enum sched_sharing sharing, uint32_t apart, size_t gpu) {
	return sharing == SCHED_SHARING_MPS && !(apart >> gpu & 1);
}

/* How many groups a divided GPU has; 0: it is not divided. */
static inline unsigned sched_n_groups(const struct sched_gpu_model *model) {
	return model->last_group > 0 ? (model->power.n_sms - model->last_group) / model->step + 1
				     : 0;
}

/* The most SMs a job can be given when @n are left: a multiple of the step, or the limit. */
static inline unsigned sched_whole_steps(const struct sched_gpu_model *model, unsigned n) {
	return n >= model->limit ? model->limit : n - n % model->step;
}

/* The bounds of a divisible job, 0: none, as SMs that it can have: whole steps, or the limit. It
 * may have a step more than it wants; where the two contradict each other, the most counts. */
static inline unsigned sched_most_sms(const struct sched_gpu_model *model, unsigned max_sms) {
	unsigned n = sched_whole_steps(model, max_sms);

	return max_sms == 0 ? model->limit : n > 0 ? n : sched_whole_steps(model, model->step);
}

static inline unsigned sched_least_sms(const struct sched_gpu_model *model, unsigned min_sms,
				       unsigned max_sms) {
	unsigned most = sched_most_sms(model, max_sms), over = min_sms % model->step;
	unsigned n = min_sms == 0 ? 1 : over > 0 ? min_sms + model->step - over : min_sms;

	return n < most ? n : most;
}

struct sched_gpu {
	unsigned n_sms;		      /* 1 to 256 */
	struct sched_gpu_model model; /* until set: no power, limit n_sms, step 1 */
	enum sched_sharing sharing;
	sched_job_id slots[SCHED_SLOTS_MAX]; /* running jobs, SCHED_JOB_NONE: free */
	struct smset free;		     /* SMs that no running job holds */
	unsigned row;			     /* how many of them one job could have: see groups.h */
	bool drained;			     /* nothing starts here: see sched_drain_gpu() */
	uint64_t last_owner;		     /* of the job that was granted last */
	/* Its jobs in a row, none longer than SCHED_ALONE_JOB_MAX, while nobody else asked for the
	 * GPU; counted up to SCHED_ALONE. */
	unsigned n_alone;
};

/* So many jobs in a row show that a program has a GPU for itself: see n_alone. A longer job than
 * that ends it, since another program would have to wait for the next one like it. */
#define SCHED_ALONE	    8
#define SCHED_ALONE_JOB_MAX (100 * NSEC_PER_MSEC)

/*
 * What can stop a running job: what its program, its GPU and the driver can do, whatever the
 * policy. Slowest first. With the last three the job's SMs are free at once.
 */
enum sched_stop {
	SCHED_STOP_NEVER,    /* nothing can: it runs to its end */
	SCHED_STOP_LAUNCHES, /* its program holds its launches back: what is queued runs first */
	SCHED_STOP_LEVEL,    /* the other job's streams have a higher level: each block of it that
			      * ends makes room */
	SCHED_STOP_PREEMPT,  /* its channel groups are preempted, again and again */
	SCHED_STOP_KERNEL,   /* in the middle of a kernel, at once: the simulator's */
	_SCHED_STOP_N,
};

/* "never", "launches", "level", "preempt", "kernel". */
const char *sched_stop_name(enum sched_stop stop);

enum sched_job_state {
	SCHED_JOB_FREE, /* table entry not in use */
	SCHED_JOB_WAITING,
	SCHED_JOB_RUNNING,
};

/*
 * A task as chapters 2 and 3 describe it: tau_i = (G_i, T_i, D_i). Jobs of tasks that are not
 * declared here are best-effort: nothing about them can be predicted.
 */
struct sched_task {
	nsec_t period;	      /* T, or the least time between two releases; 0: releases unknown */
	nsec_t deadline;      /* D, relative, at most T where there is one; 0: none */
	nsec_t first_release; /* offset */
	/* by GPU; borrowed, outlive the task; NULL: can't run there */
	const struct profile_table *profiles[SCHED_GPUS_MAX];
	struct job_spec spec; /* of its jobs */
	unsigned table_task;  /* policy `table`: its number there, from 1; 0: it is not in it */
	int fixed_gpu;	      /* policy `fixed`: where its jobs go, or -1 */
	struct smset fixed_sms;

	/* set by the core */
	int gpu_wanted;	       /* as of its last job; -1: one of `gpus` */
	uint32_t gpus;	       /* of the last job that had a choice: mask; 0: any */
	bool divisible;	       /* as of its last job */
	uint32_t apart;	       /* likewise */
	uint64_t owner;	       /* of its last job; 0: no job yet */
	int home;	       /* GPU that sched_distribute() chose; -1: none */
	uint16_t n_sms;	       /* that sched_distribute() gave its jobs there; 0: as decided */
	int last_gpu;	       /* where its last job was granted; -1: none yet */
	nsec_t last_start;     /* and when */
	struct smset last_sms; /* and which SMs */
	nsec_t overhead;       /* of a job beside its profile: see sched_finish() */
	nsec_t next_release;   /* earliest time of the next job */
	uint16_t m_opt[SCHED_GPUS_MAX];	    /* Definition 10, within the GPU's limit and step */
	nsec_t fastest[SCHED_GPUS_MAX];	    /* least G(m) */
	uint64_t energy_pj[SCHED_GPUS_MAX]; /* alone on m_opt SMs, above static power */
	uint8_t n_gpus;			    /* GPUs with a profile */
	uint8_t order[SCHED_GPUS_MAX];	    /* those, least energy first (Pi_i of Alg. 4) */
	uint32_t heap_index;		    /* in the queue of coming releases */
	bool used;
};

_Static_assert(sizeof(struct sched_task) <= 1024, "1 KiB a task");

/* How the text is read where it leaves room, or is known to go wrong. */
enum sched_reading {
	SCHED_READING_LITERAL, /* as printed */
	SCHED_READING_AUTHORS, /* as the authors' published code behaves */
	SCHED_READING_FIT,     /* Alg. 4 asks for the deadline too, Alg. 3 starts blocked jobs */
	_SCHED_READING_N,
};

enum sched_queue_order {
	SCHED_QUEUE_EDF,
	SCHED_QUEUE_FCFS,
	SCHED_QUEUE_PRIORITY,
	_SCHED_QUEUE_N,
};

/* The guard of Alg. 2, line 16: no job starts beside another one that would be over sooner if it
 * waited for that one and then had all SMs. */
enum sched_line_16 {
	SCHED_LINE_16_OFF,
	SCHED_LINE_16_ON,     /* as printed: then it takes G_e(M), without its copies */
	SCHED_LINE_16_COPIES, /* G(M), with them */
	_SCHED_LINE_16_N,
};

/* Over which time the energies of candidates are compared. */
enum sched_window {
	SCHED_WINDOW_OWN,    /* each over its own length, as printed */
	SCHED_WINDOW_COMMON, /* all over the longest one */
	_SCHED_WINDOW_N,
};

/* When a job draws its dynamic power and keeps its GPU active: for decisions and simulations. */
enum sched_power {
	SCHED_POWER_KERNEL, /* while its kernel runs, as Eq. 2.5 and 3.2: copies cost nothing */
	SCHED_POWER_HELD,   /* while it holds SMs, copies included */
	_SCHED_POWER_N,
};

/* What becomes of a job that has not started when its deadline comes. */
enum sched_late {
	SCHED_LATE_RUN,	 /* it waits for its turn as before */
	SCHED_LATE_DROP, /* it is given up: a simulation drops it as missed; as no program's call
			  * can fail for it, sbeetd starts it after all others: see ready.h */
	_SCHED_LATE_N,
};

/* What load concentration and load distribution (3.4.3) give a job. */
enum sched_packing {
	SCHED_PACKING_WHOLE,	 /* a GPU that runs nothing, all of it */
	SCHED_PACKING_REMAINING, /* m_opt SMs, or what remains beside other jobs */
	_SCHED_PACKING_N,
};

/* See params.h, which has the members' names, values and meaning. */
enum sched_param_id {
	SCHED_PARAM_READING,
	SCHED_PARAM_QUEUE,
	SCHED_PARAM_WINDOW,
	SCHED_PARAM_LINE_16,
	SCHED_PARAM_SKIP_HOPELESS,
	SCHED_PARAM_POWER,
	SCHED_PARAM_LATE,
	SCHED_PARAM_JOBS_PER_GPU,
	SCHED_PARAM_FREE_AT_KERNEL_END,
	SCHED_PARAM_MIGRATION_COST,
	SCHED_PARAM_LOOKAHEAD_DEPTH,
	SCHED_PARAM_MAX_WAIT,
	SCHED_PARAM_REFERENCE_SMS,
	SCHED_PARAM_PACKING,
	SCHED_PARAM_YIELD,
	SCHED_PARAM_GUARD,
	SCHED_PARAM_DEPENDENT,
	SCHED_PARAM_EPSILON,
	SCHED_PARAM_STOP,
	_SCHED_PARAM_N,
};

/* A set of parameters, and those that the policies of one kind read. */
#define SCHED_PARAM_BIT(which) (1u << (which))
#define SCHED_PARAMS_SLOTS                                                                         \
	(SCHED_PARAM_BIT(SCHED_PARAM_JOBS_PER_GPU) | SCHED_PARAM_BIT(SCHED_PARAM_MIGRATION_COST) | \
	 SCHED_PARAM_BIT(SCHED_PARAM_FREE_AT_KERNEL_END) | SCHED_PARAM_BIT(SCHED_PARAM_POWER))
#define SCHED_PARAMS_READY                                                                \
	(SCHED_PARAMS_SLOTS | SCHED_PARAM_BIT(SCHED_PARAM_QUEUE) |                        \
	 SCHED_PARAM_BIT(SCHED_PARAM_SKIP_HOPELESS) | SCHED_PARAM_BIT(SCHED_PARAM_LATE) | \
	 SCHED_PARAM_BIT(SCHED_PARAM_MAX_WAIT))
#define SCHED_PARAMS_SBEET                                           \
	(SCHED_PARAMS_READY | SCHED_PARAM_BIT(SCHED_PARAM_READING) | \
	 SCHED_PARAM_BIT(SCHED_PARAM_WINDOW) | SCHED_PARAM_BIT(SCHED_PARAM_LINE_16))
#define SCHED_PARAMS_LOOKAHEAD                                       \
	(SCHED_PARAMS_READY | SCHED_PARAM_BIT(SCHED_PARAM_READING) | \
	 SCHED_PARAM_BIT(SCHED_PARAM_LOOKAHEAD_DEPTH))
#define SCHED_PARAMS_PRIORITY \
	(SCHED_PARAM_BIT(SCHED_PARAM_EPSILON) | SCHED_PARAM_BIT(SCHED_PARAM_STOP))

struct sched_params {
	enum sched_reading reading;
	enum sched_queue_order queue;
	enum sched_window window;
	unsigned jobs_per_gpu; /* 1 to SCHED_SLOTS_MAX; 0: the policy's, else see sched_slots() */
	enum sched_line_16 line_16;
	bool skip_hopeless; /* a job that no GPU can finish in time comes last: see ready.h */
	enum sched_late late;
	enum sched_power power;
	bool free_at_kernel_end; /* SMs come back when the kernel ends, not after the last copy */
	nsec_t migration_cost;	 /* added to a job that leaves the GPU its task ran on last */
	unsigned max_wait;	 /* periods after which a job goes first: see overdue.h; 0: never */
	enum sched_packing packing;
	bool yield; /* policy steer: kernels of tasks may wait for those of shorter deadlines */
	bool guard; /* likewise, for those that are expected soon */
	bool dependent; /* policy steer: programs launch their kernels as dependent ones */
	unsigned reference_sms;	  /* for sizes of tasks, see partition.h; 0: the limit */
	unsigned lookahead_depth; /* known jobs that `lookahead` plans ahead, 0 to 32 */
	nsec_t epsilon; /* of a GPU that goes to another job, under policies that stop jobs; for the
			 * simulator: see sched_policy.stops */
	enum sched_stop stop; /* what stops its jobs; for the simulator */
};

/* How many jobs may run at once on a GPU: as many as params.jobs_per_gpu, or if that is 0, as many
 * as it has 32 SMs within its limit, 2 to 4. */
static inline unsigned sched_slots(const struct sched_params *params,
				   const struct sched_gpu_model *model) {
	unsigned n = model->limit / SCHED_SLOTS_PER_SMS;

	if (params->jobs_per_gpu > 0) {
		return params->jobs_per_gpu;
	}
	return n < SCHED_SLOTS_MIN ? SCHED_SLOTS_MIN : n > SCHED_SLOTS_MANY ? SCHED_SLOTS_MANY : n;
}

/* Beside its kernel, how long a job draws power: its copies while it holds SMs, if they count. */
static inline nsec_t sched_drawn_copies(const struct sched_params *params,
					const struct profile_table *p) {
	if (params->power == SCHED_POWER_KERNEL) {
		return 0;
	}
	return p->copy_in + (params->free_at_kernel_end ? 0 : p->copy_out);
}

struct sched_job {
	enum sched_job_state state;
	sched_task_id task;  /* SCHED_TASK_NONE: of no declared task */
	uint64_t owner;	     /* the process: two jobs of one owner share an address space */
	uint64_t order;	     /* arrival number, set by sched_arrive(): ties are broken by it */
	unsigned allocation; /* whose SMs it may use; 0: of none */
	int gpu_wanted;	     /* GPU index that the job needs, or -1: one of `gpus` */
	uint32_t gpus;	     /* mask; 0: any */
	bool divisible;	     /* may get a part of a GPU; else the whole GPU or nothing */
	uint32_t apart; /* mask of GPUs: its process is no client of MPS there, and shares none of
			 * them with others */
	/* Its bounds hold where it is divisible, the most where they contradict each other. Policy
	 * `fixed` gives what its task says. */
	struct job_spec spec;
	enum sched_class job_class;
	enum sched_stop stop;
	nsec_t stop_takes; /* how long that took at most so far; 0: not measured */
	bool continued;	   /* the rest of a job that was stopped: nobody knows how long it takes */
	nsec_t release;
	nsec_t deadline; /* absolute; 0: none */

	/* When its program asked for it, and the caller's number and name for it: for explanations
	 * only. */
	nsec_t requested;
	uint64_t tag;
	const char *label; /* borrowed while the job is here; NULL: none */

	/* set by sched_decide() */
	int gpu; /* -1 while waiting */
	unsigned slot;
	struct smset sms;
	nsec_t granted;
	bool stopping;	   /* it is told to stop, and holds its SMs until sched_stopped() */
	bool sms_released; /* sched_release_sms() was called */
	nsec_t profiled;   /* what it takes by its profile, from its grant on; 0: not known */
	bool overrun;	   /* it ran past its WCET */
	nsec_t sms_end;	   /* predicted: when its SMs come free; 0: not predictable */
	nsec_t finish;	   /* predicted: when it is complete; 0: not predictable */

	uint64_t turn;			 /* among best-effort jobs: see sched_arrive() */
	uint64_t place;			 /* among those that wait: see waiting.h */
	sched_job_id next, prev;	 /* of those that wait, or are not in use */
	sched_job_id gpu_next, gpu_prev; /* of those that wait for the same GPU */
	sched_job_id own_next, own_prev; /* of its owner's that wait: see owners.h; of a real-time
					  * job: of all real-time ones */
	uint64_t explained;		 /* number of its last entry in the explanations; 0: none */
	uint64_t explained_in;		 /* decision in which that was written */
};

enum sched_action_kind {
	SCHED_ACTION_GRANT,
	SCHED_ACTION_STOP, /* the job is to leave the GPU: see policy_stop() and sched_stopped() */
};

struct sched_action {
	enum sched_action_kind kind;
	sched_job_id job; /* where and on which SMs: see the job */
	sched_job_id by;  /* SCHED_ACTION_STOP: the job that needs the GPU */
};

/* Filled by sched_decide(); the caller provides room for as many as there are slots. */
struct sched_actions {
	size_t n;
	struct sched_action list[SCHED_GPUS_MAX * SCHED_SLOTS_MAX * 2];
};

struct sched; /* opaque but for the accessors below: see books.h */

/* What becomes of a job that has waited for params.max_wait periods: see overdue.h. */
enum sched_overdue {
	SCHED_OVERDUE_WAITS,	/* as any other: the policy's order lets nobody pass for ever, or is
				   meant so */
	SCHED_OVERDUE_AT_HOME,	/* it goes first, on its own GPU */
	SCHED_OVERDUE_ANYWHERE, /* it goes first */
};

/* A policy: picks among waiting jobs. One object of these per policy, see core/policy/. */
/* Whether a policy runs one job at a time on each GPU, to its end, and leaves none idle while a job
 * waits that may run there; params.packing must be whole. See analysis/serial.h. */
enum sched_serial {
	SCHED_SERIAL_NONE,
	SCHED_SERIAL_ANY,    /* in whatever order */
	SCHED_SERIAL_PERIOD, /* shorter periods first */
};

struct sched_policy {
	const char *name;
	const char *summary; /* one line for `sbeetctl policy` */
	void (*decide)(struct sched *s, nsec_t now, struct sched_actions *actions);
	void (*distribute)(struct sched *s); /* NULL: no offline part */
	bool divides;			     /* GPUs into parts of many sizes */
	bool places; /* which GPU a task's jobs go to is its affair: see sched_place() */
	bool plans;  /* by profiles; jobs of tasks without one start in order of arrival */
	bool steers; /* programs are told beforehand where they run, and don't ask: proto/terms.h */
	enum sched_overdue overdue;
	enum sched_serial serial;
	bool counts_alone; /* it decides by n_alone of GPUs */
	bool stops;	   /* it stops jobs that run, and looks at those that wait at any time */
	/* Above 0: @a goes before @b however long @b waits; 0: they are equal. NULL: all are. */
	int (*compare)(const struct sched_job *a, const struct sched_job *b);
	/* A job that marks segments (sbeet.h) asks for each of them, and tells of its end; else the
	 * GPU is the job's until all of it is over. Of policies that stop jobs: in the simulator
	 * each such call takes params.epsilon, else each change of the job that has the GPU does.
	 */
	bool by_segments;
	const char *priority;  /* what a task's priority decides: "which job goes first"; NULL:
				  nothing */
	unsigned jobs_per_gpu; /* where params.jobs_per_gpu is 0; 0: see sched_slots() */
	bool by_table;	       /* it needs sched_set_timetable() */
	unsigned params;       /* that it reads: SCHED_PARAM_BIT() of each */
	bool simulated;	       /* for simulations only: see sched_policy_find_live() */
};

size_t sched_n_gpus(const struct sched *s);
const struct sched_gpu *sched_gpu(const struct sched *s, size_t index);
const struct sched_policy *sched_get_policy(const struct sched *s);
const struct sched_params *sched_get_params(const struct sched *s);

/* NULL for a number that is not in use. */
const struct sched_task *sched_task(const struct sched *s, sched_task_id id);
const struct sched_job *sched_job(const struct sched *s, sched_job_id id);

/* Whether a job waits that may run on GPU @gpu; -1: any job at all. */
bool sched_any_waits(const struct sched *s, int gpu);

/* NULL when there is none of this name. */
const struct sched_policy *sched_policy_find(const char *name);

/* Those that serve live: all but `fixed`, under which tasks whose place nobody names would wait for
 * ever. NULL when there is none of this name. */
const struct sched_policy *sched_policy_find_live(const char *name);

/* All policies, terminated by NULL, in the order in which they are listed. */
const struct sched_policy *const *sched_policies(void);
