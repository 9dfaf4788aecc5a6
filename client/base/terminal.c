/*
 * terminal.c: see terminal.h.
 */
#include "client/base/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "proto/text.h"

int colour_mode_parse(const char *text, enum colour_mode *ret) {
	static const char *const names[] = {
		[COLOUR_AUTO] = "auto", [COLOUR_ALWAYS] = "always", [COLOUR_NEVER] = "never"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum colour_mode)i;
			return 0;
		}
	}
	return -EINVAL;
}

bool terminal_colour(enum colour_mode mode, int fd) {
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (mode != COLOUR_AUTO) {
		return mode == COLOUR_ALWAYS;
	}
	if ((no_color && *no_color) || !term || strcmp(term, "dumb") == 0) {
		return false;
	}
	return isatty(fd);
}

static struct winsize window_size(int fd) {
	struct winsize size = {0};

	if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) < 0) {
		return (struct winsize){0};
	}
	return size;
}

unsigned terminal_width(int fd) {
	return window_size(fd).ws_col;
}

unsigned terminal_height(int fd) {
	return window_size(fd).ws_row;
}

void terminal_clean(char *text) {
	while (*text) {
		size_t n = text_printable(text);

		if (n == 0) {
			*text = '?';
			n = 1;
		}
		text += n;
	}
}

/* The second and later bytes of a UTF-8 character. */
static bool is_continuation(char c) {
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t terminal_text_width(const char *text) {
	size_t n = 0;

	for (; *text; text++) {
		n += !is_continuation(*text);
	}
	return n;
}

size_t terminal_text_cut(const char *text, size_t width) {
	size_t i;

	for (i = 0; text[i]; i++) {
		if (!is_continuation(text[i])) {
			if (width == 0) {
				break;
			}
			width--;
		}
	}
	return i;
}
