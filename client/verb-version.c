/*
 * verb-version.c: `sbeetctl version` and --version: what this build is.
 */
#include <stdio.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/build.h"
#include "client/verb.h"
#include "proto/limits.h"

static json_t *version_json(void) {
	return json_pack("{s:s, s:i, s:s, s:s, s:{s:b, s:b, s:b, s:b}}", "version", SBEET_VERSION,
			 "protocol", PROTO_VERSION, "compiler", SBEET_COMPILER, "machine",
			 SBEET_MACHINE, "features", "systemd", SBEET_HAVE_SYSTEMD, "cuda_header",
			 SBEET_HAVE_CUDA_H, "zstd", 1, "lz4", 1);
}

static int version(const struct ctl *ctl) {
	if (ctl->common.json != JSON_OFF) {
		return listing_json(ctl, version_json());
	}
	printf("sbeetctl %s\n"
	       "protocol %d\n"
	       "built by %s for %s: %csystemd %ccuda.h +zstd +lz4\n",
	       SBEET_VERSION, PROTO_VERSION, SBEET_COMPILER, SBEET_MACHINE,
	       SBEET_HAVE_SYSTEMD ? '+' : '-', SBEET_HAVE_CUDA_H ? '+' : '-');
	return CTL_EXIT_OK;
}

const struct verb verb_version = {
	.name = "version",
	.args = "",
	.summary = "show version, protocol and build",
	.flags = VERB_READS,
	.function = version,
};
