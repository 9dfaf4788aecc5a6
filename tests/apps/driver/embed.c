/*
 * embed.c: build tool. Turns a text file into a C source with one constant string.
 *
 * usage: embed NAME INPUT OUTPUT
 */
#include <stdio.h>

int main(int argc, char **argv) {
	FILE *in, *out;
	int c;
	unsigned n = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: embed NAME INPUT OUTPUT\n");
		return 2;
	}
	in = fopen(argv[2], "rb");
	if (!in) {
		perror(argv[2]);
		return 1;
	}
	out = fopen(argv[3], "wb");
	if (!out) {
		perror(argv[3]);
		fclose(in);
		return 1;
	}
	fprintf(out, "extern const char %s[];\nconst char %s[] = {", argv[1], argv[1]);
	while ((c = getc(in)) != EOF) {
		fprintf(out, "%s%d,", n++ % 20 == 0 ? "\n" : "", c);
	}
	fprintf(out, "\n0};\n");
	if (ferror(in) || fclose(out) != 0) {
		perror(argv[3]);
		fclose(in);
		return 1;
	}
	fclose(in);
	return 0;
}
