/*
 * preempter.h: sbeetd's end of the process that preempts (helper.h): starts it, starts it again,
 * and hands it programs and their channel groups. sbeetd keeps no descriptor of a program's.
 *
 * Nothing here waits. Without the process time slices remain.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/preempt/order.h"
#include "proto/units.h"

struct event_base;
struct preempter;

/* It has started, and knows nobody: everybody is to be handed over (again). Or it has ended for
 * good, see preempter_works(). */
typedef void (*preempter_changed_fn)(void *userdata);

/* Starts it. @simulated: the GPUs are. Return: 0 or negative errno. */
int preempter_new(struct preempter **ret, struct event_base *base, bool simulated,
		  preempter_changed_fn changed, void *userdata);

/* Takes NULL. Ends it. */
struct preempter *preempter_free(struct preempter *p);

/* False: it could not be started, ended again and again, or the driver refuses to preempt: it is
 * given up, and that was logged. Takes NULL: false. */
bool preempter_works(const struct preempter *p);

/* Why it does not work: "refused", "no-effect", "failed". */
const char *preempter_failure(const struct preempter *p);

/* How often it was started. Whoever was handed over before the last time is not known to it. Takes
 * NULL: 0. */
unsigned preempter_starts(const struct preempter *p);

/* Among others: see rule.h and turns.h. */
struct preempter_rank {
	uint64_t urgency;
	nsec_t patience;
	nsec_t turn; /* 0: it takes none */
};

/*
 * A program. @owner: its number; @pidfd: of its process;
 * @board_fd, @slot: its slot on its board.
 * Both descriptors stay the caller's. Return: 0; or negative errno: the process is started again.
 */
int preempter_add_owner(struct preempter *p, uint64_t owner, const struct preempter_rank *rank,
			int pidfd, int board_fd, unsigned slot);

void preempter_set_rank(struct preempter *p, uint64_t owner, const struct preempter_rank *rank);

/* With its groups. */
void preempter_remove_owner(struct preempter *p, uint64_t owner);

/* Whether @fd is what only the driver's control device is: character device 195:255. */
bool preempter_is_control(int fd);

/* @fd, for which preempter_is_control() holds, stays the caller's. @gpu: its place in the pages of
 * terms. Return: as preempter_add_owner(). */
int preempter_add_group(struct preempter *p, uint64_t owner, unsigned gpu, uint32_t client,
			uint32_t object, int fd);

/* Whether the effect on GPU @gpu is to be found out by its first jobs, unless @known, which may be
 * NULL, has it. */
void preempter_set_effect(struct preempter *p, unsigned gpu, bool wanted,
			  const struct order_gpu *known);

void preempter_remove_group(struct preempter *p, uint64_t owner, uint32_t client, uint32_t object);

/* What it has done so far, as it has told about a second ago. */
struct order_report preempter_report(const struct preempter *p);
