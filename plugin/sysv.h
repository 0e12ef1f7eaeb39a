/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sysv.h - SysV segments that no task has attached
 *
 * Such a segment is reached by attaching it from inside its IPC namespace for
 * a moment. With kernel.shm_rmid_forced that would destroy it, so it is
 * refused there (-EBUSY).
 */
#ifndef SHP_SYSV_H
#define SHP_SYSV_H

#include <sys/types.h>

typedef int (*sysv_fn)(int id, void *arg);

int sysv_for_each(pid_t pid, sysv_fn fn, void *arg);
int sysv_open(pid_t pid, int id);

#endif
