/*
 * opens.c: opens a plug-in and calls its function run(). usage: opens FILE
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
	void *plug = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*run)(void);

	if (!plug) {
		printf("%s\n", dlerror());
		return 1;
	}
	*(void **)&run = dlsym(plug, "run");
	return run();
}
