/*
 * power.h: what a simulated GPU draws, by the dissertation's model (Eq. 2.2 and 3.2), integrated
 * over virtual time. Pure arithmetic; the device model says what is busy, NVML's double reads.
 *
 * While any operation runs: P = P_s + P_d * (SMs with a block) + P_idle * (the other SMs).
 * When none runs:           P = P_s.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct power_config {
	uint32_t static_mw;  /* P_s */
	uint32_t idle_sm_uw; /* P_idle(1), microwatts */
	uint32_t busy_sm_uw; /* P_d(1), microwatts */
};

struct power {
	struct power_config config;
	unsigned n_sms;
	unsigned busy_sms;
	bool running;
	uint64_t energy_uj;
	uint64_t energy_rest; /* microwatt-nanoseconds below one microjoule */
	uint64_t window_ns;   /* of the running utilisation window */
	uint64_t window_busy_ns;
	unsigned utilization; /* percent, of the last full window */
};

void power_init(struct power *p, const struct power_config *config, unsigned n_sms);

/* From now on @busy_sms SMs hold blocks; @running: some operation is being executed. */
void power_set(struct power *p, unsigned busy_sms, bool running);

/* @ns of virtual time have passed in the present state. */
void power_advance(struct power *p, uint64_t ns);

uint64_t power_now_mw(const struct power *p);
uint64_t power_energy_mj(const struct power *p);
