/*
 * sandbox.c: see sandbox.h.
 */
#include "daemon/preempt/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/rm.h"

/* Who is nobody, on Linux. */
#define NOBODY 65534

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0 /* sandbox_enter() fails */
#endif

#define RM_CONTROL _IOWR(RM_TYPE, RM_CONTROL_NR, struct rm_control)

#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(number), 0, 1), RETURN(SECCOMP_RET_ALLOW)

/* The low half of an argument: both machines are little-endian. */
#define ARGUMENT(n) args[n]

/* What the C library needs to end, to lock, to wait, to allocate; and AddressSanitizer, to end a
 * thread: its signal stack. */
#define COMMON                                                                                     \
	ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_close), ALLOW(SYS_ppoll), ALLOW(SYS_recvmsg), \
		ALLOW(SYS_sendmsg), ALLOW(SYS_futex), ALLOW(SYS_futex_waitv),                      \
		ALLOW(SYS_clock_nanosleep), ALLOW(SYS_nanosleep), ALLOW(SYS_clock_gettime),        \
		ALLOW(SYS_fstat), ALLOW(SYS_newfstatat), ALLOW(SYS_fcntl), ALLOW(SYS_munmap),      \
		ALLOW(SYS_madvise), ALLOW(SYS_brk), ALLOW(SYS_exit), ALLOW(SYS_exit_group),        \
		ALLOW(SYS_rt_sigreturn), ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_restart_syscall),    \
		ALLOW(SYS_sched_yield), ALLOW(SYS_set_robust_list), ALLOW(SYS_rseq),               \
		ALLOW(SYS_sigaltstack)

static int install(const struct sock_filter *filter, size_t n) {
	struct sock_fprog program = {.len = (unsigned short)n,
				     .filter = (struct sock_filter *)filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
		return -errno;
	}
	/* All threads, or none. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) !=
	    0) {
		return errno ? -errno : -EBUSY;
	}
	return 0;
}

static int filter_calls(bool simulated) {
	const struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		COMMON,
#ifdef SYS_poll
		ALLOW(SYS_poll),
#endif
#ifdef SYS_alarm
		ALLOW(SYS_alarm),
#endif
		ALLOW(SYS_setitimer),
		/* Memory, but no code. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 4),
		LOAD(ARGUMENT(2)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4),
		LOAD(ARGUMENT(1)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)RM_CONTROL, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
		/* The simulated driver's; else nothing more. */
		BPF_JUMP(BPF_JMP | BPF_JA, simulated ? 0 : 1, 0, 0),
		BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
		ALLOW(SYS_socketpair),
		ALLOW(SYS_getpeername),
		ALLOW(SYS_recvfrom),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
	};

	return install(filter, sizeof(filter) / sizeof(*filter));
}

static int drop_user(void) {
	if (geteuid() != 0) {
		return 0;
	}
	return setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			       setresuid(NOBODY, NOBODY, NOBODY) < 0
		       ? -errno
		       : 0;
}

int sandbox_enter(bool simulated) {
	int r = ARCH ? drop_user() : -ENOTSUP;

	if (r < 0) {
		return r;
	}
	/* Not before: a change of user forgets it. */
	if (prctl(PR_SET_PDEATHSIG, SANDBOX_DEATH_SIGNAL, 0, 0, 0) < 0) {
		return -errno;
	}
	/* Other processes of this user must not get at the descriptors. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
		return -errno;
	}
	return filter_calls(simulated);
}
