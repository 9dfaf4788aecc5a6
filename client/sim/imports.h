/*
 * imports.h: profiles from the files that a scenario or a set of tasks names in "import".
 */
#pragma once

#include "daemon/book/book.h"

#define IMPORTS_MAX 64

/*
 * Reads a file (@path: as written in the file that imports it). Return: 0 and the whole text,
 * terminated and owned by the caller; or -errno.
 */
typedef int (*imports_open)(void *userdata, const char *path, char **ret_text, size_t *ret_size);

struct imports {
	imports_open open; /* NULL: nothing may be imported */
	void *userdata;
};

/* Adds the profiles of all files in the list "import" of the object @root, if it has one. Return:
 * 0; -EINVAL with the reader's error; -ENOMEM. What was added before a failure stays. */
int imports_read(const struct imports *from, const struct reader *r, const struct reader_node *root,
		 struct book *b);
