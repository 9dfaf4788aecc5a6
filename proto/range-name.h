/*
 * range-name.h: which NVTX ranges of a program are its jobs: "nvtx:NAME" of `sbeetctl run --mark`
 * and SBEET_MARK. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

/* Longest NAME and longest DOMAIN, in bytes. */
#define RANGE_NAME_MAX 255

struct range_name {
	char name[RANGE_NAME_MAX + 1]; /* never empty unless @prefix; without the '*' */
	bool prefix;		       /* what begins with it, too */
	bool any_domain;
	char domain[RANGE_NAME_MAX + 1]; /* empty: the default domain */
};

/*
 * Reads "nvtx:NAME", "nvtx:NAME*", each with "@DOMAIN" or without; the last '@' counts, and "@"
 * with nothing behind it is the default domain. Return: 0; -EINVAL: @ret is untouched.
 */
int range_name_read(const char *text, struct range_name *ret);

/* What range_name_read() takes, to follow "expected". */
#define RANGE_NAME_EXPECTED "nvtx:NAME or nvtx:NAME@DOMAIN"

/* Whether a range of this name is meant. Wide characters are Unicode; @r is in UTF-8. */
bool range_name_is(const struct range_name *r, const char *name);
bool range_name_is_wide(const struct range_name *r, const wchar_t *name);

/* Whether the ranges of this domain, which has a name, are meant. */
bool range_name_has_domain(const struct range_name *r, const char *domain);
bool range_name_has_domain_wide(const struct range_name *r, const wchar_t *domain);
