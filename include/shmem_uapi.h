/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shmem_uapi.h - kernel interfaces that distribution headers may lack
 *
 * Debian 12 ships the headers of Linux 6.1; cachestat(2) came with 6.5 and
 * PAGEMAP_SCAN with 6.7. Numbers and layouts are the kernel's
 * (include/uapi/linux/mman.h, include/uapi/linux/fs.h). The names are our own
 * so that they never clash with newer headers.
 */
#ifndef SHMEM_UAPI_H
#define SHMEM_UAPI_H

#include <linux/ioctl.h>
#include <stdint.h>

/* Same number on every architecture (generic system call table). */
#define SHM_NR_cachestat 451
#define SHM_NR_process_madvise 440
#define SHM_NR_pidfd_open 434

/* Linux 5.4 and 5.14. */
#define SHM_MADV_COLD 20
#define SHM_MADV_PAGEOUT 21
#define SHM_MADV_POPULATE_READ 22

/* struct cachestat_range: bytes. */
struct shm_cachestat_range {
	uint64_t off;
	uint64_t len;
};

/* struct cachestat: pages. For shmem "evicted" means a swap entry. */
struct shm_cachestat {
	uint64_t nr_cache;
	uint64_t nr_dirty;
	uint64_t nr_writeback;
	uint64_t nr_evicted;
	uint64_t nr_recently_evicted;
};

/* /proc/PID/pagemap, one 64-bit entry per page. */
#define SHM_PM_FILE (1ULL << 61)
#define SHM_PM_SWAP (1ULL << 62)
#define SHM_PM_PRESENT (1ULL << 63)

/* PAGEMAP_SCAN categories. */
#define SHM_PAGE_IS_FILE (1ULL << 2)
#define SHM_PAGE_IS_PRESENT (1ULL << 3)
#define SHM_PAGE_IS_SWAPPED (1ULL << 4)

/* struct page_region: addresses. */
struct shm_page_region {
	uint64_t start;
	uint64_t end;
	uint64_t categories;
};

/* struct pm_scan_arg */
struct shm_pm_scan_arg {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end;
	uint64_t vec;
	uint64_t vec_len;
	uint64_t max_pages;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};

#define SHM_PAGEMAP_SCAN _IOWR('f', 16, struct shm_pm_scan_arg)

#endif
