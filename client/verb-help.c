/*
 * verb-help.c: `sbeetctl help`, --help: everything there is to say stands in the tables.
 */
#include <stdio.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/help.h"
#include "client/options.h"
#include "client/verb.h"
#include "daemon/book/suggest.h"

/* Where the texts of options begin. */
#define HELP_COLUMN 26

static void print_options(const char *title, const struct option *table) {
	if (!table || !table->name) {
		return;
	}
	printf("\n%s:\n", title);
	for (const struct option *o = table; o->name; o++) {
		char left[64], letter[8] = "    ";

		if (o->letter) {
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		}
		snprintf(left, sizeof(left), "  %s--%s%s%s%s", letter, o->name,
			 o->value == OPTION_OPTIONAL ? "[" : "", o->value_name ? "=" : "",
			 o->value_name ? o->value_name : "");
		if (o->value == OPTION_OPTIONAL) {
			strcat(left, "]");
		}
		/* A long left side gets a line of its own. */
		if (strlen(left) + 2 > HELP_COLUMN) {
			printf("%s\n%*s%s\n", left, HELP_COLUMN, "", o->summary);
		} else {
			printf("%-*s%s\n", HELP_COLUMN, left, o->summary);
		}
	}
}

static void print_program(const struct verb *const *table) {
	printf("Usage: sbeetctl [VERB] [OPTION...] [ARGUMENT...]\n"
	       "\n"
	       "Run CUDA programs under sbeet's GPU scheduling, and see what it does.\n"
	       "\n"
	       "Verbs:\n");
	for (; *table; table++) {
		printf("  %-*s%s\n", HELP_COLUMN - 2, (*table)->name, (*table)->summary);
	}
	print_options("Options of every verb", options_common);
	printf("\nSee 'sbeetctl VERB --help' for one verb and sbeetctl(1) for everything.\n");
}

static void print_verb(const struct verb *verb) {
	printf("Usage: sbeetctl %s [OPTION...]%s%s%s\n\n%c%s.\n", verb->name,
	       verb->flags & VERB_COMMAND ? " [--]" : "", *verb->args ? " " : "", verb->args,
	       verb->summary[0] - 'a' + 'A', verb->summary + 1);
	if (verb->help) {
		printf("%s", verb->help);
	}
	print_options("Options", verb->options);
	print_options("Output", verb->flags & VERB_READS ? options_reading : NULL);
	print_options("Table", verb->flags & VERB_TABLE ? options_table : NULL);
	print_options("Options of every verb", options_common);
}

void help_print(const struct verb *const *table, const struct verb *verb) {
	if (verb) {
		print_verb(verb);
	} else {
		print_program(table);
	}
}

void help_print_noun(const struct verb *const *table, const char *noun) {
	size_t len = strlen(noun);

	printf("Usage: sbeetctl %s VERB [OPTION...] [ARGUMENT...]\n\nVerbs:\n", noun);
	for (; *table; table++) {
		if (strncmp((*table)->name, noun, len) == 0 && (*table)->name[len] == ' ') {
			printf("  %-*s%s\n", HELP_COLUMN - 2, (*table)->name, (*table)->summary);
		}
	}
	printf("\n'sbeetctl %s VERB --help' has the options.\n", noun);
}

static int help(const struct ctl *ctl) {
	const struct verb *verb;
	struct suggest s;
	size_t words;

	if (ctl->n_args == 0) {
		help_print(ctl->table, NULL);
		return CTL_EXIT_OK;
	}
	verb = options_find_verb(ctl->table, ctl->args[0], ctl->args[1], &words);
	if (verb && words == ctl->n_args) {
		help_print(ctl->table, verb);
		return CTL_EXIT_OK;
	}
	if (ctl->n_args == 1 && options_is_noun(ctl->table, ctl->args[0])) {
		help_print_noun(ctl->table, ctl->args[0]);
		return CTL_EXIT_OK;
	}
	s = suggest_start(ctl->args[0]);
	for (const struct verb *const *v = ctl->table; *v; v++) {
		suggest_offer(&s, (*v)->name);
	}
	ctl_error("no verb '%s'%s%s%s", ctl->args[0], s.best ? ". Did you mean '" : "",
		  s.best ? s.best : "; see 'sbeetctl --help'", s.best ? "'?" : "");
	return CTL_EXIT_USAGE;
}

const struct verb verb_help = {
	.name = "help",
	.args = "[VERB]",
	.summary = "show all verbs, or the options of one",
	.max_args = 2,
	.function = help,
};
