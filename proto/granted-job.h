/*
 * granted-job.h: the record of a job that holds SMs, which program and daemon keep alike, so that
 * the job outlives the connection and the daemon.
 *
 * The program keeps it from the Grant on and names it in its next Hello (Held); the daemon keeps it
 * in its ledger and hands it to its successor. A field that must survive a restart is added here,
 * to Held, and to the two functions below; the daemon's ledger then needs a new version.
 */
#pragma once

#include "proto/limits.h"
#include "proto/smset.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

/* A plain value without padding: the daemon's ledger is a file of them. */
struct granted_job {
	uint64_t number; /* the program's */
	uint64_t sequence;
	nsec_t requested; /* when it was asked for */
	nsec_t deadline;  /* absolute; 0: none */
	nsec_t granted;	  /* each side's own clock reading */
	struct smset sms;
	uint32_t slot;
	uint32_t enforcement; /* Sbeet__Enforcement */
	uint32_t enforcement_mask;
	uint32_t tid;
	uint8_t uuid[PROTO_UUID_BYTES]; /* of the GPU */
};

/* Fills @ret, which borrows @job and @sms. */
void granted_job_to_wire(const struct granted_job *job, uint8_t sms[static 32], Sbeet__Held *ret);

/* @held has been validated. Return: 0, or -EINVAL if it names no SM. */
int granted_job_from_wire(const Sbeet__Held *held, struct granted_job *ret);
