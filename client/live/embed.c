/*
 * embed.c: a tool of the build: writes a text file as a C string.
 *
 * usage: embed FILE NAME [FOLDER] >FILE.c
 *
 * A line "@include OTHER" stands for the file OTHER of FOLDER, in which it means nothing.
 */
#include <stdio.h>
#include <string.h>

#define INCLUDE "@include "

static int open_failed(const char *path) {
	fprintf(stderr, "embed: cannot read '%s'\n", path);
	return -1;
}

static void put_line(const char *line) {
	for (; *line; line++) {
		printf("%d,", (unsigned char)*line);
	}
	putchar('\n');
}

/* Bytes, because compilers need not take a string of this length. */
static int embed(const char *path, const char *folder) {
	char line[4096], other[8192];
	FILE *in = fopen(path, "r");
	int r = 0;

	if (!in) {
		return open_failed(path);
	}
	while (r == 0 && fgets(line, sizeof(line), in)) {
		if (!folder || strncmp(line, INCLUDE, strlen(INCLUDE)) != 0) {
			put_line(line);
			continue;
		}
		line[strcspn(line, "\n")] = '\0';
		snprintf(other, sizeof(other), "%s/%s", folder, line + strlen(INCLUDE));
		r = embed(other, NULL);
	}
	r = ferror(in) ? -1 : r;
	fclose(in);
	return r;
}

int main(int argc, char **argv) {
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: embed FILE NAME [FOLDER]\n");
		return 1;
	}
	printf("extern const char %s[];\nconst char %s[] = {\n", argv[2], argv[2]);
	if (embed(argv[1], argv[3]) < 0) {
		return 1;
	}
	printf("0};\n");
	return fflush(stdout) == EOF;
}
