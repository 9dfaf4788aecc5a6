/*
 * ending.c: see ending.h.
 */
#include "daemon/control/ending.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "daemon/control/admin.h"
#include "daemon/gpu/inventory.h"
#include "daemon/mps/mps.h"
#include "daemon/session/session.h"
#include "daemon/watch/report.h"

/* The answer to a question that prepared the end of a program. */
static void send_outcome(struct control_client *client, uint32_t id, uint32_t pid, bool terminated,
			 bool running, const char *note) {
	Sbeet__Control__Done body = SBEET__CONTROL__DONE__INIT;

	body.changed = terminated;
	body.pid = pid;
	body.running = running;
	body.note = (char *)note;
	admin_reply(client, id, &body);
}

/* --- as a client of MPS -------------------------------------------------------------------- */

/* What MPS was asked for a peer. */
struct ending_question {
	LIST_ENTRY(ending_question) link;
	struct control_client *client; /* borrowed, whose list it is in */
	uint32_t request, pid;
	bool running;
};

static void on_terminated(void *userdata, bool terminated, const char *why) {
	struct ending_question *q = userdata;
	char note[PROTO_TEXT_MAX] = "";

	if (terminated) {
		log_info("MPS has ended its client %u", q->pid);
	} else if (!strstr(why, "is no client")) {
		snprintf(
			note, sizeof(note),
			"MPS did not end process %u as its client (%s): others on its GPU may fail "
			"with it",
			q->pid, why);
		log_warning("%s", note);
	}
	LIST_REMOVE(q, link);
	send_outcome(q->client, q->request, q->pid, terminated, q->running, note);
	free(q);
}

/* Return: 0 and it is under way, or negative errno. */
static int ask_mps(struct control_client *client, uint32_t request, const struct session *s,
		   bool running) {
	struct ending_question *q;
	int r;

	if (s->pidfd < 0) {
		return -ESRCH; /* by its number alone it could be another one by now */
	}
	q = malloc(sizeof(*q));
	if (!q) {
		return -ENOMEM;
	}
	*q = (struct ending_question){.client = client,
				      .request = request,
				      .pid = (uint32_t)s->cred.pid,
				      .running = running};
	LIST_INSERT_HEAD(&client->endings, q, link);
	r = mps_terminate(client->control->mps, s->cred.pid, on_terminated, q);
	if (r < 0) {
		LIST_REMOVE(q, link);
		free(q);
	}
	return r;
}

/* Whether a GPU that it may have contexts on is shared by MPS. */
static bool is_shared(const struct inventory *inventory, const struct session *s) {

	for (size_t i = 0; i < inventory_n_gpus(inventory); i++) {
		if (inventory_gpu(inventory, i)->sharing == SCHED_SHARING_MPS &&
		    (s->gpus == 0 || s->gpus & BIT(i))) {
			return true;
		}
	}
	return false;
}

static void terminate(struct control_client *client, uint32_t request, const struct session *s,
		      bool running) {
	uint32_t pid = (uint32_t)s->cred.pid;
	char note[PROTO_TEXT_MAX] = "";
	int r = is_shared(client->control->inventory, s) ? ask_mps(client, request, s, running)
							 : -ENOENT;

	if (r == 0) {
		return;
	}
	if (r != -ENOENT) {
		snprintf(note, sizeof(note),
			 "MPS can't be asked to end process %u as its client (%s): others on its "
			 "GPU may fail with it",
			 pid,
			 r == -EAGAIN	? "too many are ending"
			 : r == -ENOMEM ? "no memory"
			 : r == -ESRCH	? "it has not said what it is"
					: "no control daemon answers");
	}
	send_outcome(client, request, pid, false, running, note);
}

/* What it ran has ended, or its time is over. */
static void on_quiet(void *asker, uint32_t request, const struct session *s, bool running) {
	if (running) {
		terminate(asker, request, s, true);
	} else {
		send_outcome(asker, request, (uint32_t)s->cred.pid, false, false, "");
	}
}

static void begin(struct control_client *client, uint32_t request, struct session *s,
		  nsec_t limit) {
	int r = quiet_begin(s, limit, on_quiet, client, request);

	if (r == -EBUSY) {
		admin_refuse(client, request, SBEET__ERROR_CODE__ERROR_CODE_STATE,
			     "session %llu is being ended by somebody else",
			     (unsigned long long)s->id);
	} else if (r < 0) {
		terminate(client, request, s, quiet_runs(s));
	}
}

void ending_client_gone(struct control_client *client) {
	struct ending_question *q;
	struct session *s;

	while ((q = LIST_FIRST(&client->endings))) {
		mps_forget(client->control->mps, q);
		LIST_REMOVE(q, link);
		free(q);
	}
	TAILQ_FOREACH(s, &client->control->sessions->list, link) {
		quiet_end(s, client);
	}
}

/* --- the request --------------------------------------------------------------------------- */

void ending_kill_session(struct control_client *client, const Sbeet__Control__Request *request) {
	const Sbeet__Control__SessionKill *wanted = request->session_kill;
	uint64_t id = wanted->session;
	struct session *s = sessions_find(client->control->sessions, id);

	if (!s) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT,
			     "there is no session %llu", (unsigned long long)id);
		return;
	}
	if (!admin_may_change(client, s)) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
			     "session %llu is another user's: only admins may end it",
			     (unsigned long long)id);
		return;
	}
	log_change(admin_log(client),
		   &(struct log_about){.id = LOG_ID_CHANGE,
				       .task = s->task.name,
				       .gpu = -1,
				       .uid = client->cred.uid},
		   "User %u %s session %llu (pid %d, '%s')", client->cred.uid,
		   wanted->terminate ? "asks for the end of the program of" : "ended",
		   (unsigned long long)id, s->cred.pid, s->task.name);
	report_session(client->control->report, s,
		       SBEET__CONTROL__EVENT_KIND__EVENT_KIND_SESSION_KILL);
	if (wanted->terminate && wanted->drain_ns > 0) {
		begin(client, request->id, s, wanted->drain_ns);
	} else if (wanted->terminate) {
		terminate(client, request->id, s, quiet_runs(s));
	} else {
		session_dismiss(s, "an administrator or its user ended the session");
	}
	if (!wanted->terminate) {
		Sbeet__Control__Done done = SBEET__CONTROL__DONE__INIT;

		done.changed = 1;
		admin_reply(client, request->id, &done);
	}
}
