/*
 * work-seen.c: see work-seen.h.
 */
#include "daemon/session/work-seen.h"

/* Then nobody relies on it any more. */
#define SURPRISES_MAX 8

/* Whether the mean job is another one than the first ones were, by a quarter. */
static bool looks_different(const struct work_seen *seen) {
	double first = (double)seen->first_waves / WORK_SEEN_MIN;
	double now = (double)seen->waves / (double)seen->jobs;

	return now > first * 1.25 || now < first * 0.75;
}

bool work_seen_copies_nothing(const struct work_seen *seen) {
	return seen->surprises < SURPRISES_MAX &&
	       seen->since_copy >= (uint64_t)WORK_SEEN_COPIES << 3 * seen->surprises;
}

/* Return: whether jobs look as if they had another shape. */
static bool add_shape(struct work_seen *seen, uint64_t launches, uint64_t waves) {
	bool found;

	seen->jobs++;
	seen->launches += launches;
	seen->waves += waves;
	if (seen->jobs == WORK_SEEN_MIN) {
		seen->first_waves = seen->waves;
	}
	found = seen->jobs == WORK_SEEN_MIN ||
		(seen->jobs == WORK_SEEN_WELL && looks_different(seen));
	seen->shapes += found;
	return found;
}

bool work_seen_add(struct work_seen *seen, uint64_t launches, uint64_t waves, uint64_t copies) {
	bool copied_nothing = work_seen_copies_nothing(seen), found = false;

	if (launches > 0) {
		found = add_shape(seen, launches, waves);
		seen->since_copy++;
	}
	if (copies > 0) {
		seen->surprises += copied_nothing;
		seen->since_copy = 0;
	}
	return found || work_seen_copies_nothing(seen) != copied_nothing;
}

/* Rounded, for any @sum: programs may say anything. */
static uint64_t mean(uint64_t sum, uint64_t n) {
	return sum / n + (sum % n >= (n + 1) / 2);
}

bool work_seen_shape(const struct work_seen *seen, uint64_t *ret_launches, uint64_t *ret_waves) {
	if (seen->jobs < WORK_SEEN_MIN || seen->launches < seen->jobs || seen->waves < seen->jobs) {
		return false;
	}
	*ret_launches = mean(seen->launches, seen->jobs);
	*ret_waves = mean(seen->waves, seen->jobs);
	return true;
}

struct work_seen work_seen_again(const struct work_seen *seen) {
	struct work_seen again = {.tasks = seen->tasks, .surprises = seen->surprises};
	uint64_t launches, waves;

	if (work_seen_shape(seen, &launches, &waves)) {
		again.shapes = seen->shapes;
		again.jobs = WORK_SEEN_MIN;
		again.launches = launches * WORK_SEEN_MIN;
		again.waves = again.first_waves = waves * WORK_SEEN_MIN;
	}
	return again;
}
