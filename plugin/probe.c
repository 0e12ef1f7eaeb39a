// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe.c - what this kernel and its swap can do
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"
#include "proc.h"
#include "shmem_uapi.h"

/* A freshly written page may need several tries until reclaim takes it. */
#define PAGEOUT_TRIES 5

/* One page of shared memory of our own, to try things on. */
struct trial {
	int fd;
	unsigned char *page;
	size_t size;
};

static int trial_open(struct trial *trial)
{
	trial->size = (size_t)sysconf(_SC_PAGESIZE);
	trial->page = MAP_FAILED;
	trial->fd = memfd_create("criu-shmem-probe", MFD_CLOEXEC);
	if (trial->fd < 0)
		return -errno;
	if (ftruncate(trial->fd, (off_t)trial->size))
		return -errno;
	trial->page = mmap(NULL, trial->size, PROT_READ | PROT_WRITE, MAP_SHARED, trial->fd, 0);
	if (trial->page == MAP_FAILED)
		return -errno;
	*trial->page = 1;
	return 0;
}

static void trial_close(struct trial *trial)
{
	if (trial->page != MAP_FAILED)
		munmap(trial->page, trial->size);
	if (trial->fd >= 0)
		close(trial->fd);
}

/**
 * probe_cachestat() - Count the pages of a range
 * @fd:		shmem object
 * @first:	first page
 * @nr:		pages, not 0 (the kernel takes 0 for "to the end")
 * @resident:	filled: folios in the page cache
 * @swapped:	filled: swap entries in the page cache
 *
 * Return: 0 on success, negative error code
 */
int probe_cachestat(int fd, uint64_t first, uint64_t nr, uint64_t *resident, uint64_t *swapped)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct shm_cachestat_range range = { first * page, nr * page };
	struct shm_cachestat stat = { 0 };

	if (syscall(SHM_NR_cachestat, fd, &range, &stat, 0))
		return -errno;
	*resident = stat.nr_cache;
	*swapped = stat.nr_evicted;
	return 0;
}

static bool try_cachestat(const struct trial *trial)
{
	uint64_t resident = 0, swapped = 0;

	if (fault_on(FAULT_NO_CACHESTAT))
		return false;
	return !probe_cachestat(trial->fd, 0, 1, &resident, &swapped) && resident + swapped == 1;
}

static bool try_pagemap_scan(const struct trial *trial, int pagemap)
{
	struct shm_page_region region;
	struct shm_pm_scan_arg arg = {
		.size = sizeof(arg),
		.start = (uintptr_t)trial->page,
		.end = (uintptr_t)trial->page + trial->size,
		.vec = (uintptr_t)&region,
		.vec_len = 1,
		.category_anyof_mask = SHM_PAGE_IS_PRESENT | SHM_PAGE_IS_SWAPPED,
		.return_mask = SHM_PAGE_IS_PRESENT | SHM_PAGE_IS_SWAPPED,
	};

	if (fault_on(FAULT_NO_PAGEMAP_SCAN))
		return false;
	return ioctl(pagemap, SHM_PAGEMAP_SCAN, &arg) >= 0;
}

static bool paged_out(const struct trial *trial, bool cachestat)
{
	uint64_t resident = 0, swapped = 0;
	unsigned char incore = 1;

	if (cachestat)
		return !probe_cachestat(trial->fd, 0, 1, &resident, &swapped) && swapped == 1;
	return !mincore(trial->page, trial->size, &incore) && !(incore & 1);
}

static void try_markers(struct probe *probe, const struct trial *trial, int pagemap)
{
	off_t at = (off_t)((uintptr_t)trial->page / trial->size * sizeof(uint64_t));
	uint64_t entry = 0;

	if (!probe->pageout || !probe->swap_free || pagemap < 0)
		return;
	for (int i = 0; i < PAGEOUT_TRIES && !probe->markers_tried; i++) {
		*trial->page = 1;
		if (madvise(trial->page, trial->size, SHM_MADV_PAGEOUT))
			return;
		probe->markers_tried = paged_out(trial, probe->cachestat);
	}
	if (!probe->markers_tried)
		return;
	if (pread(pagemap, &entry, sizeof(entry), at) != (ssize_t)sizeof(entry))
		return;
	probe->markers = entry & SHM_PM_SWAP && !(entry & SHM_PM_PRESENT);
}

static bool try_map_files(const struct trial *trial)
{
	int fd = proc_open(PROC_SELF, O_RDONLY, "map_files/%lx-%lx", (unsigned long)trial->page,
			   (unsigned long)trial->page + trial->size);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* zram frees a swapped-out page at once; a disk keeps it in the swap cache. */
static bool swap_on_disk(void)
{
	char *line = NULL;
	size_t size = 0;
	bool disk = false;
	FILE *file;

	file = fopen("/proc/swaps", "re");
	if (!file)
		return true;
	while (getline(&line, &size, file) >= 0)
		if (*line == '/' && strncmp(line, "/dev/zram", 9))
			disk = true;
	free(line);
	fclose(file);
	return disk;
}

/**
 * probe_swap() - How much swap there is
 * @total:	filled, bytes
 * @free:	filled, bytes
 */
void probe_swap(uint64_t *total, uint64_t *free)
{
	struct sysinfo info;

	*total = 0;
	*free = 0;
	if (sysinfo(&info))
		return;
	*total = (uint64_t)info.totalswap * info.mem_unit;
	*free = (uint64_t)info.freeswap * info.mem_unit;
}

/**
 * probe_run() - Try everything
 * @probe:	filled
 */
void probe_run(struct probe *probe)
{
	struct trial trial;
	int ret, pagemap;

	*probe = (struct probe){ 0 };
	probe_swap(&probe->swap_total, &probe->swap_free);
	probe->swap_disk = swap_on_disk();
	ret = trial_open(&trial);
	if (ret) {
		pr_warn("cannot probe the kernel: %s\n", strerror(-ret));
		goto out;
	}
	probe->cachestat = try_cachestat(&trial);
	probe->map_files = try_map_files(&trial);
	probe->pageout = !madvise(trial.page, trial.size, SHM_MADV_PAGEOUT);
	pagemap = proc_open(PROC_SELF, O_RDONLY, "pagemap");
	if (pagemap >= 0) {
		probe->pagemap = true;
		probe->pagemap_scan = try_pagemap_scan(&trial, pagemap);
		try_markers(probe, &trial, pagemap);
		close(pagemap);
	}
	if (fault_on(FAULT_ASSUME_MARKERS))
		probe->markers = probe->markers_tried = true;
out:
	trial_close(&trial);
}
