/*
 * question.h: the tracker, or a thread that is measured (kernel-end.h), asks the driver about
 * streams that other threads may take away. It begins a question, then looks whether the stream is
 * still there. Who takes one away says so where the asker looks, then waits for the question that
 * may be under way; or says so between two questions. The asker waits for nobody while it asks;
 * questions wait for each other.
 */
#pragma once

#include "proto/units.h"

/* Around each question, and what is done between two; by a thread that can't be cancelled. */
void question_begin(void);
void question_end(void);

/* Waits until a question that is asked just now has its answer, or until @deadline if it is not 0:
 * whoever calls exit() may hold what the answer waits for. */
void question_settle(nsec_t deadline);

/* After fork, in the child: nobody asks. */
void question_after_fork(void);
