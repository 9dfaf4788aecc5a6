/*
 * cgroup.h: the cgroups that a process is in, and which of them there are.
 *
 * A path is that of a cgroup from its hierarchy's root ("/slurm/uid_1000/job_17"). On a machine
 * with several hierarchies it is looked for in each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Of what /proc says of a process: a line of the longest path for each of a dozen hierarchies. */
#define CGROUP_TEXT_MAX (16 * 4096)

/* What /proc says of process @pid, in @ret of @size bytes (> 0); cut if there is more, "" if it
 * can't be known. */
void cgroup_read(pid_t pid, char *ret, size_t size);

/* Whether @text, as cgroup_read() gives it, says that the process is in @path or below it. Pure. */
bool cgroup_is_within(const char *text, const char *path);

/* The path in the hierarchy in which systemd keeps its units, in @ret of @size bytes (> 0): the
 * unified one or, where that has only the root, systemd's own of the old ones. "": there is none, or
 * @text, as cgroup_read() gives it, was cut, or a path is too long for @ret. Pure. */
void cgroup_unit(const char *text, char *ret, size_t size);

/* Whether there is such a cgroup, as far as it can be seen below /sys/fs/cgroup. */
bool cgroup_exists(const char *path);
