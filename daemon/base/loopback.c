/*
 * loopback.c: see loopback.h.
 */
#include "daemon/base/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/util.h>
#include <string.h>

int loopback_parse(const char *where, union loopback_address *ret, socklen_t *ret_size) {
	int size = sizeof(*ret);

	*ret = (union loopback_address){0};
	if (strncmp(where, "unix:", 5) == 0) {
		if (where[5] != '/' || strlen(where + 5) >= sizeof(ret->un.sun_path)) {
			return -EINVAL;
		}
		ret->un.sun_family = AF_UNIX;
		strcpy(ret->un.sun_path, where + 5);
		*ret_size = sizeof(ret->un);
		return 0;
	}
	if (evutil_parse_sockaddr_port(where, &ret->any, &size) < 0) {
		return -EINVAL;
	}
	*ret_size = (socklen_t)size;
	/* Nobody is asked who they are there: not for other machines. */
	if (ret->any.sa_family == AF_INET) {
		return ret->in.sin_port && ntohl(ret->in.sin_addr.s_addr) >> 24 == 127 ? 0
										       : -EINVAL;
	}
	return ret->in6.sin6_port && IN6_IS_ADDR_LOOPBACK(&ret->in6.sin6_addr) ? 0 : -EINVAL;
}
