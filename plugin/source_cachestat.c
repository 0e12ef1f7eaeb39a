// SPDX-License-Identifier: GPL-2.0-only
/*
 * source_cachestat.c - page states by cachestat(2)
 *
 * Theory of operation: cachestat counts resident pages and swap entries of a
 * range, exactly. An object is counted piece by piece (1 MiB); a piece that is
 * all one state is done, an empty one leads to the next data by SEEK_DATA. A
 * mixed piece is halved: one call counts the left half, the right one is the
 * difference. Where states alternate that would cost a call a page, so a guess
 * (mincore's bitmap, or pagemap) is tried first: it never misses a resident
 * page, or never invents one; if its number of resident pages is what
 * cachestat counted, it is the truth.
 */
#include "source.h"

#include <errno.h>
#include <string.h>

#include "fault.h"

struct counts {
	uint64_t resident;
	uint64_t swapped;
};

struct walk {
	int fd;
	uint64_t *calls;
	guess_fn guess;
	void *arg;
	struct residency *state;
	/* The guess for the current piece. */
	uint64_t piece;
	bool guessed;
	unsigned char resident[PIECE_PAGES];
	unsigned char populated[PIECE_PAGES];
};

static int count(struct walk *walk, uint64_t first, uint64_t nr, struct counts *counts)
{
	++*walk->calls;
	return probe_cachestat(walk->fd, first, nr, &counts->resident, &counts->swapped);
}

/* Marks the populated pages of a piece that has holes. */
static int mark_populated(struct walk *walk, uint64_t first, uint64_t nr)
{
	uint64_t at = first, data, len;
	int ret;

	memset(walk->populated, 0, sizeof(walk->populated));
	while (at < first + nr) {
		ret = source_next_data(walk->fd, at, first + nr, &data, &len);
		if (ret)
			return ret;
		if (!len)
			break;
		memset(walk->populated + (data - first), 1, len);
		at = data + len;
	}
	return 0;
}

/*
 * Pages that were allocated and never written (fallocate) are resident, but no
 * data for SEEK_DATA and not in core for mincore. So the populated pages come
 * from SEEK_DATA always: where such a page is, the sums never agree.
 */
static void take_guess(struct walk *walk, uint64_t first, uint64_t nr)
{
	walk->piece = first;
	walk->guessed = false;
	if (!walk->guess || walk->guess(walk->arg, first, nr, walk->resident))
		return;
	if (mark_populated(walk, first, nr))
		return;
	walk->guessed = true;
}

/* Is the guess for this range what cachestat counted? */
static bool guess_proven(const struct walk *walk, uint64_t first, uint64_t nr,
			 const struct counts *counts)
{
	uint64_t at = first - walk->piece, resident = 0, swapped = 0;

	if (!walk->guessed)
		return false;
	for (uint64_t i = at; i < at + nr; i++) {
		resident += walk->resident[i];
		swapped += !walk->resident[i] && walk->populated[i];
	}
	return resident == counts->resident && swapped == counts->swapped;
}

static int add_guess(struct walk *walk, uint64_t first, uint64_t nr)
{
	uint64_t at = first - walk->piece;
	int ret = 0;

	for (uint64_t i = at; !ret && i < at + nr; i++)
		ret = residency_add(walk->state, 1,
				    walk->resident[i]	 ? PAGE_RESIDENT
				    : walk->populated[i] ? PAGE_SWAPPED
							 : PAGE_HOLE);
	return ret;
}

static bool one_state(uint64_t nr, const struct counts *counts, enum page_state *state)
{
	if (counts->resident >= nr)
		*state = PAGE_RESIDENT;
	else if (counts->swapped >= nr)
		*state = PAGE_SWAPPED;
	else if (!counts->resident && !counts->swapped)
		*state = PAGE_HOLE;
	else
		return false;
	return true;
}

static int walk_mixed(struct walk *walk, uint64_t first, uint64_t nr, const struct counts *counts)
{
	struct counts left, right;
	enum page_state state;
	uint64_t half = nr / 2;
	int ret;

	if (one_state(nr, counts, &state))
		return residency_add(walk->state, nr, state);
	if (guess_proven(walk, first, nr, counts))
		return add_guess(walk, first, nr);

	ret = count(walk, first, half, &left);
	if (ret)
		return ret;
	right.resident = counts->resident - left.resident;
	right.swapped = counts->swapped - left.swapped;
	/* A running task may have changed something between the two counts. */
	if (left.resident > counts->resident || left.swapped > counts->swapped)
		ret = count(walk, first + half, nr - half, &right);
	if (!ret)
		ret = walk_mixed(walk, first, half, &left);
	return ret ? ret : walk_mixed(walk, first + half, nr - half, &right);
}

static int walk_piece(struct walk *walk, uint64_t first, uint64_t nr, const struct counts *counts)
{
	enum page_state state;

	if (!one_state(nr, counts, &state))
		take_guess(walk, first, nr);
	return walk_mixed(walk, first, nr, counts);
}

/* From an empty piece on to the next data, however far that is. */
static int skip_hole(struct walk *walk, uint64_t first, uint64_t nr, uint64_t pages, uint64_t *next)
{
	uint64_t data, len;
	int ret;

	ret = source_next_data(walk->fd, first + nr, pages, &data, &len);
	if (ret)
		return ret;
	/* Pieces stay aligned, so that huge pages are seen whole. */
	*next = len ? data - data % PIECE_PAGES : pages;
	return residency_add(walk->state, *next - first, PAGE_HOLE);
}

/**
 * source_cachestat_read() - States of an object's pages
 * @fd:		the object
 * @pages:	its size
 * @guess:	guess for mixed pieces, or NULL
 * @arg:	for it
 * @calls:	increased by the number of cachestat calls
 * @state:	extended by @pages pages
 *
 * Return: 0 on success, negative error code
 */
int source_cachestat_read(int fd, uint64_t pages, guess_fn guess, void *arg, uint64_t *calls,
			  struct residency *state)
{
	struct walk walk = {
		.fd = fd,
		.calls = calls,
		.guess = fault_on(FAULT_NO_GUESS) ? NULL : guess,
		.arg = arg,
		.state = state,
	};
	uint64_t first = 0, next;
	int ret = 0;

	while (!ret && first < pages) {
		uint64_t nr = pages - first < PIECE_PAGES ? pages - first : PIECE_PAGES;
		struct counts counts;

		ret = count(&walk, first, nr, &counts);
		if (ret)
			break;
		next = first + nr;
		if (counts.resident || counts.swapped)
			ret = walk_piece(&walk, first, nr, &counts);
		else
			ret = skip_hole(&walk, first, nr, pages, &next);
		first = next;
	}
	return ret;
}
