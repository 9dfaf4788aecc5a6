/* boot.c: see boot.h. */
#include "daemon/base/boot.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/base/util.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

bool boot_read_id(char boot[static BOOT_ID_BYTES]) {
	_cleanup_close_ int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);

	memset(boot, 0, BOOT_ID_BYTES);
	if (fd >= 0 && read(fd, boot, 36) == 36) {
		return true;
	}
	memset(boot, 0, BOOT_ID_BYTES);
	return false;
}
