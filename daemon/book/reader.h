/*
 * reader.h: values out of a JSON document, with errors that say where and what was expected.
 *
 * A message reads "FILE:7: gpus[0].sms: expected a whole number from 1 to 256, found 0"; the line
 * is there if the reader knows the text. All functions return 0, or -EINVAL with such a line in the
 * reader's error; results are untouched then.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/units.h"

/* Largest document. */
#define READER_SIZE_MAX (64u * 1024 * 1024)

struct reader {
	const char *file; /* shown in errors; borrowed */
	const char *text; /* the document, for line numbers; borrowed; NULL: without them */
	size_t size;
	char *error;
	size_t error_size;
};

/* A place in the document. Lives on the stack of whoever walks down. */
struct reader_node {
	const struct reader_node *up; /* NULL: the document itself */
	const char *key;	      /* NULL: an element, number `index` */
	size_t index;
	json_t *value; /* borrowed */
};

/* Parses @size bytes of @text; duplicate keys are errors. *ret: a new reference. */
int reader_parse(const struct reader *r, const char *text, size_t size, json_t **ret);

int reader_fail(const struct reader *r, const struct reader_node *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* @at must be an object with no other keys than @keys (NULL at the end). */
int reader_object(const struct reader *r, const struct reader_node *at, const char *const *keys);
int reader_array(const struct reader *r, const struct reader_node *at, size_t max);

/* The member @key of the object @at: whether it is there. */
bool reader_get(const struct reader_node *at, const char *key, struct reader_node *ret);
int reader_need(const struct reader *r, const struct reader_node *at, const char *key,
		struct reader_node *ret);
struct reader_node reader_element(const struct reader_node *at, size_t index);

/* A string such as "2.5ms". */
int reader_time(const struct reader *r, const struct reader_node *at, nsec_t min, nsec_t max,
		nsec_t *ret);
int reader_int(const struct reader *r, const struct reader_node *at, int64_t min, int64_t max,
	       int64_t *ret);

/* A number of @unit, from 0 to @max thousandths, rounded to thousandths. */
int reader_milli(const struct reader *r, const struct reader_node *at, const char *unit,
		 uint32_t max, uint32_t *ret);
int reader_string(const struct reader *r, const struct reader_node *at, const char **ret);

/* 1 to PROTO_NAME_MAX bytes without control characters. */
int reader_name(const struct reader *r, const struct reader_node *at, const char **ret);
