/*
 * keeper-world.h: what the keeper lives in, for tests: the clock, the driver, the terms and the
 * board are the test's. Nothing here depends on how fast the keeper is: it is waited for, or can't
 * do what is forbidden however long it looks.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/board.h"
#include "shim/keeper.h"

#define MS     NSEC_PER_MSEC
#define GPU    2
#define OWN    5 /* our slot on the board */
#define DEVICE 1

extern _Atomic nsec_t now;
extern _Atomic bool steered;	 /* the terms hold */
extern _Atomic bool stuck;	 /* the keeper has no CPU */
extern _Atomic uint64_t own_due; /* of our own job, which yields; 0: none is open */
extern struct board *board;
extern CUcontext context; /* of the test that runs */

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* A new one, with our seat on it. */
void take_board(void);

int setup(void **state);
int teardown(void **state);

/* The keeper has looked at everything as it is now. */
void let_it_look(void);

/* @stuck was set: it is between two looks. */
void wait_until_stuck(void);
void unstick(void);

/* ---- copies ---- */

/* What the board says of the copies of slot @i; of our own: how long they take. */
uint64_t slot(unsigned i);
nsec_t length(void);
void announce(unsigned i, uint64_t due);
void wait_for_slot(uint64_t due);

/* Hands a copy over. @late_due: when it is due once it is late. */
struct keeper_copy begin_late(uint64_t due, uint64_t late_due, bool held);
struct keeper_copy begin(uint64_t due, bool held);
bool is_open(const struct keeper_copy *copy);

/* As the GPU does behind the copy. */
void finish(const struct keeper_copy *copy);

/* ---- kernels ---- */

/* The program of slot @i is awaited, with a job that is due then. */
void await(unsigned i, uint64_t due);
bool may_begin(CUdeviceptr gate);
void wait_until(CUdeviceptr gate, bool open);

/* Our job is open. Return: the gate of its kernels. */
CUdeviceptr open_job(uint64_t due);

/* The keeper looks no more. */
void close_job(CUdeviceptr gate);
