// SPDX-License-Identifier: GPL-2.0-only
/*
 * pages.c - objects of the test workloads: plan, pattern, page-out
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wl.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#define NR_CACHESTAT 451

/* Freshly written pages may sit in per-CPU batches: page out again till gone */
#define PAGEOUT_ROUNDS 200
#define BLOCK_PAGES 32

/* ---- objects ---- */

/** wl_page() - Page size. Return: bytes */
size_t wl_page(void)
{
	return sysconf(_SC_PAGESIZE);
}

/** wl_pages() - Number of pages of an object, the last may be a part of one */
size_t wl_pages(const struct wl_object *obj)
{
	return (obj->size + wl_page() - 1) / wl_page();
}

/**
 * wl_parse_size() - Number with an optional suffix K, M, G or T
 * @text:	the number
 *
 * Return: bytes
 */
size_t wl_parse_size(const char *text)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	char *end;
	size_t n = strtoull(text, &end, 0);

	suffix = *end ? strchr(suffixes, *end) : NULL;
	return suffix ? n << (10 * (suffix - suffixes + 1)) : n;
}

/** wl_arg() - Argument @n, or @fallback where there is none */
const char *wl_arg(int argc, char **argv, int n, const char *fallback)
{
	return n < argc ? argv[n] : fallback;
}

/** mix() - Spread the bits of a number (a 64-bit finalizer). Return: the mix */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/**
 * plan_mixed() - Blocks of pages of one state, now and then a block of all
 * @seed:	seed of the object
 * @page:	page index
 *
 * Return: the state: about a quarter hot, half cold, a quarter holes
 */
static enum wl_state plan_mixed(uint64_t seed, size_t page)
{
	uint64_t h = mix(seed ^ (page / BLOCK_PAGES));

	if ((h >> 60) == 0)
		h = mix(seed + page);
	switch (h & 7) {
	case 0:
	case 1:
		return WL_HOT;
	case 2:
	case 3:
		return WL_HOLE;
	default:
		return WL_COLD;
	}
}

/**
 * plan_sparse() - Ten pages in an object of any size
 * @pages:	pages of the object
 * @page:	page index
 *
 * Return: the state: five cold, five hot, the rest holes
 */
static enum wl_state plan_sparse(size_t pages, size_t page)
{
	size_t step = pages / 10;

	if (page % step || page / step >= 10)
		return WL_HOLE;
	return (page / step) & 1 ? WL_COLD : WL_HOT;
}

/**
 * wl_plan() - What state a page is meant to have
 * @obj:	object
 * @page:	page index
 *
 * Return: the state
 */
enum wl_state wl_plan(const struct wl_object *obj, size_t page)
{
	switch (obj->layout[0]) {
	case 'a':
		return page & 1 ? WL_COLD : WL_HOT;
	case 'c':
		return WL_COLD;
	case 'h':
		return WL_HOT;
	case 's':
		return plan_sparse(wl_pages(obj), page);
	default:
		return plan_mixed(obj->seed, page);
	}
}

/**
 * sparse_run() - plan_run() for an object too large to go through its pages
 * @pages:	pages of the object
 * @page:	first page
 * @end:	where to stop looking
 *
 * Return: number of pages
 */
static size_t sparse_run(size_t pages, size_t page, size_t end)
{
	size_t step = pages / 10, next = (page / step + 1) * step;

	if (page % step == 0 && page / step < 10)
		return 1;
	if (next / step >= 10 || next > end)
		next = end;
	return next - page;
}

/**
 * plan_run() - Length of the run of one state that starts at a page
 * @obj:	object
 * @page:	first page
 * @end:	where to stop looking
 *
 * Return: number of pages
 */
static size_t plan_run(const struct wl_object *obj, size_t page, size_t end)
{
	enum wl_state state = wl_plan(obj, page);
	size_t n = 1;

	if (obj->layout[0] == 's')
		return sparse_run(wl_pages(obj), page, end);
	while (page + n < end && wl_plan(obj, page + n) == state)
		n++;
	return n;
}

/**
 * wl_next_filled() - Next page of a view that is no hole
 * @obj:	object
 * @first:	first page of the view
 * @i:		where to start, counted from @first
 * @pages:	pages of the view
 *
 * Return: index counted from @first, @pages or more if there is none
 */
size_t wl_next_filled(const struct wl_object *obj, size_t first, size_t i, size_t pages)
{
	while (i < pages && wl_plan(obj, first + i) == WL_HOLE)
		i += plan_run(obj, first + i, first + pages);
	return i;
}

/**
 * wl_page_bytes() - Bytes of a page that lie inside the object
 * @obj:	object
 * @page:	page index
 *
 * Return: page size, or less for the last page
 */
size_t wl_page_bytes(const struct wl_object *obj, size_t page)
{
	size_t left = obj->size - page * wl_page();

	return left < wl_page() ? left : wl_page();
}

/**
 * wl_pattern() - What a page must hold
 * @obj:	object
 * @page:	page index
 * @generation:	how often it was rewritten
 * @buf:	a page
 */
void wl_pattern(const struct wl_object *obj, size_t page, uint64_t generation, void *buf)
{
	uint64_t base = mix(obj->seed * 31 + page) ^ (generation * 0x100000001b3ULL);
	size_t words = wl_page() / sizeof(uint64_t);
	uint64_t *out = buf;
	size_t i;

	for (i = 0; i < words; i++)
		out[i] = base + i * 0x9e3779b97f4a7c15ULL;
}

/**
 * write_plan() - Write the plan of an object for the driver
 * @obj:	object
 */
static void write_plan(const struct wl_object *obj)
{
	size_t page, n, pages = wl_pages(obj);
	char path[320];
	FILE *f;

	snprintf(path, sizeof(path), "%s/plan-%s", wl_rundir(), obj->name);
	f = fopen(path, "w");
	if (!f)
		wl_die("%s", path);
	for (page = 0; page < pages; page += n) {
		n = plan_run(obj, page, pages);
		fprintf(f, "%zu %zu %c\n", page, n, wl_plan(obj, page));
	}
	if (fclose(f))
		wl_die("%s", path);
}

/**
 * wl_publish() - Tell the driver how it reaches an object, and its plan
 * @obj:	object
 * @how:	"map", "fd" or "shm"
 * @where:	address, descriptor or id
 */
void wl_publish(const struct wl_object *obj, const char *how, uint64_t where)
{
	char path[320];
	FILE *f;

	write_plan(obj);
	snprintf(path, sizeof(path), "%s/objects", wl_rundir());
	f = fopen(path, "a");
	if (!f)
		wl_die("%s", path);
	fprintf(f, "%s %s %s %#llx %zu\n", obj->name, wl_task(), how, (unsigned long long)where,
		obj->size);
	if (fclose(f))
		wl_die("%s", path);
}

/**
 * wl_fill() - Write the pattern into all hot and cold pages of a mapping
 * @obj:	object
 * @addr:	a writable mapping of it
 * @first:	first page of the object that is mapped there
 * @pages:	how many
 */
void wl_fill(const struct wl_object *obj, char *addr, size_t first, size_t pages)
{
	char *buf = malloc(wl_page());
	size_t i;

	for (i = wl_next_filled(obj, first, 0, pages); i < pages;
	     i = wl_next_filled(obj, first, i + 1, pages)) {
		wl_pattern(obj, first + i, 0, buf);
		memcpy(addr + i * wl_page(), buf, wl_page_bytes(obj, first + i));
	}
	free(buf);
}

/**
 * vma_of() - Find the VMA that holds an address
 * @addr:	address
 * @start:	result: its start
 * @end:	result: its end
 */
static void vma_of(const void *addr, unsigned long *start, unsigned long *end)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", start, end) == 2 && *start <= (unsigned long)addr &&
		    *end > (unsigned long)addr) {
			fclose(f);
			return;
		}
	}
	wl_die("no mapping at %p", addr);
}

/**
 * open_mapping() - Open what is mapped at an address
 * @addr:	address
 *
 * Return: descriptor, or -1
 */
static int open_mapping(const void *addr)
{
	unsigned long start, end;
	char path[80];

	vma_of(addr, &start, &end);
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", start, end);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/**
 * nr_cached() - Pages of a range that are resident, by cachestat(2)
 * @fd:		the object
 * @page:	first page
 * @pages:	how many
 *
 * Return: number, or -1 where the kernel cannot tell
 */
static long nr_cached(int fd, size_t page, size_t pages)
{
	uint64_t range[2] = { page * wl_page(), pages * wl_page() };
	uint64_t stat[5];

	if (syscall(NR_CACHESTAT, fd, range, stat, 0))
		return -1;
	return stat[0];
}

/**
 * pageout_round() - Ask once for all cold pages of a mapping to be paged out
 * @obj:	object
 * @fd:		descriptor of it, to see what is left
 * @addr:	mapping
 * @first:	first page mapped there
 * @pages:	how many
 *
 * Return: cold pages still resident, or -1 where the kernel cannot tell
 */
static long pageout_round(const struct wl_object *obj, int fd, char *addr, size_t first,
			  size_t pages)
{
	long n, left = 0;
	size_t i, run;

	for (i = 0; i < pages; i += run) {
		run = plan_run(obj, first + i, first + pages);
		if (wl_plan(obj, first + i) != WL_COLD)
			continue;
		if (nr_cached(fd, first + i, run) == 0)
			continue;
		if (madvise(addr + i * wl_page(), run * wl_page(), MADV_PAGEOUT))
			wl_die("MADV_PAGEOUT of %s", obj->name);
		n = nr_cached(fd, first + i, run);
		left = n < 0 || left < 0 ? -1 : left + n;
	}
	return left;
}

/**
 * wl_pageout() - Page the cold pages of a mapping out
 * @obj:	object
 * @addr:	mapping with the pages present in this task's page table
 * @first:	first page mapped there
 * @pages:	how many
 *
 * Without swap nothing goes out: the driver looks at the result.
 */
void wl_pageout(const struct wl_object *obj, char *addr, size_t first, size_t pages)
{
	struct timespec ts = { .tv_nsec = 2000000 };
	int round, fd = open_mapping(addr);
	long left = 1;

	for (round = 0; round < PAGEOUT_ROUNDS && left; round++) {
		left = pageout_round(obj, fd, addr, first, pages);
		if (left < 0 && round > 8)
			break;
		if (left)
			nanosleep(&ts, NULL);
	}
	if (fd >= 0)
		close(fd);
}

/**
 * wl_setup() - Fill a whole object through a mapping and page the cold out
 * @obj:	object
 * @addr:	mapping of all of it
 */
void wl_setup(const struct wl_object *obj, char *addr)
{
	wl_fill(obj, addr, 0, wl_pages(obj));
	wl_pageout(obj, addr, 0, wl_pages(obj));
}

/** wl_map_anon() - Map anonymous shared memory. Return: address */
void *wl_map_anon(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		wl_die("mmap of %zu bytes", size);
	return p;
}

/** wl_map_fd() - Map a descriptor shared. Return: address */
void *wl_map_fd(int fd, size_t size, off_t offset, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, offset);

	if (p == MAP_FAILED)
		wl_die("mmap of descriptor %d", fd);
	return p;
}

/** wl_memfd() - Make a memfd of a size. Return: descriptor */
int wl_memfd(const char *name, size_t size, unsigned int flags)
{
	int fd = memfd_create(name, flags);

	if (fd < 0 || ftruncate(fd, size))
		wl_die("memfd of %zu bytes", size);
	return fd;
}
