/*
 * route.c: see route.h.
 */
#include "shim/route.h"

#include "proto/enforcement.h"
#include "proto/terms.h"
#include "shim/base/hot.h"
#include "shim/op.h"

/* A job with these terms may not be followed, or this launch is no example. */
static bool is_special(const struct op *op) {
	const struct lane *lane = op->lane;
	uint64_t terms = atomic_load_explicit(&lane->terms, memory_order_relaxed);

	return !terms || terms_yield(terms) ||
	       atomic_load_explicit(&lane->by_operation, memory_order_relaxed) || !op->kernel ||
	       kernel_may_wait(op->kernel) || op->launch->cooperative || op->traits & OP_WHOLE ||
	       op->how == SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
}

HOT_CODE void route_learn(const struct op *op) {
	struct worker *w = op->worker;
	struct shape *shape = is_special(op) ? NULL : op_shape(op);

	if (!shape) {
		return;
	}
	shape->may_follow = true;
	w->route = (struct route){
		.use = op->use,
		.lane = op->lane,
		.context = op->id->context,
		.named = op->stream,
		.at = op->place.at,
		.place = op->place.place,
		.to = op->to,
		.terms = atomic_load_explicit(&op->lane->terms, memory_order_relaxed),
		.epoch = w->last.epoch,
		.per_thread = op->place.per_thread,
	};
}
