/*
 * measuring.h: what `sbeetctl profile run` and `sbeetctl gpu calibrate` share: they run a program
 * at several numbers of SMs and keep what was seen, and differ in what they make of it.
 *
 * How many SMs a job gets is asked for by the program's own environment (SBEET_MAX_SMS) and then
 * looked up in what sbeetd tells of each job: a number that was not granted is never written down.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "client/base/ctl.h"
#include "client/live/measure.h"
#include "client/live/rows.h"
#include "client/options.h"

struct measuring_options {
	const char *task, *output, *beside, *shim;
	unsigned sms[PROTO_SMS_MAX];
	size_t n_sms;
	unsigned gpu, runs;
	unsigned margin; /* per cent, and one: 0 is "not given" */
	nsec_t limit, warm_up, power_time, drain;
	double idle_w;
};

/* Which numbers of SMs jobs can be given. */
struct measuring_parts {
	unsigned limit, step; /* all; parts are multiples of this */
	unsigned least, most; /* SMs of a part */
};

/* The state of either verb. */
struct measuring {
	const struct ctl *ctl;
	struct measuring_options o;
	struct measure *measure;
	struct rows rows;
	char *preload;		    /* owned */
	char key[2048], part[4096]; /* what is measured; where it is kept meanwhile, "": nowhere */
	char policy[PROTO_NAME_MAX + 1];
	struct measuring_parts parts;
	size_t at; /* which of o.sms */
	nsec_t since;
	double since_done;
	bool shown;
	char error[2048];
};

/* Eighths of all SMs, as far as they can be had. Return: how many. */
size_t measuring_eighths(const struct measuring_parts *parts, unsigned ret[static PROTO_SMS_MAX]);

/* Values of the options below. */
int measuring_parse_sms(const char *text, void *target);
int measuring_parse_gpu(const char *text, void *target);
int measuring_parse_runs(const char *text, void *target);

#define MEASURING_AT(member) offsetof(struct measuring_options, member)

#define MEASURING_OPTIONS                                                                  \
	{"sms",                                                                            \
	 0,                                                                                \
	 OPTION_REQUIRED,                                                                  \
	 "LIST",                                                                           \
	 "numbers of SMs: 8,16,...,132 (default: eighths, in whole groups)",               \
	 measuring_parse_sms,                                                              \
	 0,                                                                                \
	 "rising numbers from 1 to 256, such as 8,16,...,132"},                            \
		{"gpu",                                                                    \
		 'g',                                                                      \
		 OPTION_REQUIRED,                                                          \
		 "N",                                                                      \
		 "the GPU that the program uses (default: 0)",                             \
		 measuring_parse_gpu,                                                      \
		 MEASURING_AT(gpu),                                                        \
		 "a GPU's number, 0 to 15"},                                               \
		{"runs",                                                                   \
		 'r',                                                                      \
		 OPTION_REQUIRED,                                                          \
		 "N",                                                                      \
		 "jobs for each number of SMs (default: 30)",                              \
		 measuring_parse_runs,                                                     \
		 MEASURING_AT(runs),                                                       \
		 "a whole number from 1"},                                                 \
		{"warm-up",                                                                \
		 0,                                                                        \
		 OPTION_REQUIRED,                                                          \
		 "TIME",                                                                   \
		 "leave out what a run does so long from its first job on (default: 0s)",  \
		 option_duration,                                                          \
		 MEASURING_AT(warm_up),                                                    \
		 "a time, such as 10s"},                                                   \
		{"time-limit",                                                             \
		 0,                                                                        \
		 OPTION_REQUIRED,                                                          \
		 "TIME",                                                                   \
		 "for one run of the program (default: 1min)",                             \
		 option_duration,                                                          \
		 MEASURING_AT(limit),                                                      \
		 "a time, such as 30s"},                                                   \
		{"power-time",                                                             \
		 0,                                                                        \
		 OPTION_REQUIRED,                                                          \
		 "TIME",                                                                   \
		 "how long power is measured, at least (default: 2s)",                     \
		 option_duration,                                                          \
		 MEASURING_AT(power_time),                                                 \
		 "a time, such as 5s"},                                                    \
		{"drain",                                                                  \
		 0,                                                                        \
		 OPTION_REQUIRED,                                                          \
		 "TIME",                                                                   \
		 "for its jobs to end before it is told to (default: 10s)",                \
		 option_duration,                                                          \
		 MEASURING_AT(drain),                                                      \
		 "a time, such as 30s"},                                                   \
		{"output",                                                                 \
		 'o',                                                                      \
		 OPTION_REQUIRED,                                                          \
		 "FILE",                                                                   \
		 "write the result here; an interrupted run goes on when called again",    \
		 option_string,                                                            \
		 MEASURING_AT(output),                                                     \
		 NULL},                                                                    \
	{                                                                                  \
		"shim", 0, OPTION_REQUIRED, "PATH", "use this libsbeet.so", option_string, \
			MEASURING_AT(shim), NULL                                           \
	}

/* Runs all, and leaves the rows in @w, whose ctl and o are set. Return: an enum ctl_exit, after an
 * error on stderr, as below. */
int measuring_perform(struct measuring *w);
void measuring_deinit(struct measuring *w);

/* Into --output, and what was kept meanwhile goes. Takes over @document; NULL: no memory. */
int measuring_write(struct measuring *w, json_t *document);

/* The row of @n_sms SMs can't be true, for @why, and @power: for its power. Says so, and what may
 * help; drops what the next call then measures anew. Return: CTL_EXIT_FAILED. */
int measuring_doubt(struct measuring *w, unsigned n_sms, bool power, const char *why);

/* The rows as a table, on stdout. */
int measuring_print(const struct measuring *w);
