/* admin-policy.c: see admin-policy.h. */
#include "daemon/control/admin-policy.h"

#include "daemon/base/log.h"
#include "daemon/config/reload.h"
#include "daemon/control/admin.h"
#include "daemon/engine/engine.h"
#include "daemon/session/steer.h"
#include "daemon/watch/report.h"

static void answer(struct control_client *client, uint32_t id) {
	const struct sched *sched = engine_sched(client->control->engine);
	Sbeet__Control__Policy policy = SBEET__CONTROL__POLICY__INIT;
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;

	policy.name = (char *)sched_get_policy(sched)->name;
	reply.id = id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_POLICY;
	reply.policy = &policy;
	control_client_send(client, &reply);
}

/* All of them or none. Return: whether they are in *ret; if not, the request is refused. */
static bool take_params(struct control_client *client, const Sbeet__Control__Request *request,
			struct policy_values *ret) {
	const Sbeet__Control__PolicyRequest *wanted = request->policy;
	char why[PROTO_TEXT_MAX];

	for (size_t i = 0; i < wanted->n_params; i++) {
		int r = policies_set(ret, wanted->params[i]->name, wanted->params[i]->value,
				     SETTING_REQUEST, 0, why, sizeof(why));

		if (r != 0) {
			admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_CONFIG,
				     "%s", why);
			return false;
		}
	}
	return true;
}

/* "", or " (reading=literal, line_16=on)". */
static void print_params(const Sbeet__Control__PolicyRequest *wanted, char *text, size_t size) {
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < wanted->n_params && n < size; i++) {
		n += (size_t)snprintf(text + n, size - n, "%s%s=%s%s", i == 0 ? " (" : ", ",
				      wanted->params[i]->name, wanted->params[i]->value,
				      i + 1 == wanted->n_params ? ")" : "");
	}
}

static void set(struct control_client *client, const Sbeet__Control__Request *request,
		struct policy_values *kept) {
	struct policy_values values = *kept;
	char text[512];

	if (!take_params(client, request, &values)) {
		return;
	}
	*kept = values;
	print_params(request->policy, text, sizeof(text));
	log_info("Policy '%s'%s, set by user %u", values.policy->name, text, client->cred.uid);
	engine_set_policy(client->control->engine, values.policy, &values.params);
	steer_changed(client->control->steer); /* it reads one of the parameters */
	report_policy(client->control->report);
	answer(client, request->id);
}

void admin_policy(struct control_client *client, const Sbeet__Control__Request *request) {
	struct config *config = client->control->reload->config;
	struct policy_values *values;

	if (!*request->policy->name) {
		answer(client, request->id);
		return;
	}
	if (!admin_may(client)) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
			     "only root, the user that sbeetd runs as and its admins may set the "
			     "policy");
		return;
	}
	values = policies_find(&config->policies, request->policy->name);
	if (!values) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_NO_POLICY,
			     "there is no policy of this name, or it is for simulations only");
		return;
	}
	if (values->policy->by_table && !engine_has_timetable(client->control->engine)) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_NO_POLICY,
			     "sbeetd has no table: 'sbeetctl plan --table' makes one, 'table = "
			     "FILE' in sbeetd.conf and a restart make sbeetd read it");
		return;
	}
	set(client, request, values);
}
