// SPDX-License-Identifier: GPL-2.0-only
/*
 * wl_sysv.c - SysV segments in an IPC namespace of its own
 *
 * wl_sysv RUNDIR SIZE [once|twice|detached|many [LAYOUT]]
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "wl.h"

#define MAX_SEGMENTS 3
#define RW (PROT_READ | PROT_WRITE)

static struct wl_object objs[MAX_SEGMENTS] = {
	{ .name = "sysv0", .seed = 303 },
	{ .name = "sysv1", .seed = 304 },
	{ .name = "sysv2", .seed = 305 },
};

/** attach() - shmat or die. Return: address */
static char *attach(int id)
{
	char *addr = shmat(id, NULL, 0);

	if (addr == (char *)-1)
		wl_die("shmat %d", id);
	return addr;
}

/**
 * segment() - Make, fill and page out one segment
 * @obj:	what it holds
 * @attached:	how many times it stays attached
 */
static void segment(struct wl_object *obj, int attached)
{
	int i, id = shmget(IPC_PRIVATE, obj->size, IPC_CREAT | 0600);
	char *addr;

	if (id < 0)
		wl_die("shmget");
	addr = attach(id);
	wl_setup(obj, addr);
	shmdt(addr);
	for (i = 0; i < attached; i++)
		wl_see_map(obj, attach(id), 0, wl_pages(obj), RW);
	if (!attached)
		wl_see_shm(obj, id);
	wl_publish(obj, "shm", id);
}

int main(int argc, char **argv)
{
	const char *mode = wl_arg(argc, argv, 3, "once");
	int i;

	wl_init(wl_arg(argc, argv, 1, "."), "main");
	if (unshare(CLONE_NEWIPC))
		wl_die("unshare");
	for (i = 0; i < MAX_SEGMENTS; i++) {
		objs[i].size = wl_parse_size(wl_arg(argc, argv, 2, "16M"));
		objs[i].layout = wl_arg(argc, argv, 4, "mixed");
	}
	if (!strcmp(mode, "once"))
		segment(&objs[0], 1);
	else if (!strcmp(mode, "twice"))
		segment(&objs[0], 2);
	else if (!strcmp(mode, "detached"))
		segment(&objs[0], 0);
	else
		for (i = 0; i < MAX_SEGMENTS; i++)
			segment(&objs[i], i);
	wl_ready();
	wl_loop();
}
