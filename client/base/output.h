/*
 * output.h: the file that an option such as --output names; standard output where it names none,
 * or "-".
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Whether @path, which may be NULL, stands for standard output. */
bool output_is_stdout(const char *path);

/* Return: NULL after an error on stderr. */
FILE *output_open(const char *path);

/* Closes @out unless it is standard output, of which main() says whether it took everything.
 * Return: an enum ctl_exit, after an error. */
int output_close(FILE *out, const char *path);
