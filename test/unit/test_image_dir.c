// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_image_dir.c - the residency image in a directory
 *
 * Either a whole image is there or none. Cases that need a file system of
 * their own mount one in a child with its own mount namespace.
 */
#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "sample_objects.h"

#define TMP_NAME IMAGE_NAME ".tmp"

/* Results of children. */
enum {
	CHILD_OK = 0,
	CHILD_WRONG = 1,
	CHILD_CANNOT = 2,
};

static bool exists(int dir, const char *name)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
}

static int write_sample(int dir, unsigned int runs)
{
	const struct image_info info = { "mincore", false };
	struct shm_objects objects = { 0 };
	int ret;

	if (!sample_fill(&objects))
		return -ENOMEM;
	for (unsigned int i = 0; i < runs; i++)
		residency_add(&objects.object[0]->state, 1, (enum page_state)(i % 3));
	objects.object[0]->size += runs * page_size();
	ret = image_write(dir, &objects, &info);
	objects_free(&objects);
	return ret;
}

static int read_sample(int dir, struct image_error *error)
{
	struct shm_objects objects = { 0 }, expect = { 0 };
	struct image_info info;
	int ret;

	ret = image_read(dir, &objects, &info, error);
	if (ret) {
		assert_int_equal(objects.nr, 0);
		assert_string_not_equal(error->text, "");
		return ret;
	}
	assert_true(sample_fill(&expect));
	assert_true(sample_same(&objects, &expect));
	assert_string_equal(info.source, "mincore");
	assert_false(info.exact);
	objects_free(&objects);
	objects_free(&expect);
	return 0;
}

static void test_write_read(void **state)
{
	struct image_error error;
	int dir = open_dir(*state);
	struct stat st;

	assert_int_equal(write_sample(dir, 0), 0);
	assert_int_equal(read_sample(dir, &error), 0);
	assert_false(exists(dir, TMP_NAME));
	assert_int_equal(fstatat(dir, IMAGE_NAME, &st, 0), 0);
	/* It names processes and addresses: not for everybody to read. */
	assert_int_equal(st.st_mode & 077, 0);
	close(dir);
}

static void test_write_over_old(void **state)
{
	struct image_error error;
	int dir = open_dir(*state);

	write_file_at(dir, IMAGE_NAME, "old", 3);
	write_file_at(dir, TMP_NAME, "left by a crash, and longer than the image itself", 50);
	assert_int_equal(write_sample(dir, 0), 0);
	assert_int_equal(read_sample(dir, &error), 0);
	assert_false(exists(dir, TMP_NAME));
	close(dir);
}

static void test_missing(void **state)
{
	struct image_error error;
	int dir = open_dir(*state);

	assert_int_equal(read_sample(dir, &error), -ENOENT);
	assert_int_equal(read_sample(-1, &error), -EBADF);
	assert_int_equal(write_sample(-1, 0), -EBADF);
	close(dir);
}

static void test_damaged(void **state)
{
	struct image_error error;
	int dir = open_dir(*state);

	write_file_at(dir, IMAGE_NAME, "", 0);
	assert_true(read_sample(dir, &error) < 0);
	assert_non_null(strstr(error.text, "truncated"));
	write_file_at(dir, IMAGE_NAME, "SHMRESIDgarbage that is long enough", 35);
	assert_true(read_sample(dir, &error) < 0);
	close(dir);
}

/* A sparse file of absurd size is refused before memory is taken for it. */
static void test_too_large(void **state)
{
	struct image_error error;
	int dir = open_dir(*state), fd;

	write_file_at(dir, IMAGE_NAME, "SHMRESID", 8);
	fd = openat(dir, IMAGE_NAME, O_WRONLY);
	assert_int_equal(ftruncate(fd, (off_t)IMAGE_SIZE_MAX + 1), 0);
	close(fd);
	assert_int_equal(read_sample(dir, &error), -EFBIG);
	close(dir);
}

static int read_in_child(void *arg)
{
	struct shm_objects objects = { 0 };
	struct image_error error;
	struct image_info info;

	return image_read(*(int *)arg, &objects, &info, &error) < 0 ? CHILD_OK : CHILD_WRONG;
}

static void test_fifo_as_image(void **state)
{
	int dir = open_dir(*state);

	assert_int_equal(mkfifoat(dir, IMAGE_NAME, 0600), 0);
	assert_int_equal(in_child(read_in_child, &dir, 20), CHILD_OK);
	close(dir);
}

static int write_in_child(void *arg)
{
	return write_sample(*(int *)arg, 0) ? CHILD_WRONG : CHILD_OK;
}

/* A dump that hangs is worse than one without the image; -1 is the alarm. */
static void test_fifo_as_tmp(void **state)
{
	int dir = open_dir(*state);

	assert_int_equal(mkfifoat(dir, TMP_NAME, 0600), 0);
	assert_int_not_equal(in_child(write_in_child, &dir, 20), -1);
	close(dir);
}

static void test_directory_as_image(void **state)
{
	struct image_error error;
	int dir = open_dir(*state);

	assert_int_equal(mkdirat(dir, IMAGE_NAME, 0700), 0);
	assert_true(read_sample(dir, &error) < 0);
	assert_non_null(strstr(error.text, "regular file"));
	assert_true(write_sample(dir, 0) < 0);
	assert_false(exists(dir, TMP_NAME));
	close(dir);
}

/* Whatever becomes of the write, the target of the link is not touched. */
static void test_symlink_as_tmp(void **state)
{
	struct image_error error;
	int dir = open_dir(*state), fd;
	char text[20] = "";

	write_file_at(dir, "victim", "precious", 8);
	assert_int_equal(symlinkat("victim", dir, TMP_NAME), 0);
	if (!write_sample(dir, 0))
		assert_int_equal(read_sample(dir, &error), 0);
	fd = openat(dir, "victim", O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text)), 8);
	assert_string_equal(text, "precious");
	close(fd);
	close(dir);
}

/* A write that fails half way, without privileges: a limit on file sizes. */
static int write_limited(void *arg)
{
	struct rlimit limit = { 4096, 4096 };
	int dir = *(int *)arg;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit))
		return CHILD_CANNOT;
	return write_sample(dir, 20000) == -EFBIG ? CHILD_OK : CHILD_WRONG;
}

static void test_short_write(void **state)
{
	struct image_error error;
	int dir = open_dir(*state);

	assert_int_equal(write_sample(dir, 0), 0);
	assert_int_equal(in_child(write_limited, &dir, 20), CHILD_OK);
	assert_false(exists(dir, TMP_NAME));
	/* The image that was there before is still whole. */
	assert_int_equal(read_sample(dir, &error), 0);
	close(dir);
}

static int own_tmpfs(const char *path, unsigned long flags)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, "") ||
	    mount("shmem-unit", path, "tmpfs", flags, "size=16k"))
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int write_full(void *arg)
{
	int dir = own_tmpfs(arg, 0);

	if (dir < 0)
		return CHILD_CANNOT;
	if (write_sample(dir, 100000) != -ENOSPC || exists(dir, TMP_NAME) ||
	    exists(dir, IMAGE_NAME))
		return CHILD_WRONG;
	return write_sample(dir, 0) ? CHILD_WRONG : CHILD_OK;
}

static int write_read_only(void *arg)
{
	int dir = own_tmpfs(arg, MS_RDONLY);

	if (dir < 0)
		return CHILD_CANNOT;
	return write_sample(dir, 0) == -EROFS ? CHILD_OK : CHILD_WRONG;
}

static void run_on_tmpfs(int (*fn)(void *), void *path)
{
	int ret;

	if (geteuid())
		SKIP("a mount of one's own needs root");
	ret = in_child(fn, path, 20);
	if (ret == CHILD_CANNOT)
		SKIP("cannot mount a tmpfs");
	assert_int_equal(ret, CHILD_OK);
}

static void test_no_space(void **state)
{
	run_on_tmpfs(write_full, *state);
}

static void test_read_only(void **state)
{
	run_on_tmpfs(write_read_only, *state);
}

static void test_no_permission(void **state)
{
	int dir = open_dir(*state);

	if (!geteuid()) {
		close(dir);
		SKIP("root may write everywhere");
	}
	assert_int_equal(fchmod(dir, 0500), 0);
	assert_int_equal(write_sample(dir, 0), -EACCES);
	assert_int_equal(fchmod(dir, 0700), 0);
	close(dir);
}

#define DIR_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_dir, teardown_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIR_TEST(test_write_read),     DIR_TEST(test_write_over_old),
		DIR_TEST(test_missing),	       DIR_TEST(test_damaged),
		DIR_TEST(test_too_large),      DIR_TEST(test_fifo_as_image),
		DIR_TEST(test_fifo_as_tmp),    DIR_TEST(test_directory_as_image),
		DIR_TEST(test_symlink_as_tmp), DIR_TEST(test_short_write),
		DIR_TEST(test_no_space),       DIR_TEST(test_read_only),
		DIR_TEST(test_no_permission),
	};

	return RUN_TESTS(tests);
}
