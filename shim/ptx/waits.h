/*
 * waits.h: kernels whose blocks wait for other blocks.
 *
 * On the GPU the blocks of a grid that fits there at once all run, and may wait for each other: at a
 * barrier written by hand, or for a block of a higher number. A twin's workers run one block after
 * the other, lowest number first, so such a wait may have no end. It shows as a loop that does
 * nothing but look at memory again (a volatile, relaxed or acquire load, or an atomic), and goes by
 * what it finds. Waits for lower numbers look the same; launches tell them apart by the size of the
 * grid, for one that does not fit at once would hang without us, too (shim/enforce/kernel.c).
 */
#pragma once

#include "shim/ptx/facts.h"

/* Adds FACTS_WAITS to functions with such a loop; callers learn of it by module_facts_propagate(),
 * which has run once before. Return: 0, -ENOMEM. */
int waits_find(struct module_facts *facts);
