/*
 * sandbox.h: takes all rights away from the process that preempts but those that it needs: it holds
 * descriptors of other programs, so a mistake in it must not become theirs.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* What the process gets when its parent dies; it may call alarm() then. */
#define SANDBOX_DEATH_SIGNAL SIGALRM

/*
 * For all threads of this process, for good: no user of its own, no privileges, no new descriptors,
 * no programs, no ioctl but the driver's control. It gets SANDBOX_DEATH_SIGNAL when the thread that
 * started it ends.
 * @simulated: the driver is the simulated one, whose ioctl is a conversation over a socket.
 * Return: 0 or negative errno; then the process must not go on.
 */
int sandbox_enter(bool simulated);
