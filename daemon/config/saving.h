/*
 * saving.h: a small file is replaced while the loop goes on: a thread writes it, waits for the
 * disk, and gives it its name.
 */
#pragma once

#include <stddef.h>

struct event_base;
struct saving;

/* In the loop, once. @error: 0 or a negative errno: then the file is as it was. */
typedef void (*saving_fn)(void *userdata, int error);

/*
 * Makes @text, @n bytes, copied, the content of @name in @directory, both copied; makes the last
 * component of @directory if it is missing. Return: 0, or a negative errno.
 */
int saving_new(struct saving **ret, struct event_base *base, const char *directory,
	       const char *name, const char *text, size_t n, saving_fn on_done, void *userdata);

/* Takes NULL. Waits for the disk if it is not done yet; then nobody is told. */
struct saving *saving_free(struct saving *saving);
