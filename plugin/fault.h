/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fault.h - fault injection for tests: CRIU_SHMEM_FAULT=name[,name...]
 *
 * Each name makes one kernel interface look missing or failing, so that the
 * path behind it runs on a kernel that has it.
 */
#ifndef SHP_FAULT_H
#define SHP_FAULT_H

#include <stdbool.h>

enum fault {
	FAULT_NO_CACHESTAT,
	FAULT_NO_PAGEMAP_SCAN,
	FAULT_NO_PROCESS_MADVISE,
	FAULT_NO_POPULATE_READ,
	FAULT_NO_GUESS,
	FAULT_ASSUME_MARKERS,
	FAULT_PAGEOUT_REFUSED,
	FAULT_MAX,
};

bool fault_on(enum fault fault);

#endif
