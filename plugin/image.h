/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * image.h - the residency image, shmem-residency.img
 *
 * File: 8 bytes magic, 32-bit version, 32-bit CRC (zlib's crc32 of the
 * message), 64-bit length of the message, all little endian; then the message
 * (proto/residency.proto), and nothing behind it.
 *
 * Reading trusts nothing. Functions return 0 or a negative error code; where a
 * struct image_error is given it says why, in words for a message.
 */
#ifndef SHP_IMAGE_H
#define SHP_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "objects.h"

#define IMAGE_NAME "shmem-residency.img"
#define IMAGE_VERSION 1u
#define IMAGE_HEADER_SIZE 24

/*
 * One byte a run: 2 TiB of alternating pages. Unpacked it takes many times that,
 * which bounds what a hostile image can ask for.
 */
#define IMAGE_SIZE_MAX (1ULL << 29)

struct image_error {
	char text[160];
};

struct image_info {
	char source[16];
	bool exact;
};

int image_write(int dir, const struct shm_objects *objects, const struct image_info *info);
int image_read(int dir, struct shm_objects *objects, struct image_info *info,
	       struct image_error *error);

/* The same on memory, for tests and the fuzzer. *data is malloc'ed. */
int image_encode(const struct shm_objects *objects, const struct image_info *info, uint8_t **data,
		 size_t *size);
int image_decode(const uint8_t *data, size_t size, struct shm_objects *objects,
		 struct image_info *info, struct image_error *error);

#endif
