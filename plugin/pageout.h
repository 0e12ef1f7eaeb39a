/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pageout.h - put pages of an object out to swap
 */
#ifndef SHP_PAGEOUT_H
#define SHP_PAGEOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "residency.h"
#include "source.h"

struct pageout {
	struct source *source; /* looks at what is still in memory */
	uint64_t window;       /* bytes mapped at a time */
	bool keep_locked;      /* what mlocked mappings cover is to stay */
	uint64_t out;	       /* pages that went out, over all calls */
	uint64_t left;	       /* pages that were to go out and are resident */
	bool unsure;	       /* more than that may be, swap is full */
	const char *why;       /* reason of the last page that stayed, or NULL */
};

int pageout_object(struct pageout *po, const struct shm_object *object, int fd);
void pageout_drain_lru(void);

#endif
