/* imports.c: see imports.h. */
#include "client/sim/imports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/sim/book-csv.h"

static int open_import(const struct imports *from, const struct reader *r,
		       const struct reader_node *at, const char *path, char **ret_text,
		       size_t *ret_size) {
	int e = from->open ? from->open(from->userdata, path, ret_text, ret_size) : -EPERM;

	if (e == -ENOMEM || e == 0) {
		return e;
	}
	return reader_fail(r, at, "cannot read '%s': %s", path, strerror(-e));
}

/* A file of profiles in JSON. */
static int import_json(const struct imports *from, const struct reader *r,
		       const struct reader_node *at, struct book *b) {
	static const char *const keys[] = {"profiles", NULL};
	const char *path = json_string_value(at->value);
	struct reader own = *r;
	struct reader_node root = {0}, node;
	char *text = NULL;
	int e;

	e = open_import(from, r, at, path, &text, &own.size);
	if (e < 0) {
		return e;
	}
	own.file = path;
	own.text = text;
	e = reader_parse(&own, text, own.size, &root.value);
	if (e == 0 && (e = reader_object(&own, &root, keys)) == 0 &&
	    (e = reader_need(&own, &root, "profiles", &node)) == 0) {
		e = book_read(b, &own, &node);
	}
	json_decref(root.value);
	free(text);
	return e;
}

/* A pair of CSV files: {"wcet": ..., "apps": ...}. */
static int import_csv(const struct imports *from, const struct reader *r,
		      const struct reader_node *at, struct book *b) {
	static const char *const keys[] = {"wcet", "apps", NULL};
	struct reader_node node[2];
	const char *path[2];
	char *text[2] = {NULL, NULL};
	size_t size[2] = {0, 0};
	int e = reader_object(r, at, keys);

	for (size_t i = 0; e == 0 && i < 2; i++) {
		if ((e = reader_need(r, at, keys[i], &node[i])) == 0 &&
		    (e = reader_string(r, &node[i], &path[i])) == 0) {
			e = open_import(from, r, &node[i], path[i], &text[i], &size[i]);
		}
		if (e == 0 && strlen(text[i]) != size[i]) {
			e = reader_fail(r, &node[i], "'%s' is not a text file", path[i]);
		}
	}
	if (e == 0) {
		struct book_csv wcet = {path[0], text[0]}, apps = {path[1], text[1]};

		e = book_csv_read(b, &wcet, &apps, r->error, r->error_size);
	}
	free(text[0]);
	free(text[1]);
	return e;
}

int imports_read(const struct imports *from, const struct reader *r, const struct reader_node *root,
		 struct book *b) {
	struct reader_node list;
	int e;

	if (!reader_get(root, "import", &list)) {
		return 0;
	}
	e = reader_array(r, &list, IMPORTS_MAX);
	for (size_t i = 0; e == 0 && i < json_array_size(list.value); i++) {
		struct reader_node node = reader_element(&list, i);

		if (json_is_string(node.value)) {
			e = import_json(from, r, &node, b);
		} else if (json_is_object(node.value)) {
			e = import_csv(from, r, &node, b);
		} else {
			e = reader_fail(r, &node,
					"expected the name of a JSON file, or an object with "
					"'wcet' and 'apps'");
		}
	}
	return e;
}
