/*
 * groups.h: the channel groups (proto/rm.h) that the driver has allocated in this process and that
 * compute, as its ioctls tell (ioctl.c), and which of them sbeetd has to be told of (offer.h).
 *
 * The shim only looks on. A layout that it does not know ends that for good, and is said once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The driver did not disable or enable channels, or they are not known. */
#define GROUPS_E_REFUSED 1

/* Whether an ioctl of this number is one to look at. */
bool groups_concern(unsigned long request);

/* Before the driver's own ioctl. Keeps errno. */
void groups_before(unsigned long request, const void *arg);

/* After it has succeeded. Keeps errno. */
void groups_after(int fd, unsigned long request, const void *arg);

/* Whether there are any that compute, all on one GPU: the program can be preempted. Takes no lock.
 */
bool groups_known(void);

enum groups_place {
	GROUPS_ON,
	GROUPS_OFF,
	GROUPS_OFF_LATER, /* once something else has the GPU; until then they run on */
};

/* The channels of these groups may run, or are kept from it; those of which that is so already are
 * left alone. Waits for the driver. Return: 0, or GROUPS_E_REFUSED: of some it is not. */
int groups_put(enum groups_place place);

/* sbeetd wants them, over the connection of this number: all are news, again if need be. Or it does
 * so no more: that connection is gone. */
void groups_wanted(uint32_t connection);
void groups_unwanted(uint32_t connection);

/* What sbeetd is to be told. */
struct groups_news {
	uint32_t connection;
	uint32_t client, object;
	bool gone;
	int fd; /* of the driver's control device, the caller's; -1: it is gone */
	unsigned index, want;
};

/* Whether there may be news since it was last asked. Takes no lock. */
bool groups_have_news(void);

/* There still are. */
void groups_look_again(void);

/* The next news from *@at on, which is 0 at first. Return: false: there are no more. */
bool groups_next(unsigned *at, struct groups_news *ret);

/* sbeetd was told. */
void groups_told(const struct groups_news *news);

/* After fork, in the child: all are the parent's. */
void groups_after_fork(void);
