/*
 * options.h: the command line, parsed by tables.
 *
 * Every option is one row of a table that says its names, its value, its help text, where its value
 * goes and which function reads it. Parsing, --help and the tests all use the same rows. Knows
 * nothing of single verbs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/base/ctl.h"
#include "client/verb.h"

enum option_value {
	OPTION_FLAG,	 /* takes none */
	OPTION_REQUIRED, /* --name=VALUE, --name VALUE, -n VALUE, -nVALUE */
	OPTION_OPTIONAL, /* --name or --name=VALUE */
};

struct option {
	const char *name; /* without dashes; NULL ends a table */
	char letter;	  /* short form, or 0 */
	enum option_value value;
	const char *value_name; /* for the help text; NULL for flags */
	const char *summary;

	/*
	 * Writes the value to @target, the address @offset bytes into the table's structure.
	 * @text: NULL if there is none. Return: 0, or -EINVAL or -ERANGE; then @expected (if set)
	 * tells what would have been right.
	 */
	int (*parse)(const char *text, void *target);
	size_t offset;
	const char *expected;
};

/* Readers for the usual types: bool, const char *, nsec_t, struct option_int. */
int option_flag(const char *text, void *target);
int option_string(const char *text, void *target);
/* The text of a task's field: "yes" where a FLAG has none. */
int option_field(const char *text, void *target);
int option_duration(const char *text, void *target);

/* Of a task's field, by its kind in proto/task-spec.def: whether its option takes a value, and what
 * the help text calls that. */
#define OPTION_VALUE_NAME  OPTION_REQUIRED, "NAME"
#define OPTION_VALUE_CLASS OPTION_REQUIRED, "CLASS"
#define OPTION_VALUE_SCOPE OPTION_REQUIRED, "SCOPE"
#define OPTION_VALUE_JOBS  OPTION_REQUIRED, "MODE"
#define OPTION_VALUE_TIME  OPTION_REQUIRED, "TIME"
#define OPTION_VALUE_COUNT OPTION_REQUIRED, "N"
#define OPTION_VALUE_INT   OPTION_REQUIRED, "N"
#define OPTION_VALUE_FLAG  OPTION_OPTIONAL, "yes|no"
#define OPTION_VALUE_INDEX OPTION_REQUIRED, "GPU"

/* What every verb takes, what VERB_READS adds and what VERB_TABLE adds; all for struct ctl_common.
 */
extern const struct option options_common[];
extern const struct option options_reading[];
extern const struct option options_table[];

/* The option of @verb with this name (letter), its own ones first; NULL. @ret_own: it is one of the
 * verb's own, so its value goes to the verb's structure. */
const struct option *options_find(const struct verb *verb, const char *name, size_t len,
				  bool *ret_own);
const struct option *options_find_letter(const struct verb *verb, char letter, bool *ret_own);

/* Whether verbs of two words begin with @word. */
bool options_is_noun(const struct verb *const *table, const char *word);

/* The verb whose name is @word, or "@word @next"; NULL. @next may be NULL. @ret_words: 1 or 2. */
const struct verb *options_find_verb(const struct verb *const *table, const char *word,
				     const char *next, size_t *ret_words);

/* A parsed command line. */
struct command {
	struct ctl ctl;
	void *options; /* owned: what ctl.options points to */
	char **args;   /* owned array of borrowed strings: what ctl.args points to */
};

/*
 * Parses @argv (with the program's name first, NULL at the end; both outlive the command) against
 * @table. Options stand before or after the verb; "--" ends them. No verb at all means the first of
 * the table. After a verb with VERB_COMMAND options end at the first argument.
 *
 * Return: 0; -EINVAL with one line in @error; -ENOMEM.
 */
int command_init(struct command *command, const struct verb *const *table, char **argv, char *error,
		 size_t error_size);
void command_deinit(struct command *command);
