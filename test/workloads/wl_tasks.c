// SPDX-License-Identifier: GPL-2.0-only
/*
 * wl_tasks.c - several tasks and the objects they share
 *
 * wl_tasks RUNDIR SIZE [MODE [LAYOUT]]
 *
 * forked	two children of a task that has filled an anonymous mapping; one
 *		reads the hot pages, the other reads none: fork copied no PTEs
 * unrelated	two tasks map one memfd at other addresses and other offsets
 * childmap	the parent fills a memfd and unmaps it, only the child maps it
 * gone		a child that is gone filled an anonymous mapping
 * gonefd	a child that is gone filled a memfd that nobody maps
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wl.h"

#define RW (PROT_READ | PROT_WRITE)

static struct wl_object obj = { .name = "shared", .seed = 404 };

/**
 * spawn() - Fork a task of the workload
 * @task:	its name
 *
 * Return: true in the child
 */
static bool spawn(const char *task)
{
	pid_t pid = fork();

	if (pid < 0)
		wl_die("fork");
	if (pid == 0) {
		wl_forget_views();
		wl_become(task);
		return true;
	}
	return false;
}

/** serve() - A child is set up */
static void serve(const char *task)
{
	wl_child_ready(task);
	wl_loop();
}

/** read_hot() - Touch the hot pages, to have their PTEs */
static void read_hot(char *addr, size_t first, size_t pages)
{
	volatile char sink;
	size_t i;

	for (i = 0; i < pages; i++) {
		if (wl_plan(&obj, first + i) == WL_HOT)
			sink = addr[i * wl_page()];
	}
	(void)sink;
}

/** fill_in_child() - Let a child that ends fill and page out a mapping */
static void fill_in_child(char *addr)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		wl_die("fork");
	if (pid == 0) {
		wl_setup(&obj, addr);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		wl_die("the child that fills failed");
}

static void mode_forked(void)
{
	size_t pages = wl_pages(&obj);
	char *addr = wl_map_anon(obj.size);

	wl_setup(&obj, addr);
	wl_see_map(&obj, addr, 0, pages, RW);
	wl_publish(&obj, "map", (uint64_t)addr);
	if (spawn("reader")) {
		read_hot(addr, 0, pages);
		wl_see_map(&obj, addr, 0, pages, RW);
		serve("reader");
	}
	if (spawn("idle")) {
		wl_see_map(&obj, addr, 0, pages, RW);
		serve("idle");
	}
	wl_wait_child("reader");
	wl_wait_child("idle");
}

static void mode_unrelated(void)
{
	size_t pages = wl_pages(&obj), half = pages / 2;
	int fd = wl_memfd("unrelated", obj.size, 0);
	char *addr = wl_map_fd(fd, obj.size, 0, RW);

	wl_setup(&obj, addr);
	munmap(addr, obj.size);
	if (spawn("upper")) {
		wl_map_anon(3 * wl_page());
		addr = wl_map_fd(fd, half * wl_page(), half * wl_page(), RW);
		read_hot(addr, half, half);
		wl_see_map(&obj, addr, half, half, RW);
		close(fd);
		serve("upper");
	}
	addr = wl_map_fd(fd, half * wl_page(), 0, RW);
	wl_see_map(&obj, addr, 0, half, RW);
	wl_publish(&obj, "map", (uint64_t)addr);
	close(fd);
	wl_wait_child("upper");
}

static void mode_childmap(void)
{
	int fd = wl_memfd("childmap", obj.size, 0);
	char *addr = wl_map_fd(fd, obj.size, 0, RW);

	wl_setup(&obj, addr);
	munmap(addr, obj.size);
	wl_see_fd(&obj, fd);
	wl_publish(&obj, "fd", fd);
	if (spawn("child")) {
		addr = wl_map_fd(fd, obj.size, 0, RW);
		wl_see_map(&obj, addr, 0, wl_pages(&obj), RW);
		close(fd);
		serve("child");
	}
	wl_wait_child("child");
}

static void mode_gone(void)
{
	char *addr = wl_map_anon(obj.size);

	fill_in_child(addr);
	wl_see_map(&obj, addr, 0, wl_pages(&obj), RW);
	wl_publish(&obj, "map", (uint64_t)addr);
}

static void mode_gonefd(void)
{
	int fd = wl_memfd("gonefd", obj.size, 0);
	char *addr = wl_map_fd(fd, obj.size, 0, RW);

	fill_in_child(addr);
	munmap(addr, obj.size);
	wl_see_fd(&obj, fd);
	wl_publish(&obj, "fd", fd);
}

static const struct {
	const char *name;
	void (*fn)(void);
} modes[] = {
	{ "forked", mode_forked }, { "unrelated", mode_unrelated }, { "childmap", mode_childmap },
	{ "gone", mode_gone },	   { "gonefd", mode_gonefd },
};

int main(int argc, char **argv)
{
	const char *mode = wl_arg(argc, argv, 3, "forked");
	size_t i, nr = sizeof(modes) / sizeof(modes[0]);

	wl_init(wl_arg(argc, argv, 1, "."), "main");
	obj.size = wl_parse_size(wl_arg(argc, argv, 2, "16M"));
	obj.layout = wl_arg(argc, argv, 4, "mixed");
	for (i = 0; i < nr && strcmp(modes[i].name, mode); i++)
		;
	if (i == nr)
		wl_die("no mode %s", mode);
	modes[i].fn();
	wl_ready();
	wl_loop();
}
