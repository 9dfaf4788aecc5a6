/*
 * json.h: JSON on stdout, in the form that --json asks for.
 *
 * The objects are jansson's; this is only the choice of form and a few conversions. Keys are
 * snake_case with units (`deadline_ns`), documented in sbeetctl(1), and only ever added to.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

enum json_mode {
	JSON_OFF,
	JSON_AUTO,  /* --json alone: pretty on a terminal, short elsewhere */
	JSON_SHORT, /* one line an object */
	JSON_PRETTY,
};

/* "short", "pretty", "off", or NULL for --json alone. Return: 0 or -EINVAL. */
int json_mode_parse(const char *text, enum json_mode *ret);

/* Writes @object and a newline; takes over the reference. NULL stands for a failed allocation.
 * Return: 0, -ENOMEM or -EIO. */
int json_write(json_t *object, enum json_mode mode, FILE *out);

/* An integer; beyond what JSON readers take (2^63 - 1) it stays there. */
json_t *json_u64(uint64_t value);

/* The same, null for 0: values that are not known. */
json_t *json_u64_known(uint64_t value);

/* A string, null for NULL; bytes that are no UTF-8 become '?'. */
json_t *json_text(const char *text);
