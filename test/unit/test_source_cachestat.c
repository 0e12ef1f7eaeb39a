// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_source_cachestat.c - states and cost of source_cachestat.c
 *
 * Objects of known pattern are read with guesses of every sort. The number of
 * calls is compared with that of a model that walks the pattern.
 */
#include "pattern.h"

#include <pthread.h>
#include <stdatomic.h>

#include "source.h"

#define HOLES "01"
#define ALL "012"

/* The pattern, for guesses that know the truth. */
static const struct pattern *truth;

static struct rng rng;

static int guess_all(void *arg, uint64_t first, uint64_t nr, unsigned char *resident)
{
	(void)arg;
	(void)first;
	memset(resident, 1, nr);
	return 0;
}

static int guess_none(void *arg, uint64_t first, uint64_t nr, unsigned char *resident)
{
	(void)arg;
	(void)first;
	memset(resident, 0, nr);
	return 0;
}

static int guess_truth(void *arg, uint64_t first, uint64_t nr, unsigned char *resident)
{
	(void)arg;
	for (uint64_t i = 0; i < nr; i++)
		resident[i] = truth->state[first + i] == PAGE_RESIDENT;
	return 0;
}

static int guess_more(void *arg, uint64_t first, uint64_t nr, unsigned char *resident)
{
	guess_truth(arg, first, nr, resident);
	for (uint64_t i = 0; i < nr; i++)
		resident[i] |= !rng_below(&rng, 8);
	return 0;
}

static int guess_less(void *arg, uint64_t first, uint64_t nr, unsigned char *resident)
{
	guess_truth(arg, first, nr, resident);
	for (uint64_t i = 0; i < nr; i++)
		resident[i] &= !!rng_below(&rng, 8);
	return 0;
}

/* Fills in nonsense and fails. */
static int guess_fails(void *arg, uint64_t first, uint64_t nr, unsigned char *resident)
{
	(void)arg;
	(void)first;
	memset(resident, 1, nr);
	return -EIO;
}

static int guess_mincore(void *arg, uint64_t first, uint64_t nr, unsigned char *resident)
{
	return source_mincore_guess(*(int *)arg, first, nr, resident);
}

/* The model: how often a range is to be halved until no half is mixed. */
static uint64_t halvings(const unsigned char *state, uint64_t nr)
{
	for (uint64_t i = 1; i < nr; i++)
		if (state[i] != state[0])
			return 1 + halvings(state, nr / 2) + halvings(state + nr / 2, nr - nr / 2);
	return 0;
}

static bool is_hole(const unsigned char *state, uint64_t nr)
{
	while (nr && state[nr - 1] == PAGE_HOLE)
		nr--;
	return !nr;
}

/* Pieces looked at, and calls when no guess helps. */
static void model_calls(const struct pattern *pattern, uint64_t *pieces, uint64_t *calls)
{
	uint64_t first = 0;

	*pieces = *calls = 0;
	while (first < pattern->pages) {
		const unsigned char *state = pattern->state + first;
		uint64_t left = pattern->pages - first;
		uint64_t nr = left < PIECE_PAGES ? left : PIECE_PAGES;

		++*pieces;
		*calls += 1 + halvings(state, nr);
		/* Behind an empty piece everything empty is skipped. */
		if (is_hole(state, nr))
			while (first + nr < pattern->pages &&
			       is_hole(pattern->state + first + nr,
				       pattern->pages - first - nr < PIECE_PAGES
					       ? pattern->pages - first - nr
					       : PIECE_PAGES))
				nr += PIECE_PAGES;
		first += nr;
	}
}

static uint64_t read_calls(struct shmem *shmem, guess_fn guess)
{
	struct residency list = { 0 };
	uint64_t calls = 0;
	bool right;

	CHECK(&rng, !source_cachestat_read(shmem->fd, shmem->pattern.pages, guess, &shmem->fd,
					   &calls, &list));
	right = pattern_is(&shmem->pattern, &list);
	residency_free(&list);
	/* Swap may have gone off, or memory short, in between. */
	if (!right && !shmem_holds(shmem))
		SKIP("something else moves pages");
	CHECK(&rng, right);
	return calls;
}

static void try_pattern(const struct pattern *pattern)
{
	static const guess_fn lies[] = { guess_all, guess_none, guess_more, guess_less };
	uint64_t pieces, calls;
	struct shmem shmem;

	if (!shmem_make(&shmem, pattern))
		SKIP("the kernel does not page out what it is told to");
	truth = pattern;
	model_calls(pattern, &pieces, &calls);
	CHECK(&rng, read_calls(&shmem, NULL) == calls);
	CHECK(&rng, read_calls(&shmem, guess_fails) == calls);
	CHECK(&rng, read_calls(&shmem, guess_truth) == pieces);
	CHECK(&rng, read_calls(&shmem, guess_mincore) <= calls);
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++)
		CHECK(&rng, read_calls(&shmem, lies[i]) <= calls);
	setenv("CRIU_SHMEM_FAULT", "no-guess", 1);
	CHECK(&rng, read_calls(&shmem, guess_truth) == calls);
	unsetenv("CRIU_SHMEM_FAULT");
	shmem_free(&shmem);
}

static void try_states(const char *states)
{
	static const uint64_t sizes[] = { 1, 2, 255, 256, 257, 512, 1000, PATTERN_MAX };
	struct pattern pattern;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		pattern_random(&rng, &pattern, sizes[i], 1, states);
		try_pattern(&pattern);
		pattern_random(&rng, &pattern, sizes[i], 40, states);
		try_pattern(&pattern);
		pattern_random(&rng, &pattern, sizes[i], 1000, states);
		try_pattern(&pattern);
	}
}

static void need_cachestat(void)
{
	rng = rng_start();
	unsetenv("CRIU_SHMEM_FAULT");
	if (!have_cachestat())
		SKIP("no cachestat here");
}

static void test_holes(void **state)
{
	(void)state;
	need_cachestat();
	try_states(HOLES);
}

static void need_swap(void)
{
	need_cachestat();
	if (!have_swap())
		SKIP("no swap here");
}

static void test_swapped(void **state)
{
	(void)state;
	need_swap();
	try_states(ALL);
	try_states("12");
	try_states("02");
}

/* The worst case: no neighbours are alike. */
static void test_alternating(void **state)
{
	struct pattern pattern = { .pages = 2 * PIECE_PAGES };
	uint64_t pieces, calls;

	(void)state;
	need_swap();
	for (uint64_t i = 0; i < pattern.pages; i++)
		pattern.state[i] = i % 2 ? PAGE_RESIDENT : PAGE_SWAPPED;
	model_calls(&pattern, &pieces, &calls);
	/* Never more than a call for each pair of neighbours, and one for each piece. */
	assert_int_equal(pieces, 2);
	assert_int_equal(calls, 2 + 2 * (PIECE_PAGES - 1));
	try_pattern(&pattern);
}

/*
 * Pages allocated with fallocate() and never touched are resident for the
 * kernel, and neither data for SEEK_DATA nor in core for mincore: a guess that
 * misses them must not be taken for proven when it errs elsewhere too, as
 * mincore does with pages in the swap cache.
 */
static void test_fallocated(void **state)
{
	struct pattern pattern = { .pages = 512 };
	struct shmem shmem;

	(void)state;
	need_swap();
	for (uint64_t i = 0; i < pattern.pages; i++)
		pattern.state[i] = i % 2 ? PAGE_SWAPPED : PAGE_HOLE;
	if (!shmem_make(&shmem, &pattern))
		SKIP("the kernel does not page out what it is told to");
	for (uint64_t i = 0; i < pattern.pages; i += 2) {
		assert_int_equal(fallocate(shmem.fd, FALLOC_FL_KEEP_SIZE, (off_t)(i * page_size()),
					   (off_t)page_size()),
				 0);
		shmem.pattern.state[i] = PAGE_RESIDENT;
	}
	if (!shmem_holds(&shmem))
		SKIP("something else moves pages");
	read_calls(&shmem, NULL);
	read_calls(&shmem, guess_mincore);
	shmem_free(&shmem);
}

/* 16 TiB with a few pages costs what the few pages cost. */
static void test_sparse(void **state)
{
	const uint64_t pages = (16ULL << 40) / page_size(), nr = 10;
	int fd = memfd_create("unit", MFD_CLOEXEC);
	struct residency list = { 0 };
	uint64_t calls = 0;

	(void)state;
	need_cachestat();
	assert_int_equal(ftruncate(fd, 16LL << 40), 0);
	for (uint64_t i = 0; i < nr; i++)
		assert_int_equal(pwrite(fd, "x", 1, (off_t)((i * (pages / nr) + i) * page_size())),
				 1);
	assert_int_equal(source_cachestat_read(fd, pages, guess_mincore, &fd, &calls, &list), 0);
	assert_int_equal(list.pages, pages);
	assert_int_equal(list.count[PAGE_HOLE], pages - nr);
	assert_int_equal(list.nr, 2 * nr);
	/* A piece for each, the empty one behind it, and eight halvings at most. */
	assert_true(calls <= 10 * nr);
	residency_free(&list);
	close(fd);
}

static void test_empty(void **state)
{
	int fd = memfd_create("unit", MFD_CLOEXEC);
	struct residency list = { 0 };
	uint64_t calls = 0;

	(void)state;
	need_cachestat();
	assert_int_equal(source_cachestat_read(fd, 0, NULL, NULL, &calls, &list), 0);
	assert_int_equal(calls, 0);
	assert_int_equal(list.pages, 0);
	assert_int_equal(source_cachestat_read(fd, 3, NULL, NULL, &calls, &list), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(list.count[PAGE_HOLE], 3);
	residency_free(&list);
	close(fd);
	assert_int_equal(source_cachestat_read(-1, 3, NULL, NULL, &calls, &list), -EBADF);
}

static atomic_bool stop;

/* Writes, punches and truncates until told to stop. */
static void *stir(void *arg)
{
	const off_t page = (off_t)page_size();
	struct rng own = rng_start();
	int fd = *(int *)arg;

	while (!stop) {
		off_t at = page * (off_t)rng_below(&own, PATTERN_MAX);

		switch (rng_below(&own, 20)) {
		case 0:
			stop |= ftruncate(fd, at) || ftruncate(fd, PATTERN_MAX * page);
			break;
		case 1 ... 9:
			stop |= fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, page);
			break;
		default:
			stop |= pwrite(fd, "x", 1, at) != 1;
		}
	}
	return NULL;
}

/* The tool looks at running tasks: any result will do, but no error. */
static void test_moving(void **state)
{
	int fd = memfd_create("unit", MFD_CLOEXEC);
	struct residency list = { 0 };
	uint64_t calls = 0;
	pthread_t thread;

	(void)state;
	need_cachestat();
	assert_int_equal(ftruncate(fd, PATTERN_MAX * (off_t)page_size()), 0);
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, stir, &fd), 0);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(
			source_cachestat_read(fd, PATTERN_MAX, guess_mincore, &fd, &calls, &list),
			0);
		assert_int_equal(list.pages, PATTERN_MAX);
		residency_free(&list);
		assert_int_equal(source_mincore_read(fd, PATTERN_MAX, &list), 0);
		assert_int_equal(list.pages, PATTERN_MAX);
		residency_free(&list);
	}
	assert_false(stop);
	stop = true;
	pthread_join(thread, NULL);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holes),	    cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_alternating), cmocka_unit_test(test_fallocated),
		cmocka_unit_test(test_sparse),	    cmocka_unit_test(test_empty),
		cmocka_unit_test(test_moving),
	};

	return RUN_TESTS(tests);
}
