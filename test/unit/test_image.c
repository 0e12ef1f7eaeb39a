// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_image.c - the residency image in memory: round trips, sizes, damage
 */
#include "image_bytes.h"

static const struct image_info sample_info = { "cachestat", true };

static struct bytes encode(const struct shm_objects *objects)
{
	struct bytes image = { 0 };

	assert_int_equal(image_encode(objects, &sample_info, &image.data, &image.size), 0);
	return image;
}

static struct bytes encode_sample(void)
{
	struct shm_objects objects = { 0 };
	struct bytes image;

	assert_true(sample_fill(&objects));
	image = encode(&objects);
	objects_free(&objects);
	return image;
}

static void assert_round_trip(const struct shm_objects *objects)
{
	struct bytes image = encode(objects);
	struct shm_objects back = { 0 };

	assert_accepted(&image, &back);
	assert_true(sample_same(objects, &back));
	for (size_t i = 0; i < back.nr; i++)
		assert_false(back.object[i]->done);
	objects_free(&back);
	free(image.data);
}

static void test_round_trip(void **state)
{
	struct shm_objects objects = { 0 }, back = { 0 };
	struct image_error error;
	struct image_info info;
	struct bytes image;

	(void)state;
	assert_true(sample_fill(&objects));
	assert_round_trip(&objects);
	image = encode(&objects);
	assert_int_equal(image_decode(image.data, image.size, &back, &info, &error), 0);
	assert_string_equal(info.source, "cachestat");
	assert_true(info.exact);
	assert_int_equal(back.object[0]->ref[0].pid, 0);
	objects_free(&back);
	objects_free(&objects);
	free(image.data);
}

static void test_round_trip_none(void **state)
{
	struct shm_objects objects = { 0 };

	(void)state;
	assert_round_trip(&objects);
}

/* Limits: empty object, largest object, more runs than pages of anything. */
static void test_round_trip_limits(void **state)
{
	uint64_t most = (uint64_t)INT64_MAX / page_size() + 1;
	struct shm_objects objects = { 0 };
	struct shm_object *object;

	(void)state;
	assert_non_null(sample_add(&objects, SHM_ANON, 0, 0, ""));
	object = sample_add(&objects, SHM_MEMFD, UINT64_MAX, 0, "large");
	assert_non_null(object);
	object->size = INT64_MAX;
	assert_int_equal(residency_add(&object->state, most, PAGE_SWAPPED), 0);
	object = sample_add(&objects, SHM_SYSV, 1, 1 << 20, "mixed");
	assert_non_null(object);
	for (int i = 0; i < 1 << 20; i++)
		assert_int_equal(residency_add(&object->state, 1, (enum page_state)(i % 3)), 0);
	for (int i = 0; i < 5000; i++)
		assert_true(sample_map(object, 1 + i, 16 + (uint64_t)i, 1, (uint64_t)i, i % 2));
	assert_round_trip(&objects);
	objects_free(&objects);
}

static void test_round_trip_random(void **state)
{
	struct rng rng = rng_start();

	(void)state;
	for (int round = 0; round < 50; round++) {
		struct shm_objects objects = { 0 };

		for (uint64_t nr = rng_below(&rng, 20), i = 0; i < nr; i++) {
			enum shm_kind kind = (enum shm_kind)(1 + rng_below(&rng, 3));
			struct shm_object *object = sample_add(&objects, kind, i * i, 2000, "x");

			for (uint64_t n = rng_below(&rng, 100), k = 0; k < n; k++)
				residency_add(&object->state, rng_below(&rng, 20),
					      (enum page_state)rng_below(&rng, 3));
			for (uint64_t n = rng_below(&rng, 4), k = 0; k < n; k++)
				sample_map(object, 7, 1 + rng_below(&rng, 9999), 3, k, false);
		}
		assert_round_trip(&objects);
		objects_free(&objects);
	}
}

/* What was found and could not be read is not in the image. */
static void test_not_recorded(void **state)
{
	struct shm_objects objects = { 0 }, back = { 0 };
	struct bytes image;

	(void)state;
	assert_true(sample_fill(&objects));
	objects.object[1]->recorded = false;
	image = encode(&objects);
	assert_accepted(&image, &back);
	assert_int_equal(back.nr, 3);
	assert_int_equal(back.object[1]->kind, SHM_SYSV);
	objects_free(&back);
	objects_free(&objects);
	free(image.data);
}

static size_t alternating_size(uint64_t runs, uint64_t pages_each)
{
	struct shm_objects objects = { 0 };
	struct shm_object *object;
	struct bytes image;

	object = sample_add(&objects, SHM_MEMFD, 1, runs * pages_each, "size");
	assert_non_null(object);
	for (uint64_t i = 0; i < runs; i++)
		assert_int_equal(residency_add(&object->state, pages_each,
					       i % 2 ? PAGE_RESIDENT : PAGE_SWAPPED),
				 0);
	image = encode(&objects);
	free(image.data);
	objects_free(&objects);
	return image.size;
}

static void test_size(void **state)
{
	(void)state;
	/* 4 GiB in runs of 1 MiB: under 0.1 % of the pages. */
	assert_in_range(alternating_size(4096, (1 << 20) / page_size()), 1, (4ULL << 30) / 1000);
	/* One page each: at most 2 bytes a page. */
	assert_in_range(alternating_size(1 << 20, 1), 1, 2 << 20);
}

static void test_truncated(void **state)
{
	struct bytes image = encode_sample();

	(void)state;
	for (size_t size = 0; size < image.size; size++) {
		struct bytes cut = { malloc(size ? size : 1), size };

		assert_non_null(cut.data);
		memcpy(cut.data, image.data, size);
		assert_refused(&cut, "truncated");
		free(cut.data);
	}
	free(image.data);
}

/* The same with a header that fits: the message itself is cut. */
static void test_truncated_message(void **state)
{
	struct bytes image = encode_sample();

	(void)state;
	for (size_t size = 0; size < image.size - IMAGE_HEADER_SIZE; size++) {
		struct bytes cut = wrap(image.data + IMAGE_HEADER_SIZE, size);
		struct shm_objects objects = { 0 };
		struct image_error error;
		struct image_info info;

		/* Between two objects it is a whole message with fewer of them. */
		if (!image_decode(cut.data, cut.size, &objects, &info, &error))
			assert_in_range(objects.nr, 0, 3);
		else
			assert_int_equal(objects.nr, 0);
		objects_free(&objects);
		free(cut.data);
	}
	free(image.data);
}

static void test_flipped_bits(void **state)
{
	struct bytes image = encode_sample();

	(void)state;
	for (size_t bit = 0; bit < image.size * 8; bit++) {
		image.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_refused(&image, "");
		image.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	free(image.data);
}

static void test_header(void **state)
{
	struct bytes image = encode_sample(), longer;

	(void)state;
	image.data[0] = 'X';
	assert_refused(&image, "magic");
	image.data[0] = 'S';
	image.data[8] = IMAGE_VERSION + 1;
	assert_refused(&image, "version 2");
	image.data[8] = IMAGE_VERSION;
	image.data[12] ^= 0xff;
	assert_refused(&image, "checksum");
	image.data[12] ^= 0xff;
	memset(image.data + 16, 0xff, 8);
	assert_refused(&image, "truncated");
	free(image.data);

	image = encode_sample();
	longer = (struct bytes){ calloc(1, image.size + 1), image.size + 1 };
	assert_non_null(longer.data);
	memcpy(longer.data, image.data, image.size);
	assert_refused(&longer, "too long");
	free(longer.data);
	free(image.data);
}

static void test_garbage(void **state)
{
	struct rng rng = rng_start();
	uint8_t data[300];

	(void)state;
	for (int round = 0; round < 2000; round++) {
		size_t size = rng_below(&rng, sizeof(data) + 1);
		struct shm_objects objects = { 0 };
		struct image_error error;
		struct image_info info;
		struct bytes image;

		for (size_t i = 0; i < size; i++)
			data[i] = (uint8_t)rng_below(&rng, 256);
		image = wrap(data, size);
		CHECK(&rng, image_decode(image.data, image.size, &objects, &info, &error) < 0);
		CHECK(&rng, !objects.nr && *error.text);
		free(image.data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),	  cmocka_unit_test(test_round_trip_none),
		cmocka_unit_test(test_round_trip_limits), cmocka_unit_test(test_round_trip_random),
		cmocka_unit_test(test_not_recorded),	  cmocka_unit_test(test_size),
		cmocka_unit_test(test_truncated),	  cmocka_unit_test(test_truncated_message),
		cmocka_unit_test(test_flipped_bits),	  cmocka_unit_test(test_header),
		cmocka_unit_test(test_garbage),
	};

	return RUN_TESTS(tests);
}
