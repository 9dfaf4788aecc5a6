/*
 * sandbox.h: takes all rights away from the process that preempts but those that it needs: it holds
 * descriptors of other programs, so a mistake in it must not become theirs.
 */
#pragma once

#include <stdbool.h>

/*
 * For all threads of this process, for good: no user of its own, no privileges, no new descriptors,
 * no programs, no ioctl but the driver's control. It ends with the thread that started it.
 * @simulated: the driver is the simulated one, whose ioctl is a conversation over a socket.
 * Return: 0 or negative errno; then the process must not go on.
 */
int sandbox_enter(bool simulated);
