/*
 * gather-system.c: the user, the service manager and the container; see gather.h.
 */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/build.h"
#include "client/doctor/gather.h"

#define GROUP_NAME "sbeet"
#define GROUPS_MAX 65536 /* Linux's own limit */

static bool is_listed(const struct group *group, const char *user, gid_t primary) {
	if (group->gr_gid == primary) {
		return true;
	}
	for (char **m = group->gr_mem; *m; m++) {
		if (strcmp(*m, user) == 0) {
			return true;
		}
	}
	return false;
}

/* Of this process, which keeps the groups of its login. */
static bool is_member(gid_t gid) {
	gid_t *groups = calloc(GROUPS_MAX, sizeof(*groups));
	int n = groups ? getgroups(GROUPS_MAX, groups) : 0;
	bool found = getegid() == gid;

	for (int i = 0; i < n; i++) {
		found = found || groups[i] == gid;
	}
	free(groups);
	return found;
}

void gather_rights(struct rights_facts *ret) {
	const struct passwd *user;
	const struct group *group;
	gid_t primary = (gid_t)-1;

	ret->uid = geteuid();
	user = getpwuid(ret->uid);
	if (user) {
		snprintf(ret->user, sizeof(ret->user), "%s", user->pw_name);
		primary = user->pw_gid;
	} else {
		snprintf(ret->user, sizeof(ret->user), "%u", ret->uid);
	}
	group = getgrnam(GROUP_NAME);
	if (group) {
		ret->has_group = true;
		ret->is_listed = is_listed(group, ret->user, primary);
		ret->is_member = is_member(group->gr_gid);
	}
}

/* The value of ID= in os-release. */
static void read_os(char *id, size_t size) {
	FILE *file = fopen("/etc/os-release", "re");
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "ID=", 3) == 0) {
			char *value = line + 3 + strspn(line + 3, "\"'");

			value[strcspn(value, "\"'\n")] = '\0';
			snprintf(id, size, "%s", value);
		}
	}
	if (file) {
		fclose(file);
	}
}

/* In one of systemd's folders of units. */
static bool has_unit(const char *name) {
	static const char *const folders[] = {"/etc/systemd/system", "/run/systemd/system",
					      "/usr/local/lib/systemd/system",
					      "/usr/lib/systemd/system", "/lib/systemd/system"};
	char path[256];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		if (access(path, F_OK) == 0) {
			return true;
		}
	}
	return false;
}

/* As systemd, docker, podman and Kubernetes make themselves known. */
static void find_container(char *name, size_t size) {
	const char *variable = getenv("container");
	FILE *file = fopen("/run/systemd/container", "re");

	if (variable && *variable) {
		snprintf(name, size, "%s", variable);
	} else if (file && fgets(name, (int)size, file)) {
		name[strcspn(name, "\n")] = '\0';
	} else if (access("/.dockerenv", F_OK) == 0) {
		snprintf(name, size, "docker");
	} else if (access("/run/.containerenv", F_OK) == 0) {
		snprintf(name, size, "podman");
	} else if (getenv("KUBERNETES_SERVICE_HOST")) {
		snprintf(name, size, "kubernetes");
	}
	if (file) {
		fclose(file);
	}
}

void gather_system(struct system_facts *ret) {
	read_os(ret->os, sizeof(ret->os));
	find_container(ret->container, sizeof(ret->container));
	ret->systemd = access("/run/systemd/system", F_OK) == 0;
	ret->has_unit = has_unit("sbeetd.socket");
	ret->is_enabled = has_unit("sockets.target.wants/sbeetd.socket");
	ret->has_mps_unit = has_unit("sbeet-mps.service");
	snprintf(ret->version, sizeof(ret->version), "%s", SBEET_VERSION);
}
