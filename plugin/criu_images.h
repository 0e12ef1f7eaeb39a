/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * criu_images.h - compare the residency image with CRIU's own images
 *
 * Looks at memfd.img and ipcns-shm-N.img of the images directory (CRIU's
 * criu/image.c: two 32-bit magics, then 32-bit length and message, repeated),
 * and at the names pagemap-shmem-SHMID.img.
 */
#ifndef SHP_CRIU_IMAGES_H
#define SHP_CRIU_IMAGES_H

#include "image.h"
#include "objects.h"

typedef void (*mismatch_fn)(struct shm_object *object, const struct image_error *error, void *arg);

int criu_images_check(int dir, struct shm_objects *objects, mismatch_fn mismatch, void *arg);

#endif
