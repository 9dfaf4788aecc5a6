/*
 * subuid.h: subordinate user ids, with which a user's containers run: subuid(5) says whose they
 * are.
 *
 * The file is read when it is first needed and when it has changed. Its names, and the groups of
 * those users, are looked up then: what an ordinary user does asks no name service. Ranges of root
 * count for nothing: containers that root has set up belong to different people.
 *
 * For one thread.
 */
#pragma once

#include <stdbool.h>

#include "daemon/base/peer.h"

/* The file in place of /etc/subuid. */
#define SUBUID_ENV "SBEET_SUBUID"

/* Whether the user id of @peer is another user's: then *@ret is @peer with that user's ids and
 * groups.
 */
bool subuid_owner(const struct peer *peer, struct peer *ret);
