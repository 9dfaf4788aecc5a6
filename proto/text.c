/*
 * text.c: see text.h.
 */
#include "proto/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Changes the direction of the text that follows, or ends the line. */
static bool is_layout_control(uint32_t c) {
	return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Overlong forms, surrogates and values above U+10FFFF are not valid. */
size_t text_printable(const char *text) {
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)text;
	uint32_t c = *p;
	size_t n;

	if (c < 0x80) {
		return c >= 0x20 && c != 0x7f;
	}
	if (c >= 0xc2 && c <= 0xdf) {
		n = 2;
		c &= 0x1f;
	} else if (c >= 0xe0 && c <= 0xef) {
		n = 3;
		c &= 0x0f;
	} else if (c >= 0xf0 && c <= 0xf4) {
		n = 4;
		c &= 0x07;
	} else {
		return 0;
	}
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			return 0;
		}
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) || c < 0xa0 ||
	    is_layout_control(c)) {
		return 0;
	}
	return n;
}

char *text_escape(const char *text, char *ret, size_t size) {
	size_t at = 0;

	while (*text) {
		size_t n = text_printable(text), room = n > 0 ? n : 4;

		if (room >= size - at) {
			break;
		}
		if (n > 0) {
			memcpy(ret + at, text, n);
		} else {
			snprintf(ret + at, size - at, "\\x%02x", (unsigned char)*text);
		}
		at += room;
		text += n > 0 ? n : 1;
	}
	ret[at] = '\0';
	return ret;
}

void text_gpu_uuid(const uint8_t uuid[static PROTO_UUID_BYTES],
		   char ret[static TEXT_GPU_UUID_BYTES]) {
	char *at = ret + sprintf(ret, "GPU");

	for (size_t i = 0; i < PROTO_UUID_BYTES; i++) {
		bool groups = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;

		at += sprintf(at, "%s%02x", groups ? "-" : "", uuid[i]);
	}
}
