/*
 * range-name.c: see range-name.h.
 */
#include "proto/range-name.h"

#include <errno.h>
#include <string.h>

#define KIND "nvtx:"

int range_name_read(const char *text, struct range_name *ret) {
	struct range_name r = {.any_domain = true};
	const char *name = text + strlen(KIND), *at;
	size_t n;

	if (strncmp(text, KIND, strlen(KIND)) != 0) {
		return -EINVAL;
	}
	at = strrchr(name, '@');
	n = at ? (size_t)(at - name) : strlen(name);
	if (at) {
		r.any_domain = false;
		if (strlen(at + 1) > RANGE_NAME_MAX) {
			return -EINVAL;
		}
		strcpy(r.domain, at + 1);
	}
	if (n > 0 && name[n - 1] == '*') {
		r.prefix = true;
		n--;
	}
	if (n > RANGE_NAME_MAX || (n == 0 && !r.prefix)) {
		return -EINVAL;
	}
	memcpy(r.name, name, n);
	*ret = r;
	return 0;
}

/* The next character of a text in UTF-8 at @*s, which is not at its end. A byte that is no UTF-8
 * stands for itself. */
static uint32_t next_char(const char **s) {
	const unsigned char *p = (const unsigned char *)*s;
	unsigned more = *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc0 ? 1 : 0;
	uint32_t c = more ? *p & (0x3fu >> more) : *p;

	for (unsigned i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			more = 0;
			c = *p;
			break;
		}
		c = c << 6 | (p[i] & 0x3f);
	}
	*s += more + 1;
	return c;
}

static bool is(const char *want, bool prefix, const char *name) {
	return prefix ? strncmp(name, want, strlen(want)) == 0 : strcmp(name, want) == 0;
}

static bool is_wide(const char *want, bool prefix, const wchar_t *name) {
	while (*want) {
		if (*name == 0 || (uint32_t)*name != next_char(&want)) {
			return false;
		}
		name++;
	}
	return prefix || *name == 0;
}

bool range_name_is(const struct range_name *r, const char *name) {
	return is(r->name, r->prefix, name);
}

bool range_name_is_wide(const struct range_name *r, const wchar_t *name) {
	return is_wide(r->name, r->prefix, name);
}

bool range_name_has_domain(const struct range_name *r, const char *domain) {
	return r->any_domain || is(r->domain, false, domain);
}

bool range_name_has_domain_wide(const struct range_name *r, const wchar_t *domain) {
	return r->any_domain || is_wide(r->domain, false, domain);
}
