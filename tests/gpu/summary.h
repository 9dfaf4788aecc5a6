/*
 * summary.h: what the evaluation's line a task says: misses by utilisation, and what each task
 * misses more than under MPS alone.
 */
#pragma once

/*
 * Reads tasks.csv as evaluate.sh writes it. Counts only task sets that ran under all columns of
 * their family. @columns: those to compare with `mps`; NULL or empty: steer. Return: 0; 1 if there
 * is nothing to compare.
 */
int summary_print(const char *path, char *const *columns);
