/*
 * admin.h: requests of sbeetctl that change something, or that tell of the configuration.
 *
 * control.c has checked their form; who may is decided here.
 */
#pragma once

#include "daemon/control.h"

void admin_config(struct control_client *client, const Sbeet__Control__Request *request);
