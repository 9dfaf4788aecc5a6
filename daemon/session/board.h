/*
 * board.h: the boards of copies (proto/board.h): one memory file for each user whose programs are
 * told to hold their copies, mapped by all of them. sbeetd makes it, gives each program its slot,
 * and clears the slot when the program is gone.
 *
 * Nothing in it is ever read here: what programs of a user write harms only that user.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "proto/board.h"

struct user_board;
TAILQ_HEAD(board_list, user_board);

/* The board is full. */
#define BOARD_E_FULL 1

/* A session's place on the board of its user. All 0: none. */
struct board_seat {
	struct user_board *board; /* a reference; NULL: none */
	unsigned slot;
};

/* A seat on the board of @uid, which is made if need be. @ret had none. Return: 0, BOARD_E_FULL or
 * negative errno; @ret untouched then. */
int board_join(struct board_list *boards, uid_t uid, struct board_seat *ret);

/* The board's file, for the program; stays the board's. @seat has one. */
int board_fd(const struct board_seat *seat);

/* Clears the slot. The board goes with the last who leaves. Also without a seat. */
void board_leave(struct board_list *boards, struct board_seat *seat);
