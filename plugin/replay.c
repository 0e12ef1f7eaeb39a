// SPDX-License-Identifier: GPL-2.0-only
/*
 * replay.c - put what was swapped out again
 *
 * Theory of operation, restore: CRIU has filled every object and the tasks
 * stand still. Each task is looked up in the image by the pid that the image
 * knows; its references lead to the objects, each of which is handled once, by
 * the first task that has it. Inode numbers are new, so an object is addressed
 * by a mapping or a descriptor. Nothing here can fail the restore: the content
 * is in place, and what stays in RAM is a warning.
 *
 * Dump: the record has live references; the tasks are left alone when all of
 * them are dead or dying.
 */
#include "replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "criu_images.h"
#include "log.h"
#include "pageout.h"
#include "proc.h"
#include "sysv.h"

static bool is_cold(const struct shm_object *object)
{
	return object->state.count[PAGE_SWAPPED] > 0;
}

static void warn_object(const struct shm_object *object, const char *what, const char *why)
{
	pr_warn("%s %#" PRIx64 " (%s): %s: %s\n", shm_kind_name(object->kind), object->ino,
		object->name, what, why);
}

/* Pages out one object and says what came of it. */
static void page_out(struct pageout *po, const struct shm_object *object, int fd)
{
	uint64_t out = po->out, left = po->left;
	int ret;

	po->unsure = false;
	ret = pageout_object(po, object, fd);
	if (ret) {
		warn_object(object, "cold pages stay in RAM", strerror(-ret));
		return;
	}
	out = po->out - out;
	left = po->left - left;
	if (left)
		pr_warn("%s %#" PRIx64 " (%s): %" PRIu64 " of %" PRIu64
			" cold pages stay in RAM: %s\n",
			shm_kind_name(object->kind), object->ino, object->name, left,
			object->state.count[PAGE_SWAPPED], po->why);
	else if (po->unsure)
		warn_object(object, "some cold pages may stay in RAM", "swap is full");
	else
		pr_info("%s %#" PRIx64 " (%s): %" PRIu64 " cold pages put out\n",
			shm_kind_name(object->kind), object->ino, object->name, out);
}

/* Restore */

struct load_check {
	unsigned int mismatches;
};

static void ignore_object(struct shm_object *object, const struct image_error *error, void *arg)
{
	struct load_check *check = arg;

	pr_warn("%s: %s %#" PRIx64 " (%s) is ignored: %s\n", IMAGE_NAME,
		shm_kind_name(object->kind), object->ino, object->name, error->text);
	object->done = true;
	check->mismatches++;
}

/* What does not fit is a warning object by object later, unless it is refused now. */
static int check_swap(const struct replay *replay, bool strict)
{
	uint64_t cold = 0, total, free, page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < replay->objects.nr; i++)
		if (!replay->objects.object[i]->done)
			cold += replay->objects.object[i]->state.count[PAGE_SWAPPED];
	probe_swap(&total, &free);
	if (!cold || free / page >= cold)
		return 0;
	if (!total)
		pr_warn("%" PRIu64 " cold pages stay in RAM: there is no swap\n", cold);
	else
		log_at(strict ? LOG_WARN : LOG_INFO,
		       "%" PRIu64 " cold pages are to go out, swap has room for %" PRIu64 "\n",
		       cold, free / page);
	return total ? -ENOSPC : -ENODEV;
}

static void ignore_all(struct replay *replay)
{
	for (size_t i = 0; i < replay->objects.nr; i++)
		replay->objects.object[i]->done = true;
}

/**
 * replay_load() - Read the residency image and compare it with CRIU's images
 * @replay:	source must be chosen, the rest empty
 * @dir:	images directory
 * @config:	strict and window are used
 *
 * Return: 0 on success, also with a warning for what is ignored; with strict a
 *	   negative error code instead
 */
int replay_load(struct replay *replay, int dir, const struct config *config)
{
	struct load_check check = { 0 };
	struct image_error error;
	int ret;

	replay->window = config->window;
	ret = image_read(dir, &replay->objects, &replay->info, &error);
	if (ret) {
		pr_warn("%s: %s: all shared memory comes back resident\n", IMAGE_NAME, error.text);
		return config->strict ? ret : 0;
	}
	ret = criu_images_check(dir, &replay->objects, ignore_object, &check);
	if (!ret && check.mismatches)
		ret = -ESTALE;
	if (ret && config->strict)
		return ret;
	for (size_t i = 0; i < replay->objects.nr; i++)
		if (!is_cold(replay->objects.object[i]))
			replay->objects.object[i]->done = true;
	ret = check_swap(replay, config->strict);
	if (ret == -ENODEV)
		ignore_all(replay);
	return config->strict ? ret : 0;
}

/* Where a mapping of the image is now: neighbours may have been merged. */
struct find_vma {
	dev_t dev;
	const struct shm_ref *wanted;
	struct shm_ref *found;
};

static int match_vma(const struct proc_vma *vma, void *arg)
{
	struct find_vma *find = arg;
	const struct shm_ref *wanted = find->wanted;

	if (vma->end <= wanted->start)
		return 0;
	if (vma->start > wanted->start || vma->dev != find->dev ||
	    vma->offset + (wanted->start - vma->start) != wanted->offset)
		return -ESTALE;
	find->found->start = vma->start;
	find->found->end = vma->end;
	return 1;
}

static int open_restored_ref(struct replay *replay, const struct shm_ref *ref, pid_t pid)
{
	struct shm_ref now = *ref;
	struct find_vma find = { replay->objects.dev, ref, &now };
	int ret;

	now.pid = pid;
	if (ref->fd < 0) {
		ret = proc_for_each_vma(pid, PROC_MAPS, match_vma, &find);
		if (ret != 1)
			return ret ? ret : -ESTALE;
	}
	return object_open_ref(&replay->objects, &now);
}

static int check_size(const struct shm_object *object, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return (uint64_t)st.st_size == object->size ? 0 : -ESTALE;
}

static void replay_object(struct replay *replay, struct shm_object *object, int fd)
{
	struct pageout po = {
		.source = &replay->source,
		.window = replay->window,
		.keep_locked = true,
	};
	int ret;

	object->done = true;
	ret = check_size(object, fd);
	if (ret) {
		warn_object(object, "cold pages stay in RAM",
			    ret == -ESTALE ? "its size is not what " IMAGE_NAME " says"
					   : strerror(-ret));
		return;
	}
	if (!replay->drained)
		pageout_drain_lru();
	replay->drained = true;
	page_out(&po, object, fd);
	replay->out += po.out;
	replay->left += po.left;
}

static void replay_refs(struct replay *replay, struct shm_object *object, pid_t pid,
			pid_t image_pid)
{
	for (size_t i = 0; i < object->nr_refs; i++) {
		int fd;

		if (object->ref[i].image_pid != image_pid)
			continue;
		fd = open_restored_ref(replay, &object->ref[i], pid);
		if (fd < 0) {
			pr_debug("task %d: cannot open %s %#" PRIx64 ": %s\n", (int)pid,
				 shm_kind_name(object->kind), object->ino, strerror(-fd));
			continue;
		}
		replay_object(replay, object, fd);
		close(fd);
		return;
	}
}

static void replay_detached(struct replay *replay, struct shm_object *object, pid_t pid)
{
	int fd = sysv_open(pid, (int)object->ino);

	if (fd < 0) {
		object->done = true;
		warn_object(object, "cold pages stay in RAM",
			    fd == -EBUSY ? "kernel.shm_rmid_forced is set" : strerror(-fd));
		return;
	}
	replay_object(replay, object, fd);
	close(fd);
}

/**
 * replay_task() - Put out the cold pages of the objects that a task has
 * @replay:	loaded
 * @pid:	restored task, standing still
 */
void replay_task(struct replay *replay, pid_t pid)
{
	struct proc_status status;
	int ret;

	replay->tasks++;
	if (!replay->objects.nr)
		return;
	ret = objects_dev(&replay->objects);
	if (!ret)
		ret = proc_status(pid, &status);
	if (ret) {
		pr_warn("task %d: its cold pages stay in RAM: %s\n", (int)pid, strerror(-ret));
		return;
	}
	for (size_t i = 0; i < replay->objects.nr; i++) {
		struct shm_object *object = replay->objects.object[i];

		if (object->done)
			continue;
		if (object->nr_refs)
			replay_refs(replay, object, pid, status.image_pid);
		else if (replay->tasks == 1)
			replay_detached(replay, object, pid);
	}
}

/**
 * replay_finish() - Say what was not reached
 * @replay:	freed
 * @restored:	the restore succeeded
 */
void replay_finish(struct replay *replay, bool restored)
{
	size_t missed = 0;

	for (size_t i = 0; restored && i < replay->objects.nr; i++) {
		const struct shm_object *object = replay->objects.object[i];

		if (object->done)
			continue;
		missed++;
		if (replay->tasks)
			warn_object(object, "cold pages stay in RAM",
				    "no restored task leads to it");
	}
	if (missed && !replay->tasks)
		pr_warn("cold pages stay in RAM: another plugin took the RESUME_DEVICES_LATE hook "
			"before this one\n");
	if (restored && (replay->out || replay->left))
		pr_info("%" PRIu64 " cold pages put out, %" PRIu64 " stay in RAM\n", replay->out,
			replay->left);
	objects_free(&replay->objects);
}

/* Dump */

static bool anyone_lives(const struct record *record)
{
	struct proc_status status;

	for (size_t i = 0; i < record->tasks.nr; i++)
		if (!proc_status(record->tasks.pid[i], &status) && !status.dying)
			return true;
	return false;
}

/**
 * replay_put_back() - Put out again what a dump has brought in
 * @record:	what was swapped before
 * @window:	bytes
 *
 * Does nothing when the tasks have died with the dump.
 */
void replay_put_back(struct record *record, uint64_t window)
{
	struct pageout po = { .source = &record->source, .window = window };

	if (!record_cold_pages(record) || !anyone_lives(record))
		return;
	pageout_drain_lru();
	for (size_t i = 0; i < record->objects.nr; i++) {
		struct shm_object *object = record->objects.object[i];
		uint64_t size = object->size;
		int fd;

		if (!object->recorded || !is_cold(object))
			continue;
		fd = object_open(&record->objects, object);
		if (fd < 0) {
			pr_info("%s %#" PRIx64 " (%s) has gone: %s\n", shm_kind_name(object->kind),
				object->ino, object->name, strerror(-fd));
			continue;
		}
		if (object->size == size)
			page_out(&po, object, fd);
		close(fd);
	}
	pr_info("%" PRIu64 " cold pages put out again, %" PRIu64 " stay in RAM\n", po.out, po.left);
}
