// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_source.c - choice of a source, mincore, page tables, and all together
 */
#include "pattern.h"

#include "source.h"

static void test_names(void **state)
{
	static const char *const names[] = { "auto", "pagemap", "cachestat", "mincore" };
	enum source_id id;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(source_parse(names[i], &id), 0);
		assert_int_equal(id, i);
		assert_string_equal(source_name(id), names[i]);
	}
	assert_int_equal(source_parse("", &id), -EINVAL);
	assert_int_equal(source_parse("mincor", &id), -EINVAL);
	assert_int_equal(source_parse("mincore2", &id), -EINVAL);
}

static void test_choose(void **state)
{
	static const struct probe none = { .pagemap = true },
				  stock = { .pagemap = true,
					    .cachestat = true,
					    .markers_tried = true },
				  disk = { .pagemap = true, .cachestat = true, .swap_disk = true },
				  patched = { .pagemap = true,
					      .cachestat = true,
					      .markers_tried = true,
					      .markers = true,
					      .pagemap_scan = true },
				  old_disk = { .pagemap = true, .swap_disk = true };
	static const struct {
		const struct probe *probe;
		enum source_id wanted;
		enum source_id got; /* SOURCE_AUTO: refused */
		bool exact;
	} cases[] = {
		{ &none, SOURCE_AUTO, SOURCE_MINCORE, true },
		{ &stock, SOURCE_AUTO, SOURCE_CACHESTAT, true },
		{ &disk, SOURCE_AUTO, SOURCE_CACHESTAT, true },
		{ &patched, SOURCE_AUTO, SOURCE_PAGEMAP, true },
		{ &old_disk, SOURCE_AUTO, SOURCE_MINCORE, false },
		{ &none, SOURCE_CACHESTAT, SOURCE_AUTO, false },
		{ &none, SOURCE_PAGEMAP, SOURCE_AUTO, false },
		{ &stock, SOURCE_PAGEMAP, SOURCE_AUTO, false },
		{ &disk, SOURCE_PAGEMAP, SOURCE_AUTO, false },
		{ &patched, SOURCE_CACHESTAT, SOURCE_CACHESTAT, true },
		{ &patched, SOURCE_MINCORE, SOURCE_MINCORE, true },
		{ &disk, SOURCE_MINCORE, SOURCE_MINCORE, false },
	};
	const char *why;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct source source;
		int ret = source_choose(&source, cases[i].wanted, cases[i].probe, &why);

		if (cases[i].got == SOURCE_AUTO) {
			assert_int_equal(ret, -EOPNOTSUPP);
			assert_non_null(why);
			continue;
		}
		assert_int_equal(ret, 0);
		assert_null(why);
		assert_int_equal(source.id, cases[i].got);
		assert_int_equal(source.exact, cases[i].exact);
		assert_int_equal(source.cachestat, cases[i].got != SOURCE_MINCORE);
		assert_int_equal(source.pagemap_scan, cases[i].probe->pagemap_scan);
		assert_int_equal(source.calls, 0);
	}
}

/* Without swap and cachestat: resident pages and holes, from a known start. */
static void start_holes(struct shmem *shmem, struct rng *rng, uint64_t longest)
{
	struct pattern pattern;

	pattern_random(rng, &pattern, 1 + rng_below(rng, PATTERN_MAX), longest, "01");
	shmem_start(shmem, &pattern);
}

static void test_next_data(void **state)
{
	struct rng rng = rng_start();
	struct shmem shmem;

	(void)state;
	for (int round = 0; round < 20; round++) {
		const struct pattern *pattern = &shmem.pattern;

		start_holes(&shmem, &rng, 20);
		for (uint64_t from = 0; from < pattern->pages; from++) {
			uint64_t end = from + rng_below(&rng, pattern->pages - from + 1);
			uint64_t first = from, last, got_first, got_nr;

			while (first < end && !pattern->state[first])
				first++;
			for (last = first; last < end && pattern->state[last];)
				last++;
			CHECK(&rng, !source_next_data(shmem.fd, from, end, &got_first, &got_nr));
			CHECK(&rng, got_nr == last - first);
			CHECK(&rng, got_first == (got_nr ? first : end));
		}
		shmem_free(&shmem);
	}
}

static void test_next_data_ends(void **state)
{
	int fd = memfd_create("unit", MFD_CLOEXEC);
	uint64_t first, nr;

	(void)state;
	assert_int_equal(source_next_data(fd, 0, 0, &first, &nr), 0);
	assert_int_equal(nr, 0);
	assert_int_equal(source_next_data(fd, 0, 100, &first, &nr), 0);
	assert_int_equal(nr, 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	assert_int_equal(source_next_data(fd, 0, 100, &first, &nr), 0);
	assert_int_equal(first, 0);
	assert_int_equal(nr, 1);
	assert_int_equal(source_next_data(fd, 1, 100, &first, &nr), 0);
	assert_int_equal(first, 100);
	assert_int_equal(nr, 0);
	assert_int_equal(source_next_data(fd, 101, 100, &first, &nr), 0);
	assert_int_equal(nr, 0);
	close(fd);
	assert_int_equal(source_next_data(-1, 0, 100, &first, &nr), -EBADF);
}

static void test_mincore_holes(void **state)
{
	struct rng rng = rng_start();
	struct residency list = { 0 };
	struct shmem shmem;

	(void)state;
	for (int round = 0; round < 20; round++) {
		start_holes(&shmem, &rng, 1 + rng_below(&rng, 50));
		CHECK(&rng, !source_mincore_read(shmem.fd, shmem.pattern.pages, &list));
		CHECK(&rng, pattern_is(&shmem.pattern, &list));
		residency_free(&list);
		shmem_free(&shmem);
	}
	assert_int_equal(source_mincore_read(-1, 1, &list), -EBADF);
	assert_int_equal(source_mincore_read(-1, 0, &list), 0);
	assert_int_equal(list.nr, 0);
}

/* Holes are exact, and a resident page is never taken for swapped. */
static bool mincore_agrees(const struct pattern *pattern, const struct residency *list)
{
	struct residency_iter iter = residency_begin(list);
	struct page_run run;

	if (list->pages != pattern->pages)
		return false;
	while (residency_next(&iter, &run))
		for (uint64_t i = run.first; i < run.first + run.nr; i++)
			if ((run.state == PAGE_HOLE) != (pattern->state[i] == PAGE_HOLE) ||
			    (run.state == PAGE_SWAPPED && pattern->state[i] == PAGE_RESIDENT))
				return false;
	return true;
}

static void test_mincore_swapped(void **state)
{
	struct rng rng = rng_start();
	struct residency list = { 0 };
	struct pattern pattern;
	struct shmem shmem;
	bool agrees;

	(void)state;
	if (!have_cachestat() || !have_swap())
		SKIP("no cachestat or no swap here");
	pattern_random(&rng, &pattern, PATTERN_MAX, 30, "012");
	if (!shmem_make(&shmem, &pattern))
		SKIP("the kernel does not page out what it is told to");
	assert_int_equal(source_mincore_read(shmem.fd, pattern.pages, &list), 0);
	agrees = mincore_agrees(&pattern, &list);
	residency_free(&list);
	if (!agrees && !shmem_holds(&shmem))
		SKIP("something else moves pages");
	CHECK(&rng, agrees);
	shmem_free(&shmem);
}

static void test_mincore_sparse(void **state)
{
	const uint64_t pages = (16ULL << 40) / page_size(), nr = 10;
	int fd = memfd_create("unit", MFD_CLOEXEC);
	struct residency list = { 0 };

	(void)state;
	assert_int_equal(ftruncate(fd, 16LL << 40), 0);
	for (uint64_t i = 0; i < nr; i++)
		assert_int_equal(pwrite(fd, "x", 1, (off_t)((i * (pages / nr) + i) * page_size())),
				 1);
	assert_int_equal(source_mincore_read(fd, pages, &list), 0);
	assert_int_equal(list.pages, pages);
	assert_int_equal(list.nr, 2 * nr);
	assert_int_equal(list.count[PAGE_HOLE], pages - nr);
	residency_free(&list);
	close(fd);
}

/* Page tables. */

static bool scan_works(void)
{
	struct probe probe;

	if (under_valgrind())
		return false;
	probe_run(&probe);
	return probe.pagemap_scan;
}

/* Adds this task's mapping of pages [@offset, @offset + @nr) at @map. */
static void add_map(struct shm_object *object, const void *map, uint64_t nr, uint64_t offset)
{
	struct shm_ref ref = {
		.pid = getpid(),
		.fd = -1,
		.start = (uintptr_t)map,
		.end = (uintptr_t)map + nr * page_size(),
		.offset = offset * page_size(),
	};

	assert_int_equal(object_add_ref(object, &ref), 0);
}

/* A write maps that page alone, so that the guess is exact here. */
static void check_guess(const struct shm_object *object, bool scan, uint64_t first, uint64_t nr,
			const unsigned char *touched)
{
	unsigned char resident[PIECE_PAGES];

	memset(resident, 0x55, sizeof(resident));
	assert_int_equal(source_pagemap_guess(object, scan, first, nr, resident), 0);
	assert_memory_equal(resident, touched + first, nr);
	for (uint64_t i = nr; i < PIECE_PAGES; i++)
		assert_int_equal(resident[i], 0x55);
}

#define OBJECT_PAGES 600

/* Two mappings of parts, [100, 400) and [350, 550), of an object with holes. */
static void guess_parts(bool scan)
{
	unsigned char touched[OBJECT_PAGES] = { 0 };
	struct shm_object object = { 0 };
	int fd = memfd_create("unit", MFD_CLOEXEC);
	unsigned char *map[2];
	struct rng rng = rng_start();

	assert_int_equal(ftruncate(fd, OBJECT_PAGES * (off_t)page_size()), 0);
	for (int i = 0; i < 2; i++) {
		uint64_t first = i ? 350 : 100, nr = i ? 200 : 300;

		map[i] = mmap(NULL, nr * page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			      (off_t)(first * page_size()));
		assert_ptr_not_equal(map[i], MAP_FAILED);
		add_map(&object, map[i], nr, first);
		for (uint64_t k = 0; k < nr; k++) {
			if (rng_below(&rng, 2))
				continue;
			map[i][k * page_size()] = 1;
			touched[first + k] = 1;
		}
	}
	check_guess(&object, scan, 0, PIECE_PAGES, touched);
	check_guess(&object, scan, 256, PIECE_PAGES, touched);
	check_guess(&object, scan, 300, 100, touched);
	check_guess(&object, scan, 399, 1, touched);
	check_guess(&object, scan, 512, 88, touched);
	munmap(map[0], 300 * page_size());
	munmap(map[1], 200 * page_size());
	free(object.ref);
	close(fd);
}

static void test_guess_plain(void **state)
{
	(void)state;
	if (access("/proc/self/pagemap", R_OK))
		SKIP("no pagemap here");
	guess_parts(false);
}

static void test_guess_scan(void **state)
{
	(void)state;
	if (!scan_works())
		SKIP("no PAGEMAP_SCAN here");
	guess_parts(true);
}

/* No mapping that can be read is an error, not an empty guess. */
static void test_guess_none(void **state)
{
	struct shm_ref fd_ref = { .pid = getpid(), .fd = 3 };
	struct shm_object object = { 0 };
	unsigned char resident[8];
	char page;

	(void)state;
	assert_true(source_pagemap_guess(&object, false, 0, 8, resident) < 0);
	assert_int_equal(object_add_ref(&object, &fd_ref), 0);
	assert_true(source_pagemap_guess(&object, false, 0, 8, resident) < 0);
	add_map(&object, &page, 8, 8);
	assert_true(source_pagemap_guess(&object, false, 0, 8, resident) < 0);
	add_map(&object, &page, 8, 0);
	object.ref[2].pid = INT32_MAX;
	assert_true(source_pagemap_guess(&object, false, 0, 8, resident) < 0);
	free(object.ref);
}

static struct shm_object *find_self(struct shm_objects *objects, int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(objects_add_task(objects, getpid()), 0);
	for (size_t i = 0; i < objects->nr; i++)
		if (objects->object[i]->ino == st.st_ino && objects->object[i]->kind == SHM_MEMFD) {
			objects->object[i]->size = (uint64_t)st.st_size;
			return objects->object[i];
		}
	fail_msg("the object was not found");
	return NULL;
}

/* A private copy is present in the page tables and is no page of the object. */
static void test_guess_private(void **state)
{
	int fd = memfd_create("unit", MFD_CLOEXEC);
	struct shm_objects objects = { 0 };
	const off_t page = (off_t)page_size();
	unsigned char resident[2];
	struct shm_object *object;
	char *map;

	(void)state;
	if (access("/proc/self/pagemap", R_OK))
		SKIP("no pagemap here");
	assert_int_equal(ftruncate(fd, 2 * page), 0);
	map = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	map[0] = 1;
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, page), 0);
	assert_int_equal(map[0], 1);
	object = find_self(&objects, fd);
	for (int scan = 0; scan <= (scan_works() ? 1 : 0); scan++)
		if (!source_pagemap_guess(object, scan, 0, 2, resident))
			assert_int_equal(resident[0] + resident[1], 0);
	objects_free(&objects);
	munmap(map, 2 * (size_t)page);
	close(fd);
}

/* Whatever source is used, an exact one tells the truth. */
static void read_with(struct shmem *shmem, enum source_id id, bool scan)
{
	struct source source = { .id = id, .exact = true, .cachestat = true, .pagemap_scan = scan };
	struct shm_objects objects = { 0 };
	struct residency list = { 0 };
	struct shm_object *object = find_self(&objects, shmem->fd);
	bool right;

	assert_int_equal(source_read(&source, object, shmem->fd, &list), 0);
	right = pattern_is(&shmem->pattern, &list);
	assert_true(source.calls > 0);
	residency_free(&list);
	objects_free(&objects);
	if (!right && !shmem_holds(shmem))
		SKIP("something else moves pages");
	assert_true(right);
}

static void test_read(void **state)
{
	struct rng rng = rng_start();
	bool scan = scan_works();

	(void)state;
	if (!have_cachestat())
		SKIP("no cachestat here");
	for (int round = 0; round < 6; round++) {
		struct pattern pattern;
		struct shmem shmem;

		pattern_random(&rng, &pattern, PATTERN_MAX, 1 + 10 * (uint64_t)round,
			       have_swap() ? "012" : "01");
		if (!shmem_make(&shmem, &pattern))
			SKIP("the kernel does not page out what it is told to");
		read_with(&shmem, SOURCE_CACHESTAT, false);
		read_with(&shmem, SOURCE_PAGEMAP, false);
		read_with(&shmem, SOURCE_PAGEMAP, scan);
		shmem_free(&shmem);
	}
}

static void test_read_mincore(void **state)
{
	struct source source = { .id = SOURCE_MINCORE };
	struct shm_objects objects = { 0 };
	struct residency list = { 0 };
	struct rng rng = rng_start();
	struct shm_object *object;
	struct shmem shmem;

	(void)state;
	start_holes(&shmem, &rng, 9);
	object = find_self(&objects, shmem.fd);
	assert_int_equal(source_read(&source, object, shmem.fd, &list), 0);
	assert_true(pattern_is(&shmem.pattern, &list));
	assert_int_equal(source.calls, 0);
	residency_free(&list);
	/* An error leaves nothing. */
	assert_true(source_read(&source, object, -1, &list) < 0);
	assert_null(list.run);
	source.cachestat = true;
	assert_true(source_read(&source, object, -1, &list) < 0);
	assert_null(list.run);
	objects_free(&objects);
	shmem_free(&shmem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	       cmocka_unit_test(test_choose),
		cmocka_unit_test(test_next_data),      cmocka_unit_test(test_next_data_ends),
		cmocka_unit_test(test_mincore_holes),  cmocka_unit_test(test_mincore_swapped),
		cmocka_unit_test(test_mincore_sparse), cmocka_unit_test(test_guess_plain),
		cmocka_unit_test(test_guess_scan),     cmocka_unit_test(test_guess_none),
		cmocka_unit_test(test_guess_private),  cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_mincore),
	};

	return RUN_TESTS(tests);
}
