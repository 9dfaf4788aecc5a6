/*
 * interp-internal.h: what the files of the interpreter share; nobody else includes it.
 *
 * A module is decoded once into one array of instructions (all functions behind one another, so a
 * program counter names function and place at once). A thread's registers are 64-bit slots, laid
 * out [slot][lane] for a warp, so that an instruction is one tight loop over lanes. Readers of a
 * slot truncate it to their type; what stands above is undefined. Predicates are one bit a lane.
 *
 * Threads of a warp have their own program counters (see interp-warp.c). A call's frame begins
 * behind its caller's; since two threads never share a lane, frames of diverged threads overlap
 * without harm.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/ptx/ptx.h"
#include "tests/simgpu/interp.h"

#define WARP_LANES 32u
#define WARP_FULL  0xffffffffu

/* Barriers that a block has (PTX: 0 to 15). */
#define BLOCK_BARRIERS 16u

/* Slots that every frame begins with. */
#define SLOT_RETURN 0 /* caller's pc in the low, caller's frame in the high half */
#define SLOT_LOCAL  1 /* where this frame's local memory begins, in bytes of the thread's */
#define SLOTS_FIRST 2

/* A frame's registers in one warp, all calls together: 16 MiB of host memory. */
#define WARP_SLOTS_MAX 65536u
/* Local memory of one thread, all calls together. CUDA's default is 1 KiB, its maximum 512. */
#define WARP_LOCAL_MAX (128u * 1024)

struct insn;
struct warp;

enum exec_result {
	EXEC_NEXT,    /* go on with the next instruction */
	EXEC_JUMP,    /* the handler has set warp->pc; all active threads went there */
	EXEC_REGROUP, /* the handler has put away every active thread's place (warp->key) */
	EXEC_YIELD,   /* as EXEC_NEXT, and let other threads and warps have a turn */
	EXEC_FAULT,   /* the block's fault is set */
};

typedef enum exec_result (*exec_fn)(struct warp *w, const struct insn *in, uint32_t mask);

enum insn_flag {
	INSN_FTZ = 1 << 0,
	INSN_SAT = 1 << 1,
	INSN_APPROX = 1 << 2,
	INSN_ORDERED = 1 << 3, /* ld/st: volatile, relaxed, acquire, release; atom: always */
	INSN_NEGATE0 = 1 << 4, /* predicate source n is negated: INSN_NEGATE0 << n */
	INSN_NEGATE1 = 1 << 5,
	INSN_NEGATE2 = 1 << 6,
	INSN_NEGATE3 = 1 << 7,
	INSN_RELU = 1 << 8,
	INSN_NAN = 1 << 9,	/* min/max: a NaN operand gives NaN */
	INSN_ALIGNED = 1 << 10, /* barrier: by all threads of a warp together */
};

enum insn_round {
	ROUND_NONE,
	ROUND_RN,
	ROUND_RZ,
	ROUND_RM,
	ROUND_RP,
	ROUND_RNA,
	ROUND_RNI,
	ROUND_RZI,
	ROUND_RMI,
	ROUND_RPI,
};

enum insn_compare {
	COMPARE_EQ,
	COMPARE_NE,
	COMPARE_LT,
	COMPARE_LE,
	COMPARE_GT,
	COMPARE_GE,
	COMPARE_EQU,
	COMPARE_NEU,
	COMPARE_LTU,
	COMPARE_LEU,
	COMPARE_GTU,
	COMPARE_GEU,
	COMPARE_NUM,
	COMPARE_NAN,
};

enum insn_bool {
	BOOL_NONE,
	BOOL_AND,
	BOOL_OR,
	BOOL_XOR,
};

enum insn_atom {
	ATOM_ADD,
	ATOM_AND,
	ATOM_OR,
	ATOM_XOR,
	ATOM_EXCH,
	ATOM_CAS,
	ATOM_MIN,
	ATOM_MAX,
	ATOM_INC,
	ATOM_DEC,
};

/* One decoded instruction. Source numbers: >= 0 a slot, < 0 the constant ~number. Predicate
 * sources: >= 0 a predicate, or PRED_FALSE or PRED_TRUE. Destinations: -1 for none. */
#define PRED_FALSE (-1)
#define PRED_TRUE  (-2)

#define INSN_PRED_D 1u
#define INSN_PRED_S 16u

struct insn {
	exec_fn exec;
	int32_t d[4];
	int32_t s[4];
	int64_t imm;	 /* offset of an address; else the handler's own */
	int32_t guard;	 /* predicate, or -1 */
	uint32_t target; /* pc of a branch, index of a call or a branch table */
	uint32_t stmt;	 /* in the parsed module: line and text for messages */
	uint16_t flags;
	bool guard_negated;
	uint8_t n;    /* elements of a vector */
	uint8_t type; /* enum ptx_type */
	uint8_t type2;
	uint8_t space; /* enum ptx_space, PTX_SPACE_NONE: generic */
	uint8_t round; /* enum insn_round */
	uint8_t mode;  /* comparison, atomic operation, shuffle mode... */
	uint8_t mode2; /* boolean operator... */
	uint8_t cost;  /* cycles, see interp-cost.c */
	uint8_t preds; /* INSN_PRED_D << i: d[i] is a predicate; INSN_PRED_S << i: s[i] is */
};

/* An argument or a return value at a call: @size bytes at @formal of the callee's local memory, and
 * at @actual of the caller's, or in a register or constant. */
struct call_arg {
	int32_t actual; /* offset, or a source number if in_register */
	uint32_t formal;
	uint32_t size;
	bool in_register;
};

struct call {
	uint32_t callee; /* function, or UINT32_MAX: its address is in s[0] */
	uint32_t caller;
	uint32_t args, n_args; /* in module->call_args; n_rets more follow */
	uint32_t n_rets;
};

struct formal {
	uint32_t offset; /* in the function's local memory */
	uint32_t size;
};

/* An entry or a .func, decoded. */
struct interp_kernel {
	const struct interp_module *module; /* borrowed, outlives us */
	char *name;			    /* owned */
	const struct ptx_func *ptx;
	bool is_entry;
	bool defined;
	uint32_t start, end; /* instructions */
	uint32_t slots;	     /* registers, the fixed ones and temporaries included */
	uint32_t preds;
	uint32_t frame;		/* slots that a frame takes: max(slots, preds) */
	uint32_t local_bytes;	/* formals, .local and .param variables; a multiple of 16 */
	uint32_t max_live;	/* registers live at once, in 32-bit units */
	struct formal *formals; /* owned; returns first, then parameters; not of an entry */
	size_t n_params, params_size;
	size_t *param_offsets, *param_sizes; /* owned; of an entry */
	uint32_t static_shared;
	bool calls_indirectly;
	char *unsupported; /* owned; the first instruction that is not known, or NULL */
	bool dependent;	   /* on how far other blocks are, see interp.h */
};

struct module_var {
	const struct ptx_var *ptx;
	char *name; /* owned */
	uint64_t size, align;
	uint64_t addr;
};

/* A constant that holds a variable's address: filled in when that is known. */
struct fixup {
	uint32_t constant;
	uint32_t var;
	int64_t addend;
};

struct constant {
	uint64_t lane[WARP_LANES]; /* all the same: a source is always 32 values */
};

struct interp_module {
	char *text; /* owned */
	struct ptx_module *ptx;
	struct interp_kernel *funcs; /* every .entry and .func, definitions and builtins alike */
	size_t n_funcs;
	uint32_t *entries; /* indices of the entries among funcs */
	size_t n_entries;
	struct module_var *vars;
	size_t n_vars;
	struct insn *insns;
	size_t n_insns, cap_insns;
	struct constant *constants;
	size_t n_constants, cap_constants;
	struct fixup *fixups;
	size_t n_fixups, cap_fixups;
	struct call *calls;
	size_t n_calls, cap_calls;
	struct call_arg *call_args;
	size_t n_call_args, cap_call_args;
	uint32_t *targets; /* of brx.idx: pcs */
	size_t n_targets, cap_targets;
};

/* A thread that waits at a warp-wide operation: what it brought, and for whom it waits. */
struct lane_wait {
	uint32_t members; /* of a warp operation */
	int32_t barrier;  /* of a block barrier, -1: waits at a warp operation */
	uint64_t value, b, c;
};

struct warp {
	struct interp_block *block; /* borrowed */
	uint64_t *frame;	    /* registers of the current frame: regs + base * WARP_LANES */
	uint32_t *pframe;	    /* predicates of the current frame */
	const struct constant *constants;
	uint32_t base; /* frame of the active threads, in slots */
	uint32_t pc;
	uint32_t limit;	 /* pc where the active threads meet or pass others of their frame */
	uint32_t active; /* threads that execute now */
	uint32_t alive;	 /* exist and have not exited */
	uint32_t waiting;
	uint32_t carry;	  /* CC.CF */
	bool catching_up; /* the active threads are those that waited longest, for a turn */
	uint64_t alone;	  /* instructions since the last choice of who runs */
	uint32_t polls;	  /* atomics, volatile loads and the like since the last regrouping */
	uint32_t index;
	uint32_t slots;		    /* room in regs */
	uint32_t local_stride;	    /* local memory of one thread, in bytes */
	uint64_t *regs;		    /* owned */
	uint32_t *preds;	    /* owned */
	uint8_t *local;		    /* owned */
	uint64_t clock;		    /* cycles of this warp */
	uint64_t clock_ahead;	    /* the block's cycles less ours, when we began to run */
	uint64_t key[WARP_LANES];   /* place of a thread that is not active, see warp_key() */
	uint64_t stamp[WARP_LANES]; /* clock when it was put away */
	struct lane_wait wait[WARP_LANES];
	uint16_t tid[3][WARP_LANES];
};

struct barrier {
	uint32_t expected; /* threads; 0: all of the block */
	uint8_t kind;	   /* enum barrier_op: .sync (and .arrive), or which reduction */
	uint32_t popc;	   /* barrier.red: predicates that were true... */
	uint32_t total;	   /* ...of so many */
};

/* Allocations hit last: device addresses and where they are on the host. */
#define BLOCK_TLB 4u
struct tlb_entry {
	uint64_t start, end;
	uint8_t *host; /* of start */
	bool write;
};

struct interp_block {
	const struct interp_kernel *kernel;
	const struct interp_module *module;
	struct interp_launch launch;
	struct interp_machine machine;
	struct interp_place place;
	uint32_t ctaid[3];
	uint32_t n_threads, n_warps;
	uint32_t turn;		/* warp that is next */
	uint32_t barriers_used; /* bit n: somebody has arrived at barrier n */
	uint64_t cycles, instructions;
	void *params;	 /* owned; a copy if the caller's buffer is not aligned, else NULL */
	uint8_t *shared; /* owned, as is which of its bytes somebody has written */
	uint8_t *shared_written;
	uint32_t shared_size, dynamic_shared;
	struct tlb_entry tlb[BLOCK_TLB];
	unsigned tlb_next;
	struct barrier barriers[BLOCK_BARRIERS];
	uint32_t *barrier_arrived; /* owned; [barrier][warp]: threads that arrived */
	struct warp *warps;	   /* owned */
	enum interp_fault_kind fault;
	char fault_text[768];
};

/* Place of a thread: deeper frames first, then lower pc: the smallest goes first. */
static inline uint64_t warp_key(uint32_t base, uint32_t pc) {
	return ((uint64_t)(UINT32_MAX - base) << 32) | pc;
}

static inline uint32_t warp_key_base(uint64_t key) {
	return UINT32_MAX - (uint32_t)(key >> 32);
}

/* The instruction at which a thread that is not active stands. */
static inline const struct insn *warp_lane_insn(const struct warp *w, unsigned lane) {
	return &w->block->module->insns[(uint32_t)w->key[lane]];
}

static inline uint64_t *warp_dst(struct warp *w, int32_t number) {
	return w->frame + (size_t)number * WARP_LANES;
}

static inline const uint64_t *warp_src(const struct warp *w, int32_t number) {
	return number >= 0 ? w->frame + (size_t)number * WARP_LANES : w->constants[~number].lane;
}

static inline uint32_t warp_pred(const struct warp *w, int32_t number) {
	return number >= 0 ? w->pframe[number] : number == PRED_TRUE ? WARP_FULL : 0;
}

/* Predicate source n of the instruction, negation done. */
static inline uint32_t warp_pred_src(const struct warp *w, const struct insn *in, unsigned n) {
	uint32_t p = warp_pred(w, in->s[n]);

	return in->flags & (INSN_NEGATE0 << n) ? ~p : p;
}

static inline void warp_set_pred(struct warp *w, int32_t number, uint32_t value, uint32_t mask) {
	if (number >= 0) {
		w->pframe[number] = (w->pframe[number] & ~mask) | (value & mask);
	}
}

/* Runs @body for every lane i of @mask; the full mask is a loop that compilers vectorise. */
#define FOR_LANES(mask, ...)                                                       \
	do {                                                                       \
		if ((mask) == WARP_FULL) {                                         \
			for (unsigned i = 0; i < WARP_LANES; i++) {                \
				__VA_ARGS__;                                       \
			}                                                          \
		} else {                                                           \
			for (uint32_t left_ = (mask); left_; left_ &= left_ - 1) { \
				unsigned i = (unsigned)__builtin_ctz(left_);       \
				__VA_ARGS__;                                       \
			}                                                          \
		}                                                                  \
	} while (0)

/* Tables of handlers: opcode without type, rounding, .ftz, .sat, .approx and .full; the type (its
 * unsigned form stands for .b, .u and, if there is no own entry, .s); the operands' kinds:
 * r register, p predicate, destination first. */
struct alu_entry {
	const char *opcode;
	enum ptx_type type;
	const char *operands;
	exec_fn exec;
};

extern const struct alu_entry alu_int_table[], alu_bits_table[], alu_float_table[],
	alu_half_table[], alu_pred_table[];

/* interp-alu-pred.c */
enum exec_result alu_setp(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result alu_set(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result alu_slct(struct warp *w, const struct insn *in, uint32_t mask);

/* interp-cvt.c: the handler for a conversion from @from to @to, NULL if there is none. */
exec_fn cvt_handler(enum ptx_type to, enum ptx_type from);

/* interp-half.c. Round once, to nearest even, or as @round says. */
double half_to_double(uint16_t bits);
double bfloat_to_double(uint16_t bits);
uint16_t half_from_double(double value, enum insn_round round);
uint16_t bfloat_from_double(double value, enum insn_round round);
double half_sum_to_odd(double a, double b);

/* interp-memory.c */
enum exec_result mem_ld(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result mem_st(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result mem_ld_param(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result mem_fence(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result mem_cp_async(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result mem_cvta(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result mem_isspacep(struct warp *w, const struct insn *in, uint32_t mask);

enum mem_access { MEM_READ, MEM_WRITE, MEM_UPDATE };
/* Host address of @size bytes at @addr as thread @lane sees it, or NULL with the fault set.
 * @align: a power of two. @in->space says the state space. */
uint8_t *mem_address(struct warp *w, const struct insn *in, unsigned lane, uint64_t addr,
		     unsigned size, unsigned align, enum mem_access access);
/* For builtins: @size bytes at a generic address, to read, or NULL without a fault. */
uint8_t *mem_try(struct warp *w, unsigned lane, uint64_t addr, size_t size);

/* interp-atom.c */
enum exec_result mem_atom(struct warp *w, const struct insn *in, uint32_t mask);

/* interp-move.c */
enum exec_result move_scalar(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result move_pack(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result move_unpack(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result move_special(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result move_local(struct warp *w, const struct insn *in, uint32_t mask);
/* Number of a special register (in->mode of move_special), -1 if it is none; *ret_type: PTX type.
 */
int move_special_number(struct ptx_name name);
/* The instruction reads the time that all blocks share. */
bool move_reads_timer(const struct insn *in);
#define MOVE_DYNAMIC_SHARED 0 /* where dynamic shared memory begins */

/* interp-control.c */
enum exec_result control_bra(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result control_brx(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result control_call(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result control_call_return(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result control_ret(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result control_exit(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result control_trap(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result control_nop(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result control_sleep(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result control_unsupported(struct warp *w, const struct insn *in, uint32_t mask);

/* interp-builtin.c: functions that the device runtime defines. NULL if @name is none. */
exec_fn builtin_find(struct ptx_name name);

/* interp-sync.c: operations in which threads of a warp wait for one another. */
enum sync_op {
	SYNC_WARP,
	SYNC_SHFL,
	SYNC_VOTE_ALL,
	SYNC_VOTE_ANY,
	SYNC_VOTE_UNI,
	SYNC_BALLOT,
	SYNC_MATCH_ANY,
	SYNC_MATCH_ALL,
	SYNC_REDUX,
	SYNC_ELECT,
};
enum shfl_mode { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
enum barrier_op { BAR_SYNC, BAR_ARRIVE, BAR_POPC, BAR_AND, BAR_OR };
enum exec_result sync_warp(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result sync_warp_unsynced(struct warp *w, const struct insn *in, uint32_t mask);
enum exec_result sync_activemask(struct warp *w, const struct insn *in, uint32_t mask);
/* Lets the warp operations happen at which @lanes wait and all of whose members are there. */
void sync_try_all(struct warp *w, uint32_t lanes);
/* Return: false, with the fault set, if the threads of @w wait for each other for ever. */
bool sync_check_deadlock(struct warp *w);
/* For messages: for whom thread @lane waits at a warp operation. */
void sync_tell_wait(const struct warp *w, unsigned lane, char *text, size_t size);

/* interp-barrier.c */
enum exec_result barrier_exec(struct warp *w, const struct insn *in, uint32_t mask);
/* After threads of @w have exited: those who waited for them go on. Return: EXEC_REGROUP, or
 * EXEC_FAULT. */
enum exec_result barrier_after_exit(struct warp *w);
/* For messages: for whom thread @lane waits at a barrier. */
void barrier_tell_wait(const struct warp *w, unsigned lane, char *text, size_t size);

/* interp-warp.c */
int warp_init(struct warp *w, struct interp_block *b, uint32_t index);
void warp_deinit(struct warp *w);
/* Makes room for a frame that begins at slot @base and local memory up to @local_bytes. Return: 0,
 * -ENOMEM, -E2BIG. Moves frame and local memory. */
int warp_reserve(struct warp *w, uint32_t base, uint32_t slots, uint32_t local_bytes);
void warp_set_frame(struct warp *w, uint32_t base);
/* Executes at most @budget instructions of this warp. Return: false after a fault. *ret_done: how
 * many; 0 if no thread can run. */
bool warp_run(struct warp *w, uint64_t budget, uint64_t *ret_done);
/* Puts the active threads of @mask away at @pc of the current frame. */
void warp_park(struct warp *w, uint32_t mask, uint32_t pc);
/* Sets the block's fault; returns EXEC_FAULT. */
enum exec_result warp_fault(struct warp *w, const struct insn *in, unsigned lane,
			    enum interp_fault_kind kind, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* interp-decode.c */
int decode_module(struct interp_module *m, char *error, size_t error_size);

/* interp-cost.c */
uint8_t cost_of(struct ptx_name opcode, uint8_t space);
