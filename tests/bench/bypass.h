/*
 * bypass.h: switches the shim of this process off and on, to measure within one process what it
 * costs: see bypass.c. Found in libbypass.so by dlsym.
 */
#pragma once

/*
 * Only when no other thread is in the driver and all of the GPU's work is complete: for the shim,
 * what is done meanwhile never happened. So launch and wait, but allocate and create nothing.
 * @off: 1 to jump to the driver, 0 for the shim. Return: the number of functions that were
 * switched; -1 on an error that has been told on standard error, then nothing has changed.
 */
int bypass_switch(int off);
