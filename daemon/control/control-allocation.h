/*
 * control-allocation.h: allocations (session/allocations.h) are made, removed and told of.
 */
#pragma once

#include "daemon/control/client.h"

/* A request to make or remove one. */
void control_allocation_change(struct control_client *client,
			       const Sbeet__Control__Request *request);

/* All that there are, as part of a status, none of its last packet. */
void control_allocations(struct control_client *client, uint32_t id);
