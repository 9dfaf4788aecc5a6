/*
 * rules.h: which of the rules of the TX2 paper ("GPU Scheduling on the NVIDIA TX2: Hidden Details
 * Revealed", RTSS 2017) hold in what was seen of its experiments. Pure.
 *
 * A rule is told by claims: that an operation begins at the very moment for which the rule makes it
 * wait. Earlier or later than that, the rule does not hold. An operation that was launched after
 * that moment tells nothing.
 */
#pragma once

#include "client/examine/experiment.h"

enum rules_verdict {
	RULES_NOT_TESTED, /* launched too late, or the GPU is too small */
	RULES_HOLDS,
	RULES_EARLIER, /* it did not wait */
	RULES_LATER,   /* it waited for something else, too */
};

/* What an operation waits for. */
enum rules_until {
	RULES_DISPATCHED, /* the other kernel's last block is assigned */
	RULES_ENDS,	  /* the other operation is done */
	RULES_ROOM,	  /* some SM has room for one of its blocks */
	RULES_OWN_END,	  /* its last block: the first one of its own is done */
	RULES_LAST_ENDS,  /* its last block: the other operation is done */
	RULES_TURNS,	  /* of the two copies the second one: the first one is done */
};

struct rules_claim {
	unsigned table;	  /* 1 to EXPERIMENT_TABLES */
	const char *rule; /* "X1" */
	const char *op;
	enum rules_until until;
	const char *other; /* NULL for RULES_ROOM and RULES_OWN_END */
};

/* All claims of all tables; ends with table 0. */
extern const struct rules_claim rules_claims[];

/* What each rule says, in the order of the paper; ends with NULL. */
struct rules_text {
	const char *rule, *text;
};
extern const struct rules_text rules_texts[];

/* @tolerance: how far from the moment still is that moment. @ret_off: by how much it was earlier
 * (negative) or later. */
enum rules_verdict rules_judge(const struct rules_claim *claim, const struct experiment *e,
			       const struct experiment_run *run, const struct experiment_gpu *gpu,
			       nsec_t tolerance, int64_t *ret_off);

/* What holds if both do. */
enum rules_verdict rules_both(enum rules_verdict a, enum rules_verdict b);

/* "holds" and so on. */
const char *rules_verdict_name(enum rules_verdict verdict);
