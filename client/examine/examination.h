/*
 * examination.h: what `sbeetctl gpu examine` finds out: all studies that were asked for, their
 * report as text and JSON, and their pictures.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "client/examine/rules.h"
#include "client/examine/study.h"

enum examination_study {
	EXAMINATION_RULES = 1 << 0,
	EXAMINATION_MEMORY = 1 << 1,
	EXAMINATION_SHARING = 1 << 2,
	EXAMINATION_CONFIG = 1 << 3, /* an experiment from outside, alone */
};

#define EXAMINATION_CLAIMS_MAX 32

struct examination_claim {
	enum rules_verdict verdict;
	int64_t off; /* how much later than the moment it waits for */
};

struct examination {
	unsigned studies; /* of enum examination_study */
	struct study_options o;
	nsec_t unit; /* what the papers' second takes */
	struct experiment_gpu gpu;

	/* Of rules_claims, and what the tables with processes showed: full, then half. */
	struct examination_claim claims[EXAMINATION_CLAIMS_MAX];
	nsec_t units[EXPERIMENT_TABLES]; /* 0: not run */
	struct study_shared full, half;
	struct experiment tables[EXPERIMENT_TABLES];
	struct experiment_run runs[EXPERIMENT_TABLES];

	struct study_memory memory;
	struct study_sharing sharing;

	struct experiment config;
	struct experiment_run config_run;
};

/* Fills in what @x asks for. @progress: NULL, or told of each part before it begins. Return: 0 or a
 * negative errno with one line in @error. */
int examination_perform(struct examination *x, void (*progress)(const char *what), char *error,
			size_t error_size);
void examination_deinit(struct examination *x);

/* How @rule came out over all its claims. */
enum rules_verdict examination_verdict(const struct examination *x, const char *rule);

/* How two processes share the GPU. */
enum study_way examination_way(const struct examination *x);

/* Return: 0 or -ENOMEM. */
int examination_print(const struct examination *x, bool no_legend, FILE *out);

/* NULL: no memory. */
json_t *examination_json(const struct examination *x);

/* report.md and pictures, in @folder, which is made. Return: 0 or a negative errno, with the file
 * in
 * @error. */
int examination_save(const struct examination *x, const char *folder, char *error,
		     size_t error_size);
