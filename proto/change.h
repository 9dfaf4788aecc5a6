/*
 * change.h: which fields of message TaskChange are meant: bits of its mask, 1 << field number.
 */
#pragma once

enum {
	CHANGE_CLASS = 1 << 3,
	CHANGE_PERIOD = 1 << 4,
	CHANGE_DEADLINE = 1 << 5,
	CHANGE_PRIORITY = 1 << 6,
	CHANGE_OFFSET = 1 << 7,
	CHANGE_PROFILE = 1 << 8,
	CHANGE_GPU = 1 << 9,
	CHANGE_MIN_SMS = 1 << 10,
	CHANGE_MAX_SMS = 1 << 11,
};
