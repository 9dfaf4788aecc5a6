/*
 * control-status.h: the answer to a Status request.
 *
 * What holds SMs is told at once. Sessions and what waits come in pieces, between which programs
 * are served; each session is told as it is when its turn comes, and no job as running that was
 * granted after the answer began.
 */
#pragma once

#include "daemon/control/client.h"

void control_status(struct control_client *client, const Sbeet__Control__Request *request);
