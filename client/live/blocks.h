/*
 * blocks.h: small pictures in a line of text: a bar, a row of heights. With the block characters of
 * UTF-8 where the terminal has them, else in ASCII.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most cells of one, and the bytes that they take, terminated. */
#define BLOCKS_MAX  64
#define BLOCKS_TEXT (BLOCKS_MAX * 3 + 1)

/* Whether the locale that setlocale() has set is one of UTF-8. */
bool blocks_utf8(void);

/* @part of @whole as a bar of @cells; above @whole it is full. */
void blocks_bar(char text[BLOCKS_TEXT], uint64_t part, uint64_t whole, unsigned cells, bool utf8);

/* Each of @n values as a height, @top the highest; at most BLOCKS_MAX. */
void blocks_heights(char text[BLOCKS_TEXT], const uint64_t *values, size_t n, uint64_t top,
		    bool utf8);
