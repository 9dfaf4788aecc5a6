/*
 * interp.h: the PTX interpreter of the simulated GPU. Executes thread blocks, nothing else: where
 * and when a block runs is the device model's business (device.c).
 *
 * A block is a value that can be run for a while and set aside, so that one host thread can
 * interleave all resident blocks in simulated time: kernels whose blocks wait for each other work.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Generic addresses below INTERP_DEVICE_FIRST are the interpreter's: windows through which a thread
 * sees its shared, local and parameter memory, and functions. Device memory must lie above.
 * Constant memory is device memory.
 */
#define INTERP_SHARED_WINDOW  0x01000000ull
#define INTERP_LOCAL_WINDOW   0x02000000ull
#define INTERP_PARAM_WINDOW   0x03000000ull
#define INTERP_WINDOW_SIZE    0x01000000ull
#define INTERP_FUNCTION_FIRST 0x04000000ull
#define INTERP_DEVICE_FIRST   0x10000000ull

struct interp_module; /* decoded PTX; immutable once its variables have addresses */
struct interp_kernel; /* one entry of a module */
struct interp_block;  /* one resident thread block */

/*
 * Device memory as the device model keeps it. @resolve gives the host address of @size bytes at the
 * device address @addr if all of them lie in one allocation of the running context that may be
 * accessed so, else NULL. It must be cheap: it is called for each access (the interpreter keeps the
 * last hit itself, by *ret_start and *ret_end: device addresses of the allocation).
 */
struct interp_memory {
	void *userdata;
	uint8_t *(*resolve)(void *userdata, uint64_t addr, size_t size, bool write,
			    uint64_t *ret_start, uint64_t *ret_end);
};

/* What a block may read of its surroundings. */
struct interp_machine {
	struct interp_memory memory;
	void *userdata;
	uint64_t (*globaltimer_ns)(void *userdata);
	void (*print)(void *userdata, const char *text, size_t n); /* output of vprintf */
};

/* Parses and decodes. What no driver would take is refused: unknown instructions, names that are
 * not declared. A kernel with an instruction that exists but is not simulated is kept, see
 * interp_kernel_info.unsupported. Return: 0; -EINVAL with @error telling what and where; -E2BIG;
 * -ENOMEM.
 * @text is copied. */
int interp_module_new(struct interp_module **ret, const char *text, size_t size, char *error,
		      size_t error_size);
struct interp_module *interp_module_free(struct interp_module *m);

/* Module-scope .global and .const variables: the device model allocates and tells the addresses,
 * then calls interp_module_init_vars(), which writes initial values through @memory. */
size_t interp_module_n_vars(const struct interp_module *m);
const char *interp_module_var(const struct interp_module *m, size_t i, size_t *ret_size,
			      size_t *ret_align);
void interp_module_set_var_addr(struct interp_module *m, size_t i, uint64_t addr);
int interp_module_init_vars(struct interp_module *m, const struct interp_memory *memory);

size_t interp_module_n_kernels(const struct interp_module *m);
const struct interp_kernel *interp_module_kernel(const struct interp_module *m, size_t i);
const struct interp_kernel *interp_module_find(const struct interp_module *m, const char *name);

struct interp_kernel_info {
	const char *name;
	size_t n_params;
	const size_t *param_offsets; /* in the parameter buffer */
	const size_t *param_sizes;
	size_t params_size;
	size_t static_shared_bytes;
	size_t local_bytes;
	unsigned regs_per_thread; /* estimate from the declared registers, at most 255 */
	unsigned max_threads;	  /* of .maxntid / .reqntid, else 1024 */
	const char *unsupported;  /* NULL, or the instruction that is not known */
	/* No block can notice how far any other is: no atomics, fences, ordered or volatile
	 * accesses but to shared memory, no %globaltimer, no output. Blocks of such a kernel may
	 * run in any interleaving, and in several host threads at once, and do the same (unless
	 * they race). */
	bool independent;
};
void interp_kernel_get_info(const struct interp_kernel *k, struct interp_kernel_info *ret);

struct interp_launch {
	const struct interp_kernel *kernel;
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared_bytes;
	const void
		*params; /* the packed parameter buffer, borrowed until the last block is freed */
	size_t params_size;
	uint64_t grid_id;
};

/* Where the block sits, as %smid, %nsmid, %warpid are to say. */
struct interp_place {
	uint32_t smid;
	uint32_t nsmid;
};

/* Return: 0; -ENOTSUP for a kernel with an unknown instruction; -EINVAL for a grid or block that no
 * GPU takes or too few parameters; -E2BIG for a kernel of too many registers; -ENOMEM. */
int interp_block_new(struct interp_block **ret, const struct interp_launch *launch,
		     const uint32_t ctaid[3], struct interp_place place,
		     const struct interp_machine *machine);
struct interp_block *interp_block_free(struct interp_block *b);

enum interp_result {
	INTERP_DONE,  /* every thread has exited */
	INTERP_MORE,  /* the budget is used up; call again */
	INTERP_FAULT, /* see interp_block_fault() */
	INTERP_HANG,  /* all threads wait at barriers that can never complete */
};

/*
 * Runs at most about @budget warp instructions. @ret_instructions and @ret_cycles: warp
 * instructions executed by this call, and the same weighted by a cost per class (1 for arithmetic,
 * more for memory), from which the device model makes time.
 */
enum interp_result interp_block_run(struct interp_block *b, uint64_t budget,
				    uint64_t *ret_instructions, uint64_t *ret_cycles);

enum interp_fault_kind {
	INTERP_FAULT_NONE,
	INTERP_FAULT_ADDRESS, /* outside any allocation of the context, or of shared/local/param */
	INTERP_FAULT_ALIGNMENT,
	INTERP_FAULT_INSTRUCTION, /* not supported, trap, or an illegal use */
	INTERP_FAULT_ASSERT,
	INTERP_FAULT_UNINITIALISED, /* read of shared memory that nobody has written */
	INTERP_FAULT_UNDEFINED, /* what the PTX ISA leaves undefined: see interp-sync.c, -barrier.c
				 */
	INTERP_FAULT_HANG,
};

/* @text: kernel, line, block and thread, and what happened. Valid until the block is freed. */
enum interp_fault_kind interp_block_fault(const struct interp_block *b, const char **ret_text);
