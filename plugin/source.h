/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * source.h - what tells the state of an object's pages
 *
 * A source appends the states of pages [0, pages) of one object to a run list.
 * The object may change meanwhile (the tool looks at running tasks): the
 * result is then some state of each page, never an error.
 *
 * All sources return 0 or a negative error code.
 */
#ifndef SHP_SOURCE_H
#define SHP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "objects.h"
#include "probe.h"
#include "residency.h"

enum source_id {
	SOURCE_AUTO,
	SOURCE_PAGEMAP,
	SOURCE_CACHESTAT,
	SOURCE_MINCORE,
};

struct source {
	enum source_id id; /* never SOURCE_AUTO */
	bool exact;	   /* resident and swapped are never mixed up */
	bool cachestat;	   /* may be used */
	bool pagemap_scan; /* PAGEMAP_SCAN may be used */
	uint64_t calls;	   /* cachestat calls so far, for the benches */
};

/* Pages looked at in one call: small enough that a second look is cheap. */
#define PIECE_PAGES 256

/*
 * A guess of which pages of a piece are resident: one byte a page, 1 or 0.
 * It is only believed when a count of the kernel proves it.
 */
typedef int (*guess_fn)(void *arg, uint64_t first, uint64_t nr, unsigned char *resident);

const char *source_name(enum source_id id);
int source_parse(const char *name, enum source_id *id);
int source_choose(struct source *source, enum source_id wanted, const struct probe *probe,
		  const char **why);
int source_read(struct source *source, const struct shm_object *object, int fd,
		struct residency *state);

/* One file each. */
int source_cachestat_read(int fd, uint64_t pages, guess_fn guess, void *arg, uint64_t *calls,
			  struct residency *state);
int source_mincore_read(int fd, uint64_t pages, struct residency *state);
int source_mincore_guess(int fd, uint64_t first, uint64_t nr, unsigned char *resident);
int source_pagemap_guess(const struct shm_object *object, bool scan, uint64_t first, uint64_t nr,
			 unsigned char *resident);

/* Populated pages at or behind a page: [*first, *first + *nr), *nr 0: none. */
int source_next_data(int fd, uint64_t from, uint64_t pages, uint64_t *first, uint64_t *nr);

#endif
