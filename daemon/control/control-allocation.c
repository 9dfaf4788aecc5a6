/* control-allocation.c: see control-allocation.h. */
#include "daemon/control/control-allocation.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "daemon/control/admin.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/session/allocations.h"
#include "daemon/session/sessions.h"
#include "daemon/session/steer.h"

/* Of at most some 2 KiB each. */
#define ALLOCATIONS_PER_PACKET 8

struct told {
	Sbeet__Control__Allocation allocation;
	Sbeet__Control__AllocationPart parts[SCHED_GPUS_MAX], *part_pointers[SCHED_GPUS_MAX];
	uint8_t sms[SCHED_GPUS_MAX][32];
};

/* Whether another one has some of its SMs on GPU @gpu, too. */
static bool is_shared(const struct allocations *a, unsigned id, size_t gpu) {
	const struct smset *own = allocations_sms(a, id, gpu);

	for (unsigned other = 1; own && other <= SCHED_ALLOCATIONS_MAX; other++) {
		const struct smset *sms = allocations_sms(a, other, gpu);

		if (other != id && sms && !smset_disjoint(own, sms)) {
			return true;
		}
	}
	return false;
}

static void fill_parts(const struct control *control, unsigned id, struct told *ret) {
	const struct allocations *a = control->sessions->allocations;

	ret->allocation.parts = ret->part_pointers;
	for (size_t gpu = 0; gpu < inventory_n_gpus(control->inventory); gpu++) {
		const struct smset *sms = allocations_sms(a, id, gpu);
		size_t n = ret->allocation.n_parts;

		if (sms) {
			sbeet__control__allocation_part__init(&ret->parts[n]);
			ret->parts[n].gpu = (uint32_t)gpu;
			ret->parts[n].sms.data = ret->sms[n];
			ret->parts[n].sms.len = smset_to_bytes(sms, ret->sms[n]);
			ret->part_pointers[n] = &ret->parts[n];
			ret->allocation.n_parts++;
			ret->allocation.shared |= is_shared(a, id, gpu);
		}
	}
}

static void fill(const struct control *control, unsigned id, struct told *ret) {
	const struct allocations *a = control->sessions->allocations;
	const struct allocation *l = allocations_get(a, id);
	Sbeet__Control__Allocation *m = &ret->allocation;

	sbeet__control__allocation__init(m);
	m->name = (char *)l->name;
	m->cgroup = (char *)l->cgroup;
	m->sms = l->n_sms;
	m->gpus = l->gpus;
	m->started_ns = (uint64_t)l->started;
	m->sessions = allocations_sessions(a, id);
	m->removed = l->removed;
	m->jobs = l->totals.jobs;
	m->misses = l->totals.misses;
	m->abandoned = l->totals.abandoned;
	m->launches = l->totals.launches;
	m->gpu_ns = l->totals.gpu;
	m->energy_mj = l->totals.energy_mj;
	fill_parts(control, id, ret);
}

static void reply(struct control_client *client, uint32_t id, struct told *told) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;

	reply.id = id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_ALLOCATION;
	reply.allocation = &told->allocation;
	control_client_send(client, &reply);
}

static void log_it(const struct control_client *client, const char *name, const char *what) {
	log_change(admin_log(client),
		   &(struct log_about){.id = LOG_ID_CHANGE, .gpu = -1, .uid = client->cred.uid},
		   "Allocation '%s' is %s by user %u", name, what, client->cred.uid);
}

static void add(struct control_client *client, uint32_t request,
		const Sbeet__Control__AllocationChange *m) {
	struct allocations *a = client->control->sessions->allocations;
	struct allocation wanted = {.n_sms = m->sms, .gpus = m->gpus};
	struct told told;
	bool shared;

	snprintf(wanted.name, sizeof(wanted.name), "%s", m->name);
	snprintf(wanted.cgroup, sizeof(wanted.cgroup), "%s", m->cgroup);
	if (allocations_add(a, &wanted, util_wall_now(), &shared) != 0) {
		admin_refuse(client, request, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
			     "there are %d allocations already, and no more are possible",
			     SCHED_ALLOCATIONS_MAX);
		return;
	}
	log_it(client, m->name, "made");
	if (shared) {
		log_warning("Allocation '%s' shares SMs with others: not enough are left for it",
			    m->name);
	}
	fill(client->control, allocations_find(a, m->name), &told);
	reply(client, request, &told);
}

static void take_away(struct control_client *client, uint32_t request,
		      const Sbeet__Control__AllocationChange *m) {
	struct allocations *a = client->control->sessions->allocations;
	unsigned id = allocations_find(a, m->name);
	struct allocation copy;
	struct told told;

	if (id == 0) {
		admin_refuse(client, request, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT,
			     "there is no allocation '%s'", m->name);
		return;
	}
	copy = *allocations_get(a, id);
	fill(client->control, id, &told);
	told.allocation.name = copy.name; /* what is told outlives it */
	told.allocation.cgroup = copy.cgroup;
	if (!m->idle || told.allocation.sessions == 0) {
		allocations_remove(a, id);
		told.allocation.removed = true;
		log_it(client, copy.name, "removed");
	}
	reply(client, request, &told);
}

void control_allocation_change(struct control_client *client,
			       const Sbeet__Control__Request *request) {
	const Sbeet__Control__AllocationChange *m = request->allocation_change;
	size_t n_gpus = inventory_n_gpus(client->control->inventory);

	if (!admin_may(client)) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
			     "only admins may make or remove allocations");
	} else if (m->remove) {
		take_away(client, request->id, m);
	} else if (n_gpus < 32 && m->gpus >> n_gpus) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT,
			     "there is no GPU %d", 31 - __builtin_clz(m->gpus));
	} else {
		add(client, request->id, m);
	}
	steer_changed(client->control->steer);
}

void control_allocations(struct control_client *client, uint32_t id) {
	const struct allocations *a = client->control->sessions->allocations;
	Sbeet__Control__Allocation *pointers[ALLOCATIONS_PER_PACKET];
	struct told told[ALLOCATIONS_PER_PACKET];
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	Sbeet__Control__Status status = SBEET__CONTROL__STATUS__INIT;

	reply.id = id;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_STATUS;
	reply.status = &status;
	status.allocations = pointers;
	for (unsigned i = 1; i <= SCHED_ALLOCATIONS_MAX; i++) {
		const struct allocation *l = allocations_get(a, i);

		if (l && (!l->removed || allocations_sessions(a, i) > 0)) {
			fill(client->control, i, &told[status.n_allocations]);
			pointers[status.n_allocations] = &told[status.n_allocations].allocation;
			status.n_allocations++;
		}
		if (status.n_allocations == ALLOCATIONS_PER_PACKET ||
		    (i == SCHED_ALLOCATIONS_MAX && status.n_allocations > 0)) {
			control_client_send(client, &reply);
			status.n_allocations = 0;
		}
	}
}
