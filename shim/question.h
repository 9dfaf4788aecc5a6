/*
 * question.h: the tracker asks the driver about streams that other threads may take away. It begins
 * a question, then looks whether the stream is still there. Who takes one away says so where the
 * tracker looks, then waits for the question that may be under way. The tracker waits for nobody
 * while it asks.
 */
#pragma once

/* Around each question. */
void question_begin(void);
void question_end(void);

/* Waits until a question that is asked just now has its answer. */
void question_settle(void);

/* After fork, in the child: nobody asks. */
void question_after_fork(void);
