/*
 * boundary.h: compares the states of a simulation at boundaries of hyperperiods: see struct
 * sim_setup. In a state all times count from the boundary and all numbers from the next one, so
 * that states can be equal; differences may wrap.
 */
#pragma once

#include "daemon/sim/state.h"

/* All boundaries up to @until and the end of the window, which lies at the boundary from then on if
 * the caller has seen enough. What happens before @until has happened. Return: 0, -ENOMEM. */
int boundary_pass(struct sim *s, nsec_t until);

/* For sim_arbiter.describe(), of each live job: numbers differ between equal states, so jobs come
 * in an order that follows from what they do. */
void boundary_add_job(struct sim *s, uint32_t id, nsec_t at);
