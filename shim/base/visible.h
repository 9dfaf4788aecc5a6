/*
 * visible.h: the one GPU that the daemon has chosen, shown to the driver by CUDA_VISIBLE_DEVICES.
 *
 * The variable stands in the environment only from the daemon's answer to the end of cuInit, when
 * the driver has read it: the program's children choose for themselves. One that the user has set
 * is never touched.
 */
#pragma once

#include <stdbool.h>

#include "sbeet.pb-c.h"

/* Whether somebody has said which GPUs the program may see. */
bool visible_is_set(void);

/* @uuid: of 16 bytes; else nothing happens. */
void visible_choose(const ProtobufCBinaryData *uuid);

/* Takes back what visible_choose() has done. */
void visible_end(void);
