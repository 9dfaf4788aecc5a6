/*
 * suggest.c: edit distance with transpositions (restricted Damerau-Levenshtein); see suggest.h.
 */
#include "daemon/book/suggest.h"

#include <stdint.h>
#include <string.h>

/* Longer words are never mistyped names of ours. */
#define SUGGEST_LEN_MAX 32

static size_t min3(size_t a, size_t b, size_t c) {
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

static size_t distance(const char *a, const char *b) {
	size_t rows[SUGGEST_LEN_MAX + 1][SUGGEST_LEN_MAX + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > SUGGEST_LEN_MAX || m > SUGGEST_LEN_MAX) {
		return SIZE_MAX;
	}
	for (size_t i = 0; i <= n; i++) {
		for (size_t j = 0; j <= m; j++) {
			if (i == 0 || j == 0) {
				rows[i][j] = i + j;
				continue;
			}
			rows[i][j] = min3(rows[i - 1][j] + 1, rows[i][j - 1] + 1,
					  rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    rows[i - 2][j - 2] + 1 < rows[i][j]) {
				rows[i][j] = rows[i - 2][j - 2] + 1;
			}
		}
	}
	return rows[n][m];
}

struct suggest suggest_start(const char *text) {
	/* One slip in a short word, a third of a long one. */
	return (struct suggest){.text = text, .distance = strlen(text) / 3 + 2};
}

void suggest_offer(struct suggest *s, const char *name) {
	size_t d = distance(s->text, name);

	/* A beginning of the name is what people type who know other tools' abbreviations. */
	if (strlen(s->text) >= 2 && strncmp(s->text, name, strlen(s->text)) == 0) {
		d = 0;
	}
	if (d < s->distance) {
		s->distance = d;
		s->best = name;
	}
}
