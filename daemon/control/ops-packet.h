/*
 * ops-packet.h: operations of jobs as a packet for somebody who watches them.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "control.pb-c.h"
#include "daemon/session/kernels.h"
#include "daemon/watch/ops.h"

#define OPS_PACKET_MAX 512

/* A packet in the making. Points into itself and into the ring: of use until that is written. */
struct ops_packet {
	Sbeet__Control__JobOps list;
	Sbeet__Control__JobOp ops[OPS_PACKET_MAX], *op_pointers[OPS_PACKET_MAX];
	Sbeet__Op bodies[OPS_PACKET_MAX];
	char *names[OPS_PACKET_MAX];
	size_t bytes; /* at most, packed */
};

/* Takes as many as one packet holds, those of user @uid, or, with @all, of everybody. Return: true:
 * it is full; false: there are no more for now. list.n_ops and list.lost say what is in it. */
bool ops_packet_fill(struct ops_packet *p, const struct ops *ops, struct ops_reader *reader,
		     bool all, uid_t uid);
