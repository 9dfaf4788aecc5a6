/*
 * facts.h: what `sbeetctl doctor` looks at before it judges (findings.h): plain values, without an
 * opinion. gather.h has who finds them out.
 *
 * All zero means that nothing is known and nothing was found.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/limits.h"

#define FACTS_TEXT	 256
#define FACTS_STRAYS_MAX 4

enum facts_end {
	FACTS_DONE,
	FACTS_HUNG,    /* the driver did not return in time */
	FACTS_CRASHED, /* the driver's library killed the process */
};

/* What a CUDA program of this user would find. */
struct gpu_facts {
	enum facts_end end;
	bool has_cuda;		   /* libcuda.so.1 can be loaded */
	char cuda_why[FACTS_TEXT]; /* else: why not */
	int cuda_version;	   /* 13020 is 13.2; 0: not known */
	int init;		   /* what cuInit returned; 0 is success */
	char init_name[64];	   /* "CUDA_ERROR_NO_DEVICE" */
	int n_gpus;		   /* that CUDA shows */
	char name[96];		   /* of the first one */
	int n_sms;
	bool finds_gpus;	    /* as sbeetd does, by NVML or CUDA's driver */
	char finds_why[FACTS_TEXT]; /* else: why not */
	bool has_nvml;		    /* it finds them by NVML */
	char driver[80]; /* "580.65.06"; empty: not known */
	bool simulated;
	bool kernel_module; /* NVIDIA's is loaded */
	bool hidden;	    /* CUDA_VISIBLE_DEVICES is set */
};

/* One of sbeetd's sockets, as this user sees it. */
struct socket_facts {
	char path[PROTO_PATH_MAX];
	bool exists, writable;
};

/* What sbeetd tells, where it can be asked. */
struct daemon_facts {
	struct socket_facts control, shim;
	int code;	/* enum ctl_exit of the attempt to ask */
	char why[1024]; /* of a failure */
	char version[64], policy[64];
	bool plans;  /* the policy needs profiles */
	bool steers; /* programs don't ask: urgent ones preempt others where there is no MPS */
	unsigned n_gpus, n_profiles;
	char sharing[32], preemption[32]; /* of the first GPU */
	char unplanned[FACTS_TEXT]; /* tasks with a deadline that run without a profile: "a, b" */
	char mps[16];		    /* its state; empty: an older sbeetd */
	char mps_directory[PROTO_PATH_MAX];
	char mps_note[512];
	uid_t mps_owner;
};

/* The folder of profiles. */
struct profile_facts {
	char directory[PROTO_PATH_MAX]; /* empty: not known */
	bool exists, readable;
	unsigned n_files;
	unsigned n_changed; /* since sbeetd was started */
};

struct rights_facts {
	uid_t uid;
	char user[64];
	bool has_group; /* there is a group `sbeet` */
	bool is_listed; /* the user is a member by the group file */
	bool is_member; /* this process is */
};

struct system_facts {
	char os[32];	    /* ID of os-release: "debian" */
	bool systemd;	    /* runs here */
	bool has_unit;	    /* sbeetd.socket is installed */
	bool is_enabled;    /* and starts with the machine */
	bool has_mps_unit;  /* sbeet-mps.service is installed */
	char container[32]; /* "docker"; empty: none */
	char version[64];   /* of this sbeetctl */
};

/* A control daemon of MPS that was found without asking sbeetd. */
struct mps_facts {
	bool found;
	char directory[PROTO_PATH_MAX];
	uid_t owner;
	char why[FACTS_TEXT]; /* one is there that can't be trusted; empty: none */
	bool reachable;	      /* the directory that sbeetd tells programs is there */
};

struct preload_facts {
	char library[PROTO_PATH_MAX]; /* libsbeet.so; empty: not found */
	char why[512];		      /* then: why not */
	bool other_machine;	      /* built for another one than this sbeetctl */
	char glibc[32];		      /* version of the C library here */
	char by_name[PROTO_PATH_MAX]; /* what it finds by the name libsbeet.so; empty: nothing */
	bool tried;
	char said[512]; /* what the dynamic linker said against it; empty: it was loaded */
};

struct environment_facts {
	bool disabled;			 /* SBEET_DISABLE=1 */
	char other_shim[PROTO_PATH_MAX]; /* LD_PRELOAD names another libsbeet.so */
	bool not_found;		 /* LD_PRELOAD names libsbeet.so, without a folder, in vain */
	char wrong[512];	 /* what is wrong with SBEET_*; empty: nothing */
	char wrong_variable[64]; /* which one */
};

/* A process that uses a GPU and declares a task, but has not loaded libsbeet.so. */
struct stray_facts {
	pid_t pid;
	char name[32];
	char variable[32];	    /* by which it declares one: "SBEET_TASK" */
	char entry[PROTO_PATH_MAX]; /* of its LD_PRELOAD, naming libsbeet.so; empty: none */
	bool absent;		    /* @entry is a path, and there is no such file for it */
	const char *unmanaged; /* why its dynamic linker ignores LD_PRELOAD; NULL: it does not */
};

/* Among the processes that this user may look into, and that would ask this sbeetd. */
struct stray_list {
	unsigned n;
	struct stray_facts first[FACTS_STRAYS_MAX];
};

struct program_facts {
	bool given;
	char name[FACTS_TEXT];
	int error;		/* it can't be executed: a positive errno; 0: it can */
	const char *unmanaged;	/* why the dynamic linker won't load the shim; NULL: it will */
	bool has_runtime;	/* NVIDIA's CUDA runtime is linked in */
	char stands_in[FACTS_TEXT]; /* the file that stands in for functions of the driver */
	char lacks[FACTS_TEXT]; /* libraries that are not found: "libcudart.so.12, libfoo.so" */
};

struct facts {
	struct gpu_facts gpu;
	struct daemon_facts daemon;
	struct profile_facts profiles;
	struct rights_facts rights;
	struct system_facts system;
	struct mps_facts mps;
	struct preload_facts preload;
	struct environment_facts environment;
	struct stray_list strays;
	struct program_facts program;
};
