// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_image.c - libFuzzer target: reading a residency image
 *
 * The input is decoded twice: as it is, which mostly tests the header, and as
 * a message with a correct header put before it, so that the fuzzer need not
 * guess a checksum. What is accepted is walked with the run list functions,
 * encoded and decoded again, and must come out the same.
 */
#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../unit/sample_objects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* abort() is what the fuzzer reports, with the input. */
static void must(bool condition)
{
	if (!condition)
		abort();
}

static void must_be_sound(const struct residency *list, uint64_t max_pages)
{
	struct residency_iter iter = residency_begin(list);
	uint64_t count[PAGE_STATES] = { 0 }, next = 0;
	int last = PAGE_STATES;
	struct page_run run;

	while (residency_next(&iter, &run)) {
		must(run.first == next && run.nr && run.state < PAGE_STATES);
		must((int)run.state != last && run.nr <= max_pages - next);
		count[run.state] += run.nr;
		next += run.nr;
		last = run.state;
	}
	must(next == list->pages);
	must(!memcmp(count, list->count, sizeof(count)));
}

static void walk_pair(const struct residency *a, const struct residency *b)
{
	uint64_t count[PAGE_STATES][PAGE_STATES], sum = 0;
	uint64_t pages = a->pages > b->pages ? a->pages : b->pages;
	struct residency todo = { 0 };

	residency_compare(a, b, count);
	for (int i = 0; i < PAGE_STATES; i++)
		for (int k = 0; k < PAGE_STATES; k++)
			sum += count[i][k];
	must(sum == pages);
	if (residency_select(&todo, a, b))
		return;
	must_be_sound(&todo, pages);
	must(todo.count[PAGE_SWAPPED] == count[PAGE_SWAPPED][PAGE_RESIDENT]);
	residency_free(&todo);
}

static void keep_refs(const struct shm_object *object)
{
	struct residency todo = { 0 }, none = { 0 };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (residency_from_runs(&todo, object->state.run, object->state.nr, object->state.pages))
		return;
	for (size_t i = 0; i < object->nr_refs && i < 8; i++) {
		const struct shm_ref *ref = &object->ref[i];
		uint64_t first = ref->offset / page, nr = (ref->end - ref->start) / page;
		uint64_t count[PAGE_STATES];

		must(ref->image_pid > 0);
		if (ref->fd >= 0)
			continue;
		must(ref->start < ref->end && ref->offset % page == 0);
		must(!residency_keep(&todo, first, nr));
		must_be_sound(&todo, object->state.pages);
		residency_count(&todo, first, nr, count);
		must(!count[PAGE_SWAPPED]);
		must(count[0] + count[1] == nr);
	}
	walk_pair(&todo, &none);
	residency_free(&todo);
}

static void must_be_harmless(const char *text)
{
	for (; *text; text++)
		must((unsigned char)*text >= ' ' && (unsigned char)*text != 0x7f);
}

static void walk_objects(const struct shm_objects *objects)
{
	for (size_t i = 0; i < objects->nr; i++) {
		const struct shm_object *object = objects->object[i];

		must(object->recorded && object->size <= INT64_MAX);
		must_be_harmless(object->name);
		must_be_sound(&object->state, shm_pages(object->size));
		walk_pair(&object->state, &objects->object[objects->nr - 1]->state);
		keep_refs(object);
	}
}

static void decode_again(const struct shm_objects *objects, const struct image_info *info)
{
	struct shm_objects back = { 0 };
	struct image_info back_info;
	struct image_error error;
	uint8_t *data;
	size_t size;

	must(!image_encode(objects, info, &data, &size));
	must(!image_decode(data, size, &back, &back_info, &error));
	must(sample_same(objects, &back));
	must(!strcmp(info->source, back_info.source) && info->exact == back_info.exact);
	objects_free(&back);
	free(data);
}

static void decode(const uint8_t *data, size_t size)
{
	struct shm_objects objects = { 0 };
	struct image_error error;
	struct image_info info;

	if (image_decode(data, size, &objects, &info, &error)) {
		must(!objects.nr && !objects.object && *error.text);
		return;
	}
	must_be_harmless(info.source);
	walk_objects(&objects);
	decode_again(&objects, &info);
	objects_free(&objects);
}

static void decode_message(const uint8_t *message, size_t size)
{
	uint32_t version = htole32(IMAGE_VERSION);
	uint32_t crc = htole32((uint32_t)crc32(crc32(0, NULL, 0), message, (uInt)size));
	uint64_t length = htole64(size);
	uint8_t *image = malloc(IMAGE_HEADER_SIZE + size);

	if (!image)
		return;
	memcpy(image, "SHMRESID", 8);
	memcpy(image + 8, &version, 4);
	memcpy(image + 12, &crc, 4);
	memcpy(image + 16, &length, 8);
	memcpy(image + IMAGE_HEADER_SIZE, message, size);
	decode(image, IMAGE_HEADER_SIZE + size);
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	decode(data, size);
	/* The corpus holds whole images: reach the message in them. */
	if (size >= IMAGE_HEADER_SIZE && !memcmp(data, "SHMRESID", 8))
		decode_message(data + IMAGE_HEADER_SIZE, size - IMAGE_HEADER_SIZE);
	else if (size)
		decode_message(data, size);
	return 0;
}
