/* place.c: see place.h. */
#include "tests/simgpu/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int place_dir(char *path, size_t size) {
	const char *dir = getenv("SIMGPU_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int n;

	if (dir && *dir) {
		n = snprintf(path, size, "%s", dir);
	} else if (runtime && *runtime) {
		n = snprintf(path, size, "%s/simgpu", runtime);
	} else {
		n = snprintf(path, size, "/tmp/simgpu-%u", (unsigned)getuid());
	}
	if (n < 0 || (size_t)n >= size) {
		return -ENAMETOOLONG;
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST) {
		return -errno;
	}
	if (stat(path, &st) < 0) {
		return -errno;
	}
	return st.st_uid == getuid() || st.st_uid == 0 ? 0 : -EPERM;
}

int place_file(char *path, size_t size, const char *dir, const char *name) {
	int n = snprintf(path, size, "%s/%s", dir, name);

	return n < 0 || (size_t)n >= size ||
			       (size_t)n >= sizeof(((struct sockaddr_un *)0)->sun_path)
		       ? -ENAMETOOLONG
		       : 0;
}

struct sockaddr_un place_address(const char *path) {
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	memcpy(addr.sun_path, path, strnlen(path, sizeof(addr.sun_path) - 1));
	return addr;
}
