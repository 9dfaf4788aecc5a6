/*
 * control-history.h: the answer to a HistoryRequest: what programs' jobs came to, in pieces. For
 * everybody, as status is.
 */
#pragma once

#include "daemon/control/client.h"

void control_history(struct control_client *client, const Sbeet__Control__Request *request);
