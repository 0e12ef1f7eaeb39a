// SPDX-License-Identifier: GPL-2.0-only
/*
 * source_mincore.c - page states by SEEK_DATA and mincore(2)
 *
 * For kernels without cachestat. SEEK_DATA/SEEK_HOLE tells populated from hole,
 * exactly. mincore tells what is in memory, and counts a page in the swap cache
 * as that: with a disk swap a page that has just gone out may be reported
 * resident. It misses no resident page that has data; one allocated by
 * fallocate() and never written is a hole for both.
 */
#include "source.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Pages looked at by one mincore call. */
#define MINCORE_PAGES 4096

static off_t page_bytes(uint64_t pages)
{
	return (off_t)(pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

/**
 * source_next_data() - Find the next populated pages
 * @fd:		the object
 * @from:	page to start at
 * @pages:	where to end
 * @first:	filled
 * @nr:		filled; 0: nothing populated in [@from, @pages)
 *
 * Return: 0 on success, negative error code
 */
int source_next_data(int fd, uint64_t from, uint64_t pages, uint64_t *first, uint64_t *nr)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end;
	off_t data, hole;

	*first = pages;
	*nr = 0;
	if (from >= pages)
		return 0;
	data = lseek(fd, page_bytes(from), SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? 0 : -errno;
	if ((uint64_t)data / page >= pages)
		return 0;
	hole = lseek(fd, data, SEEK_HOLE);
	if (hole < 0)
		return errno == ENXIO ? 0 : -errno;
	/* The last page of an unaligned object ends at its size. */
	end = (uint64_t)hole / page + !!((uint64_t)hole % page);
	if (end > pages)
		end = pages;
	*first = (uint64_t)data / page;
	*nr = end > *first ? end - *first : 0;
	return 0;
}

/**
 * source_mincore_guess() - Which pages are in memory
 * @fd:		the object
 * @first:	first page
 * @nr:		pages
 * @resident:	filled with 1 or 0 for each
 *
 * Return: 0 on success, negative error code
 */
int source_mincore_guess(int fd, uint64_t first, uint64_t nr, unsigned char *resident)
{
	size_t size = (size_t)page_bytes(nr);
	int ret = 0;
	void *map;

	map = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd, page_bytes(first));
	if (map == MAP_FAILED)
		return -errno;
	if (mincore(map, size, resident))
		ret = -errno;
	munmap(map, size);
	for (uint64_t i = 0; !ret && i < nr; i++)
		resident[i] &= 1;
	return ret;
}

static int read_extent(int fd, uint64_t first, uint64_t nr, struct residency *state)
{
	unsigned char resident[MINCORE_PAGES] = { 0 };
	int ret = 0;

	while (!ret && nr) {
		uint64_t now = nr < MINCORE_PAGES ? nr : MINCORE_PAGES;

		ret = source_mincore_guess(fd, first, now, resident);
		for (uint64_t i = 0; !ret && i < now; i++)
			ret = residency_add(state, 1, resident[i] ? PAGE_RESIDENT : PAGE_SWAPPED);
		first += now;
		nr -= now;
	}
	return ret;
}

/**
 * source_mincore_read() - States of an object's pages
 * @fd:		the object
 * @pages:	its size
 * @state:	extended by @pages pages
 *
 * Return: 0 on success, negative error code
 */
int source_mincore_read(int fd, uint64_t pages, struct residency *state)
{
	uint64_t at = 0, first, nr;
	int ret = 0;

	while (!ret && at < pages) {
		ret = source_next_data(fd, at, pages, &first, &nr);
		if (!ret)
			ret = residency_add(state, first - at, PAGE_HOLE);
		if (!ret && nr)
			ret = read_extent(fd, first, nr, state);
		at = first + nr;
	}
	return ret;
}
