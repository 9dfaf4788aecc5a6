/* range.c: see range.h. */
#include "client/sim/range.h"

#include <errno.h>
#include <stdbool.h>

/* "0.2" in thousandths. */
static int parse_milli(const char **text, unsigned *ret) {
	unsigned value = 0, places = 0, digits = 0;
	bool point = false;

	for (; (**text >= '0' && **text <= '9') || (**text == '.' && !point); (*text)++) {
		if (**text == '.') {
			point = true;
			continue;
		}
		if (value > 100000 || places == 3) {
			return -EINVAL;
		}
		value = value * 10 + (unsigned)(**text - '0');
		places += point;
		digits++;
	}
	for (; places < 3; places++) {
		value *= 10;
	}
	*ret = value;
	return digits > 0 ? 0 : -EINVAL;
}

int range_parse(const char *text, struct range *ret) {
	struct range range = {0};

	if (parse_milli(&text, &range.low) < 0) {
		return -EINVAL;
	}
	range.high = range.low;
	if (*text == ':') {
		text++;
		if (parse_milli(&text, &range.high) < 0) {
			return -EINVAL;
		}
	}
	if (*text == ':') {
		text++;
		if (parse_milli(&text, &range.step) < 0) {
			return -EINVAL;
		}
		if (range.step == 0) {
			return -ERANGE;
		}
	}
	if (*text) {
		return -EINVAL;
	}
	if (range.high < range.low) {
		return -ERANGE;
	}
	*ret = range;
	return 0;
}
