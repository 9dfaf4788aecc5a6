/*
 * main.c: sbeetctl, the tool that runs programs under sbeet and shows what it does.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/help.h"
#include "client/options.h"

/* Data that did not reach its reader is a failure, unlike a reader that went away (SIGPIPE). */
static int finish(int code) {
	if (fflush(stdout) == EOF || ferror(stdout)) {
		ctl_error("cannot write to standard output: %s", strerror(errno));
		return code == CTL_EXIT_OK ? CTL_EXIT_FAILED : code;
	}
	return code;
}

static int perform(const struct ctl *ctl) {
	if (ctl->common.help && ctl->noun) {
		help_print_noun(ctl->table, ctl->noun);
		return CTL_EXIT_OK;
	}
	if (ctl->common.help) {
		help_print(ctl->table, ctl->bare ? NULL : ctl->verb);
		return CTL_EXIT_OK;
	}
	if (ctl->common.version) {
		return verb_version.function(ctl);
	}
	return ctl->verb->function(ctl);
}

int main(int argc, char **argv) {
	struct command command;
	char error[512];
	int r;

	r = command_init(&command, verbs, argv, error, sizeof(error));
	if (r < 0) {
		ctl_error("%s", r == -ENOMEM ? strerror(ENOMEM) : error);
		return r == -ENOMEM ? CTL_EXIT_FAILED : CTL_EXIT_USAGE;
	}
	r = perform(&command.ctl);
	command_deinit(&command);
	return finish(r);
}
