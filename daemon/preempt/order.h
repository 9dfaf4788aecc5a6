/*
 * order.h: what sbeetd tells the process that preempts (helper.h), one structure a packet on a
 * SOCK_SEQPACKET socket. Both are the same executable, so the form needs no version.
 */
#pragma once

#include <stdint.h>

#include "daemon/preempt/effect.h"
#include "proto/limits.h"

enum order_kind {
	ORDER_OWNER,	  /* a program; with its pidfd and its board */
	ORDER_URGENCY,	  /* from now on */
	ORDER_OWNER_GONE, /* its descriptors are closed */
	ORDER_GROUP,	  /* a channel group; with the driver's descriptor */
	ORDER_GROUP_GONE,
	ORDER_EFFECT, /* what is known of a GPU's, see effect.h; nothing: it is to be found out */
	_ORDER_KIND_N,
};

/* Descriptors of one order. */
#define ORDER_FDS_MAX 2

struct order {
	uint32_t kind;
	uint32_t slot;		 /* owner: on its board */
	uint64_t owner;		 /* its number, sbeetd's choice */
	uint64_t urgency;	 /* owner, urgency */
	uint64_t patience;	 /* the same; ns, see rule.h */
	uint64_t turn;		 /* the same; ns, see turns.h */
	uint32_t gpu;		 /* group, effect: place in the pages of terms */
	uint32_t client, object; /* group: the driver's handles */
	uint32_t slices;	 /* effect: enum effect_verdict of short time slices */
};

/* What the helper answers about once a second while it preempts: since it was started. */
struct order_report {
	struct order_gpu {
		uint64_t preempted;   /* the driver said that it did */
		uint64_t refused;     /* it did not */
		uint64_t took_ns;     /* of all together */
		uint64_t shortest_ns; /* of one; 0: there was none */
		uint64_t longest_ns;
		uint64_t slices; /* time slices that were changed */
		uint64_t slices_refused;
		uint64_t turns;	  /* of programs that take turns, that have ended */
		uint64_t turning; /* programs that take turns now */
		/* By the others that worked, less one: the median job's time, 0 where it is not
		 * known; enum effect_verdict. */
		uint64_t effect_ns[EFFECT_OTHERS][_EFFECT_WAY_N];
		uint8_t effect[EFFECT_OTHERS][_EFFECT_WAY_N];
	} gpus[PROTO_GPUS_MAX]; /* by their places in the pages of terms */
};

/* Sends @size bytes at @data with @n descriptors; waits for nothing. Return: 0 or negative errno.
 */
int order_send(int socket, const void *data, uint32_t size, const int *fds, unsigned n);

/* Receives a packet of exactly @size bytes; its descriptors, of which there are @ret_n, become the
 * caller's. Return: 0; -EAGAIN: there is none; -ECONNRESET: the peer is gone; or another negative
 * errno. */
int order_receive(int socket, void *data, uint32_t size, int fds[static ORDER_FDS_MAX],
		  unsigned *ret_n);
