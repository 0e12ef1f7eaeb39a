// SPDX-License-Identifier: GPL-2.0-only
/*
 * shmem_plugin.c - CRIU's hooks, nothing else
 *
 * Theory of operation
 *
 * dump:	init reads settings and finds a source. The first
 *		CHECKPOINT_DEVICES comes when all tasks are frozen and nothing
 *		has been read: the whole tree is recorded and the residency
 *		image is written; a failure here fails the dump while it has
 *		done no harm. CRIU then reads, which swaps everything in. When
 *		the criu process ends, by then every task has been resumed or
 *		killed, what was out is put out again if a task is still there.
 *		That is later than CRIU's own exit hook, on purpose: no hook of
 *		stock CRIU tells whether the tasks will live (-R, -s, a
 *		post-dump script that fails, a dump that fails), at the end of
 *		the process it can be seen. It also keeps the page-out off the
 *		time the tasks are frozen.
 * pre-dump:	PAUSE_DEVICES records, the end of the process puts back.
 * restore:	init reads the residency image and, in strict mode, refuses
 *		what cannot work; RESUME_DEVICES_LATE pages out.
 *
 * Every hook returns -ENOTSUP when it has done its work: any other value would
 * keep CRIU from calling the plugins behind this one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "criu-plugin-abi.h"
#include "image.h"
#include "log.h"
#include "probe.h"
#include "record.h"
#include "replay.h"
#include "source.h"

#define EXPORT __attribute__((visibility("default")))

static struct {
	pid_t owner; /* the process that dumps; its children inherit this */
	int stage;
	bool hooked; /* CHECKPOINT_DEVICES has been here */
	struct config config;
	struct record record;
	struct replay replay;
} shp;

static int choose_source(struct source *source)
{
	enum source_id wanted = shp.config.source;
	struct probe probe;
	const char *why;
	int ret;

	probe_run(&probe);
	ret = source_choose(source, wanted, &probe, &why);
	if (ret && (shp.stage != SHP_STAGE_RESTORE || shp.config.strict)) {
		pr_err("source %s cannot be used: %s\n", source_name(wanted), why);
		return ret;
	}
	if (ret) {
		pr_warn("source %s cannot be used: %s; using auto\n", source_name(wanted), why);
		ret = source_choose(source, SOURCE_AUTO, &probe, &why);
	}
	if (ret)
		return ret;
	pr_info("source %s%s\n", source_name(source->id), source->exact ? "" : ", inexact");
	if (!source->exact && shp.stage == SHP_STAGE_DUMP)
		pr_warn("without cachestat (Linux 6.5) a page in the swap cache counts as "
			"resident\n");
	return 0;
}

/* Runs when the criu process ends, after the tasks were resumed or killed. */
static void put_back_at_exit(void)
{
	if (shp.owner != getpid() || shp.config.cold_in)
		return;
	replay_put_back(&shp.record, shp.config.window);
	record_free(&shp.record);
}

static int init_dump(void)
{
	static pid_t registered;

	if (choose_source(&shp.record.source))
		return -1;
	/* Handlers are inherited by fork: one a process and its children is enough. */
	if (!registered && atexit(put_back_at_exit)) {
		pr_err("cannot register an exit handler\n");
		return -1;
	}
	registered = getpid();
	return 0;
}

static int init_restore(void)
{
	if (choose_source(&shp.replay.source))
		return -1;
	if (shp.config.cold_in)
		return 0;
	if (replay_load(&shp.replay, criu_get_image_dir(), &shp.config)) {
		pr_err("refusing to restore (CRIU_SHMEM_STRICT=1)\n");
		return -1;
	}
	return 0;
}

static int shp_init(int stage)
{
	int ret;

	record_free(&shp.record);
	objects_free(&shp.replay.objects);
	memset(&shp.replay, 0, sizeof(shp.replay));
	shp.owner = getpid();
	shp.stage = stage;
	shp.hooked = false;
	ret = config_load(&shp.config);
	if (ret && (stage != SHP_STAGE_RESTORE || shp.config.strict))
		return -1;
	return stage == SHP_STAGE_RESTORE ? init_restore() : init_dump();
}

static void shp_exit(int stage, int ret)
{
	if (shp.owner != getpid())
		return;
	if (stage == SHP_STAGE_RESTORE)
		replay_finish(&shp.replay, !ret);
	else if (stage == SHP_STAGE_DUMP && !ret && !shp.hooked)
		pr_warn("nothing was recorded: another plugin took the CHECKPOINT_DEVICES hook "
			"before this one\n");
}

static int write_image(void)
{
	struct image_info info = { .exact = shp.record.source.exact };
	int ret;

	strncpy(info.source, source_name(shp.record.source.id), sizeof(info.source) - 1);
	ret = image_write(criu_get_image_dir(), &shp.record.objects, &info);
	if (ret)
		pr_err("cannot write %s: %s\n", IMAGE_NAME, strerror(-ret));
	return ret;
}

static int shp_checkpoint_devices(int pid)
{
	int ret;

	if (shp.hooked && record_has_task(&shp.record, pid))
		return -ENOTSUP;
	if (shp.hooked)
		ret = record_task(&shp.record, pid);
	else
		ret = record_tree(&shp.record, pid);
	shp.hooked = true;
	if (ret == -ENOMEM) {
		pr_err("task %d: out of memory\n", pid);
		return -1;
	}
	if (ret)
		pr_warn("task %d: nothing recorded: %s\n", pid, strerror(-ret));
	if ((ret || shp.record.failures) && shp.config.strict) {
		pr_err("refusing to dump what could not be recorded (CRIU_SHMEM_STRICT=1)\n");
		return -1;
	}
	return write_image() ? -1 : -ENOTSUP;
}

/* Also called before a dump freezes a task; there CHECKPOINT_DEVICES does the work. */
static int shp_pause_devices(int pid)
{
	if (shp.stage == SHP_STAGE_PRE_DUMP && record_task(&shp.record, pid))
		pr_warn("task %d: nothing recorded: out of memory\n", pid);
	return -ENOTSUP;
}

static int shp_resume_devices_late(int pid)
{
	if (!shp.config.cold_in)
		replay_task(&shp.replay, pid);
	return -ENOTSUP;
}

EXPORT struct shp_plugin_desc CR_PLUGIN_DESC = {
	.name = "shmem_plugin",
	.init = shp_init,
	.exit = shp_exit,
	.version = SHP_PLUGIN_VERSION,
	.max_hooks = SHP_HOOK_MAX,
	.hooks = {
		[SHP_HOOK_RESUME_DEVICES_LATE] = (void *)shp_resume_devices_late,
		[SHP_HOOK_PAUSE_DEVICES] = (void *)shp_pause_devices,
		[SHP_HOOK_CHECKPOINT_DEVICES] = (void *)shp_checkpoint_devices,
	},
};
