/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * objects.h - the shmem objects of tasks, and how to reach them
 *
 * An object is one shmem inode on the kernel's internal tmpfs: anonymous
 * MAP_SHARED memory, a memfd or a SysV segment. A reference says how a task
 * reaches it. Inode numbers of SysV segments are their ids, so an object is
 * named by kind and inode number; ids of different IPC namespaces are told
 * apart by the namespace.
 *
 * Sizes and offsets are in bytes, residency is in pages.
 */
#ifndef SHP_OBJECTS_H
#define SHP_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "residency.h"

enum shm_kind {
	SHM_ANON = 1,
	SHM_MEMFD = 2,
	SHM_SYSV = 3,
};

struct shm_ref {
	pid_t pid;	 /* as this /proc names it; 0 when only in an image */
	pid_t image_pid; /* as CRIU's images name it */
	int fd;		 /* of that task; -1: a mapping */
	uint64_t start;	 /* mapping: addresses */
	uint64_t end;
	uint64_t offset; /* of start in the object */
	bool locked;	 /* mlocked mapping */
};

struct shm_object {
	enum shm_kind kind;
	uint64_t ino;	     /* CRIU's shmid */
	uint64_t ipc_ns;     /* SysV: the namespace, else 0 */
	uint64_t size;	     /* known once opened or read from an image */
	char name[64];	     /* for messages; cut when longer */
	struct shm_ref *ref; /* owned; none: SysV segment attached nowhere */
	size_t nr_refs;
	size_t cap_refs;
	struct residency state; /* as recorded */
	bool recorded;
	bool done; /* the caller's: handled */
};

struct shm_objects {
	struct shm_object **object; /* owned, in order of discovery */
	size_t nr;
	size_t cap;
	void *by_name;	  /* tsearch(3) tree over object[] */
	void *left_alone; /* tsearch(3) tree: what was logged */
	pid_t ipc_pid;	  /* a task in the IPC namespace of detached segments */
	dev_t dev;	  /* of the internal tmpfs, 0: not known yet */
};

const char *shm_kind_name(enum shm_kind kind);
uint64_t shm_pages(uint64_t bytes);
void shm_plain_text(char *text);

int objects_add_task(struct shm_objects *objects, pid_t pid);
int objects_add_detached(struct shm_objects *objects, pid_t pid);
int objects_add(struct shm_objects *objects, const struct shm_object *key,
		struct shm_object **object);
int object_add_ref(struct shm_object *object, const struct shm_ref *ref);
void objects_free(struct shm_objects *objects);

int object_open(struct shm_objects *objects, struct shm_object *object);
int object_open_ref(const struct shm_objects *objects, const struct shm_ref *ref);
int objects_dev(struct shm_objects *objects);

#endif
