/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * proc.h - what /proc tells about a task
 *
 * Functions return 0 or a negative error code without a message: the caller
 * knows what it was for. A task that has gone is -ESRCH or -ENOENT.
 * Relies on Documentation/filesystems/proc.rst (maps, smaps, status).
 */
#ifndef SHP_PROC_H
#define SHP_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Stands for the calling process, whatever PID namespace /proc belongs to. */
#define PROC_SELF 0

struct proc_status {
	pid_t image_pid; /* innermost pid: the name CRIU's images use */
	uint64_t locked; /* bytes mlocked; 0: no need to look for them */
	bool dying;	 /* killed or exiting: its memory is on the way out */
};

struct proc_vma {
	uint64_t start; /* address, bytes */
	uint64_t end;
	uint64_t offset; /* of start in the file, bytes */
	uint64_t ino;
	dev_t dev;
	bool shared;
	bool locked;	  /* only told by PROC_SMAPS */
	const char *path; /* "" when anonymous; valid during the call only */
};

struct proc_pids {
	pid_t *pid; /* owned */
	size_t nr;
	size_t cap;
};

enum proc_maps {
	PROC_MAPS,
	PROC_SMAPS, /* slower: walks page tables; tells locked */
};

typedef int (*proc_vma_fn)(const struct proc_vma *vma, void *arg);

int proc_open(pid_t pid, int flags, const char *format, ...) __attribute__((format(printf, 3, 4)));
int proc_status(pid_t pid, struct proc_status *status);
int proc_for_each_vma(pid_t pid, enum proc_maps maps, proc_vma_fn fn, void *arg);
int proc_tree(pid_t root, struct proc_pids *pids);
int proc_pids_add(struct proc_pids *pids, pid_t pid);
void proc_pids_free(struct proc_pids *pids);
int proc_ns_ino(pid_t pid, const char *ns, uint64_t *ino);
int proc_fs_type(pid_t pid, dev_t dev, char *type, size_t size);

#endif
