/*
 * terminal.h: what may be sent to a terminal: colour, width, clean text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum colour_mode {
	COLOUR_AUTO, /* on a terminal, unless NO_COLOR is set or TERM is dumb */
	COLOUR_ALWAYS,
	COLOUR_NEVER,
};

/* "auto", "always", "never". Return: 0 or -EINVAL. */
int colour_mode_parse(const char *text, enum colour_mode *ret);

/* Whether colour may go to the file descriptor @fd. Colour never carries meaning alone. */
bool terminal_colour(enum colour_mode mode, int fd);

/* Columns and rows of the terminal behind @fd; 0 if it is none (then nothing is ever cut). */
unsigned terminal_width(int fd);
unsigned terminal_height(int fd);

/* Replaces each byte of what is not printable (proto/text.h) by '?', in place. */
void terminal_clean(char *text);

/* Columns that @text takes: UTF-8 characters count one. */
size_t terminal_text_width(const char *text);

/* Bytes of @text that fit into @width columns, never half a character. */
size_t terminal_text_cut(const char *text, size_t width);
