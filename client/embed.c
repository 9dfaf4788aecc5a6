/*
 * embed.c: a tool of the build: writes a text file as a C string.
 *
 * usage: embed FILE NAME >FILE.c
 */
#include <stdio.h>

int main(int argc, char **argv) {
	FILE *in = argc == 3 ? fopen(argv[1], "r") : NULL;
	int c;

	if (!in) {
		fprintf(stderr, "usage: embed FILE NAME\n");
		return 1;
	}
	/* Bytes, because compilers need not take a string of this length. */
	printf("extern const char %s[];\nconst char %s[] = {\n", argv[2], argv[2]);
	while ((c = getc(in)) != EOF) {
		printf("%d,%s", c, c == '\n' ? "\n" : "");
	}
	printf("0};\n");
	return ferror(in) || fclose(in) == EOF || fflush(stdout) == EOF;
}
