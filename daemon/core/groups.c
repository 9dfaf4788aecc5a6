/* groups.c: see groups.h. */
#include "daemon/core/groups.h"

#include <limits.h>

void sched_divide(struct sched_gpu_model *model, unsigned group) {
	unsigned n_sms = model->power.n_sms, rest = n_sms % group, whole;

	model->step += (group - model->step % group) % group;
	model->last_group = group + (rest > 0 ? group + rest : 0);
	while (model->last_group < model->step || (n_sms - model->last_group) % model->step > 0) {
		model->last_group += group;
	}
	if (model->limit < n_sms) {
		whole = model->limit - model->limit % model->step;
		whole = whole < n_sms - model->last_group ? whole : n_sms - model->last_group;
		model->limit = whole > model->step ? whole : model->step;
	}
}

/* Group @i of a GPU that is divided into groups; empty beyond the last. */
static struct smset group_sms(const struct sched_gpu_model *model, unsigned i) {
	unsigned n_sms = model->power.n_sms, first = i * model->step;

	if (first + model->last_group > n_sms) {
		return SMSET_EMPTY;
	}
	return smset_range(first,
			   first + model->last_group == n_sms ? model->last_group : model->step);
}

static struct smset pick_any(const struct smset *from, unsigned n, bool high) {
	unsigned all = smset_count(from);
	struct smset lowest = smset_lowest(from, high && n < all ? all - n : n);

	return high && n < all ? smset_minus(from, &lowest) : high ? *from : lowest;
}

struct smset sched_pick_sms(const struct sched_gpu_model *model, const struct smset *from,
			    unsigned n, bool high) {
	unsigned n_groups, taken = 0;
	struct smset picked = SMSET_EMPTY;

	if (model->last_group == 0) {
		return pick_any(from, n, high);
	}
	n_groups = sched_n_groups(model);
	for (unsigned i = 0; i < n_groups && taken < n; i++) {
		struct smset group = group_sms(model, high ? n_groups - 1 - i : i);

		if (smset_within(&group, from)) {
			picked = smset_or(&picked, &group);
			taken += smset_count(&group);
		}
	}
	return picked;
}

/* The row of whole free groups that begins with group @i; empty if that is not free. */
static struct smset row_at(const struct sched_gpu_model *model, const struct smset *from,
			   unsigned i) {
	struct smset row = SMSET_EMPTY, group;

	for (;; i++) {
		group = group_sms(model, i);
		if (smset_empty(&group) || !smset_within(&group, from)) {
			return row;
		}
		row = smset_or(&row, &group);
	}
}

/* The shortest row of at least @n SMs, else the longest. */
static struct smset find_row(const struct sched_gpu_model *model, const struct smset *from,
			     unsigned n) {
	unsigned n_groups = sched_n_groups(model);
	struct smset best = SMSET_EMPTY;
	unsigned size = 0;

	for (unsigned i = 0; i < n_groups; i++) {
		struct smset row = row_at(model, from, i);
		unsigned count = smset_count(&row);

		if (count > 0 && (size < n ? count > size : count >= n && count < size)) {
			best = row;
			size = count;
		}
		/* what is left of this row is no row of its own */
		i += count > 0 ? (count - 1) / model->step : 0;
	}
	return best;
}

unsigned groups_longest_row(const struct sched_gpu_model *model, const struct smset *from) {
	struct smset row;

	if (model->last_group == 0) {
		return smset_count(from);
	}
	row = find_row(model, from, UINT_MAX);
	return smset_count(&row);
}

struct smset groups_pick(const struct sched_gpu_model *model, const struct smset *from, unsigned n,
			 const struct smset *again) {
	struct smset row = find_row(model, from, n), picked, left;
	unsigned n_again = again ? smset_count(again) : 0, longest;

	if (smset_count(&row) < n) {
		return sched_pick_sms(model, from, n, false);
	}
	picked = sched_pick_sms(model, &row, n,
				smset_has(&row, model->power.n_sms - 1) && !smset_has(&row, 0));
	if (n_again != smset_count(&picked) || !smset_within(again, from)) {
		return picked;
	}
	left = smset_minus(from, &picked);
	longest = groups_longest_row(model, &left);
	left = smset_minus(from, again);
	return groups_longest_row(model, &left) >= longest ? *again : picked;
}
