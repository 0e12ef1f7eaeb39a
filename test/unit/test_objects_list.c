// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_objects_list.c - the list of objects itself, without any task
 */
#include "unit.h"

#include "objects.h"

/* Identity is kind, IPC namespace and number. */
static void test_add(void **state)
{
	static const struct {
		struct shm_object key;
		size_t same_as;
	} cases[] = {
		{ { .kind = SHM_MEMFD, .ino = 7 }, 0 },
		{ { .kind = SHM_SYSV, .ino = 7, .ipc_ns = 1 }, 1 },
		{ { .kind = SHM_SYSV, .ino = 7, .ipc_ns = 2 }, 2 },
		{ { .kind = SHM_SYSV, .ino = 7 }, 3 },
		{ { .kind = SHM_SYSV, .ino = 8, .ipc_ns = 1 }, 4 },
		{ { .kind = SHM_ANON, .ino = 7 }, 0 },
		{ { .kind = SHM_MEMFD, .ino = 7, .name = "other" }, 0 },
		{ { .kind = SHM_SYSV, .ino = 7, .ipc_ns = 1 }, 1 },
		{ { .kind = SHM_ANON, .ino = UINT64_MAX }, 8 },
	};
	struct shm_objects objects = { 0 };
	struct shm_object *got[ARRAY_SIZE(cases)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(objects_add(&objects, &cases[i].key, &got[i]), 0);
		for (size_t k = 0; k < i; k++)
			assert_int_equal(got[i] == got[k], cases[i].same_as == cases[k].same_as);
	}
	assert_int_equal(objects.nr, 6);
	assert_int_equal(got[0]->kind, SHM_MEMFD);
	assert_string_equal(got[0]->name, "");
	objects_free(&objects);
	assert_int_equal(objects.nr, 0);
}

static void test_add_many(void **state)
{
	struct shm_objects objects = { 0 };
	struct rng rng = rng_start();

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct shm_object key = { .kind = SHM_MEMFD, .ino = rng_below(&rng, 5000) };
		struct shm_object *object;
		size_t before = objects.nr;

		CHECK(&rng, !objects_add(&objects, &key, &object));
		CHECK(&rng, object->ino == key.ino);
		CHECK(&rng, objects.nr <= before + 1);
		if (objects.nr > before)
			CHECK(&rng, objects.object[before] == object && !object->done);
		CHECK(&rng, objects.nr == before || !object->nr_refs);
		CHECK(&rng, !object_add_ref(object, &(struct shm_ref){ .fd = i }));
		CHECK(&rng, object->ref[object->nr_refs - 1].fd == i);
	}
	CHECK(&rng, objects.nr <= 5000);
	objects_free(&objects);
}

static void test_words(void **state)
{
	uint64_t page = page_size();

	(void)state;
	assert_string_equal(shm_kind_name(SHM_ANON), "anon");
	assert_string_equal(shm_kind_name(SHM_MEMFD), "memfd");
	assert_string_equal(shm_kind_name(SHM_SYSV), "sysv");
	assert_string_equal(shm_kind_name((enum shm_kind)99), "unknown");
	assert_int_equal(shm_pages(0), 0);
	assert_int_equal(shm_pages(1), 1);
	assert_int_equal(shm_pages(page), 1);
	assert_int_equal(shm_pages(page + 1), 2);
	assert_int_equal(shm_pages(UINT64_MAX), UINT64_MAX / page + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_add_many),
		cmocka_unit_test(test_words),
	};

	return RUN_TESTS(tests);
}
