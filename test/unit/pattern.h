/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pattern.h - shared memory objects whose pages have known states
 *
 * What the pages really are is asked of the kernel one page at a time, with a
 * system call of the test's own.
 */
#ifndef SHP_PATTERN_H
#define SHP_PATTERN_H

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "residency.h"
#include "shmem_uapi.h"
#include "unit.h"

#define PATTERN_MAX 1100

/* Times to ask the kernel until the pages are as wanted. */
#define PATTERN_TRIES 50

struct pattern {
	uint64_t pages;
	unsigned char state[PATTERN_MAX]; /* enum page_state */
};

struct shmem {
	int fd;
	unsigned char *map; /* all of it */
	struct pattern pattern;
};

static inline bool have_swap(void)
{
	struct sysinfo info;

	return !sysinfo(&info) && info.freeswap * info.mem_unit > 64ULL << 20;
}

static inline bool page_state_of(int fd, uint64_t page, unsigned char *state)
{
	struct shm_cachestat_range range = { page * page_size(), page_size() };
	struct shm_cachestat stat = { 0 };

	if (syscall(SHM_NR_cachestat, fd, &range, &stat, 0))
		return false;
	*state = stat.nr_cache ? PAGE_RESIDENT : stat.nr_evicted ? PAGE_SWAPPED : PAGE_HOLE;
	return true;
}

static inline bool have_cachestat(void)
{
	int fd = memfd_create("unit", MFD_CLOEXEC);
	unsigned char state;
	bool have = page_state_of(fd, 0, &state);

	close(fd);
	return have;
}

/* Is the object still what it was made to be? */
static inline bool shmem_holds(const struct shmem *shmem)
{
	unsigned char state;

	for (uint64_t i = 0; i < shmem->pattern.pages; i++)
		if (!page_state_of(shmem->fd, i, &state) || state != shmem->pattern.state[i])
			return false;
	return true;
}

static inline void shmem_free(struct shmem *shmem)
{
	munmap(shmem->map, shmem->pattern.pages * page_size());
	close(shmem->fd);
}

/* Populates what is no hole; all of it is resident then. */
static inline void shmem_start(struct shmem *shmem, const struct pattern *pattern)
{
	uint64_t page = page_size();

	shmem->pattern = *pattern;
	shmem->fd = memfd_create("unit", MFD_CLOEXEC);
	assert_true(shmem->fd >= 0);
	/* The last page is not a whole one. */
	assert_int_equal(ftruncate(shmem->fd, (off_t)(pattern->pages * page - 100)), 0);
	shmem->map =
		mmap(NULL, pattern->pages * page, PROT_READ | PROT_WRITE, MAP_SHARED, shmem->fd, 0);
	assert_ptr_not_equal(shmem->map, MAP_FAILED);
	for (uint64_t i = 0; i < pattern->pages; i++)
		if (pattern->state[i] != PAGE_HOLE)
			shmem->map[i * page] = 1;
}

/* One try to make the pages what they should be. */
static inline void shmem_push(struct shmem *shmem)
{
	uint64_t page = page_size();
	unsigned char state;

	for (uint64_t i = 0; i < shmem->pattern.pages; i++) {
		unsigned char *at = shmem->map + i * page;

		if (!page_state_of(shmem->fd, i, &state) || state == shmem->pattern.state[i])
			continue;
		if (shmem->pattern.state[i] == PAGE_RESIDENT)
			*at = 1;
		else if (state == PAGE_RESIDENT)
			madvise(at, page, SHM_MADV_PAGEOUT);
	}
}

/*
 * An object with these states; false when the kernel would not do it. Needs
 * cachestat, and swap when there are swapped pages in the pattern.
 */
static inline bool shmem_make(struct shmem *shmem, const struct pattern *pattern)
{
	shmem_start(shmem, pattern);
	for (int i = 0; i < PATTERN_TRIES; i++) {
		if (shmem_holds(shmem))
			return true;
		shmem_push(shmem);
		if (i > 2)
			usleep(10000);
	}
	shmem_free(shmem);
	return false;
}

/* Is the list the pattern? */
static inline bool pattern_is(const struct pattern *pattern, const struct residency *list)
{
	struct residency_iter iter = residency_begin(list);
	struct page_run run;

	if (list->pages != pattern->pages)
		return false;
	while (residency_next(&iter, &run))
		for (uint64_t i = run.first; i < run.first + run.nr; i++)
			if (pattern->state[i] != run.state)
				return false;
	return true;
}

/* Runs of random lengths up to @longest, of the states in @states ("012"). */
static inline void pattern_random(struct rng *rng, struct pattern *pattern, uint64_t pages,
				  uint64_t longest, const char *states)
{
	uint64_t left = 0;
	int state = 0;

	pattern->pages = pages;
	for (uint64_t i = 0; i < pages; i++) {
		if (!left) {
			left = 1 + rng_below(rng, longest);
			state = states[rng_below(rng, strlen(states))] - '0';
		}
		pattern->state[i] = (unsigned char)state;
		left--;
	}
}

#endif
