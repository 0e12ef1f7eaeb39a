/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * image_bytes.h - images in memory for the tests of image.c
 *
 * Images are kept in a block of exactly their size, so that a read behind the
 * end is seen by valgrind and the address sanitizer.
 */
#ifndef SHP_IMAGE_BYTES_H
#define SHP_IMAGE_BYTES_H

#include <endian.h>
#include <zlib.h>

#include "sample_objects.h"
#include "unit.h"

struct bytes {
	uint8_t *data;
	size_t size;
};

/* Puts a correct header before a message. */
static inline struct bytes wrap(const uint8_t *message, size_t size)
{
	struct bytes image = { malloc(IMAGE_HEADER_SIZE + size), IMAGE_HEADER_SIZE + size };
	uint32_t version = htole32(IMAGE_VERSION);
	uint32_t crc = htole32((uint32_t)crc32(crc32(0, NULL, 0), message, (uInt)size));
	uint64_t length = htole64(size);

	assert_non_null(image.data);
	memcpy(image.data, "SHMRESID", 8);
	memcpy(image.data + 8, &version, 4);
	memcpy(image.data + 12, &crc, 4);
	memcpy(image.data + 16, &length, 8);
	memcpy(image.data + 24, message, size);
	return image;
}

/* The image must be refused with a reason, and leave nothing behind. */
static inline void assert_refused(const struct bytes *image, const char *reason)
{
	struct shm_objects objects = { 0 };
	struct image_error error;
	struct image_info info;
	int ret;

	ret = image_decode(image->data, image->size, &objects, &info, &error);
	if (ret >= 0)
		fail_msg("accepted, want \"%s\"", reason);
	if (!*error.text || !strstr(error.text, reason))
		fail_msg("\"%s\", want \"%s\"", error.text, reason);
	assert_int_equal(objects.nr, 0);
	assert_null(objects.object);
	assert_null(objects.by_name);
}

static inline void assert_accepted(const struct bytes *image, struct shm_objects *objects)
{
	struct image_error error;
	struct image_info info;

	if (image_decode(image->data, image->size, objects, &info, &error))
		fail_msg("refused: %s", error.text);
	assert_string_equal(error.text, "");
}

#endif
