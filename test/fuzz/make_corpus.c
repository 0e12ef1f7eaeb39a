// SPDX-License-Identifier: GPL-2.0-only
/*
 * make_corpus.c - writes the seeds of fuzz_image: make_corpus DIRECTORY
 *
 * A few small images, valid and not, with pages of 4096 bytes. The corpus in
 * the tree was made by this and is made again when the format changes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/sample_objects.h"

static int save(const char *dir, const char *name, const uint8_t *data, size_t size)
{
	char path[4096];
	FILE *file;
	int ret;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	if (!file)
		return -1;
	ret = fwrite(data, 1, size, file) == size ? 0 : -1;
	return fclose(file) ? -1 : ret;
}

static bool fill_none(struct shm_objects *objects)
{
	(void)objects;
	return true;
}

/* Many short runs of every state. */
static bool fill_mixed(struct shm_objects *objects)
{
	struct shm_object *object = sample_add(objects, SHM_MEMFD, 5, 1000, "/memfd:mixed");

	for (unsigned int i = 0; object && i < 100; i++)
		if (residency_add(&object->state, 1 + i % 7, (enum page_state)(i % 3)))
			return false;
	return object && sample_map(object, 1, 16, 1000, 0, true);
}

/* Numbers at their limits. */
static bool fill_limits(struct shm_objects *objects)
{
	struct shm_object *large = sample_add(objects, SHM_ANON, UINT64_MAX, 0, "");
	struct shm_object *empty = sample_add(objects, SHM_SYSV, 0, 0, "/SYSV");

	if (!large || !empty)
		return false;
	large->size = INT64_MAX;
	return sample_map(large, INT32_MAX, 1, 1ULL << 40, 1ULL << 40, false) &&
	       sample_fd(empty, 1, INT32_MAX) &&
	       !residency_add(&large->state, shm_pages(INT64_MAX), PAGE_SWAPPED);
}

static const struct {
	const char *name;
	bool (*fill)(struct shm_objects *objects);
} images[] = {
	{ "empty", fill_none },
	{ "sample", sample_fill },
	{ "mixed", fill_mixed },
	{ "limits", fill_limits },
};

/* An image, and the same cut short and with one bit turned. */
static int save_all(const char *dir, const char *name, uint8_t *data, size_t size)
{
	char cut[64], turned[64];
	int ret;

	snprintf(cut, sizeof(cut), "%s-cut", name);
	snprintf(turned, sizeof(turned), "%s-turned", name);
	ret = save(dir, name, data, size);
	if (!ret)
		ret = save(dir, cut, data, size - size / 4);
	data[size - size / 4] ^= 1;
	return ret ? ret : save(dir, turned, data, size);
}

static int make(const char *dir, const char *name, bool (*fill)(struct shm_objects *objects))
{
	const struct image_info info = { "cachestat", true };
	struct shm_objects objects = { 0 };
	uint8_t *data = NULL;
	size_t size;
	int ret = -1;

	if (fill(&objects) && !image_encode(&objects, &info, &data, &size))
		ret = save_all(dir, name, data, size);
	objects_free(&objects);
	free(data);
	return ret;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_corpus DIRECTORY\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++)
		if (make(argv[1], images[i].name, images[i].fill)) {
			fprintf(stderr, "make_corpus: cannot make %s\n", images[i].name);
			return 1;
		}
	return 0;
}
