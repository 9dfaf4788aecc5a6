/*
 * options.c: see options.h.
 */
#include "client/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/book/suggest.h"
#include "proto/units.h"

int option_flag(const char *text, void *target) {
	(void)text;
	*(bool *)target = true;
	return 0;
}

int option_string(const char *text, void *target) {
	*(const char **)target = text;
	return 0;
}

int option_field(const char *text, void *target) {
	return option_string(text ? text : "yes", target);
}

int option_duration(const char *text, void *target) {
	return units_parse_nsec(text, target);
}

static int option_json(const char *text, void *target) {
	return json_mode_parse(text, target);
}

static int option_colour(const char *text, void *target) {
	return colour_mode_parse(text, target);
}

const struct option options_common[] = {
	{"help", 'h', OPTION_FLAG, NULL, "show this help", option_flag,
	 offsetof(struct ctl_common, help), NULL},
	{"version", 0, OPTION_FLAG, NULL, "show version, protocol and build", option_flag,
	 offsetof(struct ctl_common, version), NULL},
	{"quiet", 'q', OPTION_FLAG, NULL, "print no warnings or notes", option_flag,
	 offsetof(struct ctl_common, quiet), NULL},
	{"color", 0, OPTION_REQUIRED, "WHEN", "auto, always or never", option_colour,
	 offsetof(struct ctl_common, colour), "auto, always or never"},
	{0},
};

const struct option options_reading[] = {
	{"json", 'j', OPTION_OPTIONAL, "FORM", "JSON: short, pretty or off", option_json,
	 offsetof(struct ctl_common, json), "short, pretty or off"},
	{"no-legend", 0, OPTION_FLAG, NULL, "print no headers or footers", option_flag,
	 offsetof(struct ctl_common, no_legend), NULL},
	{0},
};

const struct option options_table[] = {
	{"columns", 0, OPTION_REQUIRED, "A,B,...", "show these columns of the table", option_string,
	 offsetof(struct ctl_common, columns), NULL},
	{"sort", 0, OPTION_REQUIRED, "COLUMN", "sort by this column; -COLUMN: descending",
	 option_string, offsetof(struct ctl_common, sort), NULL},
	{0},
};

/* The tables that hold for @verb, its own first. */
#define OPTION_TABLES 4

static void tables_of(const struct verb *verb, const struct option *tables[OPTION_TABLES]) {
	tables[0] = verb ? verb->options : NULL;
	tables[1] = verb && verb->flags & VERB_READS ? options_reading : NULL;
	tables[2] = verb && verb->flags & VERB_TABLE ? options_table : NULL;
	tables[3] = options_common;
}

static bool name_is(const struct option *o, const char *name, size_t len) {
	return strlen(o->name) == len && memcmp(o->name, name, len) == 0;
}

const struct option *options_find(const struct verb *verb, const char *name, size_t len,
				  bool *ret_own) {
	const struct option *tables[OPTION_TABLES];

	tables_of(verb, tables);
	for (size_t i = 0; i < OPTION_TABLES; i++) {
		for (const struct option *o = tables[i]; o && o->name; o++) {
			if (name_is(o, name, len)) {
				*ret_own = i == 0;
				return o;
			}
		}
	}
	return NULL;
}

const struct option *options_find_letter(const struct verb *verb, char letter, bool *ret_own) {
	const struct option *tables[OPTION_TABLES];

	tables_of(verb, tables);
	for (size_t i = 0; i < OPTION_TABLES; i++) {
		for (const struct option *o = tables[i]; o && o->name; o++) {
			if (o->letter && o->letter == letter) {
				*ret_own = i == 0;
				return o;
			}
		}
	}
	return NULL;
}

struct parser {
	const struct verb *const *table;
	const struct verb *verb; /* NULL while it is being looked for */
	const char *noun;	 /* see struct ctl */
	struct command *command; /* NULL likewise */
	char **argv;
	size_t next; /* in argv */
	char *error;
	size_t error_size;
};

static int fail(const struct parser *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int fail(const struct parser *p, const char *format, ...) {
	va_list args;

	va_start(args, format);
	vsnprintf(p->error, p->error_size, format, args);
	va_end(args);
	return -EINVAL;
}

/*
 * Before the verb is known, an option is looked up in all verbs: only whether a value follows
 * matters then. (Options of one name have one form everywhere; a unit test sees to it.)
 */
static const struct option *find(const struct parser *p, const char *name, size_t len, char letter,
				 bool *ret_own) {
	const struct option *o;

	*ret_own = false;
	if (p->verb) {
		return name ? options_find(p->verb, name, len, ret_own)
			    : options_find_letter(p->verb, letter, ret_own);
	}
	for (const struct verb *const *v = p->table; *v; v++) {
		o = name ? options_find(*v, name, len, ret_own)
			 : options_find_letter(*v, letter, ret_own);
		if (o) {
			return o;
		}
	}
	return NULL;
}

static void offer_options(struct suggest *s, const struct verb *verb) {
	const struct option *tables[OPTION_TABLES];

	tables_of(verb, tables);
	for (size_t i = 0; i < OPTION_TABLES; i++) {
		for (const struct option *o = tables[i]; o && o->name; o++) {
			suggest_offer(s, o->name);
		}
	}
}

static int fail_unknown(const struct parser *p, const char *shown, const char *name, size_t len) {
	char typed[64];
	struct suggest s;

	/* Known, but another verb's? That says more than a near name. */
	for (const struct verb *const *v = p->table; *v && len > 0; v++) {
		bool own;

		if (p->verb && options_find(*v, name, len, &own)) {
			return fail(p, "option '--%.*s' belongs to '%s', not to '%s'", (int)len,
				    name, (*v)->name, p->verb->name);
		}
	}
	snprintf(typed, sizeof(typed), "%.*s", (int)len, name);
	s = suggest_start(typed);
	if (p->verb) {
		offer_options(&s, p->verb);
	}
	for (const struct verb *const *v = p->table; !p->verb && *v; v++) {
		offer_options(&s, *v);
	}
	if (len > 0 && s.best) {
		return fail(p, "unknown option '%s'. Did you mean '--%s'?", shown, s.best);
	}
	return fail(p, "unknown option '%s'; see 'sbeetctl %s%s--help'", shown,
		    p->verb ? p->verb->name : "", p->verb ? " " : "");
}

static int store(const struct parser *p, const struct option *o, bool own, const char *value) {
	struct ctl *ctl;
	char *base;
	int r;

	if (!p->command) {
		return 0;
	}
	ctl = &p->command->ctl;
	base = own ? ctl->options : (char *)&ctl->common;
	r = o->parse(value, base + o->offset);
	if (r == 0) {
		return 0;
	}
	return fail(p, "%s '%s' of option '--%s': expected %s",
		    r == -ERANGE ? "value out of range" : "bad value", value ? value : "", o->name,
		    o->expected ? o->expected : "another value");
}

/* One argument that starts with "--" and has a name. */
static int parse_long(struct parser *p) {
	const char *arg = p->argv[p->next++];
	const char *name = arg + 2;
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const char *value = equals ? equals + 1 : NULL;
	const struct option *o;
	bool own;

	o = find(p, name, len, 0, &own);
	if (!o) {
		return fail_unknown(p, arg, name, len);
	}
	if (o->value == OPTION_FLAG && value) {
		return fail(p, "option '--%s' takes no value", o->name);
	}
	if (o->value == OPTION_REQUIRED && !value) {
		value = p->argv[p->next];
		if (!value) {
			return fail(p, "option '--%s' needs a value: --%s=%s", o->name, o->name,
				    o->value_name);
		}
		p->next++;
	}
	return store(p, o, own, value);
}

/* One argument of letters: "-q", "-qj", "-oFILE", "-o FILE". */
static int parse_short(struct parser *p) {
	const char *arg = p->argv[p->next++];
	int r;

	for (const char *c = arg + 1; *c; c++) {
		char shown[3] = {'-', *c, 0};
		const char *value = NULL;
		const struct option *o;
		bool own;

		o = find(p, NULL, 0, *c, &own);
		if (!o) {
			return fail_unknown(p, shown, "", 0);
		}
		if (o->value == OPTION_REQUIRED) {
			value = c[1] ? c + 1 : p->argv[p->next];
			if (!value) {
				return fail(p, "option '-%c' needs a value: -%c %s", o->letter,
					    o->letter, o->value_name);
			}
			p->next += c[1] ? 0 : 1;
		}
		r = store(p, o, own, value);
		if (r < 0 || value) {
			return r;
		}
	}
	return 0;
}

/*
 * Goes over all arguments. @words: how many plain ones belong to the verb (0: stop at the first
 * plain one, whose index is then in p->next). Plain ones beyond them go to the command.
 */
static int walk(struct parser *p, size_t words) {
	bool options_end = false;
	size_t plain = 0;
	int r;

	for (p->next = 1; p->argv[p->next];) {
		char *arg = p->argv[p->next];

		if (!options_end && strcmp(arg, "--") == 0) {
			options_end = true;
			p->next++;
			continue;
		}
		if (!options_end && arg[0] == '-' && arg[1] != '\0') {
			r = arg[1] == '-' ? parse_long(p) : parse_short(p);
			if (r < 0) {
				return r;
			}
			continue;
		}
		if (!p->command) {
			return 0;
		}
		plain++;
		p->next++;
		if (plain > words) {
			p->command->args[p->command->ctl.n_args++] = arg;
			options_end |= p->verb->flags & VERB_COMMAND;
		}
	}
	return 0;
}

static int fail_verb(const struct parser *p, const char *word) {
	struct suggest s = suggest_start(word);
	size_t len = strlen(word), n = 0;
	char names[256];

	for (const struct verb *const *v = p->table; *v; v++) {
		if (strncmp((*v)->name, word, len) == 0 && (*v)->name[len] == ' ') {
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      (*v)->name + len + 1);
			n = n < sizeof(names) ? n : sizeof(names) - 1;
		}
		suggest_offer(&s, (*v)->name);
	}
	if (n > 0) {
		return fail(p, "'%s' needs one of: %s", word, names);
	}
	if (s.best) {
		return fail(p, "unknown verb '%s'. Did you mean '%s'?", word, s.best);
	}
	for (const struct verb *const *v = p->table; *v; v++) {
		const char *space = strchr((*v)->name, ' ');

		if (space && strcmp(space + 1, word) == 0) {
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s'%s'", n ? ", " : "",
					      (*v)->name);
			n = n < sizeof(names) ? n : sizeof(names) - 1;
		}
	}
	if (n > 0) {
		return fail(p, "unknown verb '%s'. Did you mean %s?", word, names);
	}
	return fail(p, "unknown verb '%s'; see 'sbeetctl --help'", word);
}

const struct verb *options_find_verb(const struct verb *const *table, const char *word,
				     const char *next, size_t *ret_words) {
	size_t len = strlen(word);

	for (; *table; table++) {
		const char *name = (*table)->name;

		if (strcmp(name, word) == 0) {
			*ret_words = 1;
			return *table;
		}
		if (next && strncmp(name, word, len) == 0 && name[len] == ' ' &&
		    strcmp(name + len + 1, next) == 0) {
			*ret_words = 2;
			return *table;
		}
	}
	return NULL;
}

bool options_is_noun(const struct verb *const *table, const char *word) {
	size_t len = strlen(word);

	for (; *table; table++) {
		if (strncmp((*table)->name, word, len) == 0 && (*table)->name[len] == ' ') {
			return true;
		}
	}
	return false;
}

/* Before the options are read: whether one of them asks for help. */
static bool wants_help(char *const *argv) {
	for (argv++; *argv && strcmp(*argv, "--") != 0; argv++) {
		if (strcmp(*argv, "--help") == 0 || strcmp(*argv, "-h") == 0) {
			return true;
		}
	}
	return false;
}

static int find_verb(struct parser *p, size_t *ret_words) {
	const char *word;
	int r;

	r = walk(p, 0);
	if (r < 0) {
		return r;
	}
	word = p->argv[p->next];
	if (!word) {
		*ret_words = 0;
		p->verb = p->table[0];
		return 0;
	}
	p->verb = options_find_verb(p->table, word, p->argv[p->next + 1], ret_words);
	if (!p->verb && options_is_noun(p->table, word) && wants_help(p->argv)) {
		p->noun = word;
		p->verb = p->table[0];
		*ret_words = 1;
	}
	return p->verb ? 0 : fail_verb(p, word);
}

static int check_args(const struct parser *p) {
	const struct ctl *ctl = &p->command->ctl;

	if (ctl->common.help || ctl->common.version) {
		return 0;
	}
	if (ctl->n_args < p->verb->min_args) {
		return fail(p, "'%s' needs %s; see 'sbeetctl %s --help'", p->verb->name,
			    p->verb->args, p->verb->name);
	}
	if (ctl->n_args > p->verb->max_args) {
		return fail(p, "'%s' takes no argument '%s'", p->verb->name,
			    ctl->args[p->verb->max_args]);
	}
	return 0;
}

static int command_alloc(struct command *command, const struct verb *verb, char **argv) {
	size_t n = 0;

	while (argv[n]) {
		n++;
	}
	command->args = calloc(n + 1, sizeof(*command->args));
	command->options = calloc(1, verb->options_size ? verb->options_size : 1);
	if (!command->args || !command->options) {
		return -ENOMEM;
	}
	command->ctl.args = command->args;
	command->ctl.options = command->options;
	return 0;
}

int command_init(struct command *command, const struct verb *const *table, char **argv, char *error,
		 size_t error_size) {
	struct command c = {.ctl = {.table = table}};
	struct parser p = {.table = table, .argv = argv, .error = error, .error_size = error_size};
	size_t words;
	int r;

	r = find_verb(&p, &words);
	if (r < 0) {
		return r;
	}
	c.ctl.verb = p.verb;
	c.ctl.bare = words == 0;
	c.ctl.noun = p.noun;
	r = command_alloc(&c, p.verb, argv);
	if (r == 0) {
		p.command = &c;
		r = walk(&p, words);
	}
	if (r == 0) {
		r = check_args(&p);
	}
	if (r < 0) {
		command_deinit(&c);
		return r;
	}
	*command = c;
	return 0;
}

void command_deinit(struct command *command) {
	free(command->args);
	free(command->options);
	*command = (struct command){0};
}
