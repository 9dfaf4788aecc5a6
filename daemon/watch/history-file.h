/*
 * history-file.h: the memory of history.h: a file in the runtime directory, mapped, so it outlives
 * sbeetd, kill -9 included. A copy goes into the state directory when sbeetd ends, and is read at
 * the next boot. Both are judged like anything that comes from outside.
 */
#pragma once

#include <stddef.h>

struct history;
struct history_file;

/* Raised when the meaning of the file changes; one of another version is not read. */
#define HISTORY_FILE_VERSION 2

/*
 * @runtime: the directory of the file; @state: that of the copy; NULL: none is kept. Where the file
 * can't be written, all works until sbeetd ends, and @why says so (else it is empty). Return: 0 or
 * -ENOMEM.
 */
int history_file_open(struct history_file **ret, const char *runtime, const char *state, char *why,
		      size_t why_size);

/* What is in it; as long as it is open. */
struct history *history_file_get(struct history_file *file);

/* Takes NULL. Writes the copy, without waiting for the disk. Return: 0, or a negative errno: there
 * is none. */
int history_file_close(struct history_file *file);
