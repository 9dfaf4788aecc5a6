/*
 * silence.c: see silence.h.
 */
#include "shim/silence.h"

void silence_end(struct silence *s) {
	*s = (struct silence){0};
}

enum silence_step silence_add(struct silence *s, nsec_t t, nsec_t limit, nsec_t patience) {
	s->passed += t;
	if (!s->asked) {
		if (s->passed < limit / 2) {
			return SILENCE_WAIT;
		}
		s->asked = true;
		s->passed = limit / 2; /* it has all of the rest for its answer */
		return SILENCE_ASK;
	}
	if (s->passed >= limit + patience) {
		return SILENCE_OVER;
	}
	if (s->passed >= limit && !s->told) {
		s->told = true;
		return SILENCE_TELL;
	}
	return SILENCE_WAIT;
}
