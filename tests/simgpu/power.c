/* power.c: see power.h. */
#include "tests/simgpu/power.h"

/* NVML's utilisation is over a sample period of 1/6 to 1 s. */
#define POWER_WINDOW_NS 200000000ull

/* 1 uJ = 1e9 uW * ns. */
#define POWER_UWNS_PER_UJ 1000000000ull

void power_init(struct power *p, const struct power_config *config, unsigned n_sms) {
	*p = (struct power){.config = *config, .n_sms = n_sms};
}

void power_set(struct power *p, unsigned busy_sms, bool running) {
	p->busy_sms = busy_sms;
	p->running = running;
}

static uint64_t power_now_uw(const struct power *p) {
	uint64_t uw = (uint64_t)p->config.static_mw * 1000;

	if (p->running) {
		uw += (uint64_t)p->config.busy_sm_uw * p->busy_sms;
		uw += (uint64_t)p->config.idle_sm_uw * (p->n_sms - p->busy_sms);
	}
	return uw;
}

void power_advance(struct power *p, uint64_t ns) {
	/* A GPU stands still for hours: 2^64 uW * ns would be three minutes at 100 W. */
	unsigned __int128 work = (unsigned __int128)power_now_uw(p) * ns + p->energy_rest;

	p->energy_uj += (uint64_t)(work / POWER_UWNS_PER_UJ);
	p->energy_rest = (uint64_t)(work % POWER_UWNS_PER_UJ);
	p->window_ns += ns;
	if (p->running) {
		p->window_busy_ns += ns;
	}
	if (p->window_ns >= POWER_WINDOW_NS) {
		p->utilization =
			(unsigned)((unsigned __int128)p->window_busy_ns * 100 / p->window_ns);
		p->window_ns = 0;
		p->window_busy_ns = 0;
	}
}

uint64_t power_now_mw(const struct power *p) {
	return power_now_uw(p) / 1000;
}

uint64_t power_energy_mj(const struct power *p) {
	return p->energy_uj / 1000;
}
