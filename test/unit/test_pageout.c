// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_pageout.c - what was to go out is out, and nothing else
 *
 * An object that is resident but for its holes is paged out by a recorded
 * pattern. Nobody has it mapped meanwhile, as after a restore.
 */
#include "pattern.h"

#include <sched.h>

#include "pageout.h"

static struct rng rng;

static void need_swap(void)
{
	rng = rng_start();
	unsetenv("CRIU_SHMEM_FAULT");
	if (!have_cachestat())
		SKIP("no cachestat here");
	if (!have_swap())
		SKIP("no swap here");
}

/* Resident where the pattern says resident or swapped. */
static void start(struct shmem *shmem, struct shm_object *object, const struct pattern *pattern)
{
	shmem_start(shmem, pattern);
	/* A mapping would keep the pages in. */
	munmap(shmem->map, pattern->pages * page_size());
	*object = (struct shm_object){ .kind = SHM_MEMFD, .size = pattern->pages * page_size() };
	for (uint64_t i = 0; i < pattern->pages; i++)
		CHECK(&rng, !residency_add(&object->state, 1, pattern->state[i]));
}

static void end(struct shmem *shmem, struct shm_object *object)
{
	residency_free(&object->state);
	free(object->ref);
	close(shmem->fd);
}

static void run(struct pageout *po, const struct shm_object *object, int fd, uint64_t window)
{
	static struct source source;

	source = (struct source){ .id = SOURCE_CACHESTAT, .exact = true, .cachestat = true };
	*po = (struct pageout){ .source = &source, .window = window, .keep_locked = true };
	pageout_drain_lru();
	assert_int_equal(pageout_object(po, object, fd), 0);
}

static uint64_t count_pages(int fd, uint64_t pages, enum page_state wanted)
{
	uint64_t count = 0;
	unsigned char state;

	for (uint64_t i = 0; i < pages; i++)
		count += page_state_of(fd, i, &state) && state == wanted;
	return count;
}

/*
 * Holes stay holes and resident pages stay in. Of those that are to go, a few
 * may be held by the kernel for a moment; they are counted then.
 */
static void check_pattern(const struct shmem *shmem, const struct pageout *po)
{
	const struct pattern *pattern = &shmem->pattern;
	uint64_t want = 0, out = 0;
	unsigned char state = PAGE_HOLE;

	for (uint64_t i = 0; i < pattern->pages; i++) {
		CHECK(&rng, page_state_of(shmem->fd, i, &state));
		if (pattern->state[i] != PAGE_SWAPPED) {
			CHECK(&rng, state == pattern->state[i]);
			continue;
		}
		CHECK(&rng, state != PAGE_HOLE);
		want++;
		out += state == PAGE_SWAPPED;
	}
	CHECK(&rng, po->out == out);
	CHECK(&rng, po->left == want - out);
	CHECK(&rng, !po->why == !po->left);
	if (po->left)
		SKIP("the kernel kept %" PRIu64 " of %" PRIu64 " pages: %s", po->left, want,
		     po->why);
}

static void try_pattern(const struct pattern *pattern, uint64_t window)
{
	struct shm_object object;
	struct shmem shmem;
	struct pageout po;

	start(&shmem, &object, pattern);
	run(&po, &object, shmem.fd, window);
	residency_free(&object.state);
	check_pattern(&shmem, &po);
	end(&shmem, &object);
}

static void try_windows(void)
{
	const uint64_t windows[] = { 1, 3, 64, 256, 1 << 18 };
	struct pattern pattern;

	for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
		pattern_random(&rng, &pattern, PATTERN_MAX, 1 + 20 * i, "012");
		try_pattern(&pattern, windows[i] * page_size());
	}
}

static void test_windows(void **state)
{
	(void)state;
	need_swap();
	try_windows();
}

static void with_fault(const char *fault)
{
	need_swap();
	setenv("CRIU_SHMEM_FAULT", fault, 1);
	try_windows();
	unsetenv("CRIU_SHMEM_FAULT");
}

static void test_no_process_madvise(void **state)
{
	(void)state;
	with_fault("no-process-madvise");
}

static void test_no_populate_read(void **state)
{
	(void)state;
	with_fault("no-populate-read");
}

static void all_swapped(struct pattern *pattern, uint64_t pages)
{
	pattern->pages = pages;
	memset(pattern->state, PAGE_SWAPPED, pages);
}

/* A second time there is nothing to do. */
static void test_again(void **state)
{
	struct pattern pattern;
	struct shm_object object;
	struct shmem shmem;
	struct pageout po;

	(void)state;
	need_swap();
	all_swapped(&pattern, 300);
	start(&shmem, &object, &pattern);
	run(&po, &object, shmem.fd, 1 << 20);
	if (!po.left) {
		run(&po, &object, shmem.fd, 1 << 20);
		assert_int_equal(po.out + po.left, 0);
		assert_null(po.why);
	}
	end(&shmem, &object);
}

/* When nothing goes, it is said and counted, and is no error. */
static void test_refused(void **state)
{
	struct pattern pattern;
	struct shm_object object;
	struct shmem shmem;
	struct pageout po;

	(void)state;
	need_swap();
	setenv("CRIU_SHMEM_FAULT", "pageout-refused", 1);
	all_swapped(&pattern, PATTERN_MAX);
	start(&shmem, &object, &pattern);
	run(&po, &object, shmem.fd, page_size());
	unsetenv("CRIU_SHMEM_FAULT");
	assert_int_equal(po.out, 0);
	assert_int_equal(po.left, PATTERN_MAX);
	assert_non_null(po.why);
	assert_int_equal(count_pages(shmem.fd, PATTERN_MAX, PAGE_RESIDENT), PATTERN_MAX);
	end(&shmem, &object);
}

/* What an mlocked mapping covers is not tried, nor counted as left. */
static void test_locked(void **unused)
{
	struct pattern pattern;
	unsigned char state;
	struct shm_ref ref = {
		.fd = -1,
		.start = 1 << 20,
		.end = (1 << 20) + 50 * page_size(),
		.offset = 100 * page_size(),
		.locked = true,
	};
	struct shm_object object;
	struct shmem shmem;
	struct pageout po;

	(void)unused;
	need_swap();
	all_swapped(&pattern, 300);
	start(&shmem, &object, &pattern);
	assert_int_equal(object_add_ref(&object, &ref), 0);
	run(&po, &object, shmem.fd, 1 << 20);
	assert_int_equal(po.out + po.left, 250);
	assert_int_equal(count_pages(shmem.fd, 300, PAGE_SWAPPED), po.out);
	for (uint64_t i = 100; i < 150; i++)
		assert_true(page_state_of(shmem.fd, i, &state) && state == PAGE_RESIDENT);
	end(&shmem, &object);
}

/* The record may be of a larger object: the image is not believed. */
static void test_shrunk(void **state)
{
	struct pattern pattern;
	struct shm_object object;
	struct shmem shmem;
	struct pageout po;

	(void)state;
	need_swap();
	all_swapped(&pattern, 500);
	start(&shmem, &object, &pattern);
	assert_int_equal(ftruncate(shmem.fd, 200 * (off_t)page_size()), 0);
	run(&po, &object, shmem.fd, 1 << 20);
	assert_int_equal(po.out + po.left, 200);
	assert_int_equal(count_pages(shmem.fd, 500, PAGE_SWAPPED), po.out);
	end(&shmem, &object);
}

static void test_affinity(void **state)
{
	cpu_set_t before, after;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	pageout_drain_lru();
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),		 cmocka_unit_test(test_no_process_madvise),
		cmocka_unit_test(test_no_populate_read), cmocka_unit_test(test_again),
		cmocka_unit_test(test_refused),		 cmocka_unit_test(test_locked),
		cmocka_unit_test(test_shrunk),		 cmocka_unit_test(test_affinity),
	};

	return RUN_TESTS(tests);
}
