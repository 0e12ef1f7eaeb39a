/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sample_objects.h - object lists to put into images, and their comparison
 *
 * For the unit tests, the fuzzer and the program that makes its corpus.
 * Functions return false when memory is short.
 */
#ifndef SHP_SAMPLE_OBJECTS_H
#define SHP_SAMPLE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "image.h"
#include "objects.h"

/* What /proc calls every task; an image does not keep it. */
#define SAMPLE_PID 4321

static inline struct shm_object *sample_add(struct shm_objects *objects, enum shm_kind kind,
					    uint64_t ino, uint64_t pages, const char *name)
{
	struct shm_object key = { .kind = kind, .ino = ino }, *object;

	snprintf(key.name, sizeof(key.name), "%s", name);
	if (objects_add(objects, &key, &object))
		return NULL;
	object->size = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	object->recorded = true;
	return object;
}

static inline bool sample_map(struct shm_object *object, pid_t pid, uint64_t start_page,
			      uint64_t pages, uint64_t offset_page, bool locked)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct shm_ref ref = {
		.pid = SAMPLE_PID,
		.image_pid = pid,
		.fd = -1,
		.start = start_page * page,
		.end = (start_page + pages) * page,
		.offset = offset_page * page,
		.locked = locked,
	};

	return !object_add_ref(object, &ref);
}

static inline bool sample_fd(struct shm_object *object, pid_t pid, int fd)
{
	struct shm_ref ref = { .pid = SAMPLE_PID, .image_pid = pid, .fd = fd };

	return !object_add_ref(object, &ref);
}

/* What a small workload might have: every kind, every sort of reference. */
static inline bool sample_fill(struct shm_objects *objects)
{
	struct shm_object *anon, *memfd, *sysv, *detached;

	anon = sample_add(objects, SHM_ANON, 1027, 64, "/dev/zero");
	memfd = sample_add(objects, SHM_MEMFD, 77, 1000, "/memfd:a name");
	sysv = sample_add(objects, SHM_SYSV, 77, 16, "/SYSV0000002a");
	detached = sample_add(objects, SHM_SYSV, 32769, 1, "");
	return anon && memfd && sysv && detached &&
	       sample_map(anon, 1, 0x7f0000000, 64, 0, false) &&
	       !residency_add(&anon->state, 16, PAGE_RESIDENT) &&
	       !residency_add(&anon->state, 40, PAGE_SWAPPED) &&
	       sample_map(memfd, 1, 0x7f0001000, 500, 500, true) &&
	       sample_map(memfd, INT32_MAX, 16, 1, 0, false) && sample_fd(memfd, 1, 0) &&
	       sample_fd(memfd, 12, INT32_MAX) && !residency_add(&memfd->state, 999, PAGE_HOLE) &&
	       !residency_add(&memfd->state, 1, PAGE_SWAPPED) &&
	       sample_map(sysv, 12, 0x7f0002000, 16, 0, false) &&
	       !residency_add(&sysv->state, 1, PAGE_RESIDENT) &&
	       !residency_add(&detached->state, 1, PAGE_SWAPPED);
}

static inline bool sample_same_ref(const struct shm_ref *a, const struct shm_ref *b)
{
	if (a->image_pid != b->image_pid || a->fd != b->fd)
		return false;
	return a->fd >= 0 || (a->start == b->start && a->end == b->end && a->offset == b->offset &&
			      a->locked == b->locked);
}

static inline bool sample_same_object(const struct shm_object *a, const struct shm_object *b)
{
	if (a->kind != b->kind || a->ino != b->ino || a->size != b->size ||
	    strcmp(a->name, b->name) || a->nr_refs != b->nr_refs || a->recorded != b->recorded ||
	    a->state.nr != b->state.nr || a->state.pages != b->state.pages ||
	    memcmp(a->state.count, b->state.count, sizeof(a->state.count)))
		return false;
	for (size_t i = 0; i < a->nr_refs; i++)
		if (!sample_same_ref(&a->ref[i], &b->ref[i]))
			return false;
	return !a->state.nr ||
	       !memcmp(a->state.run, b->state.run, a->state.nr * sizeof(*a->state.run));
}

/* Everything that an image keeps. */
static inline bool sample_same(const struct shm_objects *a, const struct shm_objects *b)
{
	if (a->nr != b->nr)
		return false;
	for (size_t i = 0; i < a->nr; i++)
		if (!sample_same_object(a->object[i], b->object[i]))
			return false;
	return true;
}

#endif
