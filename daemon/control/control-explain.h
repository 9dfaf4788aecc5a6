/*
 * control-explain.h: the answer to an Explain request: the last decisions, oldest first, in pieces.
 * Those that newer ones have pushed out before their turn are left out.
 */
#pragma once

#include "daemon/control/client.h"

void control_explain(struct control_client *client, const Sbeet__Control__Request *request);
