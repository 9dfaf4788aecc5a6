/*
 * main.c: see guest.h. Uses nothing of the driver, so that guests can choose how they find it.
 *
 * usage: SUBJECT --list     the guests, one a line
 *        SUBJECT GUEST      exit code 0 if it came to its end, 77 if it can't run here
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

char **guest_arguments;

_Noreturn void guest_skip(const char *why) {
	TELL("skipped: %s\n", why);
	_exit(77);
}

_Noreturn void guest_fail(const char *why) {
	TELL("FAILED: %s\n", why);
	_exit(1);
}

const char *guest_setting(const char *name) {
	const char *value = getenv(name);

	if (!value || !*value) {
		TELL("skipped: $%s is not set\n", name);
		_exit(77);
	}
	return value;
}

void guest_await_child(const char *name, int pid) {
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		guest_fail(name);
	}
	if (WIFSIGNALED(status)) {
		TELL("%s: signal %d\n", name, WTERMSIG(status));
	} else {
		TELL("%s: exit code %d\n", name, WEXITSTATUS(status));
	}
}

void guest_in_child(const char *name, void (*run)(void)) {
	int pid = fork();

	if (pid == 0) {
		run();
		_exit(0);
	}
	guest_await_child(name, pid);
}

void guest_start_again(const char *name) {
	char *arguments[] = {guest_arguments[0], (char *)name, NULL};
	int pid = fork();

	if (pid == 0) {
		execv("/proc/self/exe", arguments);
		_exit(127);
	}
	guest_await_child(name, pid);
}

int main(int argc, char **argv) {
	guest_arguments = argv;
	for (const struct guest *g = guests; g->name; g++) {
		if (argc == 2 && strcmp(argv[1], "--list") == 0) {
			TELL("%s\n", g->name);
		} else if (argc == 2 && strcmp(argv[1], g->name) == 0) {
			g->run();
			return 0;
		}
	}
	return argc == 2 && strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
