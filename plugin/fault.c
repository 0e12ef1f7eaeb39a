// SPDX-License-Identifier: GPL-2.0-only
/*
 * fault.c - fault injection for tests: CRIU_SHMEM_FAULT=name[,name...]
 */
#include "fault.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"

static const char *const fault_name[FAULT_MAX] = {
	[FAULT_NO_CACHESTAT] = "no-cachestat",
	[FAULT_NO_PAGEMAP_SCAN] = "no-pagemap-scan",
	[FAULT_NO_PROCESS_MADVISE] = "no-process-madvise",
	[FAULT_NO_POPULATE_READ] = "no-populate-read",
	[FAULT_NO_GUESS] = "no-guess",
	[FAULT_ASSUME_MARKERS] = "assume-markers",
	[FAULT_PAGEOUT_REFUSED] = "pageout-refused",
};

static bool listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list) {
		size_t word = strcspn(list, ",");

		if (word == len && !strncmp(list, name, len))
			return true;
		list += word;
		list += *list == ',';
	}
	return false;
}

/**
 * fault_on() - Is this fault to be injected
 * @fault:	which one
 *
 * Return: true when CRIU_SHMEM_FAULT names it
 */
bool fault_on(enum fault fault)
{
	const char *list = getenv("CRIU_SHMEM_FAULT");

	if (!list || !listed(list, fault_name[fault]))
		return false;
	pr_debug("fault injected: %s\n", fault_name[fault]);
	return true;
}
