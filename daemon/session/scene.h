/*
 * scene.h: what is seen of the programs on one GPU that terms are computed for, and what of it the
 * model of the GPU takes (core/steer/model.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/steer/plan.h"

struct session;
struct sessions;
struct smset;

/* What the terms of one program depend on. */
struct scene_member {
	uint64_t line;	     /* of the session: it may have been started again */
	nsec_t deadline;     /* of its task; 0: none */
	unsigned tasks;	     /* of work_seen: the task is the same */
	unsigned shapes;     /* likewise: what is known of its jobs is the same; 0: nothing */
	bool known;	     /* its jobs can be predicted */
	bool copies_nothing; /* they can't, but are known to copy nothing */
};

/* What the terms on one GPU depend on. */
struct scene {
	size_t gpu;
	bool steered;
	const char *withdrawn; /* static: why programs ask for their jobs; NULL: they are steered */
	struct plan_gpu cut;   /* group 0: sets can't be made */
	struct session *sessions[MODEL_TASKS_MAX];
	struct plan_task tasks[MODEL_TASKS_MAX];
	struct scene_member members[MODEL_TASKS_MAX];
	unsigned n, n_urgent; /* of these, with a deadline */
	bool loose;	      /* somebody without a deadline can't be kept to a set */
	bool sliced;	      /* by time slices: no MPS */
	uint64_t lowest;      /* then: the lowest urgency of all programs */
};

/* Who was there, and how the GPU could be cut. */
struct scene_past {
	struct scene_member members[MODEL_TASKS_MAX];
	unsigned n, n_urgent; /* n 0: nobody, or nothing is remembered */
	struct plan_gpu cut;
};

/* What is seen of @gpu alone: nobody is there. */
void scene_look_at_gpu(const struct sessions *all, size_t gpu, struct scene *ret);

/* Who is there on @gpu now. Programs beyond the planner's number are left out. */
void scene_look(const struct sessions *all, size_t gpu, struct scene *ret);

/* For scene_follows(). */
void scene_remember(const struct scene *scene, struct scene_past *ret);

/* Whether only programs without a deadline have come, gone, or changed their tasks since @past.
 * @from: the number that each program of @scene had then; negative: it has come since, or has
 * another task. */
bool scene_follows(const struct scene *scene, const struct scene_past *past,
		   int from[static MODEL_TASKS_MAX]);

/* What has changed since. */
enum scene_change {
	SCENE_SAME,
	SCENE_OTHERS, /* programs without a deadline have come or gone, or more is known of them */
	SCENE_KNOWN,  /* more is known of the jobs of those with a deadline; the others as above */
	SCENE_TASKS,  /* those with a deadline have come or gone, or have other tasks */
};

/* Since the terms of @past were written. @from: as scene_follows(), unless it is SCENE_TASKS. */
enum scene_change scene_compare(const struct scene *scene, const struct scene_past *past,
				int from[static MODEL_TASKS_MAX]);

/* Whether programs without a deadline may get more than the rule gives them (core/steer/share.h).
 */
bool scene_can_share(const struct scene *scene);

/* Whether that is better than a plan: beside a program without a deadline whose work nobody knows,
 * if there is only one with a deadline, or all of those together take little of the GPU's time and
 * no deadline is missed if they all come at once. A plan would leave the others less. */
bool scene_is_better_measured(const struct scene *scene);

bool scene_is_urgent(const struct session *s);

/* The SMs of its allocation there. NULL: it has none, or may use any. */
const struct smset *scene_own_sms(const struct session *s, size_t gpu);

bool scene_makes_sets(const struct session *s);

/* The terms that are just these SMs. Return: false if there are none. */
bool scene_terms_of_sms(const struct session *s, size_t gpu, const struct smset *sms,
			struct terms *ret);

/* Whether it has terms on a GPU that is steered. */
bool scene_is_steered(const struct session *s, size_t gpu);

/* Whether others have to reckon with it there. */
bool scene_is_present(const struct session *s, size_t gpu);

/* What the model needs to know of its jobs. Known from the first jobs on where it has a profile. */
struct plan_task scene_task(const struct session *s, size_t gpu);
