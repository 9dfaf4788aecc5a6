/*
 * libprotobuf-c.c: see libprotobuf-c.h.
 */
#include "libprotobuf-c.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *find(void *library, const char *name) {
	void *found = library ? dlsym(library, name) : NULL;

	if (!found) {
		fprintf(stderr, "libprotobuf-c.so.1: %s\n", dlerror());
		exit(2);
	}
	return found;
}

const struct libprotobuf_c *libprotobuf_c(void) {
	static struct libprotobuf_c l;

	if (!l.size) {
		void *library = dlopen("libprotobuf-c.so.1", RTLD_NOW | RTLD_LOCAL);

		l.pack = (__typeof__(l.pack))find(library, "protobuf_c_message_pack");
		l.unpack = (__typeof__(l.unpack))find(library, "protobuf_c_message_unpack");
		l.free = (__typeof__(l.free))find(library, "protobuf_c_message_free_unpacked");
		l.size = (__typeof__(l.size))find(library, "protobuf_c_message_get_packed_size");
	}
	return &l;
}
