/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * replay.h - put what was swapped out again
 *
 * After a restore (the states come from the residency image), or after a dump
 * that the tasks survive (the states come from the record).
 */
#ifndef SHP_REPLAY_H
#define SHP_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"
#include "image.h"
#include "objects.h"
#include "record.h"
#include "source.h"

struct replay {
	struct source source;
	struct shm_objects objects; /* from the image */
	struct image_info info;
	uint64_t window;
	unsigned int tasks; /* replay_task() calls */
	bool drained;
	uint64_t out; /* pages, for the summary */
	uint64_t left;
};

int replay_load(struct replay *replay, int dir, const struct config *config);
void replay_task(struct replay *replay, pid_t pid);
void replay_finish(struct replay *replay, bool restored);
void replay_put_back(struct record *record, uint64_t window);

#endif
