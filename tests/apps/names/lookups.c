/*
 * lookups.c: prints what look-ups of all kinds find, and what dlerror() says then. Linked with
 * nothing: first there is no driver, then one of its own, then one for all.
 *
 * usage: lookups PLUGIN: see looks.c
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

extern int cuInit(unsigned flags) __attribute__((weak));
extern int cuDeviceGetCount(int *n) __attribute__((weak));

static const char *const names[] = {"cuInit", "cuDeviceGetCount", "cuCtxSynchronize", "cuNothing",
				    "cudaNothing"};

static void say(const char *what, const char *name, bool is_found) {
	const char *error = dlerror();

	printf("%s %s: %s, %s\n", what, name, is_found ? "found" : "not found",
	       error ? error : "no error");
}

static void look_everywhere(void *driver) {
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		errno = 7;
		say("default", names[i], dlsym(RTLD_DEFAULT, names[i]) != NULL);
		say("next", names[i], dlsym(RTLD_NEXT, names[i]) != NULL);
		say("program", names[i], dlsym(dlopen(NULL, RTLD_NOW), names[i]) != NULL);
		say("version", names[i], dlvsym(RTLD_DEFAULT, names[i], "NOTHING_1") != NULL);
		if (driver) {
			say("driver", names[i], dlsym(driver, names[i]) != NULL);
		}
		printf("errno %d\n", errno);
	}
	say("default", "dlsym", dlsym(RTLD_DEFAULT, "dlsym") != NULL);
	say("next", "dlsym", dlsym(RTLD_NEXT, "dlsym") != NULL);
	say("no version", "dlsym", dlvsym(RTLD_NEXT, "dlsym", "GLIBC_9.9") != NULL);
	say("no version", "dlopen", dlvsym(RTLD_DEFAULT, "dlopen", "GLIBC_9.9") != NULL);
}

/* An error stays to be asked for until another call succeeds or fails. */
static void errors(void) {
	dlsym(RTLD_DEFAULT, "cuNothing");
	say("kept", "cuNothing", false);
	dlopen("libnothing-like-this.so", RTLD_NOW);
	say("open", "bare", false);
	dlopen("/nowhere/libnothing.so", RTLD_NOW);
	say("open", "path", false);
	dlsym(RTLD_DEFAULT, "cuNothing");
	dlsym(RTLD_DEFAULT, "printf");
	say("over", "printf", true);
	dlmopen(LM_ID_NEWLM, "/nowhere/libnothing.so", RTLD_NOW);
	say("open", "namespace", false);
}

int main(int argc, char **argv) {
	int (*look)(void);
	void *plug, *driver;

	printf("weak %d %d\n", &cuInit != NULL, &cuDeviceGetCount != NULL);
	look_everywhere(NULL);
	errors();
	plug = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!plug) {
		printf("%s\n", dlerror());
		return 1;
	}
	*(void **)&look = dlsym(plug, "run");
	look(); /* the driver is in its scope alone */
	look_everywhere(NULL);
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	look_everywhere(driver);
	dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	look_everywhere(driver);
	errors();
	return 0;
}
