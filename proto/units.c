/*
 * units.c: durations and whole numbers as users write and read them. See units.h.
 */
#include "proto/units.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "proto/hot.h"
#include "proto/limits.h"

static const struct unit {
	const char *name;
	nsec_t nsec;
} units[] = {
	{"h", 3600 * NSEC_PER_SEC}, {"min", 60 * NSEC_PER_SEC}, {"s", NSEC_PER_SEC},
	{"ms", NSEC_PER_MSEC},	    {"us", NSEC_PER_USEC},	{"ns", 1},
};
#define N_UNITS (sizeof(units) / sizeof(units[0]))

HOT_CODE nsec_t nsec_now(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return nsec_from_timespec(t);
}

static bool is_digit(char c) {
	return c >= '0' && c <= '9';
}

/* Digits at @p into @ret, ten to the power of their number into @ret_scale. Return: 0; -EINVAL if
 * there are none; -ERANGE from 20 digits on. */
static int parse_digits(const char **p, uint64_t *ret, uint64_t *ret_scale) {
	const char *q = *p;
	uint64_t value = 0, scale = 1;

	if (!is_digit(*q)) {
		return -EINVAL;
	}
	for (; is_digit(*q); q++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*q - '0'), &value)) {
			return -ERANGE;
		}
		if (__builtin_mul_overflow(scale, 10, &scale)) {
			return -ERANGE;
		}
	}
	*p = q;
	*ret = value;
	*ret_scale = scale;
	return 0;
}

int units_parse_nsec(const char *text, nsec_t *ret) {
	uint64_t whole, fraction = 0, scale = 1, t, part;
	const struct unit *unit = NULL;
	const char *p = text;
	int r;

	r = parse_digits(&p, &whole, &scale);
	if (r < 0) {
		return r;
	}
	scale = 1;
	if (*p == '.') {
		p++;
		r = parse_digits(&p, &fraction, &scale);
		if (r < 0) {
			return r;
		}
	}
	for (size_t i = 0; i < N_UNITS; i++) {
		if (strcmp(p, units[i].name) == 0) {
			unit = &units[i];
		}
	}
	if (!unit) {
		return -EINVAL;
	}
	/* A fraction must come out in whole nanoseconds: nothing is rounded behind the user's back.
	 */
	while (scale > 1 && fraction % 10 == 0) {
		fraction /= 10;
		scale /= 10;
	}
	if (__builtin_mul_overflow(fraction, unit->nsec, &part) || part % scale != 0) {
		return -EINVAL;
	}
	if (__builtin_mul_overflow(whole, unit->nsec, &t) ||
	    __builtin_add_overflow(t, part / scale, &t) || t > PROTO_PERIOD_MAX_NS) {
		return -ERANGE;
	}
	*ret = t;
	return 0;
}

/* @t as a number of @unit with three significant digits, trailing zeros dropped. */
static size_t print_three_digits(nsec_t t, const struct unit *unit, char *text, size_t size) {
	uint64_t whole = t / unit->nsec;
	unsigned decimals = whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
	uint64_t scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
	uint64_t rest, step = unit->nsec / scale;

	rest = (t % unit->nsec + step / 2) / step;
	if (rest == scale) {
		whole++;
		rest = 0;
	}
	if (whole == 1000 && unit > units) { /* 999.9us */
		return units_print_nsec(whole * unit->nsec, text, size);
	}
	while (decimals > 0 && rest % 10 == 0) {
		rest /= 10;
		decimals--;
	}
	if (decimals == 0) {
		return (size_t)snprintf(text, size, "%llu%s", (unsigned long long)whole,
					unit->name);
	}
	return (size_t)snprintf(text, size, "%llu.%0*llu%s", (unsigned long long)whole,
				(int)decimals, (unsigned long long)rest, unit->name);
}

size_t units_print_nsec(nsec_t t, char *text, size_t size) {
	size_t i = 0;

	if (t == 0) {
		return (size_t)snprintf(text, size, "0s");
	}
	/* Whole numbers first: "90s", not "1.5min"; "2min", not "120s". */
	for (i = 0; i < N_UNITS; i++) {
		if (t % units[i].nsec == 0 && t / units[i].nsec < 1000) {
			return (size_t)snprintf(text, size, "%llu%s",
						(unsigned long long)(t / units[i].nsec),
						units[i].name);
		}
	}
	/* Else the largest unit that leaves a number of at least one; hours and minutes are read
	 * badly with a point, so seconds go up to 999. */
	for (i = t >= 1000 * NSEC_PER_SEC ? 0 : 2; units[i].nsec > t; i++) {
	}
	return print_three_digits(t, &units[i], text, size);
}

int units_parse_int(const char *text, int64_t min, int64_t max, int64_t *ret) {
	const char *p = text;
	int64_t value = 0;
	bool negative = *p == '-', over = false;

	p += negative;
	if (!is_digit(*p)) {
		return -EINVAL;
	}
	for (; is_digit(*p); p++) {
		int64_t digit = negative ? -(*p - '0') : *p - '0';

		over |= __builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, digit, &value);
	}
	if (*p) {
		return -EINVAL;
	}
	if (over || value < min || value > max) {
		return -ERANGE;
	}
	*ret = value;
	return 0;
}

int units_parse_count(const char *text, unsigned max, unsigned *ret) {
	int64_t n;
	int r = units_parse_int(text, 1, max, &n);

	if (r == 0) {
		*ret = (unsigned)n;
	}
	return r;
}
