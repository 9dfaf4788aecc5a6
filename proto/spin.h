/*
 * spin.h: for how long a thread that expects an answer may look for it before it sleeps.
 *
 * To wake a sleeping thread takes longer than all that sbeetd does for a grant. See sbeetd.conf(5),
 * `spin`.
 */
#pragma once

#include "proto/units.h"

/* @wanted, as a user says it; 0 where this process may use one CPU only, since whoever is waited
 * for needs it then. */
nsec_t spin_allowed(nsec_t wanted);
