/*
 * mapfile.h: a file of fixed size in memory, which outlives sbeetd, kill -9 included.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Maps the file @path, of @size bytes, if it is there and @judge finds that it is of use (it may
 * change what it reads); else a new one of zeros in its place. Return: 0, and @ret_map, to be
 * unmapped by the caller; or negative errno. */
int mapfile_open(const char *path, size_t size, bool (*judge)(void *map), void **ret_map);
