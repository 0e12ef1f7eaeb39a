/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * criu-plugin-abi.h - what CRIU expects of a plugin, in our own words
 *
 * CRIU's plugin interface (criu/include/criu-plugin.h) is not installed by
 * distributions, so the plugin is built against this description of it.
 * `make check-abi` compares every value and offset with the real header.
 *
 * CRIU refuses a descriptor whose version or max_hooks is above its own.  The
 * hooks used here all exist in CRIU 4.1 (12 hooks) and later, and a host reads
 * only max_hooks entries, so one descriptor fits all of them.
 */
#ifndef CRIU_PLUGIN_ABI_H
#define CRIU_PLUGIN_ABI_H

/* CRIU's plugin interface version 0.2.0. */
#define SHP_PLUGIN_VERSION ((0u << 16) + (2u << 8) + 0u)

enum {
	/* int (int pid): all restored tasks stand still, about to resume.
	 * pid is real, as CRIU's /proc shows it. The result is ignored. */
	SHP_HOOK_RESUME_DEVICES_LATE = 9,
	/* int (int pid): the task is about to be frozen (dump and pre-dump). */
	SHP_HOOK_PAUSE_DEVICES = 10,
	/* int (int pid): all tasks are frozen and nothing has been read yet.
	 * A negative result other than -ENOTSUP fails the dump. */
	SHP_HOOK_CHECKPOINT_DEVICES = 11,
	/* Hooks of the oldest CRIU supported (4.1). */
	SHP_HOOK_MAX = 12,
};

enum {
	SHP_STAGE_DUMP = 0,
	SHP_STAGE_PRE_DUMP = 1,
	SHP_STAGE_RESTORE = 2,
};

typedef int (*shp_init_fn)(int stage);
typedef void (*shp_exit_fn)(int stage, int ret);
typedef int (*shp_pid_hook_fn)(int pid);

struct shp_plugin_desc {
	const char *name;
	shp_init_fn init;
	shp_exit_fn exit;
	unsigned int version;
	unsigned int max_hooks;
	void *hooks[SHP_HOOK_MAX];
};

/* Exported by the criu binary. */

/* Descriptor of the images directory; stays CRIU's, do not close. */
int criu_get_image_dir(void);

/* CRIU's log: 1 error, 2 warning, 3 info, 4 debug. */
void print_on_level(unsigned int level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
