/*
 * gather.h: finds out the facts (facts.h). Nothing here judges, fails or prints; what can't be
 * found out stays zero.
 */
#pragma once

#include "client/doctor/facts.h"

/*
 * Loads the driver's libraries and starts CUDA in a child process, as these may hang or crash; for
 * $SBEET_TIMEOUT, 30 s if that is not set. @mps_directory: where sbeetd tells programs that MPS is;
 * empty: CUDA looks itself.
 */
void gather_gpu(const char *mps_directory, struct gpu_facts *ret);

/* Asks sbeetd; every wait ends after $SBEET_TIMEOUT. */
void gather_daemon(struct daemon_facts *ret, struct profile_facts *ret_profiles);

/* Looks for MPS's control daemon, beside that of sbeetd in @daemon. */
void gather_mps(const struct daemon_facts *daemon, struct mps_facts *ret);

void gather_rights(struct rights_facts *ret);
void gather_system(struct system_facts *ret);

/* @library: libsbeet.so; NULL: there is none, and @why says why. Preloads it into a program. */
void gather_preload(const char *library, const char *why, struct preload_facts *ret);

/* @preload: what gather_preload() found out. */
void gather_environment(const struct preload_facts *preload, struct environment_facts *ret);

/* @socket: of the sbeetd in question; programs that name another one are left out. @library:
 * likewise. */
void gather_strays(const char *socket, const char *library, struct stray_list *ret);

/* @name: as typed by the user; NULL: none. Does not start it. @library: likewise. */
void gather_program(const char *name, const char *library, struct program_facts *ret);

/* Whether the program or library at @path defines functions with names of the driver's, for others. */
bool gather_stands_in(const char *path);
