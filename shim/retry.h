/*
 * retry.h: when to try again to reach sbeetd, and how long to wait for one that has vanished.
 *
 * Times only; who tries is conn.c. Changed under its lock; retry_is_due(), retry_at() and
 * retry_hopes() may be asked by anyone.
 */
#pragma once

#include <stdbool.h>

#include "proto/units.h"

/* What a pause between two tries is at least and at most while a restart is waited for. */
#define RETRY_RESTART_MIN_NS (2 * NSEC_PER_MSEC)
#define RETRY_RESTART_MAX_NS (100 * NSEC_PER_MSEC)

/* Not before this time; 0: at once. */
nsec_t retry_at(void);
bool retry_is_due(nsec_t now);

/* Whether a daemon vanished so shortly before @now that it may be back any moment. */
bool retry_hopes(nsec_t now);

/* Nothing speaks against a try now. */
void retry_at_once(void);

/* A daemon has vanished at @now: it is expected back within @wait_ns. */
void retry_lost(nsec_t now, nsec_t wait_ns);

/* A try failed at @now. @stuck: it cost a wait. @hurry: jobs are held of which the next daemon must
 * be told. */
void retry_failed(nsec_t now, bool stuck, bool hurry);

/* A try succeeded; also: forget everything. */
void retry_reset(void);
