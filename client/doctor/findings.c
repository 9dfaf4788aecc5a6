/*
 * findings.c: see findings.h.
 */
#include "client/doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/base/ctl.h"

/* cuInit's results, from cuda.h. */
#define CUDA_NO_DEVICE	      100
#define CUDA_SYSTEM_NOT_READY 802
#define CUDA_DRIVER_MISMATCH  803
#define CUDA_NOT_SUPPORTED    804
#define CUDA_MPS_FIRST	      805 /* the connection failed */
#define CUDA_MPS_LAST	      810
#define CUDA_UNKNOWN	      999

#define COMMAND_CONTAINER "docker run --gpus all $(sbeetctl cdi --docker) IMAGE"

const char *finding_state_name(enum finding_state state) {
	static const char *const names[] = {
		[FINDING_OK] = "ok", [FINDING_NOTE] = "note", [FINDING_MISSING] = "missing"};

	return names[state];
}

/* @command may be NULL. */
static void find(struct finding *f, enum finding_state state, const char *command,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

static void find(struct finding *f, enum finding_state state, const char *command,
		 const char *format, ...) {
	va_list args;

	f->state = state;
	snprintf(f->command, sizeof(f->command), "%s", command ? command : "");
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
}

static bool in_container(const struct facts *f) {
	return *f->system.container;
}

static bool is_reached(const struct facts *f) {
	return f->daemon.code == CTL_EXIT_OK;
}

/* The service of the machine, not a sbeetd of the user's own in another directory. */
static bool is_service(const struct facts *f) {
	return strncmp(f->daemon.control.path, "/run/sbeet/", strlen("/run/sbeet/")) == 0;
}

/* ---- the GPU ---- */

static const char *driver_package(const struct facts *f) {
	if (strcmp(f->system.os, "debian") == 0) {
		return f->gpu.kernel_module ? "sudo apt install libcuda1"
					    : "sudo apt install nvidia-driver";
	}
	return strcmp(f->system.os, "ubuntu") == 0 ? "sudo ubuntu-drivers install" : NULL;
}

static void judge_driver(const struct facts *f, struct finding *ret) {
	const struct gpu_facts *g = &f->gpu;

	if (!g->has_cuda && g->end == FACTS_CRASHED) {
		find(ret, FINDING_MISSING, "sudo dmesg | grep -i nvrm",
		     "libcuda.so.1 crashes when it is loaded");
	} else if (!g->has_cuda && in_container(f)) {
		find(ret, FINDING_MISSING, COMMAND_CONTAINER,
		     "this container has no NVIDIA driver: %s", g->cuda_why);
	} else if (!g->has_cuda && g->kernel_module) {
		find(ret, FINDING_MISSING, driver_package(f),
		     "the driver's kernel module is loaded, but its library for programs is not "
		     "usable: %s",
		     g->cuda_why);
	} else if (!g->has_cuda) {
		find(ret, FINDING_MISSING, driver_package(f), "no NVIDIA driver: %s", g->cuda_why);
	} else if (!g->finds_gpus && !in_container(f) && f->daemon.n_gpus == 0) {
		find(ret, FINDING_MISSING, NULL,
		     "sbeetd can't ask for GPUs, neither NVML nor CUDA's driver: %s", g->finds_why);
	} else if (g->simulated) {
		find(ret, FINDING_OK, NULL, "simulated, CUDA %d.%d", g->cuda_version / 1000,
		     g->cuda_version % 1000 / 10);
	} else if (g->finds_gpus && !g->has_nvml) {
		find(ret, FINDING_OK, NULL,
		     "CUDA %d.%d, without NVML: sbeetd asks CUDA's driver for GPUs",
		     g->cuda_version / 1000, g->cuda_version % 1000 / 10);
	} else {
		find(ret, FINDING_OK, NULL, "NVIDIA driver %s, CUDA %d.%d",
		     *g->driver ? g->driver : "of unknown version", g->cuda_version / 1000,
		     g->cuda_version % 1000 / 10);
	}
}

static void judge_init(const struct facts *f, struct finding *ret) {
	const char *name = f->gpu.init_name;

	switch (f->gpu.init) {
	case 0:
	case CUDA_NO_DEVICE:
		if (f->gpu.hidden) {
			find(ret, FINDING_MISSING, "unset CUDA_VISIBLE_DEVICES",
			     "CUDA_VISIBLE_DEVICES hides every GPU");
		} else {
			find(ret, FINDING_MISSING, "nvidia-smi",
			     "the driver finds no GPU that CUDA can use");
		}
		return;
	case CUDA_SYSTEM_NOT_READY:
		find(ret, FINDING_MISSING, "sudo systemctl start nvidia-fabricmanager",
		     "CUDA does not start (%s): the GPUs' fabric is not set up", name);
		return;
	case CUDA_DRIVER_MISMATCH:
		find(ret, FINDING_MISSING, "sudo reboot",
		     "CUDA does not start (%s): kernel module and library are of different driver "
		     "versions",
		     name);
		return;
	case CUDA_NOT_SUPPORTED:
		find(ret, FINDING_MISSING, "sudo apt remove 'cuda-compat-*'",
		     "CUDA does not start (%s): the CUDA compatibility package does not support "
		     "this GPU",
		     name);
		return;
	case CUDA_MPS_FIRST ... CUDA_MPS_LAST:
		find(ret, FINDING_MISSING,
		     f->system.systemd && f->system.has_mps_unit
			     ? "sudo systemctl restart sbeet-mps"
			     : "echo quit | sudo nvidia-cuda-mps-control",
		     "CUDA does not start (%s): MPS refuses this program; end its control daemon "
		     "and start it again",
		     name);
		return;
	case CUDA_UNKNOWN:
		find(ret, FINDING_MISSING, "sudo modprobe nvidia-uvm",
		     "CUDA does not start (%s): the module nvidia-uvm may be missing", name);
		return;
	default:
		find(ret, FINDING_MISSING, "nvidia-smi", "CUDA does not start: %s (%d)", name,
		     f->gpu.init);
	}
}

static void judge_gpu(const struct facts *f, struct finding *ret) {
	const struct gpu_facts *g = &f->gpu;

	if (g->end == FACTS_HUNG) {
		find(ret, FINDING_MISSING, "nvidia-smi", "the driver does not answer%s",
		     f->mps.found ? "; MPS may be waiting for programs of another user to end"
				  : "");
	} else if (g->end == FACTS_CRASHED) {
		find(ret, FINDING_MISSING, "sudo dmesg | grep -i nvrm",
		     "the driver crashes when CUDA starts");
	} else if (!g->has_cuda) {
		find(ret, FINDING_MISSING, NULL, "not known without a driver");
	} else if (g->init != 0 || g->n_gpus == 0) {
		judge_init(f, ret);
	} else if (is_reached(f) && f->daemon.n_gpus == 0) {
		find(ret, FINDING_MISSING,
		     is_service(f) && f->system.systemd ? "sudo systemctl restart sbeetd" : NULL,
		     "CUDA has %d GPU%s, but sbeetd found none when it started", g->n_gpus,
		     g->n_gpus == 1 ? "" : "s");
	} else {
		find(ret, FINDING_OK, NULL, "%d GPU%s: %s, %d SMs%s", g->n_gpus,
		     g->n_gpus == 1 ? "" : "s", g->name, g->n_sms,
		     g->n_gpus == 1 ? "" : ", and others");
	}
}

/* ---- MPS, or preemption in its place ---- */

static const char *mps_start(const struct facts *f) {
	if (f->system.systemd && f->system.has_mps_unit && is_service(f)) {
		return "sudo systemctl enable --now sbeet-mps";
	}
	/* The service's user is another one: it trusts a control daemon of root's only. */
	return is_service(f) && f->rights.uid != 0 ? "sudo nvidia-cuda-mps-control -d"
						   : "nvidia-cuda-mps-control -d";
}

/* Whether the control daemon of @owner serves programs of this user. */
static bool mps_serves(const struct facts *f, uid_t owner) {
	return owner == 0 || owner == f->rights.uid;
}

static void judge_mps_up(const struct facts *f, struct finding *ret) {
	const struct daemon_facts *d = &f->daemon;

	if (!f->mps.reachable) {
		find(ret, FINDING_MISSING, in_container(f) ? COMMAND_CONTAINER : NULL,
		     "sbeetd uses MPS in %s, which is not %s", d->mps_directory,
		     in_container(f) ? "mounted in this container" : "there for this user");
	} else if (!mps_serves(f, d->mps_owner)) {
		find(ret, FINDING_NOTE, mps_start(f),
		     "the control daemon in %s serves user %u only; your programs take turns on "
		     "the GPU",
		     d->mps_directory, d->mps_owner);
	} else {
		find(ret, *d->mps_note ? FINDING_NOTE : FINDING_OK, NULL,
		     "MPS runs, pipe directory %s%s%s", d->mps_directory, *d->mps_note ? ": " : "",
		     d->mps_note);
	}
}

static bool preempts(const struct facts *f) {
	return strcmp(f->daemon.preemption, "works") == 0 ||
	       strcmp(f->daemon.preemption, "ready") == 0;
}

/* There is none that sbeetd uses. */
static void judge_mps_absent(const struct facts *f, struct finding *ret) {
	const struct daemon_facts *d = &f->daemon;

	if (f->mps.found && strcmp(d->mps, "off") != 0) {
		find(ret, FINDING_NOTE, NULL,
		     "a control daemon runs in %s, and sbeetd does not use it%s%s",
		     f->mps.directory, *d->mps_note ? ": " : "", d->mps_note);
	} else if (strcmp(d->sharing, "mps") == 0 && f->gpu.simulated) {
		find(ret, FINDING_OK, NULL, "the simulated GPU is shared as under MPS");
	} else if (strcmp(d->sharing, "mps") == 0) {
		find(ret, FINDING_OK, NULL,
		     "programs share the GPU (setting 'sharing'); sbeetd "
		     "knows of no control daemon of MPS");
	} else if (d->steers && preempts(f)) {
		find(ret, FINDING_OK, mps_start(f),
		     "no MPS: programs take turns, and urgent ones preempt others (preemption: "
		     "%s); under MPS they would run side by side",
		     d->preemption);
	} else {
		find(ret, FINDING_NOTE, mps_start(f),
		     "no MPS%s%s%s: programs take turns on the GPU; under MPS they run side by "
		     "side",
		     d->steers ? " and no preemption (" : "", d->steers ? d->preemption : "",
		     d->steers ? ")" : "");
	}
}

static void judge_mps(const struct facts *f, struct finding *ret) {
	const struct daemon_facts *d = &f->daemon;

	if (is_reached(f) && strcmp(d->mps, "up") == 0) {
		judge_mps_up(f, ret);
	} else if (is_reached(f) && (strcmp(d->mps, "absent") == 0 || strcmp(d->mps, "off") == 0)) {
		judge_mps_absent(f, ret);
	} else if (is_reached(f)) {
		find(ret, FINDING_NOTE, strcmp(d->mps, "down") == 0 ? mps_start(f) : NULL,
		     "MPS is %s%s%s", *d->mps ? d->mps : "unknown", *d->mps_note ? ": " : "",
		     d->mps_note);
	} else if (in_container(f)) {
		find(ret, FINDING_NOTE, NULL, "not known: sbeetd can't be asked");
	} else if (f->mps.found) {
		find(ret, FINDING_OK, NULL, "a control daemon of %s runs, pipe directory %s",
		     f->mps.owner == 0 ? "root" : "yours", f->mps.directory);
	} else if (*f->mps.why) {
		find(ret, FINDING_NOTE, NULL, "there is a control daemon that can't be trusted: %s",
		     f->mps.why);
	} else {
		find(ret, FINDING_NOTE, mps_start(f),
		     "no MPS: programs take turns on the GPU, and policy 'steer' preempts those "
		     "that are less urgent; under MPS they run side by side");
	}
}

/* ---- sbeetd ---- */

static const char *daemon_start(const struct facts *f) {
	if (in_container(f)) {
		return COMMAND_CONTAINER;
	}
	return f->system.systemd && f->system.has_unit ? "sudo systemctl enable --now sbeetd.socket"
						       : "sbeetd &";
}

static const char *group_command(const struct facts *f, char command[static 128]) {
	if (in_container(f)) {
		return "docker run --group-add $(getent group sbeet | cut -d: -f3) ...";
	}
	if (f->rights.is_listed) {
		return "newgrp sbeet";
	}
	snprintf(command, 128, "sudo usermod -aG sbeet %s",
		 *f->rights.user ? f->rights.user : "$USER");
	return command;
}

static void judge_unreached(const struct facts *f, struct finding *ret) {
	const struct daemon_facts *d = &f->daemon;
	const char *restart =
		is_service(f) && f->system.systemd ? "sudo systemctl restart sbeetd" : "sbeetd &";
	char command[128];

	switch (d->code) {
	case CTL_EXIT_DENIED:
		find(ret, FINDING_MISSING, group_command(f, command),
		     "this user may not connect to %s", d->control.path);
		return;
	case CTL_EXIT_NOT_RUNNING:
		if (!d->control.exists) {
			find(ret, FINDING_MISSING, daemon_start(f), "not running: no socket %s",
			     d->control.path);
		} else {
			find(ret, FINDING_MISSING, restart,
			     "not running: nothing listens at %s any more", d->control.path);
		}
		return;
	case CTL_EXIT_TIMEOUT:
		find(ret, FINDING_MISSING,
		     is_service(f) && f->system.systemd ? restart : "pgrep -a sbeetd",
		     "it does not answer: %s", d->why);
		return;
	default:
		find(ret, FINDING_MISSING, NULL, "%s", d->why);
	}
}

static void judge_daemon(const struct facts *f, struct finding *ret) {
	const struct daemon_facts *d = &f->daemon;
	char command[128];

	if (!is_reached(f)) {
		judge_unreached(f, ret);
	} else if (!d->shim.exists) {
		find(ret, FINDING_MISSING, daemon_start(f),
		     "it answers, but programs can't connect: no socket %s", d->shim.path);
	} else if (!d->shim.writable) {
		find(ret, FINDING_MISSING, group_command(f, command),
		     "it answers, but programs of this user may not connect to %s", d->shim.path);
	} else if (strcmp(d->version, f->system.version) != 0) {
		find(ret, FINDING_NOTE,
		     is_service(f) && f->system.systemd ? "sudo systemctl restart sbeetd" : NULL,
		     "sbeetd %s answers at %s, but this is sbeetctl %s", d->version,
		     d->control.path, f->system.version);
	} else {
		find(ret, FINDING_OK, NULL, "sbeetd %s answers at %s", d->version, d->control.path);
	}
}

static void judge_start(const struct facts *f, struct finding *ret) {
	const struct system_facts *s = &f->system;
	enum finding_state lacking = is_reached(f) ? FINDING_NOTE : FINDING_MISSING;

	if (in_container(f)) {
		find(ret, FINDING_OK, NULL, "does not apply in a container");
	} else if (!is_service(f) && is_reached(f)) {
		find(ret, FINDING_OK, NULL, "not needed: this sbeetd is not the machine's service");
	} else if (!s->systemd) {
		find(ret, FINDING_NOTE, is_reached(f) ? NULL : "sbeetd &",
		     "no systemd here: start sbeetd yourself");
	} else if (!s->has_unit) {
		find(ret, lacking, NULL, "the unit sbeetd.socket is not installed");
	} else if (!s->is_enabled) {
		find(ret, lacking, "sudo systemctl enable --now sbeetd.socket",
		     "sbeetd.socket is not enabled: after a reboot programs run unmanaged");
	} else {
		find(ret, FINDING_OK, NULL, "sbeetd.socket is enabled");
	}
}

static void judge_group(const struct facts *f, struct finding *ret) {
	const struct rights_facts *r = &f->rights;
	const struct daemon_facts *d = &f->daemon;
	bool denied = d->code == CTL_EXIT_DENIED ||
		      (is_reached(f) && d->shim.exists && !d->shim.writable);
	bool service = is_service(f) && (f->system.has_unit || d->control.exists);
	char command[128];

	if (r->uid == 0 && !denied) {
		find(ret, FINDING_OK, NULL, "root needs no group");
	} else if (is_reached(f) && !denied && !r->is_member) {
		find(ret, FINDING_OK, NULL, "not needed: the sockets are open to this user");
	} else if (r->is_member && !denied) {
		find(ret, FINDING_OK, NULL, "user '%s' is in group 'sbeet'", r->user);
	} else if (in_container(f) && !denied) {
		find(ret, FINDING_NOTE, NULL, "not known without sbeetd's sockets");
	} else if (!service && !denied) {
		find(ret, FINDING_OK, NULL, "not needed: an sbeetd of your own needs no group");
	} else if (r->is_member) {
		find(ret, FINDING_MISSING, "ls -l /run/sbeet",
		     "user '%s' is in group 'sbeet', but may not use the sockets all the same",
		     r->user);
	} else if (r->is_listed) {
		find(ret, FINDING_MISSING, group_command(f, command),
		     "user '%s' was added to group 'sbeet' after this login: log in again, or",
		     r->user);
	} else if (!r->has_group && !denied) {
		find(ret, FINDING_MISSING, "sudo systemd-sysusers",
		     "there is no group 'sbeet', although sbeetd.socket is installed");
	} else {
		find(ret, FINDING_MISSING, group_command(f, command),
		     "user '%s' is not in group 'sbeet'; after the command, log in again", r->user);
	}
}

/* ---- policy and profiles ---- */

static void judge_policy(const struct facts *f, struct finding *ret) {
	const struct daemon_facts *d = &f->daemon;

	if (!is_reached(f)) {
		find(ret, FINDING_NOTE, NULL, "not known: sbeetd can't be asked");
	} else if (d->plans && d->n_profiles == 0) {
		find(ret, FINDING_NOTE, "sbeetctl policy steer",
		     "'%s' plans by profiles, and sbeetd has none: tasks without one start in "
		     "order of arrival",
		     d->policy);
	} else {
		find(ret, FINDING_OK, NULL, "'%s'%s", d->policy,
		     d->plans ? ", which plans by profiles" : "");
	}
}

static void judge_profiles(const struct facts *f, struct finding *ret) {
	const struct profile_facts *p = &f->profiles;
	const struct daemon_facts *d = &f->daemon;
	const char *restart =
		is_service(f) && f->system.systemd ? "sudo systemctl restart sbeetd" : NULL;

	if (!is_reached(f)) {
		find(ret, FINDING_NOTE, NULL, "not known: sbeetd can't be asked");
	} else if (p->n_changed > 0) {
		find(ret, FINDING_NOTE, restart,
		     "%u file%s in %s changed after sbeetd read the profiles, at its start",
		     p->n_changed, p->n_changed == 1 ? "" : "s", p->directory);
	} else if (d->plans && *d->unplanned) {
		find(ret, FINDING_NOTE, "sbeetctl profile run --task=TASK -- PROGRAM",
		     "sbeetd has %u, but none for %s", d->n_profiles, d->unplanned);
	} else if (p->exists && !p->readable) {
		find(ret, d->plans && d->n_profiles == 0 ? FINDING_NOTE : FINDING_OK, NULL,
		     "sbeetd has %u; this user can't read %s", d->n_profiles, p->directory);
	} else if (d->n_profiles == 0) {
		find(ret, d->plans ? FINDING_NOTE : FINDING_OK,
		     d->plans ? "sbeetctl profile run --task=TASK -- PROGRAM" : NULL,
		     d->plans ? "none in %s" : "none in %s; this policy needs none",
		     *p->directory ? p->directory : "sbeetd's folder");
	} else {
		find(ret, FINDING_OK, NULL, "%u in %s", d->n_profiles, p->directory);
	}
}

/* ---- the preload ---- */

static void judge_library(const struct facts *f, struct finding *ret) {
	const struct preload_facts *p = &f->preload;

	if (!*p->library) {
		find(ret, FINDING_MISSING, in_container(f) ? COMMAND_CONTAINER : NULL, "%s",
		     p->why);
	} else if (p->other_machine) {
		find(ret, FINDING_MISSING, NULL, "%s is built for another machine", p->library);
	} else {
		find(ret, FINDING_OK, NULL, "%s", p->library);
	}
}

static void judge_preload(const struct facts *f, struct finding *ret) {
	const struct preload_facts *p = &f->preload;
	unsigned major = 0, minor = 0;

	if (!p->tried) {
		find(ret, FINDING_MISSING, NULL, "not tried without libsbeet.so");
		return;
	}
	if (!*p->said) {
		find(ret, FINDING_OK, NULL, "glibc %s loads it", p->glibc);
		return;
	}
	if (sscanf(p->glibc, "%u.%u", &major, &minor) == 2 && major == 2 && minor < 28) {
		find(ret, FINDING_MISSING, NULL,
		     "glibc %s is too old, libsbeet.so needs 2.28 or later: %s", p->glibc, p->said);
	} else {
		find(ret, FINDING_MISSING, NULL, "the dynamic linker does not load it: %s",
		     p->said);
	}
}

/* @command: of the size of a finding's. Return: it, or NULL: there is no library to name. */
static const char *by_path(const struct facts *f, char command[static FINDING_COMMAND]) {
	int n = snprintf(command, FINDING_COMMAND, "export LD_PRELOAD=%s", f->preload.library);

	return *f->preload.library && n < FINDING_COMMAND ? command : NULL;
}

static void judge_environment(const struct facts *f, struct finding *ret) {
	const struct environment_facts *e = &f->environment;
	char command[FINDING_COMMAND];

	if (e->disabled) {
		find(ret, FINDING_MISSING, "unset SBEET_DISABLE",
		     "SBEET_DISABLE=1 is set: programs run unmanaged");
	} else if (*e->other_shim) {
		find(ret, FINDING_MISSING, "unset LD_PRELOAD",
		     "LD_PRELOAD names another libsbeet.so: %s", e->other_shim);
	} else if (e->not_found) {
		find(ret, FINDING_MISSING, by_path(f, command),
		     "LD_PRELOAD names libsbeet.so, which is in no folder where the dynamic linker "
		     "looks: programs run unmanaged");
	} else if (*e->wrong) {
		snprintf(command, sizeof(command), "unset %s", e->wrong_variable);
		find(ret, FINDING_MISSING, command, "%s", e->wrong);
	} else {
		find(ret, FINDING_OK, NULL, "no variable is in the way");
	}
}

static void judge_container(const struct facts *f, struct finding *ret) {
	if (!in_container(f)) {
		find(ret, FINDING_OK, NULL, "not in one");
	} else if (!f->daemon.control.exists || !f->daemon.shim.exists) {
		find(ret, FINDING_MISSING, COMMAND_CONTAINER,
		     "%s: sbeetd's sockets are not mounted", f->system.container);
	} else if (!*f->preload.library) {
		find(ret, FINDING_MISSING, COMMAND_CONTAINER, "%s: libsbeet.so is not mounted",
		     f->system.container);
	} else {
		find(ret, FINDING_OK, NULL, "%s: sockets and library are there, glibc %s",
		     f->system.container, f->preload.glibc);
	}
}

/* Why @s has not loaded libsbeet.so, as far as it shows. */
static void tell_why(const struct stray_facts *s, char *why, size_t size) {
	if (!*s->entry) {
		snprintf(why, size, "%s is set, but LD_PRELOAD does not name it", s->variable);
	} else if (s->unmanaged) {
		snprintf(why, size, "%s", s->unmanaged);
	} else if (s->absent) {
		snprintf(why, size, "LD_PRELOAD names %s, which is not there", s->entry);
	} else if (!strchr(s->entry, '/')) {
		snprintf(why, size,
			 "LD_PRELOAD names it without a folder, and it was in none where the "
			 "dynamic linker looks");
	} else {
		snprintf(why, size, "the dynamic linker did not load %s", s->entry);
	}
}

static void judge_strays(const struct facts *f, struct finding *ret) {
	const struct stray_list *l = &f->strays;
	char text[sizeof(ret->text)] = "", why[PROTO_PATH_MAX + 64];
	size_t used = 0;

	if (l->n == 0) {
		find(ret, FINDING_OK, NULL, "none that declares a task runs without libsbeet.so");
		return;
	}
	for (unsigned i = 0; i < l->n && i < FACTS_STRAYS_MAX && used < sizeof(text); i++) {
		tell_why(&l->first[i], why, sizeof(why));
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%sprocess %d (%s): %s",
					 i > 0 ? "; " : "", l->first[i].pid, l->first[i].name, why);
	}
	find(ret, FINDING_MISSING, "sbeetctl run -- PROGRAM",
	     "%u on a GPU without libsbeet.so: %s%s", l->n, text,
	     l->n > FACTS_STRAYS_MAX ? "; and others" : "");
}

static void judge_program(const struct facts *f, struct finding *ret) {
	const struct program_facts *p = &f->program;

	if (p->error) {
		find(ret, FINDING_MISSING, NULL, "'%s' can't be executed: %s", p->name,
		     strerror(p->error));
	} else if (p->unmanaged) {
		find(ret, FINDING_MISSING, NULL, "'%s' can't be managed: %s", p->name,
		     p->unmanaged);
	} else if (*p->lacks) {
		find(ret, FINDING_MISSING, NULL, "'%s' does not start: no %s", p->name, p->lacks);
	} else if (p->has_runtime && f->gpu.simulated) {
		find(ret, FINDING_MISSING, "nvcc -cudart shared ...",
		     "'%s' has NVIDIA's runtime library linked in, which can't use a simulated GPU",
		     p->name);
	} else if (*p->stands_in) {
		find(ret, FINDING_NOTE, NULL,
		     "'%s' can be managed, but %s stands in for functions of the driver: if it "
		     "finds the "
		     "driver's own in other ways than by dlsym(), its calls are not managed, and "
		     "jobs can't be moved to parts of the GPU",
		     p->name, p->stands_in);
	} else {
		find(ret, FINDING_OK, NULL, "'%s' can be managed", p->name);
	}
}

size_t findings_judge(const struct facts *f, struct finding ret[static FINDINGS_MAX]) {
	static const struct {
		const char *name;
		void (*judge)(const struct facts *f, struct finding *ret);
	} checks[] = {
		{"driver", judge_driver},
		{"gpu", judge_gpu},
		{"mps", judge_mps},
		{"sbeetd", judge_daemon},
		{"start", judge_start},
		{"group", judge_group},
		{"policy", judge_policy},
		{"profiles", judge_profiles},
		{"library", judge_library},
		{"preload", judge_preload},
		{"environment", judge_environment},
		{"container", judge_container},
		{"processes", judge_strays},
		{"program", judge_program},
	};
	size_t n = sizeof(checks) / sizeof(checks[0]);

	_Static_assert(sizeof(checks) / sizeof(checks[0]) <= FINDINGS_MAX, "");
	n -= !f->program.given; /* the last one */
	for (size_t i = 0; i < n; i++) {
		ret[i].name = checks[i].name;
		checks[i].judge(f, &ret[i]);
	}
	return n;
}
