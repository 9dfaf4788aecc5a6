/*
 * memfile.h: files in memory that programs map, and whose size they may rely on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A file of @size zero bytes, sealed against shrinking and growing, and mapped for us. @writable:
 * those who get the descriptor may write it, too; else they can't, where the kernel knows how to
 * forbid that. Return: the descriptor, or negative errno. @ret_map: to be unmapped; both are the
 * caller's. */
int memfile_new(const char *name, size_t size, bool writable, void **ret_map);
