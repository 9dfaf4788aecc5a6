/*
 * blocks.c: see blocks.h.
 */
#include "client/live/blocks.h"

#include <langinfo.h>
#include <string.h>

#define EIGHTHS 8

/* From an eighth to all of a cell. */
static const char *const widths[EIGHTHS] = {"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
static const char *const heights[EIGHTHS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const plain[EIGHTHS] = {"_", ".", ":", "-", "=", "+", "*", "#"};

bool blocks_utf8(void) {
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static char *append(char *at, const char *text) {
	return stpcpy(at, text);
}

void blocks_bar(char text[BLOCKS_TEXT], uint64_t part, uint64_t whole, unsigned cells, bool utf8) {
	double share = whole == 0 ? 0.0 : (double)part / (double)whole;
	unsigned eighths, full;

	cells = cells > BLOCKS_MAX ? BLOCKS_MAX : cells;
	share = share > 1.0 ? 1.0 : share;
	eighths = (unsigned)(share * cells * EIGHTHS + 0.5);
	full = utf8 ? eighths / EIGHTHS : (eighths + EIGHTHS / 2) / EIGHTHS;
	for (unsigned i = 0; i < cells; i++) {
		if (i < full) {
			text = append(text, utf8 ? widths[EIGHTHS - 1] : "#");
		} else if (utf8 && i == full && eighths % EIGHTHS > 0) {
			text = append(text, widths[eighths % EIGHTHS - 1]);
		} else {
			text = append(text, utf8 ? "·" : ".");
		}
	}
	*text = '\0';
}

void blocks_heights(char text[BLOCKS_TEXT], const uint64_t *values, size_t n, uint64_t top,
		    bool utf8) {
	*text = '\0';
	for (size_t i = 0; i < n && i < BLOCKS_MAX; i++) {
		uint64_t value = values[i] > top ? top : values[i];
		size_t height =
			top ? (size_t)((double)value / (double)top * (EIGHTHS - 1) + 0.5) : 0;

		text = append(text, utf8 ? heights[height] : plain[height]);
	}
}
