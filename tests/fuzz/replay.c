/*
 * replay.c: gives every file of the folders named to a fuzz target, without a fuzzer: also cut
 * short at each of its first bytes, and with each of them changed; after --plain only as it is.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX   (256 * 1024)
#define CHANGED_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool plain;

static void try_all(const uint8_t *bytes, size_t size) {
	static const uint8_t others[] = {0, '\n', '=', '[', 0xff};
	uint8_t *copy = malloc(size + 1); /* of its own, so that sanitizers see its end */

	if (!copy) {
		abort();
	}
	LLVMFuzzerTestOneInput(bytes, size);
	memcpy(copy, bytes, size);
	for (size_t i = 0; i < size && i < CHANGED_MAX && !plain; i++) {
		LLVMFuzzerTestOneInput(copy, i);
		for (size_t j = 0; j < sizeof(others); j++) {
			copy[i] = others[j];
			LLVMFuzzerTestOneInput(copy, size);
		}
		copy[i] = bytes[i];
	}
	free(copy);
}

static int replay_folder(const char *folder) {
	static uint8_t bytes[BYTES_MAX];
	DIR *directory = opendir(folder);
	struct dirent *entry;
	int n = 0;

	while (directory && (entry = readdir(directory))) {
		char path[4096];
		FILE *f;

		if (*entry->d_name == '.') {
			continue;
		}
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		f = fopen(path, "re");
		if (!f) {
			perror(path);
			exit(1);
		}
		try_all(bytes, fread(bytes, 1, sizeof(bytes), f));
		fclose(f);
		n++;
	}
	if (directory) {
		closedir(directory);
	}
	return n;
}

int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) {
		int n;

		if (!strcmp(argv[i], "--plain")) {
			plain = true;
			continue;
		}
		n = replay_folder(argv[i]);
		printf("%s: %d files\n", argv[i], n);
		if (n == 0) {
			return 1;
		}
	}
	return 0;
}
