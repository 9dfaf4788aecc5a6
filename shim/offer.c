/*
 * offer.c: see offer.h.
 */
#include "shim/offer.h"

#include <errno.h>
#include <unistd.h>

#include "shim/conn.h"
#include "shim/gpu-uuid.h"
#include "shim/groups.h"
#include "shim/seat.h"
#include "shim/turn.h"

/* Return: 0 or negative errno. */
static int tell(const struct groups_news *news, const uint8_t *uuid) {
	Sbeet__ChannelGroup group = SBEET__CHANNEL_GROUP__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	int r;

	group.gpu_uuid.data = (uint8_t *)uuid;
	group.gpu_uuid.len = PROTO_UUID_BYTES;
	group.client = news->client;
	group.object = news->object;
	group.gone = news->gone;
	m.body_case = SBEET__TO_DAEMON__BODY_GROUP;
	m.group = &group;
	r = conn_tell_passing(&m, news->connection, news->fd);
	if (r == -ESTALE || r == -ENOTCONN) {
		groups_unwanted(news->connection); /* the next sbeetd asks itself */
	}
	return r < 0 ? r : 0;
}

void offer_groups(void) {
	/* The groups are where the jobs are: all on one GPU, or they are not known. */
	int device = groups_known() ? seat_only_device() : -1;
	const uint8_t nowhere[PROTO_UUID_BYTES] = {0};
	const uint8_t *uuid = device >= 0 ? gpu_uuid(device) : NULL;
	struct groups_news news;
	unsigned at = 0;

	if (!groups_have_news()) {
		return;
	}
	while (groups_next(&at, &news)) {
		int r = news.gone ? tell(&news, nowhere) : uuid ? tell(&news, uuid) : -EAGAIN;

		if (news.fd >= 0) {
			close(news.fd);
		}
		if (r < 0) {
			groups_look_again();
			return;
		}
		groups_told(&news);
	}
	if (device >= 0) {
		turn_begin(device);
	}
}
