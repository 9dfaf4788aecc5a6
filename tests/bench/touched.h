/*
 * touched.h: which memory an x86-64 instruction reads or writes, and the cache lines and pages that
 * many of them touch together.
 *
 * The decoder knows what compilers emit for ordinary code; of an access that crosses a line the
 * first byte counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOUCHED_LINE 64
#define TOUCHED_PAGE 4096
#define TOUCHED_MAX  4096

/* Zeroed at first. What is more than fits is not counted. */
struct touched {
	uintptr_t lines[TOUCHED_MAX]; /* addresses, each once, in the order of their first use */
	unsigned n;
};

struct user_regs_struct;

void touched_add(struct touched *t, uintptr_t at);

unsigned touched_pages(const struct touched *t);

/* The memory that the instruction at @code is about to use, @regs being as they are before it.
 * Return: how many addresses, 0 to 2. */
unsigned touched_by(const unsigned char *code, const struct user_regs_struct *regs,
		    uintptr_t ret[static 2]);
