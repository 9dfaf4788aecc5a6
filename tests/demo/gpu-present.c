/*
 * gpu-present.c: exit 0 if this machine's own driver and NVML both show a GPU, else 1. Prints its
 * name.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(unsigned), (*get_count)(int *), (*get_name)(char *, int, int);
	int (*nvml_init)(void), (*nvml_get_count)(unsigned *);
	char name[128] = "";
	unsigned nvml_n = 0;
	int n = 0;

	if (!cuda || !nvml) {
		return 1;
	}
	*(void **)&init = dlsym(cuda, "cuInit");
	*(void **)&get_count = dlsym(cuda, "cuDeviceGetCount");
	*(void **)&get_name = dlsym(cuda, "cuDeviceGetName");
	*(void **)&nvml_init = dlsym(nvml, "nvmlInit_v2");
	*(void **)&nvml_get_count = dlsym(nvml, "nvmlDeviceGetCount_v2");
	if (!init || !get_count || !get_name || !nvml_init || !nvml_get_count) {
		return 1;
	}
	if (init(0) != 0 || get_count(&n) != 0 || n == 0 || get_name(name, sizeof(name), 0) != 0) {
		return 1;
	}
	if (nvml_init() != 0 || nvml_get_count(&nvml_n) != 0 || nvml_n == 0) {
		return 1;
	}
	printf("%s\n", name);
	return 0;
}
