// SPDX-License-Identifier: GPL-2.0-only
/*
 * criu_images.c - compare the residency image with CRIU's own images
 *
 * A residency image can be foreign: left by an older dump, or copied to the
 * wrong place. What CRIU will create is known from its own images before any
 * task exists, so that strict mode can refuse in time.
 */
#include "criu_images.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "criu_images.pb-c.h"
#include "log.h"

/* criu/include/magic.h */
#define IMG_COMMON_MAGIC 0x54564319u
#define IPCNS_SHM_MAGIC 0x46283044u
#define MEMFD_INODE_MAGIC 0x48453499u

/* Far above any entry that CRIU writes. */
#define ENTRY_MAX (1u << 20)

struct known {
	uint64_t shmid;
	uint64_t size;
	bool sysv;
};

struct known_list {
	struct known *known;
	size_t nr;
	size_t cap;
};

static int known_add(struct known_list *list, uint64_t shmid, uint64_t size, bool sysv)
{
	if (list->nr == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 64;
		struct known *grown = reallocarray(list->known, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		list->known = grown;
		list->cap = cap;
	}
	list->known[list->nr++] = (struct known){ shmid, size, sysv };
	return 0;
}

typedef int (*entry_fn)(struct known_list *list, const uint8_t *data, size_t size);

static int take_memfd(struct known_list *list, const uint8_t *data, size_t size)
{
	LookMemfdInode *msg = look_memfd_inode__unpack(NULL, size, data);
	int ret;

	if (!msg)
		return -EINVAL;
	ret = known_add(list, msg->shmid, msg->size, false);
	look_memfd_inode__free_unpacked(msg, NULL);
	return ret;
}

static int take_sysv(struct known_list *list, const uint8_t *data, size_t size)
{
	LookIpcShm *msg = look_ipc_shm__unpack(NULL, size, data);
	int ret;

	if (!msg)
		return -EINVAL;
	ret = known_add(list, msg->desc->id, msg->size, true);
	look_ipc_shm__free_unpacked(msg, NULL);
	return ret;
}

static int read_entries(FILE *file, uint32_t magic, entry_fn take, struct known_list *list)
{
	uint32_t head[2], length;
	int ret = 0;

	if (fread(head, sizeof(head), 1, file) != 1 || le32toh(head[0]) != IMG_COMMON_MAGIC ||
	    le32toh(head[1]) != magic)
		return -EINVAL;
	while (!ret) {
		size_t got = fread(&length, 1, sizeof(length), file);
		uint8_t *data;

		if (!got)
			break;
		if (got != sizeof(length))
			return -EINVAL;

		length = le32toh(length);
		if (length > ENTRY_MAX)
			return -EINVAL;
		data = malloc(length ? length : 1);
		if (!data)
			return -ENOMEM;
		if (length && fread(data, length, 1, file) != 1)
			ret = -EINVAL;
		else
			ret = take(list, data, length);
		free(data);
	}
	return ret;
}

static int read_image(int dir, const char *name, uint32_t magic, entry_fn take,
		      struct known_list *list)
{
	FILE *file;
	int fd, ret;

	fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	file = fdopen(fd, "r");
	if (!file) {
		ret = -errno;
		close(fd);
		return ret;
	}
	ret = read_entries(file, magic, take, list);
	if (!ret && ferror(file))
		ret = -EIO;
	fclose(file);
	if (ret)
		pr_warn("%s: %s\n", name, ret == -EINVAL ? "not understood" : strerror(-ret));
	return ret;
}

/* One file for each IPC namespace. */
static int read_ipc_images(int dir, struct known_list *list)
{
	struct dirent *entry = NULL;
	int ret = 0, fd;
	DIR *stream;

	fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	stream = fdopendir(fd);
	if (!stream) {
		ret = -errno;
		close(fd);
		return ret;
	}
	while (!ret && (errno = 0, entry = readdir(stream)))
		if (!fnmatch("ipcns-shm-*.img", entry->d_name, 0))
			ret = read_image(dir, entry->d_name, IPCNS_SHM_MAGIC, take_sysv, list);
	if (!entry && errno)
		ret = -errno;
	closedir(stream);
	return ret;
}

static int compare_known(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	if (x->sysv != y->sysv)
		return x->sysv ? 1 : -1;
	if (x->shmid != y->shmid)
		return x->shmid < y->shmid ? -1 : 1;
	return 0;
}

/* Anonymous memory dumped without privileges has no entry but a page map. */
static bool has_page_map(int dir, const struct shm_object *object)
{
	char name[64];

	snprintf(name, sizeof(name), "pagemap-shmem-%" PRIu64 ".img", object->ino);
	return !faccessat(dir, name, F_OK, 0);
}

static void check_object(int dir, const struct known_list *list, struct shm_object *object,
			 mismatch_fn mismatch, void *arg)
{
	struct known key = { .shmid = object->ino, .sysv = object->kind == SHM_SYSV }, *found;
	struct image_error error = { 0 };

	found = list->nr ? bsearch(&key, list->known, list->nr, sizeof(key), compare_known) : NULL;
	if (!found && (key.sysv || !has_page_map(dir, object)))
		snprintf(error.text, sizeof(error.text), "it is not in CRIU's images");
	else if (found && found->size != object->size)
		snprintf(error.text, sizeof(error.text),
			 "%" PRIu64 " bytes here, %" PRIu64 " bytes in CRIU's images", object->size,
			 found->size);
	if (*error.text)
		mismatch(object, &error, arg);
}

/**
 * criu_images_check() - Does CRIU's dump hold the recorded objects
 * @dir:	images directory
 * @objects:	from the residency image
 * @mismatch:	called for each object that is missing or of another size
 * @arg:	for it
 *
 * Return: 0 on success, negative error code when CRIU's images cannot be
 *	   understood; nothing is known about the objects then
 */
int criu_images_check(int dir, struct shm_objects *objects, mismatch_fn mismatch, void *arg)
{
	struct known_list list = { 0 };
	int ret;

	ret = read_image(dir, "memfd.img", MEMFD_INODE_MAGIC, take_memfd, &list);
	if (!ret)
		ret = read_ipc_images(dir, &list);
	if (list.nr)
		qsort(list.known, list.nr, sizeof(*list.known), compare_known);
	for (size_t i = 0; !ret && i < objects->nr; i++)
		check_object(dir, &list, objects->object[i], mismatch, arg);
	free(list.known);
	return ret;
}
