// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_residency.c - run lists against a plain array with one byte a page
 */
#include "unit.h"

#include "residency.h"

#define MODEL_PAGES 400
#define ROUNDS 300

/* The plain thing: what lies behind nr is a hole. */
struct model {
	unsigned char state[MODEL_PAGES];
	uint64_t nr;
};

/* How many calls of reallocarray() still succeed. */
static unsigned int allocations = UINT32_MAX;

/* Takes the place of the C library's, to make an allocation fail. */
void *reallocarray(void *old, size_t nr, size_t size)
{
	if (!allocations) {
		errno = ENOMEM;
		return NULL;
	}
	allocations--;
	return realloc(old, nr * size);
}

static enum page_state at(const struct model *model, uint64_t page)
{
	return page < model->nr ? model->state[page] : PAGE_HOLE;
}

/* Is the list well formed and the same as the model? */
static bool same(const struct residency *list, const struct model *model)
{
	struct residency_iter iter = residency_begin(list);
	uint64_t count[PAGE_STATES] = { 0 }, next = 0;
	int last = PAGE_STATES;
	size_t runs = 0;
	struct page_run run;

	while (residency_next(&iter, &run)) {
		if (run.first != next || !run.nr || (int)run.state == last ||
		    run.nr > model->nr - next)
			return false;
		for (uint64_t i = 0; i < run.nr; i++)
			if (model->state[next + i] != run.state)
				return false;
		count[run.state] += run.nr;
		next += run.nr;
		last = run.state;
		runs++;
	}
	return runs == list->nr && next == model->nr && list->pages == model->nr &&
	       list->nr <= list->cap && !memcmp(count, list->count, sizeof(count));
}

/* Random runs added one by one to both; short ones, to have many borders. */
static void make(struct rng *rng, struct residency *list, struct model *model)
{
	uint64_t limit = rng_below(rng, MODEL_PAGES + 1);
	uint64_t longest = 1 + rng_below(rng, 20);

	*list = (struct residency){ 0 };
	*model = (struct model){ 0 };
	while (model->nr < limit) {
		enum page_state state = (enum page_state)rng_below(rng, PAGE_STATES);
		uint64_t nr = rng_below(rng, longest + 1);

		if (nr > limit - model->nr)
			nr = limit - model->nr;
		CHECK(rng, !residency_add(list, nr, state));
		memset(model->state + model->nr, state, nr);
		model->nr += nr;
	}
}

static void test_add(void **state)
{
	struct residency list = { 0 };

	(void)state;
	assert_int_equal(residency_add(&list, 0, PAGE_SWAPPED), 0);
	assert_int_equal(list.nr, 0);
	assert_int_equal(residency_add(&list, 3, PAGE_SWAPPED), 0);
	assert_int_equal(residency_add(&list, 0, PAGE_RESIDENT), 0);
	assert_int_equal(residency_add(&list, 4, PAGE_SWAPPED), 0);
	assert_int_equal(list.nr, 1);
	assert_int_equal(residency_add(&list, 1, PAGE_HOLE), 0);
	assert_int_equal(residency_add(&list, 2, PAGE_RESIDENT), 0);
	assert_int_equal(list.nr, 3);
	assert_int_equal(list.run[0], 7 << 2 | 2);
	assert_int_equal(list.run[1], 1 << 2 | 0);
	assert_int_equal(list.run[2], 2 << 2 | 1);
	assert_int_equal(list.pages, 10);
	assert_int_equal(list.count[PAGE_HOLE], 1);
	assert_int_equal(list.count[PAGE_RESIDENT], 2);
	assert_int_equal(list.count[PAGE_SWAPPED], 7);
	residency_free(&list);
	assert_null(list.run);
	assert_int_equal(list.nr, 0);
	assert_int_equal(list.cap, 0);
	assert_int_equal(list.pages, 0);
	assert_int_equal(list.count[PAGE_SWAPPED], 0);
	residency_free(&list);
}

static void test_add_random(void **state)
{
	struct rng rng = rng_start();

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct residency list;
		struct model model;

		make(&rng, &list, &model);
		CHECK(&rng, same(&list, &model));
		residency_free(&list);
	}
}

static void test_add_overflow(void **state)
{
	struct residency list = { 0 };

	(void)state;
	assert_int_equal(residency_add(&list, RESIDENCY_PAGES_MAX + 1, PAGE_HOLE), -EOVERFLOW);
	assert_int_equal(residency_add(&list, UINT64_MAX, PAGE_HOLE), -EOVERFLOW);
	assert_int_equal(list.nr, 0);
	assert_int_equal(residency_add(&list, RESIDENCY_PAGES_MAX - 1, PAGE_RESIDENT), 0);
	assert_int_equal(residency_add(&list, 2, PAGE_RESIDENT), -EOVERFLOW);
	assert_int_equal(residency_add(&list, UINT64_MAX, PAGE_SWAPPED), -EOVERFLOW);
	assert_int_equal(list.nr, 1);
	assert_int_equal(list.pages, RESIDENCY_PAGES_MAX - 1);
	assert_int_equal(list.count[PAGE_SWAPPED], 0);
	assert_int_equal(residency_add(&list, 1, PAGE_SWAPPED), 0);
	assert_int_equal(residency_add(&list, 1, PAGE_SWAPPED), -EOVERFLOW);
	assert_int_equal(list.pages, RESIDENCY_PAGES_MAX);
	assert_int_equal(list.run[0] >> RUN_STATE_BITS, RESIDENCY_PAGES_MAX - 1);
	residency_free(&list);
}

static void test_no_memory(void **state)
{
	struct residency list = { 0 }, out = { 0 };
	const uint64_t run[] = { 1 << 2 | 1, 1 << 2 | 2 };
	uint64_t pages;

	(void)state;
	allocations = 0;
	assert_int_equal(residency_add(&list, 1, PAGE_RESIDENT), -ENOMEM);
	assert_int_equal(list.pages, 0);
	assert_int_equal(residency_from_runs(&list, run, 2, 2), -ENOMEM);
	assert_null(list.run);
	allocations = 1;
	for (pages = 0; !residency_add(&list, 1, pages % 2 ? PAGE_SWAPPED : PAGE_RESIDENT);)
		pages++;
	assert_int_equal(list.pages, pages);
	assert_int_equal(list.nr, pages);
	assert_int_equal(residency_select(&out, &list, &list), -ENOMEM);
	assert_null(out.run);
	assert_int_equal(residency_keep(&list, 0, 1), -ENOMEM);
	assert_int_equal(list.pages, pages);
	assert_int_equal(list.count[PAGE_SWAPPED], pages / 2);
	allocations = UINT32_MAX;
	residency_free(&list);
}

static void test_from_runs(void **state)
{
	static const struct {
		uint64_t run[3];
		size_t nr;
		uint64_t max;
		int ret;
	} cases[] = {
		{ { 0 }, 0, 0, 0 },
		{ { 5 << 2 | 1, 6 << 2 | 2, 1 << 2 | 0 }, 3, 12, 0 },
		{ { 5 << 2 | 1, 6 << 2 | 1, 1 << 2 | 1 }, 3, 12, 0 },
		{ { 5 << 2 | 1, 6 << 2 | 2, 1 << 2 | 0 }, 3, 11, -ERANGE },
		{ { 1 << 2 | 1 }, 1, 0, -ERANGE },
		{ { 1 }, 1, 10, -EINVAL },
		{ { 0 }, 1, 10, -EINVAL },
		{ { 1 << 2 | 1, 1 << 2 | 3 }, 2, 10, -EINVAL },
		{ { UINT64_MAX }, 1, UINT64_MAX, -EINVAL },
		{ { UINT64_MAX - 1 }, 1, RESIDENCY_PAGES_MAX, -ERANGE },
		{ { 1 << 2 | 1, UINT64_MAX - 1 }, 2, RESIDENCY_PAGES_MAX, -ERANGE },
		{ { 1 << 2 | 1, UINT64_MAX - 1 }, 2, UINT64_MAX, -EOVERFLOW },
		{ { RESIDENCY_PAGES_MAX << 2 | 2 }, 1, RESIDENCY_PAGES_MAX, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct residency list = { 0 };

		assert_int_equal(
			residency_from_runs(&list, cases[i].run, cases[i].nr, cases[i].max),
			cases[i].ret);
		if (cases[i].ret) {
			assert_null(list.run);
			assert_int_equal(list.pages, 0);
			assert_int_equal(list.count[1] + list.count[2], 0);
		}
		residency_free(&list);
	}
}

/* Lists that were not merged come out merged, whatever their limit. */
static void test_from_runs_random(void **state)
{
	struct rng rng = rng_start();

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct model model = { 0 };
		struct residency list = { 0 };
		uint64_t run[40], max;
		size_t nr = rng_below(&rng, 41);
		int ret;

		for (size_t i = 0; i < nr; i++) {
			uint64_t pages = 1 + rng_below(&rng, 10), kind = rng_below(&rng, 3);

			run[i] = pages << 2 | kind;
			memset(model.state + model.nr, (int)kind, pages);
			model.nr += pages;
		}
		max = rng_below(&rng, 2) ? model.nr : rng_below(&rng, MODEL_PAGES);
		ret = residency_from_runs(&list, run, nr, max);
		CHECK(&rng, ret == (model.nr <= max ? 0 : -ERANGE));
		if (ret)
			model.nr = 0;
		CHECK(&rng, same(&list, &model));
		residency_free(&list);
	}
}

static void test_iterate(void **state)
{
	struct residency list = { 0 };
	struct residency_iter iter = residency_begin(&list), copy;
	struct page_run run;

	(void)state;
	assert_false(residency_next(&iter, &run));
	assert_int_equal(residency_add(&list, 5, PAGE_HOLE), 0);
	assert_int_equal(residency_add(&list, 6, PAGE_RESIDENT), 0);
	iter = residency_begin(&list);
	assert_true(residency_next(&iter, &run));
	assert_int_equal(run.first, 0);
	assert_int_equal(run.nr, 5);
	assert_int_equal(run.state, PAGE_HOLE);
	copy = iter;
	for (int i = 0; i < 2; i++) {
		assert_true(residency_next(i ? &copy : &iter, &run));
		assert_int_equal(run.first, 5);
		assert_int_equal(run.nr, 6);
		assert_int_equal(run.state, PAGE_RESIDENT);
	}
	assert_false(residency_next(&iter, &run));
	assert_false(residency_next(&iter, &run));
	residency_free(&list);
}

static void test_select_random(void **state)
{
	struct rng rng = rng_start();

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct residency want, have, todo = { 0 };
		struct model w, h, expect = { 0 };

		make(&rng, &want, &w);
		make(&rng, &have, &h);
		expect.nr = w.nr > h.nr ? w.nr : h.nr;
		for (uint64_t i = 0; i < expect.nr; i++)
			expect.state[i] = at(&h, i) != PAGE_RESIDENT  ? PAGE_HOLE
					  : at(&w, i) == PAGE_SWAPPED ? PAGE_SWAPPED
								      : PAGE_RESIDENT;
		CHECK(&rng, !residency_select(&todo, &want, &have));
		CHECK(&rng, same(&todo, &expect));
		CHECK(&rng, same(&want, &w) && same(&have, &h));
		residency_free(&want);
		residency_free(&have);
		residency_free(&todo);
	}
}

static void test_keep_random(void **state)
{
	struct rng rng = rng_start();

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t first = rng_below(&rng, MODEL_PAGES + 50);
		uint64_t nr = rng_below(&rng, 8) ? rng_below(&rng, 100)
						 : UINT64_MAX - rng_below(&rng, 2 * MODEL_PAGES);
		struct residency list;
		struct model model;

		make(&rng, &list, &model);
		for (uint64_t i = first; i < model.nr && i - first < nr; i++)
			if (model.state[i] == PAGE_SWAPPED)
				model.state[i] = PAGE_RESIDENT;
		CHECK(&rng, !residency_keep(&list, first, nr));
		CHECK(&rng, same(&list, &model));
		residency_free(&list);
	}
}

static void test_compare_random(void **state)
{
	struct rng rng = rng_start();

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t expect[PAGE_STATES][PAGE_STATES] = { 0 };
		uint64_t count[PAGE_STATES][PAGE_STATES];
		struct residency was, now;
		struct model w, n;

		make(&rng, &was, &w);
		make(&rng, &now, &n);
		for (uint64_t i = 0; i < w.nr || i < n.nr; i++)
			expect[at(&w, i)][at(&n, i)]++;
		memset(count, 0xff, sizeof(count));
		residency_compare(&was, &now, count);
		CHECK(&rng, !memcmp(count, expect, sizeof(count)));
		residency_free(&was);
		residency_free(&now);
	}
}

static void test_count_random(void **state)
{
	struct rng rng = rng_start();

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t first = rng_below(&rng, MODEL_PAGES + 50), nr = rng_below(&rng, 300);
		uint64_t expect[PAGE_STATES] = { 0 }, count[PAGE_STATES];
		struct residency list;
		struct model model;

		make(&rng, &list, &model);
		for (uint64_t i = first; i < first + nr; i++)
			expect[at(&model, i)]++;
		memset(count, 0xff, sizeof(count));
		residency_count(&list, first, nr, count);
		CHECK(&rng, !memcmp(count, expect, sizeof(count)));
		residency_free(&list);
	}
}

static void test_count_far(void **state)
{
	struct residency list = { 0 };
	uint64_t count[PAGE_STATES];

	(void)state;
	assert_int_equal(residency_add(&list, 20, PAGE_SWAPPED), 0);
	residency_count(&list, 5, UINT64_MAX, count);
	assert_int_equal(count[PAGE_SWAPPED], 15);
	assert_int_equal(count[PAGE_HOLE], UINT64_MAX - 15);
	residency_count(&list, UINT64_MAX, UINT64_MAX, count);
	assert_int_equal(count[PAGE_SWAPPED], 0);
	assert_int_equal(count[PAGE_HOLE], UINT64_MAX);
	residency_free(&list);
}

static void test_empty(void **state)
{
	struct residency a = { 0 }, b = { 0 }, out = { 0 };
	uint64_t count[PAGE_STATES][PAGE_STATES];

	(void)state;
	assert_int_equal(residency_select(&out, &a, &b), 0);
	assert_int_equal(out.nr, 0);
	assert_int_equal(residency_keep(&a, 0, UINT64_MAX), 0);
	assert_int_equal(a.nr, 0);
	residency_compare(&a, &b, count);
	for (int i = 0; i < PAGE_STATES; i++)
		for (int j = 0; j < PAGE_STATES; j++)
			assert_int_equal(count[i][j], 0);
	residency_count(&a, 7, 9, count[0]);
	assert_int_equal(count[0][PAGE_HOLE], 9);
}

/* Cost follows the runs: 16 TiB with ten pages is a handful of numbers. */
static void test_sparse(void **state)
{
	const uint64_t pages = (16ULL << 40) / 4096, step = pages / 10;
	struct residency list = { 0 }, todo = { 0 };

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(residency_add(&list, step - 1, PAGE_HOLE), 0);
		assert_int_equal(residency_add(&list, 1, PAGE_RESIDENT + i % 2), 0);
	}
	assert_int_equal(residency_add(&list, pages - list.pages, PAGE_HOLE), 0);
	assert_int_equal(list.pages, pages);
	assert_int_equal(list.nr, 21);
	assert_true(list.cap <= 64);
	assert_int_equal(residency_select(&todo, &list, &list), 0);
	assert_true(todo.nr <= 21 && todo.cap <= 64);
	assert_int_equal(todo.count[PAGE_RESIDENT], 5);
	assert_int_equal(residency_keep(&todo, 0, UINT64_MAX), 0);
	assert_true(todo.nr <= 21);
	residency_free(&list);
	residency_free(&todo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),	     cmocka_unit_test(test_add_random),
		cmocka_unit_test(test_add_overflow), cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_from_runs),    cmocka_unit_test(test_from_runs_random),
		cmocka_unit_test(test_iterate),	     cmocka_unit_test(test_select_random),
		cmocka_unit_test(test_keep_random),  cmocka_unit_test(test_compare_random),
		cmocka_unit_test(test_count_random), cmocka_unit_test(test_count_far),
		cmocka_unit_test(test_empty),	     cmocka_unit_test(test_sparse),
	};

	return RUN_TESTS(tests);
}
