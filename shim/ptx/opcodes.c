/*
 * opcodes.c: the table of known instructions and special registers.
 *
 * An entry is here because its documentation (PTX ISA 9.0) was read with one question: can it tell
 * a virtual block from a real one, or does it wait for somebody who may not come?
 */
#include "shim/ptx/opcodes.h"

#include <string.h>

static const char cluster[] = "it works with thread block clusters, which place blocks together";
static const char bulk[] = "it uses asynchronous copies that complete through memory barriers";
static const char mbarrier[] = "it uses memory barriers, whose state outlives a block";
static const char tensor_memory[] = "it uses tensor memory, which belongs to the real block";

#define PLAIN(p) \
	{ p, OPCODE_PLAIN, NULL, 1 }
#define REFUSED(p, why) \
	{ p, OPCODE_REFUSED, why, 0 }
#define WARP(p, n) \
	{ p, OPCODE_WARP, NULL, n }
#define ALIGNED(p, n) \
	{ p, OPCODE_ALIGNED, NULL, n }

/* The longest matching prefix counts, so an entry may make an exception to a shorter one. */
static const struct opcode opcodes[] = {
	PLAIN("abs"),
	PLAIN("add"),
	PLAIN("addc"),
	PLAIN("and"),
	PLAIN("bfe"),
	PLAIN("bfi"),
	PLAIN("bfind"),
	PLAIN("bmsk"),
	PLAIN("brev"),
	PLAIN("clz"),
	PLAIN("cnot"),
	PLAIN("copysign"),
	PLAIN("cos"),
	PLAIN("createpolicy"),
	PLAIN("cvt"),
	PLAIN("cvta"),
	PLAIN("div"),
	PLAIN("dp2a"),
	PLAIN("dp4a"),
	PLAIN("ex2"),
	PLAIN("fma"),
	PLAIN("fns"),
	PLAIN("isspacep"),
	PLAIN("lg2"),
	PLAIN("lop3"),
	PLAIN("mad"),
	PLAIN("mad24"),
	PLAIN("madc"),
	PLAIN("max"),
	PLAIN("min"),
	PLAIN("mov"),
	PLAIN("mul"),
	PLAIN("mul24"),
	PLAIN("neg"),
	PLAIN("not"),
	PLAIN("or"),
	PLAIN("popc"),
	PLAIN("prmt"),
	PLAIN("rcp"),
	PLAIN("rem"),
	PLAIN("rsqrt"),
	PLAIN("sad"),
	PLAIN("selp"),
	PLAIN("set"),
	PLAIN("setp"),
	PLAIN("shf"),
	PLAIN("shl"),
	PLAIN("shr"),
	PLAIN("sin"),
	PLAIN("slct"),
	PLAIN("sqrt"),
	PLAIN("sub"),
	PLAIN("subc"),
	PLAIN("szext"),
	PLAIN("tanh"),
	PLAIN("testp"),
	PLAIN("vabsdiff"),
	PLAIN("vabsdiff2"),
	PLAIN("vabsdiff4"),
	PLAIN("vadd"),
	PLAIN("vadd2"),
	PLAIN("vadd4"),
	PLAIN("vavrg2"),
	PLAIN("vavrg4"),
	PLAIN("vmad"),
	PLAIN("vmax"),
	PLAIN("vmax2"),
	PLAIN("vmax4"),
	PLAIN("vmin"),
	PLAIN("vmin2"),
	PLAIN("vmin4"),
	PLAIN("vset"),
	PLAIN("vset2"),
	PLAIN("vset4"),
	PLAIN("vshl"),
	PLAIN("vshr"),
	PLAIN("vsub"),
	PLAIN("vsub2"),
	PLAIN("vsub4"),
	PLAIN("xor"),

	{"ld", OPCODE_LOAD, NULL, 1},
	{"ldu", OPCODE_LOAD, NULL, 1},
	{"suld", OPCODE_LOAD, NULL, 1},
	{"tex", OPCODE_LOAD, NULL, 1},
	{"tld4", OPCODE_LOAD, NULL, 1},
	{"txq", OPCODE_LOAD, NULL, 1},
	{"suq", OPCODE_LOAD, NULL, 1},
	{"applypriority", OPCODE_STORE, NULL, 0},
	{"discard", OPCODE_STORE, NULL, 0},
	{"prefetch", OPCODE_STORE, NULL, 0},
	{"prefetchu", OPCODE_STORE, NULL, 0},
	{"red", OPCODE_STORE, NULL, 0},
	{"st", OPCODE_STORE, NULL, 0},
	{"sured", OPCODE_STORE, NULL, 0},
	{"sust", OPCODE_STORE, NULL, 0},
	{"atom", OPCODE_ATOMIC, NULL, 1},
	REFUSED("red.async", mbarrier),
	REFUSED("st.async", mbarrier),
	REFUSED("st.bulk", bulk),

	{"brkpt", OPCODE_OTHER, NULL, 0},
	{"fence", OPCODE_OTHER, NULL, 0},
	{"membar", OPCODE_OTHER, NULL, 0},
	{"nanosleep", OPCODE_OTHER, NULL, 0},
	{"pmevent", OPCODE_OTHER, NULL, 0},
	{"trap", OPCODE_OTHER, NULL, 0},
	{"stackrestore", OPCODE_OTHER, NULL, 0},
	{"stacksave", OPCODE_PLAIN, NULL, 1},
	/* Freed only when the kernel returns, which a twin does once for many blocks. */
	REFUSED("alloca", "it takes stack memory that is freed only when the kernel ends"),
	/* Which lanes happen to run together: any answer is a right one, and it waits for nobody.
	 */
	{"activemask", OPCODE_OTHER, NULL, 1},

	{"cp.async.ca", OPCODE_ASYNC, NULL, 0},
	{"cp.async.cg", OPCODE_ASYNC, NULL, 0},
	{"cp.async.commit_group", OPCODE_ASYNC, NULL, 0},
	{"cp.async.wait_all", OPCODE_ASYNC, NULL, 0},
	{"cp.async.wait_group", OPCODE_ASYNC, NULL, 0},
	REFUSED("cp.async.bulk", bulk),
	REFUSED("cp.async.mbarrier", mbarrier),
	REFUSED("cp.reduce", bulk),

	{"bra", OPCODE_BRANCH, NULL, 0},
	{"brx", OPCODE_BRANCH, NULL, 0},
	{"call", OPCODE_CALL, NULL, 0},
	{"ret", OPCODE_RETURN, NULL, 0},
	{"exit", OPCODE_EXIT, NULL, 0},

	{"bar.sync", OPCODE_BARRIER, NULL, 0},
	{"bar.cta.sync", OPCODE_BARRIER, NULL, 0},
	{"barrier.sync", OPCODE_BARRIER, NULL, 0},
	{"barrier.cta.sync", OPCODE_BARRIER, NULL, 0},
	{"bar.red", OPCODE_BARRIER, NULL, 1},
	{"bar.cta.red", OPCODE_BARRIER, NULL, 1},
	{"barrier.red", OPCODE_BARRIER, NULL, 1},
	{"barrier.cta.red", OPCODE_BARRIER, NULL, 1},
	REFUSED("bar", "an arrival at a barrier may be left over for the next block"),
	REFUSED("barrier", "an arrival at a barrier may be left over for the next block"),
	REFUSED("barrier.cluster", cluster),

	WARP("bar.warp.sync", 0),
	WARP("match", 1),
	WARP("redux", 1),
	WARP("shfl.sync", 1),
	WARP("vote.sync", 1),
	/* the order of an earlier manual, which ptxas takes and libraries use */
	WARP("vote.all.sync", 1),
	WARP("vote.any.sync", 1),
	WARP("vote.ballot.sync", 1),
	WARP("vote.uni.sync", 1),
	WARP("elect.sync", 1),

	ALIGNED("ldmatrix", 1),
	ALIGNED("mma", 1),
	ALIGNED("movmatrix", 1),
	ALIGNED("stmatrix", 0),
	ALIGNED("wmma.load", 1),
	ALIGNED("wmma.mma", 1),
	ALIGNED("wmma.store", 0),

	REFUSED("clusterlaunchcontrol", cluster),
	REFUSED("getctarank", cluster),
	REFUSED("mapa", cluster),
	{"griddepcontrol", OPCODE_OTHER_GRIDS, NULL, 0},
	REFUSED("mbarrier", mbarrier),
	REFUSED("multimem", "it works on memory of several GPUs at once"),
	REFUSED("setmaxnreg", "it changes the number of registers for the rest of the kernel"),
	REFUSED("tcgen05", tensor_memory),
	REFUSED("tensormap", bulk),
	REFUSED("wgmma", "its matrix operations go on after the instruction"),
};

static const struct opcode unknown_opcode = {.prefix = "",
					     .class = OPCODE_UNKNOWN,
					     .reason = "it is not an instruction known to be safe"};

/* Qualifiers that change what an otherwise harmless instruction does. */
static const struct {
	const char *part;
	struct opcode opcode;
} qualifiers[] = {
	{"shared::cluster", REFUSED("", cluster)},
	{"mbarrier_init", REFUSED("", mbarrier)},
	{"mbarrier::complete_tx::bytes", REFUSED("", mbarrier)},
	{"cluster", REFUSED("", cluster)},
	{"tensormap::generic", REFUSED("", bulk)},
	{"tensormap", REFUSED("", bulk)},
};

#undef PLAIN
#undef REFUSED
#undef WARP
#undef ALIGNED

static bool has_prefix(struct ptx_name n, const char *prefix, size_t len) {
	return n.len >= len && memcmp(n.s, prefix, len) == 0 && (n.len == len || n.s[len] == '.');
}

const struct opcode *opcode_find(struct ptx_name opcode) {
	const struct opcode *best = &unknown_opcode;
	size_t best_len = 0;

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		size_t len;

		if (opcode.len == 0 || opcodes[i].prefix[0] != opcode.s[0]) {
			continue;
		}
		len = strlen(opcodes[i].prefix);
		if (len > best_len && has_prefix(opcode, opcodes[i].prefix, len)) {
			best = &opcodes[i];
			best_len = len;
		}
	}
	for (size_t i = 0; i < sizeof(qualifiers) / sizeof(qualifiers[0]); i++) {
		if (best->class != OPCODE_REFUSED && ptx_opcode_has(opcode, qualifiers[i].part)) {
			return &qualifiers[i].opcode;
		}
	}
	return best;
}

static const char grid_id[] = "it tells one launch from another";
static const char environment[] =
	"it reads a driver-defined register, as kernels do that wait for the whole grid";

static const struct special specials[] = {
	{"%ctaid", SPECIAL_CTAID, NULL},
	{"%nctaid", SPECIAL_NCTAID, NULL},
	{"%tid", SPECIAL_PLAIN, NULL},
	{"%ntid", SPECIAL_PLAIN, NULL},
	{"%laneid", SPECIAL_PLAIN, NULL},
	{"%warpid", SPECIAL_PLAIN, NULL},
	{"%nwarpid", SPECIAL_PLAIN, NULL},
	{"%smid", SPECIAL_PLAIN, NULL}, /* still true in a twin */
	{"%nsmid", SPECIAL_PLAIN, NULL},
	{"%lanemask_eq", SPECIAL_PLAIN, NULL},
	{"%lanemask_le", SPECIAL_PLAIN, NULL},
	{"%lanemask_lt", SPECIAL_PLAIN, NULL},
	{"%lanemask_ge", SPECIAL_PLAIN, NULL},
	{"%lanemask_gt", SPECIAL_PLAIN, NULL},
	{"%clock", SPECIAL_PLAIN, NULL},
	{"%clock_hi", SPECIAL_PLAIN, NULL},
	{"%clock64", SPECIAL_PLAIN, NULL},
	{"%globaltimer", SPECIAL_PLAIN, NULL},
	{"%globaltimer_lo", SPECIAL_PLAIN, NULL},
	{"%globaltimer_hi", SPECIAL_PLAIN, NULL},
	{"%dynamic_smem_size", SPECIAL_PLAIN, NULL},
	{"%total_smem_size", SPECIAL_PLAIN, NULL},
	{"%aggr_smem_size", SPECIAL_PLAIN, NULL},
	/* Where cooperative groups keep the barriers of tiles wider than a warp: a block sets them up
	 * before it uses them. */
	{"%reserved_smem_offset_1", SPECIAL_PLAIN, NULL},
	{"%gridid", SPECIAL_REFUSED, grid_id},
	{"%current_graph_exec", SPECIAL_REFUSED, grid_id},
	{"%clusterid", SPECIAL_REFUSED, cluster},
	{"%nclusterid", SPECIAL_REFUSED, cluster},
	{"%cluster_ctaid", SPECIAL_REFUSED, cluster},
	{"%cluster_nctaid", SPECIAL_REFUSED, cluster},
	{"%cluster_ctarank", SPECIAL_REFUSED, cluster},
	{"%cluster_nctarank", SPECIAL_REFUSED, cluster},
	{"%is_explicit_cluster", SPECIAL_REFUSED, cluster},
};

static const struct special envreg = {"%envreg", SPECIAL_REFUSED, environment};
static const struct special unknown_special = {
	"", SPECIAL_UNKNOWN, "it reads a special register that is not known to be safe"};

const struct special *special_find(struct ptx_name name) {
	static const char envreg_prefix[] = "%envreg";

	if (name.len >= sizeof(envreg_prefix) - 1 &&
	    memcmp(name.s, envreg_prefix, sizeof(envreg_prefix) - 1) == 0) {
		return &envreg;
	}
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
		if (has_prefix(name, specials[i].name, strlen(specials[i].name))) {
			return &specials[i];
		}
	}
	return &unknown_special;
}

unsigned special_axis(struct ptx_name name) {
	if (name.len > 2 && name.s[name.len - 2] == '.' && name.s[name.len - 1] >= 'x' &&
	    name.s[name.len - 1] <= 'z') {
		return (unsigned)(name.s[name.len - 1] - 'x');
	}
	return 3;
}
