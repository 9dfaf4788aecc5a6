/*
 * inifile.h: the lines of a configuration file, with their numbers, as untrusted as any other
 * input.
 *
 * libinih splits lines; what it would take in silence is refused here: files that are too large,
 * lines that are too long, NUL and other control characters, bytes that are no UTF-8.
 */
#pragma once

#include <stddef.h>

/* The largest file; a thousand lines with comments. */
#define INIFILE_SIZE_MAX (64 * 1024)

/* Called for each "key = value". Return: 0, or a negative errno that ends the reading. */
typedef int (*inifile_entry_fn)(void *userdata, const char *section, const char *key,
				const char *value, unsigned line);

/*
 * Reads @n bytes of @text. Return: 0; what @entry returned; -EBADMSG: the text is no such file,
 * @why says in which line and what was expected ("3: expected ...").
 */
int inifile_read(const char *text, size_t n, inifile_entry_fn entry, void *userdata, char *why,
		 size_t why_size);
