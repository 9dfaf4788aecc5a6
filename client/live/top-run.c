/*
 * top-run.c: see top-run.h. Messages go to a file in memory: a verb that outlives `top` can still
 * write them.
 */
#include "client/live/top-run.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

#define WORDS_MAX 8

static int start(pid_t *ret, const char *const *words, int messages) {
	char *argv[WORDS_MAX + 2] = {(char *)"sbeetctl"};
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	for (size_t i = 0; i < WORDS_MAX && words[i]; i++) {
		argv[i + 1] = (char *)words[i];
	}
	if (r != 0) {
		return -r;
	}
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	r = r ? r
	      : posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
	r = r ? r : posix_spawn(ret, SELF, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int top_run_start(struct top_run *r, const char *const *words) {
	int messages = memfd_create("sbeetctl-messages", MFD_CLOEXEC), e;

	if (messages < 0) {
		return -errno;
	}
	e = start(&r->pid, words, messages);
	if (e < 0) {
		r->pid = 0;
		close(messages);
		return e;
	}
	r->messages = messages;
	return 0;
}

#define PREFIX "sbeetctl: "

/* The first line of the messages; there is little room. */
static void read_message(int messages, char *text, size_t size) {
	ssize_t n = pread(messages, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (strncmp(text, PREFIX, strlen(PREFIX)) == 0) {
		memmove(text, text + strlen(PREFIX), strlen(text + strlen(PREFIX)) + 1);
	}
}

bool top_run_look(struct top_run *r, char *text, size_t size) {
	int status;
	pid_t pid = r->pid ? waitpid(r->pid, &status, WNOHANG) : 0;

	if (pid == 0 || (pid < 0 && errno == EINTR)) {
		return false;
	}
	read_message(r->messages, text, size);
	if (*text) {
		/* what it says is enough */
	} else if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		snprintf(text, size, "done");
	} else {
		snprintf(text, size, "failed");
	}
	close(r->messages);
	*r = (struct top_run){0};
	return true;
}
