/*
 * subuid.c: see subuid.h.
 */
#include "daemon/base/subuid.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/files.h"
#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "proto/units.h"

#define DEFAULT_PATH "/etc/subuid"

/* Some 30,000 users. */
#define FILE_MAX_BYTES (1024 * 1024)

struct range {
	uint64_t first, n;
	uid_t uid;
	gid_t gid;
	unsigned n_groups;
	gid_t *groups; /* owned */
};

static struct {
	struct stat seen;     /* the file, as it was read last */
	struct range *ranges; /* owned */
	size_t n;
} table;

static const char *file_path(void) {
	const char *path = getenv(SUBUID_ENV);

	return path && *path ? path : DEFAULT_PATH;
}

static void forget_ranges(void) {
	while (table.n > 0) {
		free(table.ranges[--table.n].groups);
	}
	free(table.ranges);
	table.ranges = NULL;
}

static void look_up_groups(struct range *r, const char *name) {
	gid_t groups[PEER_GROUPS_MAX];
	int n = PEER_GROUPS_MAX;

	if (getgrouplist(name, r->gid, groups, &n) >= 0) {
		r->groups = malloc((size_t)n * sizeof(*groups));
		if (r->groups) {
			memcpy(r->groups, groups, (size_t)n * sizeof(*groups));
			r->n_groups = (unsigned)n;
		}
	}
}

/* A login name, or a number, which need not have one. */
static int find_user(const char *name, struct range *ret) {
	int64_t uid;
	bool number = units_parse_int(name, 0, UINT32_MAX - 1, &uid) == 0;
	const struct passwd *user = number ? getpwuid((uid_t)uid) : getpwnam(name);

	if (!user && !number) {
		return -ENOENT;
	}
	ret->uid = ret->gid = (uid_t)uid;
	if (user) {
		ret->uid = user->pw_uid;
		ret->gid = user->pw_gid;
		look_up_groups(ret, user->pw_name);
	}
	return 0;
}

/* "NAME:FIRST:N". */
static void add_line(char *line) {
	char *name = strsep(&line, ":"), *first = strsep(&line, ":");
	struct range *ranges, r = {0};
	int64_t from, n;

	if (!line || units_parse_int(first, 0, UINT32_MAX, &from) < 0 ||
	    units_parse_int(line, 1, UINT32_MAX, &n) < 0 || find_user(name, &r) < 0) {
		return;
	}
	ranges = r.uid != 0 ? realloc(table.ranges, (table.n + 1) * sizeof(*ranges)) : NULL;
	if (!ranges) {
		free(r.groups);
		return;
	}
	r.first = (uint64_t)from;
	r.n = (uint64_t)n;
	table.ranges = ranges;
	table.ranges[table.n++] = r;
}

static void read_ranges(void) {
	_cleanup_free_ char *text = NULL;
	char *rest, *line;
	size_t n;
	int r = files_read(AT_FDCWD, file_path(), FILE_MAX_BYTES, &text, &n);

	forget_ranges();
	if (r < 0) {
		if (r != -ENOENT) {
			log_warning(
				"'%s' can't be read, subordinate user ids are users of their own: "
				"%s",
				file_path(), strerror(-r));
		}
		return;
	}
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		add_line(line);
	}
}

static bool has_changed(const struct stat *st) {
	return st->st_ino != table.seen.st_ino || st->st_dev != table.seen.st_dev ||
	       st->st_size != table.seen.st_size ||
	       st->st_mtim.tv_sec != table.seen.st_mtim.tv_sec ||
	       st->st_mtim.tv_nsec != table.seen.st_mtim.tv_nsec;
}

bool subuid_owner(const struct peer *peer, struct peer *ret) {
	struct stat st = {0};

	stat(file_path(), &st); /* nothing there is all 0, too */
	if (has_changed(&st)) {
		table.seen = st;
		read_ranges();
	}
	for (size_t i = 0; i < table.n; i++) {
		const struct range *r = &table.ranges[i];

		if (peer->cred.uid >= r->first && peer->cred.uid - r->first < r->n) {
			*ret = *peer;
			ret->cred.uid = r->uid;
			ret->cred.gid = r->gid;
			ret->n_groups = r->n_groups;
			if (r->n_groups > 0) {
				memcpy(ret->groups, r->groups, r->n_groups * sizeof(gid_t));
			}
			return true;
		}
	}
	return false;
}
