/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * residency.h - the page states of one object as a list of runs
 *
 * All positions and lengths are in pages. A list starts at page 0, its runs
 * follow each other without a gap, neighbours differ in state, and what lies
 * behind the last run is a hole. A run is one number, (pages << 2) | state:
 * what the residency image holds too, one byte for a single page.
 *
 * Functions return 0 or a negative error code; on an error of a function that
 * fills a list, the list is empty.
 */
#ifndef SHP_RESIDENCY_H
#define SHP_RESIDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum page_state {
	PAGE_HOLE = 0, /* never populated */
	PAGE_RESIDENT = 1,
	PAGE_SWAPPED = 2,
	PAGE_STATES = 3,
};

#define RUN_STATE_BITS 2
#define RUN_STATE_MASK ((1ULL << RUN_STATE_BITS) - 1)

/* No object is larger: a file offset is a positive 64-bit number of bytes. */
#define RESIDENCY_PAGES_MAX (1ULL << 52)

struct residency {
	uint64_t *run;		     /* owned; NULL when empty */
	size_t nr;		     /* runs */
	size_t cap;		     /* runs allocated */
	uint64_t pages;		     /* covered by the runs */
	uint64_t count[PAGE_STATES]; /* pages of each state in the runs */
};

/* One run with its place. */
struct page_run {
	uint64_t first;
	uint64_t nr;
	enum page_state state;
};

struct residency_iter {
	const struct residency *list;
	size_t next;
	uint64_t first;
};

void residency_free(struct residency *list);
int residency_add(struct residency *list, uint64_t nr, enum page_state state);
int residency_from_runs(struct residency *list, const uint64_t *run, size_t nr, uint64_t max_pages);

struct residency_iter residency_begin(const struct residency *list);
bool residency_next(struct residency_iter *iter, struct page_run *run);

int residency_select(struct residency *todo, const struct residency *want,
		     const struct residency *have);
int residency_keep(struct residency *list, uint64_t first, uint64_t nr);
void residency_compare(const struct residency *was, const struct residency *now,
		       uint64_t count[PAGE_STATES][PAGE_STATES]);
void residency_count(const struct residency *list, uint64_t first, uint64_t nr,
		     uint64_t count[PAGE_STATES]);

#endif
