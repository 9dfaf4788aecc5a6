/*
 * is-json.c: whether standard input is JSON, as jansson reads it: one or more objects or arrays,
 * and nothing else. For shell tests. Exit 0: it is.
 */
#include <stdio.h>

#include <jansson.h>

int main(void) {
	size_t n = 0;
	int c;

	while ((c = getchar()) != EOF) {
		json_error_t error;
		json_t *value;

		if (c == '\n') {
			continue;
		}
		ungetc(c, stdin);
		value = json_loadf(stdin, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
		if (!value) {
			fprintf(stderr, "value %zu, line %d: %s\n", n + 1, error.line, error.text);
			return 1;
		}
		json_decref(value);
		n++;
	}
	return n > 0 ? 0 : 1;
}
