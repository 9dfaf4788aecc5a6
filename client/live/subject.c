/* subject.c: see subject.h. */
#include "client/live/subject.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "client/live/ending.h"

#define BIT(n) (1u << (n))

/* For the program to end when it is told. */
#define END_MAX_NS (5 * NSEC_PER_SEC)

/* Beyond the time for its jobs, sbeetd asks MPS. */
#define ANSWER_MAX_NS (5 * NSEC_PER_SEC)

/* For the assertion alone. */
__attribute__((unused)) static const unsigned edges[_SUBJECT_STATE_N] = {
	[SUBJECT_NONE] = BIT(SUBJECT_RUNS),
	[SUBJECT_RUNS] = BIT(SUBJECT_NONE) | BIT(SUBJECT_DRAINS),
	[SUBJECT_DRAINS] = BIT(SUBJECT_NONE) | BIT(SUBJECT_TOLD),
	[SUBJECT_TOLD] = BIT(SUBJECT_NONE) | BIT(SUBJECT_KILLED),
	[SUBJECT_KILLED] = BIT(SUBJECT_NONE),
};

static void set_state(struct subject *s, enum subject_state state, nsec_t limit) {
	assert(edges[s->state] & BIT(state));
	s->state = state;
	s->until = nsec_now() + limit;
}

void subject_deinit(struct subject *s) {
	assert(s->state == SUBJECT_NONE);
	s->control = control_close(s->control);
	free(s->sessions);
	s->sessions = NULL;
}

/* In the child. What can't be done is told by the exit code, as shells do. */
static void become_program(const struct subject_plan *plan, pid_t parent) {
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char text[16];

	snprintf(text, sizeof(text), "%u", plan->n_sms);
	setpgid(0, 0); /* Ctrl-C is for us: it must not end in a kernel */
	/* Who ends us without waiting for that ends it too. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent) {
		_exit(CTL_EXIT_FAILED);
	}
	if (setenv("LD_PRELOAD", plan->preload, 1) == 0 &&
	    setenv("SBEET_TASK", plan->task, 1) == 0 && setenv("SBEET_MAX_SMS", text, 1) == 0 &&
	    setenv("SBEET_REQUIRE", "1", 1) == 0 &&
	    /* A program whose copies overlap its kernels may be measured without it. */
	    setenv("SBEET_MEASURE", "1", 0) == 0 && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	    dup2(null, STDOUT_FILENO) >= 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		execvp(plan->argv[0], plan->argv);
	}
	_exit(errno == ENOENT ? CTL_EXIT_NOT_FOUND : CTL_EXIT_NOT_EXECUTABLE);
}

int subject_start(struct subject *s, const struct subject_plan *plan) {
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		return -errno;
	}
	if (pid == 0) {
		become_program(plan, parent);
	}
	setpgid(pid, pid); /* whoever of us is first */
	/* Until now it kept back what the last one's processes had to ask while they died. */
	s->control = control_close(s->control);
	s->pid = pid;
	s->drain = plan->drain;
	s->running = false;
	set_state(s, SUBJECT_RUNS, 0);
	return 0;
}

int subject_session_starts(struct subject *s, uint64_t session) {
	struct subject_session *sessions =
		reallocarray(s->sessions, s->n_sessions + 1, sizeof(*sessions));

	if (!sessions) {
		return -ENOMEM;
	}
	s->sessions = sessions;
	s->sessions[s->n_sessions++] = (struct subject_session){.id = session};
	return 0;
}

void subject_session_ends(struct subject *s, uint64_t session) {
	for (size_t i = 0; i < s->n_sessions; i++) {
		if (s->sessions[i].id == session) {
			s->sessions[i] = s->sessions[--s->n_sessions];
			return;
		}
	}
}

void subject_end(struct subject *s) {
	char error[1024];

	if (s->state != SUBJECT_RUNS) {
		return;
	}
	if (control_open(&s->control, error, sizeof(error)) != 0) {
		s->control = NULL;
	}
	set_state(s, SUBJECT_DRAINS, s->drain + ANSWER_MAX_NS);
}

/* Asks of the sessions that are not asked yet: some may have come meanwhile. */
static int ask(struct subject *s) {
	char error[1024];
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_sessions; i++) {
		if (!s->sessions[i].asked) {
			s->sessions[i].asked = true;
			r = ending_ask(s->control, s->sessions[i].id, s->drain, error,
				       sizeof(error));
			s->n_unanswered += r == 0;
		}
	}
	return r;
}

/* Takes the answers that are there. Return: 0; anything else: there will be no more. */
static int hear(struct subject *s) {
	struct ending ending;
	char error[1024];
	bool there = true;
	int r = 0;

	while (r == 0 && there && s->n_unanswered > 0) {
		r = ending_answer(s->control, 0, &ending, &there, error, sizeof(error));
		if (r == CTL_EXIT_NO_OBJECT) { /* it has ended by itself */
			s->n_unanswered--;
			r = 0;
		} else if (r == 0 && there) {
			s->n_unanswered--;
			s->running |= ending.running;
		}
	}
	return r;
}

/* Whether it is time for the signal. */
static bool is_drained(struct subject *s) {
	if (!s->control || ask(s) != 0 || hear(s) != 0 || nsec_now() > s->until) {
		s->running |= s->n_sessions > 0;
		return true;
	}
	return s->n_unanswered == 0;
}

/* It has ended, or was never there. What is left of a program that was told to end goes with it: as
 * long as its first process is not taken note of, the number of the group can't be another's. */
static bool reap(struct subject *s, int *ret_status) {
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid == 0) {
		return false;
	}
	if (s->state != SUBJECT_RUNS) {
		kill(-s->pid, SIGKILL);
	}
	waitpid(s->pid, ret_status, 0);
	return true;
}

bool subject_is_gone(struct subject *s, int *ret_status) {
	if (reap(s, ret_status)) {
		set_state(s, SUBJECT_NONE, 0);
		s->pid = 0;
		s->n_unanswered = 0;
		return true;
	}
	if (s->state == SUBJECT_DRAINS && is_drained(s)) {
		kill(-s->pid, SIGTERM);
		set_state(s, SUBJECT_TOLD, END_MAX_NS);
	} else if (s->state == SUBJECT_TOLD && nsec_now() > s->until) {
		kill(-s->pid, SIGKILL);
		set_state(s, SUBJECT_KILLED, 0);
	}
	return false;
}
