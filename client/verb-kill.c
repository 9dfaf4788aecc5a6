/*
 * verb-kill.c: `sbeetctl session kill`: ends a program so that its neighbours live.
 *
 * Under MPS a program that dies in the middle of a kernel can take others with it, so sbeetd asks
 * MPS to end it as a client first; then it gets SIGTERM, and SIGKILL if it does not go. The signals
 * come from here: whoever asks has the right to send them or not, and sbeetd needs none. They go
 * through a descriptor that was opened before sbeetd confirmed whose process it is, so that no
 * other one can be hit that has got its number meanwhile.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "client/live/control.h"
#include "client/live/ending.h"
#include "client/live/snapshot.h"
#include "client/options.h"
#include "client/verb.h"
#include "proto/units.h"

/* How long the kernel may take to end a process after SIGKILL. */
#define KILL_LIMIT (5 * NSEC_PER_SEC)

/* For its jobs to end, where it can't be ended as a client of MPS. */
#define DRAIN_OTHERWISE (10 * NSEC_PER_SEC)

struct kill_options {
	bool detach;
	nsec_t grace, drain;
};

static const struct option kill_options[] = {
	{"detach", 0, OPTION_FLAG, NULL, "end only the session; the program continues unmanaged",
	 option_flag, offsetof(struct kill_options, detach), NULL},
	{"grace", 0, OPTION_REQUIRED, "TIME", "between SIGTERM and SIGKILL (default: 5s)",
	 option_duration, offsetof(struct kill_options, grace), "a time with a unit, such as 5s"},
	{"drain", 0, OPTION_REQUIRED, "TIME",
	 "first let running jobs finish, for at most this long", option_duration,
	 offsetof(struct kill_options, drain), "a time with a unit, such as 5s"},
	{0},
};

/* The session alone ends. */
static int detach(uint64_t session) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__SessionKill kill = SBEET__CONTROL__SESSION_KILL__INIT;

	kill.session = session;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_SESSION_KILL;
	request.session_kill = &kill;
	return control_change(&request);
}

/* Return: 0 and what stands for the session's process; *ret_pidfd -1: it is gone already. */
static int open_process(struct control *control, uint64_t session, uint32_t *ret_pid,
			int *ret_pidfd) {
	struct snapshot s;
	char error[2048];
	int r = snapshot_init(&s, control, error, sizeof(error));

	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	*ret_pid = 0;
	for (size_t i = 0; i < s.n_sessions; i++) {
		if (s.sessions[i]->id == session) {
			*ret_pid = s.sessions[i]->pid;
		}
	}
	snapshot_deinit(&s);
	if (*ret_pid == 0) {
		ctl_error("no session %llu; 'sbeetctl session list' lists them",
			  (unsigned long long)session);
		return CTL_EXIT_NO_OBJECT;
	}
	*ret_pidfd = (int)syscall(SYS_pidfd_open, (pid_t)*ret_pid, 0);
	if (*ret_pidfd < 0 && errno != ESRCH) {
		ctl_error("can't watch process %u: %s", *ret_pid, strerror(errno));
		return CTL_EXIT_FAILED;
	}
	return 0;
}

/* Return: whether the process is gone within @limit. */
static bool is_gone(int pidfd, nsec_t limit) {
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	nsec_t end = nsec_now() + limit, now;

	while ((now = nsec_now()) < end) {
		int r = poll(&p, 1, (int)((end - now) / NSEC_PER_MSEC) + 1);

		if (r > 0) {
			return true;
		}
		if (r < 0 && errno != EINTR) {
			return false;
		}
	}
	return false;
}

static int end_process(uint32_t pid, int pidfd, nsec_t grace) {
	static const int signals[] = {SIGTERM, SIGKILL};

	for (size_t i = 0; i < 2; i++) {
		if (syscall(SYS_pidfd_send_signal, pidfd, signals[i], NULL, 0) < 0) {
			if (errno == ESRCH) {
				return 0;
			}
			ctl_error("can't end process %u: %s", pid, strerror(errno));
			return errno == EPERM ? CTL_EXIT_DENIED : CTL_EXIT_FAILED;
		}
		if (is_gone(pidfd, i == 0 ? grace : KILL_LIMIT)) {
			return 0;
		}
	}
	ctl_error(
		"process %u got SIGKILL but is still there: the kernel, perhaps the GPU's "
		"driver, holds it",
		pid);
	return CTL_EXIT_TIMEOUT;
}

/* Return: 0: the signals may come; or an exit code after an error on stderr. */
static int prepare(struct control *control, uint64_t session, uint32_t pid, nsec_t drain,
		   struct ending *ret) {
	char error[2048];
	int r = ending_prepare(control, session, drain, ret, error, sizeof(error));

	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	if (ret->pid != pid) {
		ctl_error(
			"session %llu is another process's now, or sbeetd is too old to end "
			"programs; nothing was killed",
			(unsigned long long)session);
		return CTL_EXIT_FAILED;
	}
	return 0;
}

/* Where MPS does not end it as a client (it obeys none but its own user and root), what it runs
 * should at least have ended. Return: as above. */
static int prepare_well(struct control *control, uint64_t session, uint32_t pid, nsec_t drain) {
	struct ending ending;
	int r = prepare(control, session, pid, drain, &ending);

	if (r == 0 && *ending.note && drain == 0) {
		r = prepare(control, session, pid, DRAIN_OTHERWISE, &ending);
	}
	if (r == 0 && *ending.note) {
		ctl_error("%s", ending.note);
	}
	return r;
}

static int kill_program(struct control *control, uint64_t session, const struct kill_options *o) {
	uint32_t pid;
	int pidfd, r = open_process(control, session, &pid, &pidfd);

	if (r != 0 || pidfd < 0) {
		return r;
	}
	r = prepare_well(control, session, pid, o->drain);
	if (r == 0) {
		r = end_process(pid, pidfd, o->grace ? o->grace : 5 * NSEC_PER_SEC);
	}
	close(pidfd);
	return r;
}

static int session_kill(const struct ctl *ctl) {
	const struct kill_options *o = ctl->options;
	struct control *control;
	char error[2048];
	int64_t id;
	int r;

	if (units_parse_int(ctl->args[0], 1, INT64_MAX, &id) < 0) {
		ctl_error("'%.64s' is not a session: expected a number, as 'sbeetctl status' shows",
			  ctl->args[0]);
		return CTL_EXIT_USAGE;
	}
	if (o->detach) {
		return detach((uint64_t)id);
	}
	r = control_open(&control, error, sizeof(error));
	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	r = kill_program(control, (uint64_t)id, o);
	control_close(control);
	return r;
}

const struct verb verb_session_kill = {
	.name = "session kill",
	.args = "ID",
	.summary = "end a session and its program, sparing others on the GPU",
	.min_args = 1,
	.max_args = 1,
	.options = kill_options,
	.options_size = sizeof(struct kill_options),
	.function = session_kill,
};
