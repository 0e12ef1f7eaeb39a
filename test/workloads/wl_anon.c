// SPDX-License-Identifier: GPL-2.0-only
/*
 * wl_anon.c - one task with one anonymous MAP_SHARED mapping
 *
 * wl_anon RUNDIR SIZE [LAYOUT]
 */
#include <sys/mman.h>

#include "wl.h"

int main(int argc, char **argv)
{
	static struct wl_object obj = { .name = "anon", .seed = 101 };
	char *addr;

	wl_init(wl_arg(argc, argv, 1, "."), "main");
	obj.size = wl_parse_size(wl_arg(argc, argv, 2, "16M"));
	obj.layout = wl_arg(argc, argv, 3, "mixed");
	addr = wl_map_anon(obj.size);
	wl_setup(&obj, addr);
	wl_see_map(&obj, addr, 0, wl_pages(&obj), PROT_READ | PROT_WRITE);
	wl_publish(&obj, "map", (uint64_t)addr);
	wl_ready();
	wl_loop();
}
