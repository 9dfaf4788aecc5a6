/*
 * verbs.c: the table; see verb.h.
 */
#include "client/verb.h"

#include <string.h>

const struct verb *const verbs[] = {
	&verb_status,
	&verb_gpu_list,
	&verb_gpu_show,
	&verb_task_list,
	&verb_task_show,
	&verb_session_list,
	&verb_session_show,
	&verb_job_list,
	&verb_job_show,
	&verb_job_explain,
	&verb_top,
	&verb_monitor,
	&verb_trace_record,
	&verb_trace_export,
	&verb_run,
	&verb_ptx,
	&verb_simulate,
	&verb_plan,
	&verb_policy,
	&verb_task_set,
	&verb_session_kill,
	&verb_gpu_drain,
	&verb_gpu_resume,
	&verb_gpu_calibrate,
	&verb_config,
	&verb_reload,
	&verb_profile_run,
	&verb_profile_list,
	&verb_profile_show,
	&verb_profile_import,
	&verb_profile_export,
	&verb_version,
	&verb_help,
	NULL,
};

const struct verb *verb_find(const struct verb *const *table, const char *word, const char *next,
			     size_t *ret_words) {
	size_t len = strlen(word);

	for (; *table; table++) {
		const char *name = (*table)->name;

		if (strcmp(name, word) == 0) {
			*ret_words = 1;
			return *table;
		}
		if (next && strncmp(name, word, len) == 0 && name[len] == ' ' &&
		    strcmp(name + len + 1, next) == 0) {
			*ret_words = 2;
			return *table;
		}
	}
	return NULL;
}
