/* event-command.c: see event-command.h. */
#include "client/live/event-command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "client/base/stop.h"
#include "client/live/event.h"

/* That events were dropped is said once in this time. */
#define TELL_EVERY_NS NSEC_PER_SEC

static void tell_dropped(struct event_command *c) {
	if (c->untold > 0) {
		ctl_error(
			"warning: %llu event%s not given to the command: %u of it ran already "
			"(--exec-max)",
			(unsigned long long)c->untold, c->untold == 1 ? " was" : "s were", c->max);
		c->untold = 0;
		c->told = nsec_now();
	}
}

void event_command_look(struct event_command *c) {
	for (unsigned i = 0; i < c->max; i++) {
		if (c->pids[i] > 0 && waitpid(c->pids[i], NULL, WNOHANG) != 0) {
			c->pids[i] = 0;
		}
	}
	if (c->told == 0 || nsec_now() - c->told >= TELL_EVERY_NS) {
		tell_dropped(c);
	}
}

/* For one more; NULL: there is none. */
static pid_t *find_place(struct event_command *c) {
	for (unsigned i = 0; i < c->max; i++) {
		if (c->pids[i] == 0) {
			return &c->pids[i];
		}
	}
	return NULL;
}

static void set_number(const char *name, uint64_t value) {
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	setenv(name, text, 1);
}

/* Of what an event does not tell nothing is left from another one. */
static void set_environment(const struct event_command *c, const struct event *e) {
	static const char *const names[] = {"SBEET_EVENT_TASK", "SBEET_EVENT_SESSION",
					    "SBEET_EVENT_JOB", "SBEET_EVENT_GPU",
					    "SBEET_EVENT_PID"};
	bool of_gpu = event_is_job(e->kind) || e->kind == EVENT_GPU || e->kind == EVENT_GPU_DRAIN ||
		      e->kind == EVENT_GPU_RESUME;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unsetenv(names[i]);
	}
	setenv("SBEET_EVENT", event_kind_name(e->kind), 1);
	set_number("SBEET_EVENT_DROPPED", c->dropped);
	if (*e->task) {
		setenv("SBEET_EVENT_TASK", e->task, 1);
	}
	if (e->session > 0) {
		set_number("SBEET_EVENT_SESSION", e->session);
	}
	if (event_is_job(e->kind)) {
		set_number("SBEET_EVENT_JOB", e->job);
	}
	if (of_gpu) {
		set_number("SBEET_EVENT_GPU", e->gpu);
	}
	if (e->pid > 0) {
		set_number("SBEET_EVENT_PID", e->pid);
	}
}

__attribute__((noreturn)) static void become(const struct event_command *c, const struct event *e,
					     int input) {
	if (dup2(input, STDIN_FILENO) < 0) {
		_exit(126);
	}
	set_environment(c, e);
	execl("/bin/sh", "sh", "-c", c->command, (char *)NULL);
	_exit(127);
}

/* Return: a descriptor from which the event can be read, closed at its end; or -1 with errno. It is
 * smaller than any pipe. */
static int make_input(const struct event *e) {
	json_t *object = event_json(e);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	int fds[2] = {-1, -1};
	size_t n = text ? strlen(text) : 0;

	json_decref(object);
	if (!text || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(text);
		return -1;
	}
	text[n] = '\n'; /* in place of the end */
	if (write(fds[1], text, n + 1) != (ssize_t)n + 1 ||
	    fcntl(fds[0], F_SETFL, 0) < 0) { /* what reads it need not know of us */
		close(fds[0]);
		fds[0] = -1;
	}
	close(fds[1]);
	free(text);
	return fds[0];
}

void event_command_run(struct event_command *c, const struct event *e) {
	pid_t *place, pid;
	int input;

	event_command_look(c);
	place = find_place(c);
	if (!place) {
		c->dropped++;
		c->untold++;
		return;
	}
	input = make_input(e);
	fflush(NULL);
	pid = input < 0 ? -1 : fork();
	if (pid == 0) {
		become(c, e, input);
	}
	if (pid < 0) {
		ctl_error("warning: cannot run the command for an event: %s", strerror(errno));
		c->dropped++;
	} else {
		*place = pid;
		c->dropped = 0;
	}
	if (input >= 0) {
		close(input);
	}
}

void event_command_finish(struct event_command *c) {
	tell_dropped(c);
	for (unsigned i = 0; i < c->max; i++) {
		while (c->pids[i] > 0 && !stop_wanted() && waitpid(c->pids[i], NULL, 0) < 0 &&
		       errno == EINTR) {
		}
	}
}
