/* remote.c: see remote.h. */
#include "remote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *client_path, *simgpud_path;

void remote_init(const char *client, const char *simgpud) {
	client_path = client;
	simgpud_path = simgpud;
}

/* Return: its exit status, or -1. */
static int simgpud_run(const char *option) {
	char *argv[] = {(char *)simgpud_path, (char *)option, NULL};
	int status;
	pid_t pid;

	if (posix_spawn(&pid, simgpud_path, NULL, NULL, argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid) {
		return -1;
	}
	return status;
}

int simgpud_start(const char *preloaded) {
	int status;

	setenv("LD_PRELOAD", preloaded, 1);
	status = simgpud_run(NULL);
	unsetenv("LD_PRELOAD");
	return status;
}

int simgpud_stop(void) {
	return simgpud_run("--stop");
}

const char *client_read(struct client *c) {
	if (!fgets(c->answer, sizeof(c->answer), c->out)) {
		fail_msg("a client ended unexpectedly");
	}
	c->answer[strcspn(c->answer, "\n")] = '\0';
	return c->answer;
}

const char *client_ask(struct client *c, const char *command) {
	fprintf(c->in, "%s\n", command);
	fflush(c->in);
	return client_read(c);
}

void client_spawn(struct client *c, const char *stderr_path) {
	char *argv[] = {(char *)client_path, NULL};
	posix_spawn_file_actions_t actions;
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	if (stderr_path) {
		posix_spawn_file_actions_addopen(&actions, 2, stderr_path,
						 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	}
	assert_int_equal(posix_spawn(&c->pid, client_path, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	c->in = fdopen(in[1], "w");
	c->out = fdopen(out[0], "r");
}

void client_start(struct client *c, const char *stderr_path) {
	client_spawn(c, stderr_path);
	assert_string_equal(client_read(c), "open");
}

void client_end(struct client *c, int expected_status) {
	int status;

	fclose(c->in);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(status, expected_status);
	fclose(c->out);
}

void client_kill(struct client *c) {
	kill(c->pid, SIGKILL);
	client_end(c, SIGKILL);
}

void client_until(struct client *c, const char *command, const char *wanted) {
	while (strcmp(client_ask(c, command), wanted) != 0) {
		sched_yield();
	}
}
