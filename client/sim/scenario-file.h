/*
 * scenario-file.h: scenarios and profiles from files, with the files that they import.
 */
#pragma once

#include "client/sim/scenario.h"

/* @path: "-" is standard input. Imports are looked for beside the file. Return as scenario_init();
 * -EIO, with one line in @error, if it can't be read. */
int scenario_file_init(struct scenario *ret, const char *path, char *error, size_t error_size);

/* Reads all of a file, terminated and owned by the caller. Return: 0 or -errno. */
int scenario_file_read(const char *path, char **ret_text, size_t *ret_size);

/* An imports_open: @userdata is the path of the file that imports, beside which @path is looked for
 * (const char *). */
int scenario_file_open(void *userdata, const char *path, char **ret_text, size_t *ret_size);
