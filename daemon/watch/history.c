/* history.c: see history.h. */
#include "daemon/watch/history.h"

#include <stdio.h>
#include <string.h>

#include "proto/hash.h"

static const char *const end_names[_HISTORY_END_N] = {
	[HISTORY_END_NONE] = "",	 [HISTORY_END_EXIT] = "exit",
	[HISTORY_END_KILLED] = "killed", [HISTORY_END_DISMISSED] = "dismissed",
	[HISTORY_END_FAULT] = "fault",	 [HISTORY_END_RESTART] = "restart",
};

const char *history_end_name(enum history_end end) {
	return end_names[end];
}

void history_init(struct history *history, struct history_run *runs) {
	*history = (struct history){.runs = runs, .next_number = 1};
	for (size_t i = 0; i < HISTORY_RUNS; i++) {
		if (runs[i].number >= history->next_number) {
			history->next_number = runs[i].number + 1;
		}
		if (runs[i].number > 0 && runs[i].end == HISTORY_END_NONE) {
			runs[i].end = HISTORY_END_RESTART;
		}
	}
}

/* Which user has the most runs, with one more of user @uid. */
static uint32_t largest_user(const struct history *history, uint32_t uid) {
	struct {
		uint32_t uid;
		unsigned n;
	} users[HISTORY_RUNS + 1] = {{.uid = uid, .n = 1}};
	size_t n_users = 1, most = 0;

	for (size_t i = 0; i < HISTORY_RUNS; i++) {
		size_t k = 0;

		while (k < n_users && users[k].uid != history->runs[i].uid) {
			k++;
		}
		if (k == n_users) {
			users[n_users].uid = history->runs[i].uid;
			users[n_users++].n = 0;
		}
		if (++users[k].n > users[most].n) {
			most = k;
		}
	}
	return users[most].uid;
}

/* How many runs the same user has of the task of run @i, by @tasks, hashes of tasks and users. */
static unsigned count_same(const uint64_t tasks[static HISTORY_RUNS], size_t i) {
	unsigned n = 0;

	for (size_t k = 0; k < HISTORY_RUNS; k++) {
		n += tasks[k] == tasks[i];
	}
	return n;
}

/* Which of two runs of a user is given up rather: one that has ended, of the task with more of
 * them, the older one. */
static bool goes_first(const struct history_run *a, unsigned n_a, const struct history_run *b,
		       unsigned n_b) {
	bool a_runs = a->end == HISTORY_END_NONE, b_runs = b->end == HISTORY_END_NONE;

	if (a_runs != b_runs) {
		return b_runs;
	}
	return n_a != n_b ? n_a > n_b : a->number < b->number;
}

/* Where the next run of user @uid goes: a free place, or one that is given up. */
static size_t choose_place(const struct history *history, uint32_t uid) {
	uint64_t tasks[HISTORY_RUNS];
	size_t chosen = HISTORY_RUNS;
	unsigned n_chosen = 0;

	for (size_t i = 0; i < HISTORY_RUNS; i++) {
		const struct history_run *run = &history->runs[i];

		if (run->number == 0) {
			return i;
		}
		tasks[i] = hash_bytes(hash_bytes(HASH_EMPTY, &run->uid, sizeof(run->uid)),
				      run->task, strlen(run->task));
	}
	uid = largest_user(history, uid);
	for (size_t i = 0; i < HISTORY_RUNS; i++) {
		unsigned n;

		if (history->runs[i].uid != uid) {
			continue;
		}
		n = count_same(tasks, i);
		if (chosen == HISTORY_RUNS ||
		    goes_first(&history->runs[i], n, &history->runs[chosen], n_chosen)) {
			chosen = i;
			n_chosen = n;
		}
	}
	return chosen;
}

static void hold(struct history *history, size_t i, struct history_run **holder) {
	history->holders[i] = holder;
	*holder = &history->runs[i];
}

void history_begin(struct history *history, const struct history_program *program, int64_t started,
		   struct history_run **holder) {
	size_t i = choose_place(history, program->uid);
	struct history_run *run = &history->runs[i];

	if (history->holders[i]) {
		*history->holders[i] = NULL;
	}
	memset(run, 0, sizeof(*run)); /* padding as well, it goes into a file */
	run->identity = program->identity;
	memset(run->identity.secret, 0, sizeof(run->identity.secret));
	run->started = run->ended = started;
	run->period = program->period;
	run->deadline = program->deadline;
	run->uid = program->uid;
	run->pid = program->pid;
	run->task_class = program->task_class;
	snprintf(run->task, PROTO_NAME_MAX + 1, "%s", program->task);
	snprintf(run->program, PROTO_NAME_MAX + 1, "%s", program->program);
	snprintf(run->run, PROTO_NAME_MAX + 1, "%s", program->run);
	run->number = history->next_number++; /* last: who is killed before leaves no run */
	hold(history, i, holder);
}

bool history_resume(struct history *history, const struct history_program *program, bool missed,
		    struct history_run **holder) {
	struct identity identity = program->identity;

	memset(identity.secret, 0, sizeof(identity.secret));
	for (size_t i = 0; i < HISTORY_RUNS; i++) {
		struct history_run *run = &history->runs[i];

		/* A program that the process has executed since has another name, or another run.
		 */
		if (run->number > 0 && run->end == HISTORY_END_RESTART &&
		    run->uid == program->uid && identity_same(&run->identity, &identity) &&
		    strcmp(run->program, program->program) == 0 &&
		    strcmp(run->task, program->task) == 0 && strcmp(run->run, program->run) == 0) {
			run->end = HISTORY_END_NONE;
			run->restarted |= missed;
			hold(history, i, holder);
			return true;
		}
	}
	return false;
}

static nsec_t larger(nsec_t a, nsec_t b) {
	return a > b ? a : b;
}

void history_job(struct history_run *run, const struct history_job *job, int64_t now) {
	run->jobs++;
	run->misses += job->missed;
	run->within_period += job->within_period;
	run->launches += job->launches;
	run->gpus |= UINT32_C(1) << job->on;
	run->energy_mj += job->energy_mj;
	run->gpu += job->gpu;
	run->responses += job->response;
	run->started_late += job->started_late;
	run->waits += job->wait;
	run->max_response = larger(run->max_response, job->response);
	run->max_started_late = larger(run->max_started_late, job->started_late);
	run->max_wait = larger(run->max_wait, job->wait);
	histogram_add(&run->response, histogram_bucket(job->response), 1);
	run->ended = now;
}

void history_abandon(struct history_run *run, uint64_t launches, int64_t now) {
	run->abandoned++;
	run->launches += launches;
	run->ended = now;
}

void history_end(struct history *history, struct history_run **holder, enum history_end end,
		 int64_t now) {
	struct history_run *run = *holder;

	if (run) {
		run->end = end;
		run->ended = now;
		history->holders[run - history->runs] = NULL;
		*holder = NULL;
	}
}
