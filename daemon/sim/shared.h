/*
 * shared.h: the arbiter that stands for GPUs which programs share without asking anybody, under
 * MPS: the GPU's own rules (daemon/core/steer/model.h), with the same terms for all or with those
 * that the policy steer would give: by a plan, or by what it sees of programs without a profile
 * (daemon/core/steer/share.h), which sim_shared shows it as sbeetd would.
 *
 * A task stands for one program with one stream: its jobs run one after the other, in the order of
 * their releases, on the GPU where the task is fixed or else on the first one that has its profile.
 * A job's overhead (what its host takes, not for one that begins late), its copy in, its launches
 * and its copy out follow each other; it holds SMs, and counts as running, while its kernels do.
 */
#pragma once

#include "daemon/sim/sim.h"

/* Tasks that a GPU takes; open() returns -EUSERS for more. */
#define SIM_SHARED_TASKS_MAX 32

/* It reads the setup's terms, cap_percent and overhead; no policy, and of the parameters none. */
extern const struct sim_arbiter sim_shared;
