/*
 * mps-ask.c: see mps-ask.h.
 */
#include "daemon/mps/mps-ask.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/base/util.h"

extern char **environ;

static TAILQ_HEAD(, mps_ask) orphans = TAILQ_HEAD_INITIALIZER(orphans);

struct mps_ask {
	pid_t pid; /* 0: reaped */
	int pidfd; /* owned; readable: the child is gone */
	int out;   /* owned: what it prints */
	bool answered;
	bool orphan; /* freed by its owner: goes with its child, or when sbeetd ends */
	TAILQ_ENTRY(mps_ask) link; /* orphans */
	struct event readable, gone, late;
	mps_answer_fn on_answer;
	void *userdata;
	size_t n;
	char text[MPS_ANSWER_MAX + 1];
};

/* Ours, but for where MPS is. The strings are @variables and those of environ. */
static char **make_environment(char *const variables[2]) {
	static const char *const names[] = {"CUDA_MPS_PIPE_DIRECTORY=", "CUDA_MPS_LOG_DIRECTORY="};
	size_t n = 0, k = 2;
	char **environment;

	while (environ[n]) {
		n++;
	}
	environment = calloc(n + 3, sizeof(*environment));
	if (!environment) {
		return NULL;
	}
	environment[0] = variables[0];
	environment[1] = variables[1];
	for (size_t i = 0; i < n; i++) {
		if (strncmp(environ[i], names[0], strlen(names[0])) != 0 &&
		    strncmp(environ[i], names[1], strlen(names[1])) != 0) {
			environment[k++] = environ[i];
		}
	}
	return environment;
}

static int add_descriptor(posix_spawn_file_actions_t *actions, int fd, int target, int flags) {
	return fd >= 0 ? posix_spawn_file_actions_adddup2(actions, fd, target)
		       : posix_spawn_file_actions_addopen(actions, target, "/dev/null", flags, 0);
}

static int spawn(char *const argv[], char **environment, int in, int out, bool apart,
		 pid_t *ret_pid) {
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_init(&attributes);
	if (r != 0) {
		return -r;
	}
	r = posix_spawn_file_actions_init(&actions);
	if (r == 0) {
		posix_spawnattr_setsigmask(&attributes, &none);
		posix_spawnattr_setsigdefault(&attributes, &all);
		posix_spawnattr_setflags(&attributes,
					 (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						 (apart ? POSIX_SPAWN_SETSID : 0)));
		r = add_descriptor(&actions, in, STDIN_FILENO, O_RDONLY);
		r = r == 0 ? add_descriptor(&actions, out, STDOUT_FILENO, O_WRONLY) : r;
		r = r == 0 ? add_descriptor(&actions, out, STDERR_FILENO, O_WRONLY) : r;
		r = r == 0 ? posix_spawnp(ret_pid, MPS_CONTROL_PROGRAM, &actions, &attributes, argv,
					  environment)
			   : r;
		posix_spawn_file_actions_destroy(&actions);
	}
	posix_spawnattr_destroy(&attributes);
	return -r;
}

int mps_spawn(const struct mps_directories *directories, const char *argument, int in, int out,
	      bool apart, pid_t *ret_pid, int *ret_pidfd) {
	char pipe_variable[PROTO_PATH_MAX + 32], log_variable[PROTO_PATH_MAX + 32];
	char *argv[] = {(char *)MPS_CONTROL_PROGRAM, (char *)argument, NULL};
	_cleanup_free_ char **environment = NULL;
	pid_t pid;
	int r, pidfd;

	snprintf(pipe_variable, sizeof(pipe_variable), "CUDA_MPS_PIPE_DIRECTORY=%s",
		 directories->pipe);
	snprintf(log_variable, sizeof(log_variable), "CUDA_MPS_LOG_DIRECTORY=%s", directories->log);
	environment = make_environment((char *const[]){pipe_variable, log_variable});
	if (!environment) {
		return -ENOMEM;
	}
	r = spawn(argv, environment, in, out, apart, &pid);
	if (r < 0) {
		return r;
	}
	/* Not reaped before we do it: the number is still its own. */
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		r = -errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return r;
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return 0;
}

/* Takes in what is there. */
static void read_text(struct mps_ask *ask) {
	char rest[256];
	ssize_t n;

	while (ask->n < MPS_ANSWER_MAX &&
	       (n = read(ask->out, ask->text + ask->n, MPS_ANSWER_MAX - ask->n)) > 0) {
		ask->n += (size_t)n;
	}
	/* Too long: the rest is for nobody, but the child must not wait for a reader. */
	while (ask->n == MPS_ANSWER_MAX && read(ask->out, rest, sizeof(rest)) > 0) {
	}
	ask->text[ask->n] = '\0';
}

static void on_readable(evutil_socket_t fd, short what, void *userdata) {
	struct mps_ask *ask = userdata;
	size_t before = ask->n;

	(void)fd;
	(void)what;
	read_text(ask);
	if (ask->n == before && ask->n < MPS_ANSWER_MAX) {
		event_del(&ask->readable); /* the end: `gone` tells the rest */
	}
}

/* The last thing that is done with @ask in a callback. */
static void tell(struct mps_ask *ask, int error) {
	if (!ask->answered) {
		ask->answered = true;
		event_del(&ask->readable);
		event_del(&ask->late);
		ask->on_answer(ask->userdata, error, ask->text);
	}
}

static void destroy(struct mps_ask *ask) {
	if (ask->orphan) {
		TAILQ_REMOVE(&orphans, ask, link);
	}
	event_del(&ask->readable);
	event_del(&ask->late);
	event_del(&ask->gone);
	close(ask->pidfd);
	close(ask->out);
	free(ask);
}

static void on_gone(evutil_socket_t fd, short what, void *userdata) {
	struct mps_ask *ask = userdata;
	int status = 0;
	pid_t r = waitpid(ask->pid, &status, WNOHANG);

	(void)fd;
	(void)what;
	if (r == 0) {
		return;
	}
	ask->pid = 0;
	event_del(&ask->gone);
	if (ask->orphan) {
		destroy(ask);
	} else if (!ask->answered) {
		read_text(ask);
		tell(ask, r < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0 ? -EIO
			  : ask->n == MPS_ANSWER_MAX				  ? -EMSGSIZE
										  : 0);
	}
}

/* Killed, and reaped by on_gone() when the kernel lets go of it. */
static void on_late(evutil_socket_t fd, short what, void *userdata) {
	struct mps_ask *ask = userdata;

	(void)fd;
	(void)what;
	kill(ask->pid, SIGKILL);
	tell(ask, -ETIMEDOUT);
}

static int add_events(struct mps_ask *ask, struct event_base *base, nsec_t limit) {
	struct timeval t = nsec_timeval(limit);

	event_assign(&ask->readable, base, ask->out, EV_READ | EV_PERSIST, on_readable, ask);
	event_assign(&ask->gone, base, ask->pidfd, EV_READ | EV_PERSIST, on_gone, ask);
	event_assign(&ask->late, base, -1, EV_TIMEOUT, on_late, ask);
	if (event_add(&ask->readable, NULL) < 0 || event_add(&ask->gone, NULL) < 0 ||
	    event_add(&ask->late, &t) < 0) {
		return -ENOMEM;
	}
	return 0;
}

/* Return: a pipe's end that gives @command and then the end, or negative errno. */
static int command_pipe(const char *command) {
	_cleanup_close_ int in = -1, out = -1;
	char line[PROTO_PATH_MAX];
	int ends[2], n = snprintf(line, sizeof(line), "%s\n", command);

	if (pipe2(ends, O_CLOEXEC) < 0) {
		return -errno;
	}
	in = ends[0];
	out = ends[1];
	/* Far less than a new pipe takes at once. */
	return write(out, line, (size_t)n) == n ? TAKE_FD(in) : -EIO;
}

int mps_ask_new(struct mps_ask **ret, struct event_base *base,
		const struct mps_directories *directories, const char *command, nsec_t limit,
		mps_answer_fn on_answer, void *userdata) {
	_cleanup_close_ int in = -1, out = -1;
	struct mps_ask *ask;
	int ends[2], r;

	in = command_pipe(command);
	if (in < 0) {
		return in;
	}
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		return -errno;
	}
	out = ends[1];
	ask = calloc(1, sizeof(*ask));
	if (!ask) {
		close(ends[0]);
		return -ENOMEM;
	}
	ask->out = ends[0];
	/* The writer may wait: it is the reader that must not. */
	fcntl(out, F_SETFL, 0);
	r = mps_spawn(directories, NULL, in, out, false, &ask->pid, &ask->pidfd);
	if (r < 0) {
		close(ask->out);
		free(ask);
		return r;
	}
	ask->on_answer = on_answer;
	ask->userdata = userdata;
	r = add_events(ask, base, limit);
	if (r < 0) {
		mps_ask_free(ask);
		return r;
	}
	*ret = ask;
	return 0;
}

struct mps_ask *mps_ask_free(struct mps_ask *ask) {
	if (!ask) {
		return NULL;
	}
	event_del(&ask->readable);
	event_del(&ask->late);
	if (ask->pid > 0) {
		kill(ask->pid, SIGKILL);
		if (waitpid(ask->pid, NULL, WNOHANG) == 0 &&
		    event_pending(&ask->gone, EV_READ, NULL)) {
			ask->orphan = ask->answered = true; /* on_gone() does the rest */
			TAILQ_INSERT_TAIL(&orphans, ask, link);
			return NULL;
		}
	}
	destroy(ask);
	return NULL;
}

void mps_ask_leave(void) {
	while (!TAILQ_EMPTY(&orphans)) {
		destroy(TAILQ_FIRST(&orphans));
	}
}
