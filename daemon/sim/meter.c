/* meter.c: see meter.h. */
#include "daemon/sim/meter.h"

void meter_advance(struct meter *m, nsec_t now) {
	nsec_t passed = now - m->since;

	m->energy_pj += passed * power_now_mw(m->power, m->busy, m->dynamic_mw);
	m->active += m->busy ? passed : 0;
	m->since = now;
}

void meter_start(struct meter *m, nsec_t now, unsigned n_sms, uint32_t dynamic_mw) {
	meter_advance(m, now);
	m->busy += n_sms;
	m->dynamic_mw += dynamic_mw;
}

void meter_stop(struct meter *m, nsec_t now, unsigned n_sms, uint32_t dynamic_mw) {
	meter_advance(m, now);
	m->busy -= n_sms;
	m->dynamic_mw -= dynamic_mw;
}
