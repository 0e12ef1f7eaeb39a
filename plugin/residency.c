// SPDX-License-Identifier: GPL-2.0-only
/*
 * residency.c - run lists and their algebra
 *
 * Pure logic: no kernel, no CRIU. The operations on two lists walk both once,
 * so their cost is the number of runs, whatever the size of the object.
 */
#include "residency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t run_pages(uint64_t run)
{
	return run >> RUN_STATE_BITS;
}

static enum page_state run_state(uint64_t run)
{
	return (enum page_state)(run & RUN_STATE_MASK);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/**
 * residency_free() - Empty a list
 * @list:	left as a valid empty list
 */
void residency_free(struct residency *list)
{
	free(list->run);
	*list = (struct residency){ 0 };
}

static int grow(struct residency *list)
{
	size_t cap = list->cap ? list->cap + list->cap / 2 : 16;
	uint64_t *run = reallocarray(list->run, cap, sizeof(*run));

	if (!run)
		return -ENOMEM;
	list->run = run;
	list->cap = cap;
	return 0;
}

/**
 * residency_add() - Append pages
 * @list:	extended; unchanged on an error
 * @nr:		pages, may be 0
 * @state:	of all of them
 *
 * Return: 0 on success, -ENOMEM, -EOVERFLOW beyond the largest object
 */
int residency_add(struct residency *list, uint64_t nr, enum page_state state)
{
	uint64_t *last = list->nr ? &list->run[list->nr - 1] : NULL;

	if (!nr)
		return 0;
	if (nr > RESIDENCY_PAGES_MAX - list->pages)
		return -EOVERFLOW;
	if (last && run_state(*last) == state) {
		*last += nr << RUN_STATE_BITS;
	} else {
		int ret = list->nr == list->cap ? grow(list) : 0;

		if (ret)
			return ret;
		list->run[list->nr++] = nr << RUN_STATE_BITS | state;
	}
	list->pages += nr;
	list->count[state] += nr;
	return 0;
}

/**
 * residency_from_runs() - Build a list from untrusted numbers
 * @list:	filled; must be empty
 * @run:	runs as in the residency image
 * @nr:		their number
 * @max_pages:	size of the object
 *
 * Return: 0 on success, -EINVAL for a run that cannot be, -ERANGE for runs
 *	   past the object, -ENOMEM
 */
int residency_from_runs(struct residency *list, const uint64_t *run, size_t nr, uint64_t max_pages)
{
	int ret = 0;

	for (size_t i = 0; i < nr && !ret; i++) {
		uint64_t pages = run_pages(run[i]);

		if (!pages || run_state(run[i]) >= PAGE_STATES)
			ret = -EINVAL;
		else if (list->pages > max_pages || pages > max_pages - list->pages)
			ret = -ERANGE;
		else
			ret = residency_add(list, pages, run_state(run[i]));
	}
	if (ret)
		residency_free(list);
	return ret;
}

/**
 * residency_begin() - Start a walk
 * @list:	must not change during it
 *
 * Return: iterator for residency_next()
 */
struct residency_iter residency_begin(const struct residency *list)
{
	return (struct residency_iter){ .list = list };
}

/**
 * residency_next() - Next run, holes included
 * @iter:	advanced
 * @run:	filled
 *
 * Return: false behind the last run
 */
bool residency_next(struct residency_iter *iter, struct page_run *run)
{
	if (iter->next == iter->list->nr)
		return false;
	run->first = iter->first;
	run->nr = run_pages(iter->list->run[iter->next]);
	run->state = run_state(iter->list->run[iter->next]);
	iter->first += run->nr;
	iter->next++;
	return true;
}

/*
 * Two lists walked in step: each call of pair_next() yields the longest piece
 * in which neither changes state. The shorter list is continued as a hole.
 */
struct pair {
	struct residency_iter iter[2];
	struct page_run run[2]; /* what is left of the current run; nr 0: ended */
	uint64_t first;
};

static void pair_fill(struct pair *pair, int side)
{
	if (!pair->run[side].nr && !residency_next(&pair->iter[side], &pair->run[side]))
		pair->run[side] = (struct page_run){ .state = PAGE_HOLE };
}

static void pair_begin(struct pair *pair, const struct residency *a, const struct residency *b)
{
	*pair = (struct pair){ .iter = { residency_begin(a), residency_begin(b) } };
}

static bool pair_next(struct pair *pair, uint64_t *first, uint64_t *nr, enum page_state state[2])
{
	pair_fill(pair, 0);
	pair_fill(pair, 1);
	if (!pair->run[0].nr && !pair->run[1].nr)
		return false;
	if (pair->run[0].nr && pair->run[1].nr)
		*nr = min_u64(pair->run[0].nr, pair->run[1].nr);
	else
		*nr = pair->run[0].nr + pair->run[1].nr;
	*first = pair->first;
	pair->first += *nr;
	for (int side = 0; side < 2; side++) {
		state[side] = pair->run[side].state;
		if (pair->run[side].nr)
			pair->run[side].nr -= *nr;
	}
	return true;
}

/**
 * residency_select() - Which pages are to go out
 * @todo:	filled; must be empty. PAGE_SWAPPED: page out; PAGE_RESIDENT:
 *		resident and to stay; PAGE_HOLE: not in memory, leave alone
 * @want:	states as recorded
 * @have:	states now
 *
 * Return: 0 on success, -ENOMEM
 */
int residency_select(struct residency *todo, const struct residency *want,
		     const struct residency *have)
{
	enum page_state state[2], out;
	uint64_t first, nr;
	struct pair pair;
	int ret = 0;

	pair_begin(&pair, want, have);
	while (!ret && pair_next(&pair, &first, &nr, state)) {
		out = state[1] != PAGE_RESIDENT	 ? PAGE_HOLE
		      : state[0] == PAGE_SWAPPED ? PAGE_SWAPPED
						 : PAGE_RESIDENT;
		ret = residency_add(todo, nr, out);
	}
	if (ret)
		residency_free(todo);
	return ret;
}

/**
 * residency_keep() - Take a range out of a selection
 * @list:	from residency_select(); PAGE_SWAPPED becomes PAGE_RESIDENT
 * @first:	first page of the range
 * @nr:		its pages; the range may reach past the list
 *
 * Return: 0 on success, -ENOMEM (the list is unchanged then)
 */
int residency_keep(struct residency *list, uint64_t first, uint64_t nr)
{
	uint64_t end = nr > UINT64_MAX - first ? UINT64_MAX : first + nr;
	struct residency_iter iter = residency_begin(list);
	struct residency out = { 0 };
	struct page_run run;
	int ret = 0;

	while (!ret && residency_next(&iter, &run)) {
		uint64_t before, inside;

		if (run.state != PAGE_SWAPPED) {
			ret = residency_add(&out, run.nr, run.state);
			continue;
		}
		before = run.first < first ? min_u64(run.nr, first - run.first) : 0;
		inside = run.first + before < end
				 ? min_u64(run.nr - before, end - (run.first + before))
				 : 0;
		ret = residency_add(&out, before, PAGE_SWAPPED);
		if (!ret)
			ret = residency_add(&out, inside, PAGE_RESIDENT);
		if (!ret)
			ret = residency_add(&out, run.nr - before - inside, PAGE_SWAPPED);
	}
	if (ret) {
		residency_free(&out);
		return ret;
	}
	residency_free(list);
	*list = out;
	return 0;
}

/**
 * residency_compare() - How many pages went from which state to which
 * @was:	first list
 * @now:	second list
 * @count:	filled: count[was][now] pages; holes behind both lists are not
 *		counted
 */
void residency_compare(const struct residency *was, const struct residency *now,
		       uint64_t count[PAGE_STATES][PAGE_STATES])
{
	enum page_state state[2];
	uint64_t first, nr;
	struct pair pair;

	memset(count, 0, sizeof(count[0]) * PAGE_STATES);
	pair_begin(&pair, was, now);
	while (pair_next(&pair, &first, &nr, state))
		count[state[0]][state[1]] += nr;
}

/**
 * residency_count() - States within a range
 * @list:	the states
 * @first:	first page of the range
 * @nr:		its pages; what lies behind the list counts as hole
 * @count:	filled
 */
void residency_count(const struct residency *list, uint64_t first, uint64_t nr,
		     uint64_t count[PAGE_STATES])
{
	struct residency_iter iter = residency_begin(list);
	uint64_t end = nr > UINT64_MAX - first ? UINT64_MAX : first + nr;
	struct page_run run;

	memset(count, 0, sizeof(count[0]) * PAGE_STATES);
	count[PAGE_HOLE] = nr;
	while (residency_next(&iter, &run) && run.first < end) {
		uint64_t run_end = min_u64(run.first + run.nr, end);
		uint64_t run_first = run.first > first ? run.first : first;

		if (run_end <= run_first || run.state == PAGE_HOLE)
			continue;
		count[run.state] += run_end - run_first;
		count[PAGE_HOLE] -= run_end - run_first;
	}
}
