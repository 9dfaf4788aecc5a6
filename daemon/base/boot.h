/*
 * boot.h: which boot of the machine this is: process ids and monotonic times of another one mean
 * nothing.
 */
#pragma once

#include <stdbool.h>

#define BOOT_ID_BYTES 40

/* All zeros where it can't be told. Return: whether it can. */
bool boot_read_id(char boot[static BOOT_ID_BYTES]);
