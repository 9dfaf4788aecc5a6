/*
 * units.h: the text form of times and counts, as users write and read them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

/* Nanoseconds. Absolute times are CLOCK_MONOTONIC. Never floating point, never wall clock. */
typedef uint64_t nsec_t;

#define NSEC_PER_USEC 1000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_SEC  1000000000ull

/* CLOCK_MONOTONIC. The only function here that looks at the world. */
nsec_t nsec_now(void);

/* For calls that want one: a duration, or a time of CLOCK_MONOTONIC. */
static inline struct timespec nsec_timespec(nsec_t t) {
	return (struct timespec){.tv_sec = (time_t)(t / NSEC_PER_SEC),
				 .tv_nsec = (long)(t % NSEC_PER_SEC)};
}

/* And back; a file's times, too. @t: not before 1970. */
static inline nsec_t nsec_from_timespec(struct timespec t) {
	return (nsec_t)t.tv_sec * NSEC_PER_SEC + (nsec_t)t.tv_nsec;
}

/* As nsec_timespec(), for timers and sockets: not less than @t, so 0, for ever to a socket, only for 0. */
static inline struct timeval nsec_timeval(nsec_t t) {
	nsec_t up = t < UINT64_MAX - NSEC_PER_USEC ? t + NSEC_PER_USEC - 1 : t;

	return (struct timeval){.tv_sec = (time_t)(up / NSEC_PER_SEC),
				.tv_usec = (suseconds_t)(up % NSEC_PER_SEC / NSEC_PER_USEC)};
}

/* @t, or the nearest to it in [@low, @high]. */
static inline nsec_t nsec_clamp(nsec_t t, nsec_t low, nsec_t high) {
	return t < low ? low : t > high ? high : t;
}

/* A clock: nsec_now(), or one that a test sets. */
typedef nsec_t (*clock_fn)(void);

/*
 * A duration with a unit: "33ms", "1.5s", "200us", "16ns", "2min", "1h". A number without a unit is
 * refused, as are signs, exponents, and anything above PROTO_PERIOD_MAX_NS.
 * Return: 0, -EINVAL (form), -ERANGE. @ret untouched on failure.
 */
int units_parse_nsec(const char *text, nsec_t *ret);

/* Shortest exact or three-digit form: "33ms", "1.25s". Returns the length needed. */
size_t units_print_nsec(nsec_t t, char *text, size_t size);

/* A whole decimal number in [@min, @max], the whole of @text. Return: 0, -EINVAL, -ERANGE. */
int units_parse_int(const char *text, int64_t min, int64_t max, int64_t *ret);

/* The same for 1 to @max, which fits into @ret. */
int units_parse_count(const char *text, unsigned max, unsigned *ret);
