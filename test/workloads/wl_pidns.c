// SPDX-License-Identifier: GPL-2.0-only
/*
 * wl_pidns.c - a task that is pid 1 of a pid namespace of its own
 *
 * wl_pidns RUNDIR SIZE [LAYOUT]
 *
 * The starter writes the pid that the driver can use into RUNDIR/rootpid and
 * ends.
 */
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wl.h"

#define RW (PROT_READ | PROT_WRITE)

static struct wl_object anon = { .name = "anon", .seed = 601 };
static struct wl_object memfd = { .name = "memfd", .seed = 602 };

/** init_task() - What pid 1 does */
static void init_task(void)
{
	char *addr;
	int fd;

	wl_become("main");
	if (setsid() < 0)
		wl_die("namespaces");
	addr = wl_map_anon(anon.size);
	wl_setup(&anon, addr);
	wl_see_map(&anon, addr, 0, wl_pages(&anon), RW);
	wl_publish(&anon, "map", (uint64_t)addr);

	fd = wl_memfd("pidns", memfd.size, 0);
	addr = wl_map_fd(fd, memfd.size, 0, RW);
	wl_setup(&memfd, addr);
	munmap(addr, memfd.size);
	wl_see_fd(&memfd, fd);
	wl_publish(&memfd, "fd", fd);
	wl_ready();
	wl_loop();
}

int main(int argc, char **argv)
{
	pid_t pid;

	wl_init(wl_arg(argc, argv, 1, "."), "main");
	anon.size = memfd.size = wl_parse_size(wl_arg(argc, argv, 2, "16M"));
	anon.layout = memfd.layout = wl_arg(argc, argv, 3, "mixed");
	if (unshare(CLONE_NEWPID))
		wl_die("unshare");
	pid = fork();
	if (pid < 0)
		wl_die("fork");
	if (pid == 0)
		init_task();
	wl_write("rootpid", "%d\n", (int)pid);
	return 0;
}
