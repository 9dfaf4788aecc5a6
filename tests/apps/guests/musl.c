/*
 * musl.c: a program of another C library, with a dynamic linker of its own, as images of Alpine
 * have. It can't load libsbeet.so and has no GPU; it runs all the same.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "guest.h"

static void hello(void) {
	TELL("hello\n");
	exit(3);
}

static void starts(void) {
	guest_start_again("hello");
	TELL("shell: %d\n", system("exit 5") >> 8);
}

static void without_driver(void) {
	TELL("driver: %d\n", dlopen("libcuda.so.0", RTLD_NOW) != NULL);
}

const struct guest guests[] = {
	{"hello", hello},
	{"starts", starts},
	{"without-driver", without_driver},
	{NULL, NULL},
};
