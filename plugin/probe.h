/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probe.h - what this kernel and its swap can do
 *
 * Everything is found by trying, nothing by version number.
 */
#ifndef SHP_PROBE_H
#define SHP_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct probe {
	bool cachestat;	     /* cachestat(2) tells swapped pages of shmem */
	bool pagemap;	     /* /proc/PID/pagemap can be read */
	bool pagemap_scan;   /* PAGEMAP_SCAN */
	bool markers;	     /* a swapped-out shmem page is swapped in pagemap */
	bool markers_tried;  /* false: no page could be swapped out to see */
	bool map_files;	     /* /proc/PID/map_files can be opened */
	bool pageout;	     /* MADV_PAGEOUT is there */
	bool swap_disk;	     /* some swap is not zram: mincore is wrong with it */
	uint64_t swap_total; /* bytes */
	uint64_t swap_free;  /* bytes */
};

void probe_run(struct probe *probe);
void probe_swap(uint64_t *total, uint64_t *free);
int probe_cachestat(int fd, uint64_t first, uint64_t nr, uint64_t *resident, uint64_t *swapped);

#endif
