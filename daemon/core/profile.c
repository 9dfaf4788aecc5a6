/* profile.c: see profile.h. */
#include "daemon/core/profile.h"

#include <errno.h>

int profile_table_init(struct profile_table *t, unsigned n_sms, nsec_t copy_in, nsec_t copy_out) {
	if (n_sms < 1 || n_sms > PROTO_SMS_MAX || copy_in > PROFILE_TIME_MAX ||
	    copy_out > PROFILE_TIME_MAX) {
		return -EINVAL;
	}
	*t = (struct profile_table){
		.n_sms = n_sms, .copy_in = copy_in, .copy_out = copy_out, .launches = 1};
	return 0;
}

int profile_table_set(struct profile_table *t, unsigned m, nsec_t best, nsec_t worst,
		      uint32_t power_mw) {
	if (m < 1 || m > t->n_sms || best < 1 || best > worst || worst > PROFILE_TIME_MAX ||
	    power_mw > PROFILE_POWER_MAX_MW) {
		return -ERANGE;
	}
	if (t->measured[m]) {
		return -EEXIST;
	}
	t->exec[m] = worst;
	t->exec_best[m] = best;
	t->power_mw[m] = power_mw;
	t->measured[m] = true;
	return 0;
}

static nsec_t longer(nsec_t a, nsec_t b) {
	return a > b ? a : b;
}

static void fill_below(struct profile_table *t, unsigned m, unsigned lowest) {
	t->exec[m] = (t->exec[lowest] * lowest + m - 1) / m;
	t->exec_best[m] = (t->exec_best[lowest] * lowest + m - 1) / m;
	t->power_mw[m] = (uint32_t)((uint64_t)t->power_mw[lowest] * m / lowest);
}

static void fill_between(struct profile_table *t, unsigned m, unsigned low, unsigned high) {
	int64_t rise = (int64_t)t->power_mw[high] - (int64_t)t->power_mw[low];

	t->exec[m] = longer(t->exec[low], t->exec[high]);
	t->exec_best[m] = longer(t->exec_best[low], t->exec_best[high]);
	t->power_mw[m] = (uint32_t)((int64_t)t->power_mw[low] +
				    rise * (int64_t)(m - low) / (int64_t)(high - low));
}

int profile_table_finish(struct profile_table *t) {
	unsigned low = 0; /* last measured count seen */

	for (unsigned high = 1; high <= t->n_sms; high++) {
		if (!t->measured[high]) {
			continue;
		}
		for (unsigned m = low + 1; m < high; m++) {
			if (low == 0) {
				fill_below(t, m, high);
			} else {
				fill_between(t, m, low, high);
			}
		}
		low = high;
	}
	if (low == 0) {
		return -ENODATA;
	}
	for (t->least = 1; !t->measured[t->least]; t->least++) {
	}
	for (unsigned m = low + 1; m <= t->n_sms; m++) {
		t->exec[m] = t->exec[low];
		t->exec_best[m] = t->exec_best[low];
		t->power_mw[m] = t->power_mw[low];
	}
	return 0;
}

int profile_table_linear(struct profile_table *t, unsigned n_sms, nsec_t copy_in, nsec_t copy_out,
			 nsec_t work, uint32_t power_mw_per_sm) {
	struct profile_table table;
	int r;

	r = profile_table_init(&table, n_sms, copy_in, copy_out);
	if (r < 0) {
		return r;
	}
	if (power_mw_per_sm > PROFILE_POWER_MAX_MW / n_sms) {
		return -ERANGE;
	}
	for (unsigned m = 1; m <= n_sms; m++) {
		nsec_t exec = work / m + (work % m != 0);

		r = profile_table_set(&table, m, exec, exec, m * power_mw_per_sm);
		if (r < 0) {
			return r;
		}
	}
	table.least = 1;
	*t = table;
	return 0;
}

nsec_t profile_total(const struct profile_table *t, unsigned m) {
	return t->copy_in + t->exec[m] + t->copy_out;
}

uint64_t profile_energy_alone_pj(const struct profile_table *t, const struct power_gpu *gpu,
				 nsec_t copies, unsigned m) {
	return (t->exec[m] + copies) * (power_now_mw(gpu, m, t->power_mw[m]) - gpu->static_mw);
}

unsigned profile_m_opt(const struct profile_table *t, const struct power_gpu *gpu, nsec_t copies,
		       unsigned limit, unsigned step) {
	unsigned most = limit < t->n_sms ? limit : t->n_sms;
	unsigned best = most;
	uint64_t best_pj = profile_energy_alone_pj(t, gpu, copies, most);

	for (unsigned m = most - most % step; m >= step && m >= t->least; m -= step) {
		uint64_t pj = profile_energy_alone_pj(t, gpu, copies, m);

		if (pj < best_pj) {
			best = m;
			best_pj = pj;
		}
	}
	return best;
}
