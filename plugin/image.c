// SPDX-License-Identifier: GPL-2.0-only
/*
 * image.c - the residency image, shmem-residency.img
 *
 * Written to a temporary name and renamed, so that an image is either whole or
 * not there. Not synced: CRIU does not sync its images either, the tasks are
 * frozen meanwhile, and after a power failure the checksum tells.
 */
#include "image.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "log.h"
#include "residency.pb-c.h"

#define IMAGE_TMP IMAGE_NAME ".tmp"

static const char image_magic[8] = "SHMRESID";

struct image_header {
	char magic[8];
	uint32_t version;
	uint32_t crc;
	uint64_t length;
};

_Static_assert(sizeof(struct image_header) == IMAGE_HEADER_SIZE, "no padding");

static int fail(struct image_error *error, int ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct image_error *error, int ret, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(error->text, sizeof(error->text), format, ap);
	va_end(ap);
	return ret;
}

/* zlib counts in unsigned int. */
static uint32_t checksum(const uint8_t *data, size_t size)
{
	uLong crc = crc32(0, NULL, 0);

	while (size) {
		uInt now = size < 1u << 30 ? (uInt)size : 1u << 30;

		crc = crc32(crc, data, now);
		data += now;
		size -= now;
	}
	return (uint32_t)crc;
}

/* Encoding: messages that point into the objects; only arrays are our own. */

static void fill_ref(ResidencyRef *msg, const struct shm_ref *ref)
{
	residency_ref__init(msg);
	msg->pid = (uint32_t)ref->image_pid;
	if (ref->fd >= 0) {
		msg->has_fd = 1;
		msg->fd = (uint32_t)ref->fd;
		return;
	}
	msg->has_start = msg->has_end = msg->has_offset = 1;
	msg->start = ref->start;
	msg->end = ref->end;
	msg->offset = ref->offset;
	msg->has_locked = msg->locked = ref->locked;
}

static int fill_object(ResidencyObject *msg, const struct shm_object *object)
{
	ResidencyRef *ref;

	residency_object__init(msg);
	msg->kind = (ResidencyKind)object->kind;
	msg->shmid = object->ino;
	msg->size = object->size;
	msg->name = (char *)object->name;
	msg->n_run = object->state.nr;
	msg->run = object->state.run;
	if (!object->nr_refs)
		return 0;
	/* One block: the pointers, then what they point to. */
	msg->ref = calloc(object->nr_refs, sizeof(*msg->ref) + sizeof(*ref));
	if (!msg->ref)
		return -ENOMEM;
	ref = (ResidencyRef *)(msg->ref + object->nr_refs);
	msg->n_ref = object->nr_refs;
	for (size_t i = 0; i < object->nr_refs; i++) {
		msg->ref[i] = &ref[i];
		fill_ref(&ref[i], &object->ref[i]);
	}
	return 0;
}

static void free_message(ResidencyImage *msg)
{
	for (size_t i = 0; i < msg->n_object; i++) {
		free(msg->object[i]->ref);
		free(msg->object[i]);
	}
	free(msg->object);
}

static int fill_message(ResidencyImage *msg, const struct shm_objects *objects)
{
	msg->object = calloc(objects->nr ? objects->nr : 1, sizeof(*msg->object));
	if (!msg->object)
		return -ENOMEM;
	for (size_t i = 0; i < objects->nr; i++) {
		ResidencyObject *object;
		int ret;

		if (!objects->object[i]->recorded)
			continue;
		object = malloc(sizeof(*object));
		if (!object)
			return -ENOMEM;
		ret = fill_object(object, objects->object[i]);
		msg->object[msg->n_object++] = object;
		if (ret)
			return ret;
	}
	return 0;
}

static int pack(const ResidencyImage *msg, uint8_t **data, size_t *size)
{
	size_t length = residency_image__get_packed_size(msg);
	struct image_header header = { .version = htole32(IMAGE_VERSION) };
	uint8_t *out;

	if (length > IMAGE_SIZE_MAX - IMAGE_HEADER_SIZE)
		return -EFBIG;
	out = malloc(IMAGE_HEADER_SIZE + length);
	if (!out)
		return -ENOMEM;
	residency_image__pack(msg, out + IMAGE_HEADER_SIZE);
	memcpy(header.magic, image_magic, sizeof(header.magic));
	header.crc = htole32(checksum(out + IMAGE_HEADER_SIZE, length));
	header.length = htole64(length);
	memcpy(out, &header, sizeof(header));
	*data = out;
	*size = IMAGE_HEADER_SIZE + length;
	return 0;
}

/**
 * image_encode() - Residency image in memory
 * @objects:	those recorded are taken
 * @info:	what told the states
 * @data:	filled; free() it
 * @size:	filled
 *
 * Return: 0 on success, -ENOMEM, -EFBIG
 */
int image_encode(const struct shm_objects *objects, const struct image_info *info, uint8_t **data,
		 size_t *size)
{
	ResidencyImage msg = RESIDENCY_IMAGE__INIT;
	int ret;

	msg.page_size = (uint32_t)sysconf(_SC_PAGESIZE);
	msg.source = (char *)info->source;
	msg.has_exact = 1;
	msg.exact = info->exact;
	ret = fill_message(&msg, objects);
	if (!ret)
		ret = pack(&msg, data, size);
	free_message(&msg);
	return ret;
}

/* Decoding */

static int take_ref(struct shm_object *object, const ResidencyRef *msg, struct image_error *error)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct shm_ref ref = { .image_pid = (pid_t)msg->pid, .fd = -1 };

	if (!msg->pid || msg->pid > INT32_MAX)
		return fail(error, -EINVAL, "object %#" PRIx64 ": impossible pid %u", object->ino,
			    msg->pid);
	if (msg->has_fd) {
		if (msg->fd > INT32_MAX)
			return fail(error, -EINVAL, "object %#" PRIx64 ": impossible descriptor",
				    object->ino);
		ref.fd = (int)msg->fd;
		return object_add_ref(object, &ref);
	}
	ref.start = msg->start;
	ref.end = msg->end;
	ref.offset = msg->offset;
	ref.locked = msg->locked;
	if (ref.start >= ref.end || ref.start % page || ref.end % page || ref.offset % page ||
	    ref.offset > INT64_MAX || ref.end - ref.start > INT64_MAX - ref.offset)
		return fail(error, -EINVAL, "object %#" PRIx64 ": impossible mapping", object->ino);
	return object_add_ref(object, &ref);
}

static void take_name(char *name, size_t size, const char *text)
{
	snprintf(name, size, "%s", text ? text : "");
	shm_plain_text(name);
}

static int take_object(struct shm_objects *objects, const ResidencyObject *msg,
		       struct image_error *error)
{
	struct shm_object key = { .kind = (enum shm_kind)msg->kind, .ino = msg->shmid }, *object;
	size_t before = objects->nr;
	int ret;

	if (msg->kind < RESIDENCY_KIND__RK_ANON || msg->kind > RESIDENCY_KIND__RK_SYSV)
		return fail(error, -EINVAL, "object %#" PRIx64 ": unknown kind %d", msg->shmid,
			    (int)msg->kind);
	if (msg->size > INT64_MAX)
		return fail(error, -EINVAL, "object %#" PRIx64 ": impossible size", msg->shmid);
	take_name(key.name, sizeof(key.name), msg->name);
	ret = objects_add(objects, &key, &object);
	if (ret)
		return ret;
	if (objects->nr == before)
		return fail(error, -EINVAL, "object %#" PRIx64 " is there twice", msg->shmid);
	object->size = msg->size;
	object->recorded = true;
	for (size_t i = 0; !ret && i < msg->n_ref; i++)
		ret = take_ref(object, msg->ref[i], error);
	if (ret)
		return ret;
	ret = residency_from_runs(&object->state, msg->run, msg->n_run, shm_pages(msg->size));
	if (ret == -ERANGE)
		return fail(error, ret,
			    "object %#" PRIx64 ": runs past its size of %" PRIu64 " bytes",
			    msg->shmid, msg->size);
	if (ret == -EINVAL)
		return fail(error, ret, "object %#" PRIx64 ": impossible run", msg->shmid);
	return ret;
}

static int check_header(const uint8_t *data, size_t size, struct image_error *error)
{
	struct image_header header;
	uint64_t length;

	if (size < IMAGE_HEADER_SIZE)
		return fail(error, -EINVAL, "truncated: %zu bytes, the header alone has %d", size,
			    IMAGE_HEADER_SIZE);
	memcpy(&header, data, sizeof(header));
	if (memcmp(header.magic, image_magic, sizeof(header.magic)))
		return fail(error, -EINVAL, "not a residency image (wrong magic)");
	if (le32toh(header.version) != IMAGE_VERSION)
		return fail(error, -EINVAL, "version %u, this plugin reads version %u",
			    le32toh(header.version), IMAGE_VERSION);
	length = le64toh(header.length);
	if (length > size - IMAGE_HEADER_SIZE)
		return fail(error, -EINVAL, "truncated: %zu of %" PRIu64 " bytes",
			    size - IMAGE_HEADER_SIZE, length);
	if (length < size - IMAGE_HEADER_SIZE)
		return fail(error, -EINVAL, "%" PRIu64 " bytes too long",
			    size - IMAGE_HEADER_SIZE - length);
	if (le32toh(header.crc) != checksum(data + IMAGE_HEADER_SIZE, length))
		return fail(error, -EINVAL, "damaged (checksum does not match)");
	return 0;
}

static int take_message(const ResidencyImage *msg, struct shm_objects *objects,
			struct image_info *info, struct image_error *error)
{
	int ret = 0;

	if (msg->page_size != (uint64_t)sysconf(_SC_PAGESIZE))
		return fail(error, -EINVAL, "made with pages of %u bytes, this machine has %ld",
			    msg->page_size, sysconf(_SC_PAGESIZE));
	take_name(info->source, sizeof(info->source), msg->source);
	info->exact = msg->exact;
	for (size_t i = 0; !ret && i < msg->n_object; i++)
		ret = take_object(objects, msg->object[i], error);
	return ret;
}

/**
 * image_decode() - Read a residency image from memory
 * @data:	the file's bytes
 * @size:	their number
 * @objects:	filled; must be empty; on an error empty
 * @info:	filled
 * @error:	reason of an error
 *
 * Return: 0 on success, negative error code
 */
int image_decode(const uint8_t *data, size_t size, struct shm_objects *objects,
		 struct image_info *info, struct image_error *error)
{
	ResidencyImage *msg;
	int ret;

	*info = (struct image_info){ 0 };
	*error = (struct image_error){ 0 };
	ret = check_header(data, size, error);
	if (ret)
		return ret;
	msg = residency_image__unpack(NULL, size - IMAGE_HEADER_SIZE, data + IMAGE_HEADER_SIZE);
	if (!msg)
		return fail(error, -EINVAL, "damaged (not a residency message)");
	ret = take_message(msg, objects, info, error);
	residency_image__free_unpacked(msg, NULL);
	if (ret) {
		objects_free(objects);
		if (!*error->text)
			fail(error, ret, "%s", strerror(-ret));
	}
	return ret;
}

/* Files */

static int write_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENOSPC;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

static int write_file(int dir, const uint8_t *data, size_t size)
{
	int fd, ret;

	/* Whatever is there is not ours to write into: a link, a FIFO, a leftover. */
	if (unlinkat(dir, IMAGE_TMP, 0) && errno != ENOENT)
		return -errno;
	fd = openat(dir, IMAGE_TMP, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ret = write_all(fd, data, size);
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret && renameat(dir, IMAGE_TMP, dir, IMAGE_NAME))
		ret = -errno;
	if (ret)
		unlinkat(dir, IMAGE_TMP, 0);
	return ret;
}

/**
 * image_write() - Write the residency image
 * @dir:	images directory
 * @objects:	those recorded are written
 * @info:	what told the states
 *
 * Return: 0 on success, negative error code; nothing is left behind then
 */
int image_write(int dir, const struct shm_objects *objects, const struct image_info *info)
{
	uint8_t *data;
	size_t size;
	int ret;

	ret = image_encode(objects, info, &data, &size);
	if (ret)
		return ret;
	ret = write_file(dir, data, size);
	if (!ret)
		pr_info("%s: %zu bytes, %zu objects\n", IMAGE_NAME, size, objects->nr);
	free(data);
	return ret;
}

static int read_all(int fd, uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = read(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EIO;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

static int load_file(int fd, uint8_t **data, size_t *size, struct image_error *error)
{
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return fail(error, -EINVAL, "not a regular file");
	if (st.st_size < 0 || (uint64_t)st.st_size > IMAGE_SIZE_MAX)
		return fail(error, -EFBIG, "%jd bytes are too many", (intmax_t)st.st_size);
	*size = (size_t)st.st_size;
	*data = malloc(*size ? *size : 1);
	if (!*data)
		return -ENOMEM;
	ret = read_all(fd, *data, *size);
	if (ret)
		free(*data);
	return ret;
}

/**
 * image_read() - Read the residency image
 * @dir:	images directory
 * @objects:	filled; must be empty; on an error empty
 * @info:	filled
 * @error:	reason of an error
 *
 * Return: 0 on success, -ENOENT when there is none, other negative error code
 */
int image_read(int dir, struct shm_objects *objects, struct image_info *info,
	       struct image_error *error)
{
	uint8_t *data = NULL;
	size_t size = 0;
	int fd, ret;

	*error = (struct image_error){ 0 };
	fd = openat(dir, IMAGE_NAME, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		return fail(error, ret, "%s", ret == -ENOENT ? "not there" : strerror(-ret));
	}
	ret = load_file(fd, &data, &size, error);
	close(fd);
	if (ret) {
		if (!*error->text)
			fail(error, ret, "%s", strerror(-ret));
		return ret;
	}
	ret = image_decode(data, size, objects, info, error);
	free(data);
	return ret;
}
