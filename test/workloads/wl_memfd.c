// SPDX-License-Identifier: GPL-2.0-only
/*
 * wl_memfd.c - one task with a memfd, mapped in many ways or not at all
 *
 * wl_memfd RUNDIR SIZE [MODE [LAYOUT]]
 *
 * The object is filled and its cold pages are paged out through one mapping
 * of all of it.  That mapping goes away, and the mappings of the mode come.
 */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wl.h"

#define RW (PROT_READ | PROT_WRITE)

static struct wl_object obj = { .name = "memfd", .seed = 202 };

/**
 * see() - Map a range of the memfd and remember it for verify
 * @fd:		memfd
 * @first:	first page
 * @pages:	how many
 * @prot:	protection
 *
 * Return: address
 */
static char *see(int fd, size_t first, size_t pages, int prot)
{
	char *addr = wl_map_fd(fd, pages * wl_page(), first * wl_page(), prot);

	wl_see_map(&obj, addr, first, pages, prot);
	return addr;
}

/** see_fd() - Verify by the descriptor too */
static void see_fd(int fd)
{
	wl_see_fd(&obj, fd);
}

static void mode_whole(int fd)
{
	see(fd, 0, wl_pages(&obj), RW);
}

static void mode_part(int fd)
{
	see(fd, 0, wl_pages(&obj) / 4, RW);
	see_fd(fd);
}

static void mode_offset(int fd)
{
	see(fd, wl_pages(&obj) / 2, wl_pages(&obj) / 4, RW);
	see_fd(fd);
}

static void mode_twice(int fd)
{
	see(fd, 0, wl_pages(&obj), RW);
	see(fd, wl_pages(&obj) / 4, wl_pages(&obj) / 2, PROT_READ);
}

static void mode_none(int fd)
{
	char *addr = wl_map_fd(fd, obj.size, 0, RW);

	if (mprotect(addr, obj.size, PROT_NONE))
		wl_die("mprotect");
	wl_see_map(&obj, addr, 0, wl_pages(&obj), PROT_NONE);
}

static void mode_readonly(int fd)
{
	see(fd, 0, wl_pages(&obj), PROT_READ);
}

static void mode_sealed(int fd)
{
	see(fd, 0, wl_pages(&obj), RW);
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK))
		wl_die("seals");
	see_fd(fd);
}

static void mode_wsealed(int fd)
{
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK))
		wl_die("seals");
	see_fd(fd);
}

static const struct {
	const char *name;
	void (*fn)(int fd);
} modes[] = {
	{ "whole", mode_whole },   { "part", mode_part },	{ "offset", mode_offset },
	{ "twice", mode_twice },   { "none", mode_none },	{ "readonly", mode_readonly },
	{ "sealed", mode_sealed }, { "wsealed", mode_wsealed }, { "fdonly", see_fd },
};

/** enter_mode() - Map as the mode says */
static void enter_mode(const char *name, int fd)
{
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(modes[i].name, name)) {
			modes[i].fn(fd);
			return;
		}
	}
	wl_die("no mode %s", name);
}

int main(int argc, char **argv)
{
	char *addr;
	int fd;

	wl_init(wl_arg(argc, argv, 1, "."), "main");
	obj.size = wl_parse_size(wl_arg(argc, argv, 2, "16M"));
	obj.layout = wl_arg(argc, argv, 4, "mixed");
	fd = wl_memfd("wl", obj.size, MFD_ALLOW_SEALING);
	addr = wl_map_fd(fd, obj.size, 0, RW);
	wl_setup(&obj, addr);
	munmap(addr, obj.size);
	enter_mode(wl_arg(argc, argv, 3, "whole"), fd);
	wl_publish(&obj, "fd", fd);
	wl_ready();
	wl_loop();
}
