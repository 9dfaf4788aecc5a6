/*
 * ledger.h: who holds which SMs, in a file that outlives the daemon, kill -9 included.
 *
 * One entry for each job slot of each GPU, mapped into memory: an entry is written before its Grant
 * is sent and erased when the job has ended, so the file knows every job that any program may
 * believe to have. What a dead daemon left is read once, judged like anything that comes from
 * outside, and then replaced. Knows neither sessions nor sockets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/identity.h"
#include "proto/granted-job.h"
#include "proto/limits.h"
#include "proto/units.h"

/* Raised when the meaning of the file changes. Version 2 is read too; another one is not. */
#define LEDGER_VERSION 5

/* All of fixed size, for it is the file's format too. */
struct ledger_entry {
	uint64_t checksum; /* of all that follows; set by ledger_write() */
	struct granted_job job;
	struct identity identity;
	nsec_t release;
	uint32_t uid, job_class;
	int32_t priority;
	char task[PROTO_NAME_MAX + 4], program[PROTO_NAME_MAX + 4];
	uint32_t used;
};

enum ledger_past {
	LEDGER_PAST_NONE,    /* no daemon has run here before */
	LEDGER_PAST_KNOWN,   /* the entries are all there was */
	LEDGER_PAST_UNKNOWN, /* there was one, of another version or a broken file */
};

struct ledger;

/*
 * Reads what is in @directory and begins a new file beside it; the old one stays until
 * ledger_commit(). Without room for one that old one is written over then; if there is none, all
 * works but for what it is for, and @why says so (else it is empty). Return: 0 or -ENOMEM.
 */
int ledger_new(struct ledger **ret, const char *directory, char *why, size_t why_size);

/* Takes NULL. The file stays for the next daemon. */
struct ledger *ledger_free(struct ledger *ledger);

enum ledger_past ledger_past(const struct ledger *ledger);

/* What the daemon before left; NULL from the last one on. */
const struct ledger_entry *ledger_left(const struct ledger *ledger, size_t i);

/* The new file takes the old one's place. */
void ledger_commit(struct ledger *ledger);

/* The job in this slot of this GPU. */
void ledger_write(struct ledger *ledger, size_t gpu, unsigned slot,
		  const struct ledger_entry *entry);
void ledger_erase(struct ledger *ledger, size_t gpu, unsigned slot);
