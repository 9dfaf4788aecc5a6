/*
 * ops-packet.c: see ops-packet.h.
 */
#include "daemon/control/ops-packet.h"

#include <string.h>

#include "proto/limits.h"

/* A packed operation at most: eleven numbers of ten bytes, each behind its key, in two messages. */
#define OP_BYTES 140

/* What is left for operations and names: the envelope is small. */
#define BYTES_MAX (PROTO_PACKET_MAX - 1024)

/* The name's number in the packet, 0: there is none. */
static uint32_t name_of(struct ops_packet *p, const struct kernel_name *name) {
	size_t i;

	if (!name) {
		return 0;
	}
	/* Programs launch the same few: the last ones first. */
	for (i = p->list.n_names; i > 0; i--) {
		if (p->names[i - 1] == name->text) {
			return (uint32_t)i;
		}
	}
	p->names[p->list.n_names++] = (char *)name->text;
	p->bytes += strlen(name->text) + 4;
	return (uint32_t)p->list.n_names;
}

static void add(struct ops_packet *p, const struct ops_entry *e) {
	size_t n = p->list.n_ops++;
	Sbeet__Op *op = &p->bodies[n];

	sbeet__op__init(op);
	op->kind = (Sbeet__OpKind)e->kind;
	op->time_ns = e->time;
	op->kernel = e->kernel;
	op->blocks = e->blocks;
	op->block_threads = e->block_threads;
	op->bytes = e->bytes;
	op->stream = e->stream;
	op->enforcement = (Sbeet__Enforcement)e->enforcement;
	sbeet__control__job_op__init(&p->ops[n]);
	p->ops[n].session = e->session;
	p->ops[n].job = e->job;
	p->ops[n].name = name_of(p, e->name);
	p->ops[n].op = op;
	p->op_pointers[n] = &p->ops[n];
	p->bytes += OP_BYTES;
}

bool ops_packet_fill(struct ops_packet *p, const struct ops *ops, struct ops_reader *reader,
		     bool all, uid_t uid) {
	const struct ops_entry *e;
	bool more = true;

	sbeet__control__job_ops__init(&p->list);
	p->list.names = p->names;
	p->list.ops = p->op_pointers;
	p->bytes = 0;
	while (p->list.n_ops < OPS_PACKET_MAX &&
	       p->bytes + OP_BYTES + KERNELS_TEXT_MAX + 4 <= BYTES_MAX) {
		e = ops_read(ops, reader);
		if (!e) {
			more = false;
			break;
		}
		if (!all && e->uid != uid) {
			continue;
		}
		if (e->lost) {
			p->list.lost += e->lost;
		} else {
			add(p, e);
		}
	}
	p->list.lost += ops_take_lost(reader);
	return more;
}
