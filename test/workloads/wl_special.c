// SPDX-License-Identifier: GPL-2.0-only
/*
 * wl_special.c - memory that the plugin leaves alone, beside some that it does not
 *
 * wl_special RUNDIR SIZE hugetlb|mlock|tmpfs|private [LAYOUT [FILE]]
 *
 * hugetlb	a memfd of huge pages (published to nobody: cachestat(2) cannot
 *		look into it)
 * mlock	an anonymous shared mapping, locked
 * tmpfs	a shared mapping of FILE, which is on a tmpfs
 * private	a memfd, mapped private, with private copies of some pages
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wl.h"

#define RW (PROT_READ | PROT_WRITE)
#define HUGE_SIZE (4UL << 20)
#define COPY_EVERY 7

static struct wl_object plain = { .name = "plain", .seed = 501 };
static struct wl_object special = { .name = "special", .seed = 502 };
static char *copies;

/** plain_object() - An ordinary anonymous mapping beside the special one */
static void plain_object(void)
{
	char *addr = wl_map_anon(plain.size);

	wl_setup(&plain, addr);
	wl_see_map(&plain, addr, 0, wl_pages(&plain), RW);
	wl_publish(&plain, "map", (uint64_t)addr);
}

static void mode_hugetlb(void)
{
	char *addr;
	int fd;

	special.size = HUGE_SIZE;
	special.layout = "hot";
	fd = wl_memfd("huge", special.size, MFD_HUGETLB);
	addr = wl_map_fd(fd, special.size, 0, RW);
	wl_fill(&special, addr, 0, wl_pages(&special));
	wl_see_map(&special, addr, 0, wl_pages(&special), RW);
}

static void mode_mlock(void)
{
	char *addr;

	special.layout = "hot";
	addr = wl_map_anon(special.size);
	wl_setup(&special, addr);
	if (mlock(addr, special.size))
		wl_die("mlock");
	wl_see_map(&special, addr, 0, wl_pages(&special), RW);
	wl_publish(&special, "map", (uint64_t)addr);
}

static void mode_tmpfs(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	char *addr;

	if (fd < 0 || ftruncate(fd, special.size))
		wl_die("%s", path);
	addr = wl_map_fd(fd, special.size, 0, RW);
	close(fd);
	wl_setup(&special, addr);
	wl_see_map(&special, addr, 0, wl_pages(&special), RW);
	wl_publish(&special, "map", (uint64_t)addr);
}

/** has_copy() - Does the private mapping have a copy of this page? */
static bool has_copy(size_t page)
{
	return wl_plan(&special, page) == WL_HOT && page % COPY_EVERY == 0;
}

/** verify_copies() - The private copies hold their own pattern. Return: 0 or -1 */
static int verify_copies(char *text, size_t len)
{
	char want[wl_page()];
	size_t i;

	for (i = 0; i < wl_pages(&special); i++) {
		if (!has_copy(i))
			continue;
		wl_pattern(&special, i, 1, want);
		if (memcmp(want, copies + i * wl_page(), wl_page())) {
			snprintf(text, len, "private copy of page %zu differs", i);
			return -1;
		}
	}
	return 0;
}

static void mode_private(void)
{
	int fd = wl_memfd("private", special.size, 0);
	char *addr = wl_map_fd(fd, special.size, 0, RW);
	size_t i;

	wl_setup(&special, addr);
	munmap(addr, special.size);
	copies = mmap(NULL, special.size, RW, MAP_PRIVATE, fd, 0);
	if (copies == MAP_FAILED)
		wl_die("private mmap");
	for (i = 0; i < wl_pages(&special); i++)
		if (has_copy(i))
			wl_pattern(&special, i, 1, copies + i * wl_page());
	wl_see_fd(&special, fd);
	wl_on_verify(verify_copies);
	wl_publish(&special, "fd", fd);
}

int main(int argc, char **argv)
{
	const char *mode = wl_arg(argc, argv, 3, "mlock");

	wl_init(wl_arg(argc, argv, 1, "."), "main");
	plain.size = special.size = wl_parse_size(wl_arg(argc, argv, 2, "8M"));
	plain.layout = special.layout = wl_arg(argc, argv, 4, "mixed");
	plain_object();
	if (!strcmp(mode, "hugetlb"))
		mode_hugetlb();
	else if (!strcmp(mode, "mlock"))
		mode_mlock();
	else if (!strcmp(mode, "tmpfs"))
		mode_tmpfs(wl_arg(argc, argv, 5, "/dev/shm/wl_special"));
	else if (!strcmp(mode, "private"))
		mode_private();
	else
		wl_die("no mode %s", mode);
	wl_ready();
	wl_loop();
}
