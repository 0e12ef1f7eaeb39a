// SPDX-License-Identifier: GPL-2.0-only
/*
 * source_pagemap.c - what the page tables of the tasks say about an object
 *
 * On a kernel that leaves markers, a page that was paged out of a mapping is
 * "swapped" in its pagemap. Page tables know only what their own task did: not
 * pages whose toucher has gone, nor a page faulted back by somebody else. So
 * this is a guess, to be proven or completed by a count of the object itself
 * (source_cachestat.c). Only what is present is taken from here: a page of the
 * object that somebody has mapped is resident, always; a marker may be stale.
 */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "proc.h"
#include "shmem_uapi.h"

/* Without the file bit it is a private copy, in a private mapping of a memfd. */
#define MAPPED (SHM_PM_PRESENT | SHM_PM_FILE)

/* Enough for a piece in which every page differs from the next. */
#define SCAN_REGIONS PIECE_PAGES

/* The part of a mapping that shows pages [first, first + nr) of the object. */
struct view {
	uint64_t address;
	uint64_t nr;
	unsigned char *resident; /* of its first page */
};

static bool view_of(const struct shm_ref *ref, uint64_t first, uint64_t nr, unsigned char *resident,
		    struct view *view)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t map_first = ref->offset / page;
	uint64_t map_end = map_first + (ref->end - ref->start) / page;
	uint64_t from = first > map_first ? first : map_first;
	uint64_t to = first + nr < map_end ? first + nr : map_end;

	if (ref->fd >= 0 || from >= to)
		return false;
	view->address = ref->start + (from - map_first) * page;
	view->nr = to - from;
	view->resident = resident + (from - first);
	return true;
}

static int read_plain(int fd, const struct view *view)
{
	uint64_t entry[PIECE_PAGES] = { 0 }, page = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t size = view->nr * sizeof(*entry), got = 0;
	off_t at = (off_t)(view->address / page * sizeof(*entry));

	while (got < size) {
		ssize_t n = pread(fd, (char *)entry + got, size - got, at + (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		got += (size_t)n;
	}
	for (uint64_t i = 0; i < view->nr; i++)
		if ((entry[i] & MAPPED) == MAPPED)
			view->resident[i] = 1;
	return 0;
}

static int read_scan(int fd, const struct view *view)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct shm_page_region region[SCAN_REGIONS];
	struct shm_pm_scan_arg arg = {
		.size = sizeof(arg),
		.start = view->address,
		.end = view->address + view->nr * page,
		.vec = (uintptr_t)region,
		.vec_len = SCAN_REGIONS,
		.category_mask = SHM_PAGE_IS_PRESENT | SHM_PAGE_IS_FILE,
		.return_mask = SHM_PAGE_IS_PRESENT,
	};
	int nr = ioctl(fd, SHM_PAGEMAP_SCAN, &arg);

	if (nr < 0)
		return -errno;
	for (int i = 0; i < nr; i++)
		memset(view->resident + (region[i].start - view->address) / page, 1,
		       (region[i].end - region[i].start) / page);
	return 0;
}

/**
 * source_pagemap_guess() - Which pages some task has mapped
 * @object:	with its references
 * @scan:	PAGEMAP_SCAN is there
 * @first:	first page
 * @nr:		pages, at most PIECE_PAGES
 * @resident:	filled with 1 for a page present in some task, else 0
 *
 * Return: 0 on success, negative error code when no mapping could be read
 */
int source_pagemap_guess(const struct shm_object *object, bool scan, uint64_t first, uint64_t nr,
			 unsigned char *resident)
{
	int ret = -ENOENT;

	memset(resident, 0, nr);
	for (size_t i = 0; i < object->nr_refs; i++) {
		struct view view;
		int fd, err;

		if (!view_of(&object->ref[i], first, nr, resident, &view))
			continue;
		fd = proc_open(object->ref[i].pid, O_RDONLY, "pagemap");
		if (fd < 0)
			continue;
		err = scan ? read_scan(fd, &view) : read_plain(fd, &view);
		close(fd);
		if (!err)
			ret = 0;
	}
	return ret;
}
