/* sensor.c: see sensor.h. */
#include "daemon/gpu/sensor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/util.h"

#define CHANNELS  8	  /* of one sensor; an INA3221 has 3 and a sum */
#define MW_MAX	  1000000 /* beyond it is no power, */
#define MV_MAX	  1000000 /* voltage */
#define MA_MAX	  1000000 /* or current */
#define GAP_MAX	  NSEC_PER_SEC
#define PJ_PER_UJ 1000000u

struct sensor {
	char rail[64];
	int power;   /* owned; microwatts; -1: volts times ampere */
	int volts;   /* owned; millivolts */
	int current; /* owned; milliampere */
};

/* Best first: names of NVIDIA's boards. */
static const char *const rails[] = {
	"VDD_GPU", /* AGX Xavier: "GPU" */
	"GPU",
	"VDD_SYS_GPU",	  /* TX2 */
	"POM_5V_GPU",	  /* Nano, TX1 */
	"VDD_GPU_SOC",	  /* AGX Orin */
	"VDD_CPU_GPU_CV", /* Orin NX, Orin Nano, Xavier NX */
	"VDD_IN",
	"VDD_SYS_IN",
	"POM_5V_IN",
};
#define RAILS (sizeof(rails) / sizeof(rails[0]))

static size_t rank(const char *label) {
	for (size_t i = 0; i < RAILS; i++) {
		if (strcmp(rails[i], label) == 0) {
			return i;
		}
	}
	return RAILS;
}

/* At most 63 bytes of the file's first line. */
static int read_text(int fd, char text[static 64]) {
	ssize_t n = pread(fd, text, 63, 0);

	if (n <= 0) {
		return -EIO;
	}
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

static int open_part(int folder, const char *part, unsigned channel, const char *what) {
	char name[64];

	snprintf(name, sizeof(name), "%s%u_%s", part, channel, what);
	return openat(folder, name, O_RDONLY | O_CLOEXEC);
}

static int read_label(int folder, const char *part, unsigned channel, char label[static 64]) {
	_cleanup_close_ int fd = open_part(folder, part, channel, "label");

	return fd < 0 ? -ENOENT : read_text(fd, label);
}

static void close_all(struct sensor *s) {
	util_closep(&s->power);
	util_closep(&s->volts);
	util_closep(&s->current);
	s->power = s->volts = s->current = -1;
}

/* What measures rail @label in @channel takes the place of what is in @s. */
static bool take_channel(struct sensor *s, int folder, const char *part, unsigned channel,
			 const char *label) {
	struct sensor found = {.power = -1, .volts = -1, .current = -1};
	uint64_t mw;

	if (strcmp(part, "power") == 0) {
		found.power = open_part(folder, "power", channel, "input");
	} else {
		found.volts = open_part(folder, "in", channel, "input");
		found.current = open_part(folder, "curr", channel, "input");
	}
	if (sensor_read(&found, &mw) < 0) {
		close_all(&found);
		return false;
	}
	close_all(s);
	snprintf(found.rail, sizeof(found.rail), "%s", label);
	*s = found;
	return true;
}

/* One hwmon. */
static void look_into(struct sensor *s, size_t *best, int folder) {
	static const char *const parts[] = {"power", "in"};

	for (unsigned channel = 1; channel <= CHANNELS; channel++) {
		for (size_t p = 0; p < 2; p++) {
			char label[64];

			if (read_label(folder, parts[p], channel, label) == 0 &&
			    rank(label) < *best &&
			    take_channel(s, folder, parts[p], channel, label)) {
				*best = rank(label);
			}
		}
	}
}

int sensor_new(struct sensor **ret, const char *folder) {
	_cleanup_free_ struct sensor *s = malloc(sizeof(*s));
	size_t best = RAILS;
	struct dirent *entry;
	DIR *dir;

	if (!s) {
		return -ENOMEM;
	}
	*s = (struct sensor){.power = -1, .volts = -1, .current = -1};
	dir = opendir(folder);
	if (!dir) {
		return -ENOENT;
	}
	while ((entry = readdir(dir)) != NULL) {
		_cleanup_close_ int fd =
			openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && entry->d_name[0] != '.') {
			look_into(s, &best, fd);
		}
	}
	closedir(dir);
	if (best == RAILS) {
		return -ENOENT;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

struct sensor *sensor_free(struct sensor *sensor) {
	if (sensor) {
		close_all(sensor);
		free(sensor);
	}
	return NULL;
}

const char *sensor_rail(const struct sensor *sensor) {
	return sensor->rail;
}

static int read_number(int fd, int64_t max, uint64_t *ret) {
	char text[64];
	int64_t value;

	if (fd < 0 || read_text(fd, text) < 0 || units_parse_int(text, 0, max, &value) < 0) {
		return -EIO;
	}
	*ret = (uint64_t)value;
	return 0;
}

int sensor_read(struct sensor *sensor, uint64_t *ret_mw) {
	uint64_t value, mv, ma;

	if (sensor->power >= 0) {
		if (read_number(sensor->power, MW_MAX * 1000, &value) < 0) {
			return -EIO;
		}
		*ret_mw = value / 1000;
		return 0;
	}
	if (read_number(sensor->volts, MV_MAX, &mv) < 0 ||
	    read_number(sensor->current, MA_MAX, &ma) < 0) {
		return -EIO;
	}
	*ret_mw = mv * ma / 1000;
	return 0;
}

void sensor_add(struct sensor_energy *e, nsec_t now, uint64_t mw) {
	if (e->at > 0 && now > e->at && now - e->at <= GAP_MAX) {
		/* Milliwatts times nanoseconds are picojoules: below 2^62 by the limits above. */
		uint64_t pj = (e->mw + mw) * (now - e->at) / 2 + e->rest_pj;

		e->uj += pj / PJ_PER_UJ;
		e->rest_pj = pj % PJ_PER_UJ;
	}
	e->at = now;
	e->mw = mw;
}
