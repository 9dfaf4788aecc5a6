/*
 * examiner.h: experiments as the cuda_scheduling_examiner of the University of North Carolina is
 * given them: its JSON files, with the benchmarks timer_spin, timer_spin_default_stream and
 * multikernel, of which any GPU makes the same.
 */
#pragma once

#include <stddef.h>

#include "client/examine/experiment.h"

/* @path: "-" is standard input. Return: 0; -EINVAL, -EIO or -ENOMEM with one line in @error. */
int examiner_read(struct experiment *ret, const char *path, char *error, size_t error_size);

/* The same of @size bytes of @text, which errors call @name. */
int examiner_parse(struct experiment *ret, const char *name, const char *text, size_t size,
		   char *error, size_t error_size);
