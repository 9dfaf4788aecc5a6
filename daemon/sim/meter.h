/*
 * meter.h: the energy that a GPU draws while what runs on it comes and goes: Eq. 3.2, integrated.
 */
#pragma once

#include "daemon/core/power.h"

struct meter {
	const struct power_gpu *power; /* borrowed */
	unsigned busy;		       /* SMs */
	uint64_t dynamic_mw;
	nsec_t since;	    /* what follows is counted up to here */
	uint64_t energy_pj; /* drawn */
	nsec_t active;	    /* time with at least one busy SM */
};

/* @now never lies before an earlier call's. */
void meter_advance(struct meter *m, nsec_t now);

/* @n_sms more, or fewer, are busy from @now on and draw @dynamic_mw. */
void meter_start(struct meter *m, nsec_t now, unsigned n_sms, uint32_t dynamic_mw);
void meter_stop(struct meter *m, nsec_t now, unsigned n_sms, uint32_t dynamic_mw);
