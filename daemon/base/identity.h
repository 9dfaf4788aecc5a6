/*
 * identity.h: the identity of a program's process, over connections and restarts of sbeetd.
 *
 * A process id does not identify a program: it is used again, another process inherits it over a
 * restart, and processes of a pid namespace that we don't see all have 0. A user id does not
 * either: programs drop their rights. So a process is identified, in this order, by:
 *
 *  - the inode of its pidfd, where the kernel gives each process one of its own (Linux 6.9);
 *  - its id, its start time and the pid namespace in which the id counts;
 *  - nothing, if it has neither (id 0): it is not known.
 *
 * Beside it stands the secret that sbeetd gave the library in its Welcome and that a reconnection
 * shows. Neither a child nor a program that the process executes has it, though the latter is the
 * same process. Where the process is not known, the secret alone counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/limits.h"

/* Part of the ledger's file: fixed size, no padding. */
struct identity {
	uint64_t inode;	 /* 0: the kernel has none */
	uint64_t start;	 /* in clock ticks since boot; 0: not known */
	uint64_t pid_ns; /* inode of our pid namespace, in which pid counts; 0: not known */
	uint32_t pid;	 /* 0: it has none there */
	uint32_t reserved;
	uint8_t secret[PROTO_SECRET_BYTES]; /* zeros: none was given */
};

/*
 * A descriptor of the very process that connected, owned by the caller; asked of the socket where
 * the kernel can, because by number another process could be meant when that one has already died.
 * @fd: -1: there is only the number. Return: -1 where the kernel has none, -ESRCH if the process is
 * dead, or another negative errno (-EMFILE: there may be one later).
 */
int identity_open_process(int fd, pid_t pid);

/* All but the secret, which becomes zeros. @pidfd: of the process, or negative; @pid: as the kernel
 * tells us. */
struct identity identity_of(int pidfd, pid_t pid);

/* What a ledger of version 2 says of the process @pid: the inode or the start time, whichever the
 * kernel has for processes. 0: nothing. */
struct identity identity_from_ledger_2(uint64_t value, uint32_t pid);

/* Whether a pidfd of @saved, which may be of a daemon before us, can be had by its number. */
bool identity_pid_counts(const struct identity *saved);

/* Whether the process @pid has executed a program in which no thread is called @name; false also if
 * it is about to end, or that can't be known. Reads /proc. */
bool identity_lost_thread(pid_t pid, const char *name);

/* Whether @found, the process that has @saved's number now, can be the one that was saved, as far
 * as both are known. */
bool identity_may_be(const struct identity *found, const struct identity *saved);

/* Whether both are known to be one process that shows one secret. Takes the same time whatever the
 * secrets are. */
bool identity_same(const struct identity *a, const struct identity *b);

/* The same, whatever secrets are shown; not for what is known by its secret alone. */
bool identity_same_process(const struct identity *a, const struct identity *b);

/* Equal for what is the same. Does not depend on the secret unless that alone counts. */
uint64_t identity_hash(const struct identity *identity);

/* A new secret. Return: 0 or negative errno; then there is none. */
int identity_make_secret(struct identity *identity);

bool identity_has_secret(const struct identity *identity);
