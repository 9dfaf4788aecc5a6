/*
 * input.h: a file in memory, read-only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files; the largest CUDA libraries have 2 GiB. */
#define INPUT_FILE_MAX (4ull * 1024 * 1024 * 1024)

/* Pipes and devices are read, not mapped; up to here. */
#define INPUT_STREAM_MAX (256u * 1024 * 1024)

struct input {
	const uint8_t *bytes; /* owned */
	size_t size;	      /* at least 1 */
	bool mapped;
};

/*
 * @path: a file of any kind; "-" for standard input.
 * Return: 0; -ENODATA: it is empty; -EISDIR; -EFBIG: above INPUT_FILE_MAX, or a
 * stream above INPUT_STREAM_MAX; or another negative errno.
 */
int input_init(struct input *ret, const char *path);
void input_deinit(struct input *in);
