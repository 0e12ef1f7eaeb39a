// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_criu_images.c - comparison with CRIU's images, made by hand here
 *
 * The entries have the fields that CRIU 4.2 writes, so that the ones not
 * looked at are skipped as they are in earnest.
 */
#define UNIT_CAPTURE_LOG
#include "unit.h"

#include <endian.h>

#include "criu_images.h"
#include "sample_objects.h"

#define COMMON_MAGIC 0x54564319u
#define SHM_MAGIC 0x46283044u
#define MEMFD_MAGIC 0x48453499u

struct out {
	uint8_t data[4096];
	size_t size;
};

static void put(struct out *out, const void *data, size_t size)
{
	assert_true(out->size + size <= sizeof(out->data));
	memcpy(out->data + out->size, data, size);
	out->size += size;
}

static void put32(struct out *out, uint32_t value)
{
	value = htole32(value);
	put(out, &value, sizeof(value));
}

static void put_varint(struct out *out, uint64_t value)
{
	do {
		uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));

		put(out, &byte, 1);
		value >>= 7;
	} while (value);
}

static void put_number(struct out *out, unsigned int field, uint64_t value)
{
	put_varint(out, field << 3);
	put_varint(out, value);
}

static void put_block(struct out *out, unsigned int field, const void *data, size_t size)
{
	put_varint(out, field << 3 | 2);
	put_varint(out, size);
	put(out, data, size);
}

static void start(struct out *out, uint32_t magic)
{
	out->size = 0;
	put32(out, COMMON_MAGIC);
	put32(out, magic);
}

static void put_entry(struct out *out, const struct out *entry)
{
	put32(out, (uint32_t)entry->size);
	put(out, entry->data, entry->size);
}

/* memfd_inode_entry */
static void put_memfd(struct out *out, uint32_t shmid, uint64_t size)
{
	struct out entry = { .size = 0 };

	put_block(&entry, 1, "/dev/zero", 9);
	put_number(&entry, 2, 0);
	put_number(&entry, 3, 0);
	put_number(&entry, 4, size);
	put_number(&entry, 5, shmid);
	put_number(&entry, 6, 1);
	put_number(&entry, 7, 3);
	put_entry(out, &entry);
}

/* ipc_shm_entry with its ipc_desc_entry */
static void put_segment(struct out *out, uint32_t id, uint64_t size)
{
	struct out entry = { .size = 0 }, desc = { .size = 0 };

	for (unsigned int field = 1; field <= 6; field++)
		put_number(&desc, field, 0);
	put_number(&desc, 7, id);
	put_block(&entry, 1, desc.data, desc.size);
	put_number(&entry, 2, size);
	put_entry(out, &entry);
}

static void save(int dir, const char *name, const struct out *out)
{
	write_file_at(dir, name, out->data, out->size);
}

/* What was called for. */
struct calls {
	unsigned int nr;
	uint64_t ino;
	enum shm_kind kind;
	char text[160];
};

static void note(struct shm_object *object, const struct image_error *error, void *arg)
{
	struct calls *calls = arg;

	calls->nr++;
	calls->ino = object->ino;
	calls->kind = object->kind;
	memcpy(calls->text, error->text, sizeof(calls->text));
}

/* A memfd and a segment of the same number, and an anonymous mapping. */
static void fill(struct shm_objects *objects)
{
	assert_non_null(sample_add(objects, SHM_MEMFD, 77, 4, "/memfd:x"));
	assert_non_null(sample_add(objects, SHM_SYSV, 77, 5, "/SYSV"));
	assert_non_null(sample_add(objects, SHM_ANON, 9, 6, "/dev/zero"));
}

static int check(int dir, struct calls *calls)
{
	struct shm_objects objects = { 0 };
	int ret;

	fill(&objects);
	*calls = (struct calls){ 0 };
	log_clear();
	ret = criu_images_check(dir, &objects, note, calls);
	objects_free(&objects);
	return ret;
}

/* Order and neighbours must not matter. */
static void good_memfd(struct out *out)
{
	start(out, MEMFD_MAGIC);
	put_memfd(out, 100, page_size());
	put_memfd(out, 77, 4 * page_size());
	put_memfd(out, 9, 6 * page_size());
}

static void good_segment(struct out *out)
{
	start(out, SHM_MAGIC);
	put_segment(out, 77, 5 * page_size());
	put_segment(out, 1, page_size());
}

static void test_match(void **state)
{
	int dir = open_dir(*state);
	struct calls calls;
	struct out out;

	good_memfd(&out);
	save(dir, "memfd.img", &out);
	good_segment(&out);
	save(dir, "ipcns-shm-9.img", &out);
	write_file_at(dir, "ipcns-var-9.img", "not looked at", 13);
	assert_int_equal(check(dir, &calls), 0);
	assert_int_equal(calls.nr, 0);
	assert_string_equal(unit_log, "");
	close(dir);
}

static void test_missing_object(void **state)
{
	int dir = open_dir(*state);
	struct calls calls;
	struct out out;

	start(&out, MEMFD_MAGIC);
	put_memfd(&out, 9, 6 * page_size());
	save(dir, "memfd.img", &out);
	good_segment(&out);
	save(dir, "ipcns-shm-9.img", &out);
	assert_int_equal(check(dir, &calls), 0);
	/* The segment with the same number does not stand in for the memfd. */
	assert_int_equal(calls.nr, 1);
	assert_int_equal(calls.kind, SHM_MEMFD);
	assert_int_equal(calls.ino, 77);
	assert_non_null(strstr(calls.text, "not in CRIU's images"));
	close(dir);
}

static const char *size_text(unsigned int pages)
{
	static char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 " bytes", pages * page_size());
	return text;
}

static void test_other_size(void **state)
{
	int dir = open_dir(*state);
	struct calls calls;
	struct out out;

	good_memfd(&out);
	save(dir, "memfd.img", &out);
	start(&out, SHM_MAGIC);
	put_segment(&out, 77, 4 * page_size());
	save(dir, "ipcns-shm-9.img", &out);
	assert_int_equal(check(dir, &calls), 0);
	assert_int_equal(calls.nr, 1);
	assert_int_equal(calls.kind, SHM_SYSV);
	assert_non_null(strstr(calls.text, size_text(4)));
	assert_non_null(strstr(calls.text, size_text(5)));
	close(dir);
}

static void test_several_namespaces(void **state)
{
	int dir = open_dir(*state);
	struct calls calls;
	struct out out;

	good_memfd(&out);
	save(dir, "memfd.img", &out);
	start(&out, SHM_MAGIC);
	put_segment(&out, 1, page_size());
	save(dir, "ipcns-shm-9.img", &out);
	good_segment(&out);
	save(dir, "ipcns-shm-123.img", &out);
	assert_int_equal(check(dir, &calls), 0);
	assert_int_equal(calls.nr, 0);
	close(dir);
}

static void test_no_images(void **state)
{
	int dir = open_dir(*state);
	struct calls calls;

	assert_int_equal(check(dir, &calls), 0);
	assert_int_equal(calls.nr, 3);
	close(dir);
	assert_true(check(-1, &calls) < 0);
	assert_int_equal(calls.nr, 0);
}

/* Without privileges CRIU keeps an anonymous mapping as a page map only. */
static void test_page_map(void **state)
{
	int dir = open_dir(*state);
	struct calls calls;

	write_file_at(dir, "pagemap-shmem-9.img", "", 0);
	write_file_at(dir, "pagemap-shmem-77.img", "", 0);
	assert_int_equal(check(dir, &calls), 0);
	assert_int_equal(calls.nr, 1);
	assert_int_equal(calls.kind, SHM_SYSV);
	close(dir);
}

static void assert_not_understood(int dir, const char *name)
{
	struct calls calls;

	assert_true(check(dir, &calls) < 0);
	assert_int_equal(calls.nr, 0);
	assert_non_null(strstr(unit_log, name));
}

static void test_garbage(void **state)
{
	static const char *const name[] = { "memfd.img", "ipcns-shm-9.img" };
	int dir = open_dir(*state);
	struct out out = { .size = 0 };

	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		save(dir, name[i], &(struct out){ .size = 0 });
		assert_not_understood(dir, name[i]);
		start(&out, i ? MEMFD_MAGIC : SHM_MAGIC);
		save(dir, name[i], &out);
		assert_not_understood(dir, name[i]);
		start(&out, i ? SHM_MAGIC : MEMFD_MAGIC);
		put32(&out, 6);
		put(&out, "\xff\xff\xff\xff\xff\xff", 6);
		save(dir, name[i], &out);
		assert_not_understood(dir, name[i]);
		/* No field at all: size and number are missing. */
		out.size = 8;
		put32(&out, 0);
		save(dir, name[i], &out);
		assert_not_understood(dir, name[i]);
		out.size = 8;
		put32(&out, UINT32_MAX);
		save(dir, name[i], &out);
		assert_not_understood(dir, name[i]);
		unlinkat(dir, name[i], 0);
	}
	close(dir);
}

/* Cut anywhere but between two entries, a file is not understood. */
static void try_truncated(int dir, const char *name, const struct out *whole)
{
	size_t border[8], nr = 0;
	struct calls calls;

	for (size_t at = 8; at < whole->size; nr++) {
		uint32_t length;

		border[nr] = at;
		memcpy(&length, whole->data + at, 4);
		at += 4 + le32toh(length);
	}
	for (size_t size = 0; size < whole->size; size++) {
		bool at_border = false;

		for (size_t i = 0; i < nr; i++)
			at_border |= size == border[i];
		write_file_at(dir, name, whole->data, size);
		if (!at_border && !check(dir, &calls))
			fail_msg("%s of %zu bytes, cut from %zu, was accepted", name, size,
				 whole->size);
		if (at_border)
			assert_int_equal(check(dir, &calls), 0);
	}
	unlinkat(dir, name, 0);
}

static void test_truncated(void **state)
{
	int dir = open_dir(*state);
	struct out out;

	good_memfd(&out);
	try_truncated(dir, "memfd.img", &out);
	good_segment(&out);
	try_truncated(dir, "ipcns-shm-9.img", &out);
	close(dir);
}

static int check_in_child(void *arg)
{
	struct calls calls;

	return check(*(int *)arg, &calls) < 0 ? 0 : 1;
}

/* Neither blocks nor passes for an image. */
static void test_not_files(void **state)
{
	int dir = open_dir(*state);

	assert_int_equal(mkfifoat(dir, "memfd.img", 0600), 0);
	assert_int_equal(in_child(check_in_child, &dir, 20), 0);
	assert_int_equal(unlinkat(dir, "memfd.img", 0), 0);
	assert_int_equal(mkdirat(dir, "ipcns-shm-9.img", 0700), 0);
	assert_not_understood(dir, "ipcns-shm-9.img");
	close(dir);
}

#define DIR_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_dir, teardown_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIR_TEST(test_match),	   DIR_TEST(test_missing_object),
		DIR_TEST(test_other_size), DIR_TEST(test_several_namespaces),
		DIR_TEST(test_no_images),  DIR_TEST(test_page_map),
		DIR_TEST(test_garbage),	   DIR_TEST(test_truncated),
		DIR_TEST(test_not_files),
	};

	return RUN_TESTS(tests);
}
