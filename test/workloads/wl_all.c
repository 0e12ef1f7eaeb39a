// SPDX-License-Identifier: GPL-2.0-only
/*
 * wl_all.c - objects of all kinds in two tasks, optionally one too many
 *
 * wl_all RUNDIR SIZE [dumpable|external [LAYOUT]]
 *
 * external	a task outside of the tree holds the other end of a socket: CRIU
 *		refuses that at the end of a dump, when all has been read
 */
#include <sched.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wl.h"

#define RW (PROT_READ | PROT_WRITE)
#define NR_MEMFDS 4

static struct wl_object anon = { .name = "anon", .seed = 801 };
static struct wl_object segment = { .name = "segment", .seed = 802 };
static struct wl_object child_anon = { .name = "child-anon", .seed = 803 };
static struct wl_object memfds[NR_MEMFDS] = {
	{ .name = "memfd0", .seed = 810 },
	{ .name = "memfd1", .seed = 811 },
	{ .name = "memfd2", .seed = 812 },
	{ .name = "memfd3", .seed = 813 },
};

/** make_anon() - An anonymous mapping */
static void make_anon(struct wl_object *obj)
{
	char *addr = wl_map_anon(obj->size);

	wl_setup(obj, addr);
	wl_see_map(obj, addr, 0, wl_pages(obj), RW);
	wl_publish(obj, "map", (uint64_t)addr);
}

/** make_memfd() - A memfd, the odd ones without a mapping */
static void make_memfd(struct wl_object *obj, bool mapped)
{
	int fd = wl_memfd(obj->name, obj->size, 0);
	char *addr = wl_map_fd(fd, obj->size, 0, RW);

	wl_setup(obj, addr);
	wl_publish(obj, "fd", fd);
	if (mapped) {
		wl_see_map(obj, addr, 0, wl_pages(obj), RW);
		return;
	}
	munmap(addr, obj->size);
	wl_see_fd(obj, fd);
}

/** make_segment() - A SysV segment, attached */
static void make_segment(struct wl_object *obj)
{
	int id = shmget(IPC_PRIVATE, obj->size, IPC_CREAT | 0600);
	char *addr = shmat(id, NULL, 0);

	if (addr == (char *)-1)
		wl_die("shmat");
	wl_setup(obj, addr);
	wl_see_map(obj, addr, 0, wl_pages(obj), RW);
	wl_publish(obj, "shm", id);
}

/** hold_end() - Be outside of the tree and hold a socket till the other end is gone */
static void hold_end(int fd)
{
	char c;

	while (read(fd, &c, 1) > 0)
		;
	_exit(0);
}

/** make_external() - Give the other end of a socket to a task outside */
static void make_external(void)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		wl_die("socketpair");
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		if (fork() == 0)
			hold_end(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		wl_die("cannot leave a task outside");
}

/** spawn_child() - A second task with an object of its own */
static void spawn_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		wl_die("fork");
	if (pid == 0) {
		wl_forget_views();
		wl_become("child");
		make_anon(&child_anon);
		wl_child_ready("child");
		wl_loop();
	}
	wl_wait_child("child");
}

int main(int argc, char **argv)
{
	size_t size = wl_parse_size(wl_arg(argc, argv, 2, "4M"));
	const char *layout = wl_arg(argc, argv, 4, "mixed");
	int i;

	wl_init(wl_arg(argc, argv, 1, "."), "main");
	anon.size = segment.size = child_anon.size = size;
	anon.layout = segment.layout = child_anon.layout = layout;
	if (unshare(CLONE_NEWIPC))
		wl_die("unshare");
	spawn_child();
	make_anon(&anon);
	for (i = 0; i < NR_MEMFDS; i++) {
		memfds[i].size = size;
		memfds[i].layout = layout;
		make_memfd(&memfds[i], i % 2 == 0);
	}
	make_segment(&segment);
	if (!strcmp(wl_arg(argc, argv, 3, "dumpable"), "external"))
		make_external();
	wl_ready();
	wl_loop();
}
