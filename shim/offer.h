/*
 * offer.h: hands the channel groups of this program to sbeetd, which preempts them while a more
 * urgent program has work.
 */
#pragma once

/* By the tracker: tells what has changed. Waits for nothing. */
void offer_groups(void);
