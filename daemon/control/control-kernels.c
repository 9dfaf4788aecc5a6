/*
 * control-kernels.c: see control-kernels.h.
 */
#include "daemon/control/control-kernels.h"

#include "daemon/control/admin.h"
#include "daemon/control/answer.h"
#include "daemon/session/session.h"

/* Looked at in one piece, which is one packet: two texts of KERNELS_TEXT_MAX each at most. */
#define KERNELS_PER_PIECE 64

struct batch {
	Sbeet__Control__Kernels kernels;
	Sbeet__Control__Kernel list[KERNELS_PER_PIECE], *pointers[KERNELS_PER_PIECE];
};

static void add(struct batch *b, const struct session *s, const struct kernel_info *info) {
	size_t n = b->kernels.n_kernels++;
	Sbeet__Control__Kernel *m = &b->list[n];

	b->pointers[n] = m;
	sbeet__control__kernel__init(m);
	m->session = s->id;
	m->id = info->id;
	m->name = info->name->text;
	m->launches = info->launches;
	m->blocks = info->blocks;
	m->block_threads = info->block_threads;
	m->enforcement_mask = info->enforcement_mask & s->enforcement_mask;
	m->refusal = info->refusal ? info->refusal : m->refusal;
	m->dependent = info->dependent;
}

static void send_piece(struct control_client *client, const struct answer *a, struct batch *b,
		       bool last) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;

	if (last) {
		b->kernels.left_out = a->n_left_out;
		b->kernels.hidden = a->n_hidden;
	}
	reply.id = a->id;
	reply.last = last;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_KERNELS;
	reply.kernels = &b->kernels;
	control_client_send(client, &reply);
}

/* On to the next session that is asked for. */
static void next_session(struct answer *a) {
	a->session = a->wanted_session ? NULL : TAILQ_NEXT(a->session, link);
	a->told = false;
}

/* Whether anything is to be told of the session that comes now. */
static bool begin_session(struct control_client *client, struct answer *a) {
	const struct session *s = a->session;

	if (s->kernels.n > 0 && !admin_may_change(client, s)) {
		a->n_hidden++;
		return false;
	}
	a->n_left_out += kernels_left_out(&s->kernels);
	a->next = 0;
	a->told = true;
	return true;
}

/* The next kernels, session by session, in the order of their ids. */
static bool step(struct control_client *client, struct answer *a) {
	struct batch b;

	sbeet__control__kernels__init(&b.kernels);
	b.kernels.kernels = b.pointers;
	for (int i = 0; i < KERNELS_PER_PIECE && a->session; i++) {
		const struct kernel_info *info;

		if (a->wanted_session && a->session->id != a->wanted_session) {
			a->session = NULL; /* the one that was asked for has gone */
			break;
		}
		if (!a->told && !begin_session(client, a)) {
			next_session(a);
			continue;
		}
		info = kernels_next(&a->session->kernels, (uint32_t)a->next);
		if (info) {
			a->next = info->id;
			add(&b, a->session, info);
		} else {
			next_session(a);
		}
	}
	if (!a->session || b.kernels.n_kernels > 0) {
		send_piece(client, a, &b, a->session == NULL);
	}
	return a->session == NULL;
}

void control_kernels(struct control_client *client, const Sbeet__Control__Request *request) {
	uint64_t wanted = request->kernels->session;
	struct answer *a = &client->answer;
	const struct sessions *sessions = client->control->sessions;
	struct session *s = wanted ? sessions_find(sessions, wanted) : TAILQ_FIRST(&sessions->list);

	if (wanted && !s) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT,
			     "there is no session %llu", (unsigned long long)wanted);
		return;
	}
	if (wanted && !admin_may_change(client, s)) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
			     "session %llu is user %u's: only that user and admins may see its "
			     "kernels",
			     (unsigned long long)wanted, s->cred.uid);
		return;
	}
	a->wanted_session = wanted;
	a->session = s;
	a->told = false;
	a->n_left_out = a->n_hidden = 0;
	answer_begin(client, request->id, client->control->now(), step);
}
