/*
 * fork.c: a child of the program starts anew. The connection, the tracker and all jobs are the
 * parent's, and the driver does not work in the child. What the child had of all that is forgotten,
 * not freed: locks and lists may have been copied in the middle of a change.
 */
#include "shim/real.h"

#include <pthread.h>

#include "shim/attach.h"
#include "shim/books.h"
#include "shim/capture.h"
#include "shim/conn.h"
#include "shim/copy-back.h"
#include "shim/counts.h"
#include "shim/enforce/enforce.h"
#include "shim/gpu-uuid.h"
#include "shim/graph.h"
#include "shim/groups.h"
#include "shim/host-function.h"
#include "shim/keeper.h"
#include "shim/lane.h"
#include "shim/link.h"
#include "shim/nvtx.h"
#include "shim/own-thread.h"
#include "shim/place.h"
#include "shim/primary.h"
#include "shim/question.h"
#include "shim/records.h"
#include "shim/seat.h"
#include "shim/state.h"
#include "shim/terms.h"
#include "shim/track.h"
#include "shim/turn.h"
#include "shim/wait.h"
#include "shim/wake.h"
#include "shim/worker.h"

static void after_fork(void) {
	state_self.depth = 0;
	conn_after_fork();
	track_after_fork();
	own_thread_after_fork();
	records_after_fork();
	counts_after_fork();
	lane_after_fork();
	host_function_after_fork();
	question_after_fork();
	wake_after_fork();
	capture_after_fork();
	terms_after_fork();
	keeper_after_fork();
	copy_back_after_fork();
	seat_after_fork();
	groups_after_fork();
	turn_after_fork();
	books_after_fork();
	counts_after_fork();
	gpu_uuid_after_fork();
	link_after_fork();
	attach_after_fork();
	primary_after_fork();
	wait_after_fork();
	nvtx_after_fork();
	worker_after_fork();
	place_after_fork();
	graph_after_fork();
	enforce_after_fork();
}

__attribute__((constructor)) static void start(void) {
	pthread_atfork(NULL, NULL, after_fork);
}
