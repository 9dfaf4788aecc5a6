/*
 * asan-program.c: a program that is built with AddressSanitizer, whose runtime must be loaded
 * first.
 */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	printf("%s\n", getenv("LD_PRELOAD"));
	return 0;
}
