// SPDX-License-Identifier: GPL-2.0-only
/*
 * sysv.c - SysV segments that no task has attached
 *
 * The calling thread enters the task's IPC namespace, does one thing and goes
 * back, as CRIU does for its own dump. /proc/self/map_files then gives a
 * descriptor of the segment that outlives the attachment.
 */
#include "sysv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <unistd.h>

#include "log.h"
#include "proc.h"

struct ipc_visit {
	int home; /* our own namespace */
};

static int ipc_enter(struct ipc_visit *visit, pid_t pid)
{
	int target, ret = 0;

	target = proc_open(pid, O_RDONLY, "ns/ipc");
	if (target < 0)
		return target;
	visit->home = proc_open(PROC_SELF, O_RDONLY, "ns/ipc");
	if (visit->home < 0) {
		ret = visit->home;
	} else if (setns(target, CLONE_NEWIPC)) {
		ret = -errno;
		close(visit->home);
	}
	close(target);
	return ret;
}

/* CRIU must not go on in a foreign namespace: there is no way to continue. */
static void ipc_leave(struct ipc_visit *visit)
{
	if (setns(visit->home, CLONE_NEWIPC)) {
		pr_err("cannot return to the own IPC namespace: %s\n", strerror(errno));
		abort();
	}
	close(visit->home);
}

static int rmid_forced(void)
{
	int fd = open("/proc/sys/kernel/shm_rmid_forced", O_RDONLY | O_CLOEXEC);
	char digit = '0';
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	n = read(fd, &digit, 1);
	close(fd);
	if (n != 1)
		return -EIO;
	return digit != '0';
}

static int for_each_id(sysv_fn fn, void *arg)
{
	struct shm_info info;
	struct shmid_ds ds;
	int max, ret = 0;

	max = shmctl(0, SHM_INFO, (void *)&info);
	if (max < 0)
		return -errno;
	for (int i = 0; !ret && i <= max; i++) {
		int id = shmctl(i, SHM_STAT, &ds);

		if (id >= 0)
			ret = fn(id, arg);
		else if (errno != EINVAL && errno != EIDRM)
			ret = -errno;
	}
	return ret;
}

/**
 * sysv_for_each() - List the segments of a task's IPC namespace
 * @pid:	the task
 * @fn:		called with each id, inside that namespace
 * @arg:	for it
 *
 * Return: 0 on success, what @fn returned, negative error code
 */
int sysv_for_each(pid_t pid, sysv_fn fn, void *arg)
{
	struct ipc_visit visit;
	int ret;

	ret = ipc_enter(&visit, pid);
	if (ret)
		return ret;
	ret = for_each_id(fn, arg);
	ipc_leave(&visit);
	return ret;
}

struct find_mapping {
	uint64_t start;
	uint64_t end;
};

static int match_start(const struct proc_vma *vma, void *arg)
{
	struct find_mapping *find = arg;

	if (vma->start != find->start)
		return 0;
	find->end = vma->end;
	return 1;
}

static int open_mapping(const void *address)
{
	struct find_mapping find = { .start = (uintptr_t)address };
	int ret;

	ret = proc_for_each_vma(PROC_SELF, PROC_MAPS, match_start, &find);
	if (ret != 1)
		return ret < 0 ? ret : -ENOENT;
	return proc_open(PROC_SELF, O_RDONLY, "map_files/%" PRIx64 "-%" PRIx64, find.start,
			 find.end);
}

static int attach(int id, void **address)
{
	int ret = rmid_forced();

	if (ret)
		return ret < 0 ? ret : -EBUSY;
	*address = shmat(id, NULL, SHM_RDONLY);
	return *address == (void *)-1 ? -errno : 0;
}

/**
 * sysv_open() - Descriptor of a segment
 * @pid:	a task of its IPC namespace
 * @id:		the segment
 *
 * Return: read-only descriptor, -EBUSY where attaching would destroy it, other
 *	   negative error code
 */
int sysv_open(pid_t pid, int id)
{
	struct ipc_visit visit;
	void *address;
	int fd;

	fd = ipc_enter(&visit, pid);
	if (fd)
		return fd;
	fd = attach(id, &address);
	ipc_leave(&visit);
	if (fd)
		return fd;
	fd = open_mapping(address);
	if (shmdt(address))
		pr_warn("SysV segment %d: cannot detach: %s\n", id, strerror(errno));
	return fd;
}
