/*
 * control-kernels.h: the answer to a Kernels request: the kernels that programs have declared, in
 * pieces. Of other users' programs only admins are told.
 */
#pragma once

#include "daemon/control/client.h"

void control_kernels(struct control_client *client, const Sbeet__Control__Request *request);
