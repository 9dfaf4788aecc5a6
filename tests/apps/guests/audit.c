/*
 * audit.c: a library for LD_AUDIT, which looks at every symbol that is bound.
 */
#include <link.h>

#include "plug.h"

EXPORT unsigned la_version(unsigned version) {
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORT unsigned la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie) {
	(void)map, (void)lmid, (void)cookie;
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
