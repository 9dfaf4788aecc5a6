/*
 * admin-policy.h: the request that sets sbeetd's policy and its parameters.
 */
#pragma once

#include "daemon/control/client.h"

void admin_policy(struct control_client *client, const Sbeet__Control__Request *request);
