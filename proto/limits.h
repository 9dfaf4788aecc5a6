/*
 * limits.h: every number that bounds what one side accepts from the other, with its reason.
 */
#pragma once

/* Raised when a message changes its meaning; additions alone do not raise it. */
#define PROTO_VERSION 1

/* One packet. The kernel's default socket buffer (208 KiB) holds three of them. */
#define PROTO_PACKET_MAX (64 * 1024)

/* Memory that unpacking one packet may take, all allocations together: structures are larger than
 * their wire form, at most about ten times for a packet of empty Ops. */
#define PROTO_UNPACK_MAX (1024 * 1024)

/* Names that are shown and logged: tasks, programs. Kernel names are C++ mangled and long. */
#define PROTO_NAME_MAX	      64
#define PROTO_KERNEL_NAME_MAX 4096
#define PROTO_TEXT_MAX	      1024
#define PROTO_PATH_MAX	      1024
#define PROTO_FEATURES_MAX    32

/* Different SM sets that a program is granted with ENFORCEMENT_GREEN: it keeps a context for each.
 */
#define PROTO_GREEN_ROWS_MAX 40

/* Feature of the daemon: jobs that were granted before are taken over, see Hello.held. */
#define PROTO_FEATURE_RESUME "resume"

/* GPU SMs that a set can name: four 64-bit words. The largest GPU today has 160. */
#define PROTO_SMS_MAX 256

/* GPUs of a machine. */
#define PROTO_GPUS_MAX 16

/* Records in one batch: 512 of at most 60 bytes fit into a packet with room to spare. */
#define PROTO_OPS_MAX 512

/* Kernels that one session may declare, and their highest id. The largest frameworks load about
 * 20,000. */
#define PROTO_KERNELS_MAX 65536

/* Counts in one message: 512 of at most 40 bytes. */
#define PROTO_COUNTS_MAX 512

/* Jobs of one session that may wait or run at once: one a thread in thread scope. */
#define PROTO_JOBS_PER_SESSION 256

/* Jobs or operations that a program says it could not tell of, in one message: sums never overflow. */
#define PROTO_DROPPED_MAX UINT32_MAX

/* Times from a client: up to ten years, so that sums of two never overflow. */
#define PROTO_TIME_MAX_NS (10ull * 365 * 86400 * 1000000000ull)

/* Declared periods, deadlines and offsets: up to a day. */
#define PROTO_PERIOD_MAX_NS (86400ull * 1000000000ull)

/* Who waits longer than this without sleeping does not save time any more. */
#define PROTO_SPIN_MAX_NS  1000000000ull
#define PROTO_PRIORITY_MIN (-1000)
#define PROTO_PRIORITY_MAX 1000

#define PROTO_UUID_BYTES 16

/* Of a session's secret: more than can be guessed. */
#define PROTO_SECRET_BYTES 16

/* Feature of both sides: jobs and kernels are counted (Counts, JobDone), and single operations are
 * sent only where the daemon asks for them (Grant.record_ops, RecordOps). */
#define PROTO_FEATURE_COUNTS "counts"

/* Feature of both sides: it answers a Ping. */
#define PROTO_FEATURE_PING "ping"

/* Feature of Hello: the program keeps the secret of its Welcome, and shows it when it connects
 * again. */
#define PROTO_FEATURE_SECRET "secret"

/* Feature of Hello: the program reads the page of terms that comes with the Welcome, see
 * proto/terms.h. Of Welcome: the page came with it. */
#define PROTO_FEATURE_TERMS "terms"

/* Feature of Welcome: the program is to wait first of all in its kernels, and to launch them as
 * dependent ones: its task says so, or the policy. */
#define PROTO_FEATURE_DEPENDENT "dependent"

/* Feature of Hello: the program takes a board of copies, see proto/board.h. */
#define PROTO_FEATURE_COPIES "copies"

/* Of a shim: it can stop a job and go on with it later: see Stopped. */
#define PROTO_FEATURE_STOP "stop"

/* Feature of Hello: while the program has a job, a thread of its process has this name, which ends
 * only when the process does or executes another program in its place. */
#define PROTO_FEATURE_THREAD "thread"
#define PROTO_THREAD_NAME    "sbeet"

/* Feature of Hello: the program runs a job at the level that its Grant says. */
#define PROTO_FEATURE_LEVEL "level"

/* Feature of Hello: the program sees the channel groups that its driver allocates, and hands them
 * over where the daemon asks (WantGroups). */
#define PROTO_FEATURE_PREEMPT "preempt"

/* Channel groups of one session that the daemon takes: a program has one that computes for each of
 * its contexts, and most have one. */
#define PROTO_GROUPS_MAX 2

/* Programs of one user that have a slot on its board. Above what MPS serves at a time. */
#define PROTO_BOARD_SLOTS 64

/* Feature of Hello: the program has no context yet and doesn't say which GPUs it sees: the daemon
 * may choose the one that it will see. */
#define PROTO_FEATURE_CHOOSE_GPU "choose-gpu"

/* With CHOOSE_GPU: its user has said that any GPU will do, also where no policy has one for it. */
#define PROTO_FEATURE_ANY_GPU "any-gpu"
