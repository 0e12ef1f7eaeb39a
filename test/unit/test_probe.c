// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_probe.c - what the probe finds, against what is tried here
 */
#define UNIT_CAPTURE_LOG
#include "unit.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "probe.h"
#include "shmem_uapi.h"

/* Runs the probe with a fault, which is off again afterwards. */
static void probe_with(struct probe *probe, const char *fault)
{
	memset(probe, 0xff, sizeof(*probe));
	setenv("CRIU_SHMEM_FAULT", fault, 1);
	probe_run(probe);
	unsetenv("CRIU_SHMEM_FAULT");
}

static bool have_cachestat(void)
{
	struct shm_cachestat_range range = { 0, 4096 };
	struct shm_cachestat stat;
	int fd = memfd_create("unit", MFD_CLOEXEC);
	long ret;

	assert_true(fd >= 0);
	ret = syscall(SHM_NR_cachestat, fd, &range, &stat, 0);
	close(fd);
	return !ret;
}

static void test_run(void **state)
{
	struct sysinfo info;
	struct probe probe;

	(void)state;
	probe_with(&probe, "");
	assert_int_equal(sysinfo(&info), 0);
	assert_int_equal(!probe.swap_total, !info.totalswap);
	assert_true(probe.swap_free <= probe.swap_total);
	assert_int_equal(probe.cachestat, have_cachestat());
	assert_int_equal(probe.pagemap, !access("/proc/self/pagemap", R_OK));
	if (!probe.swap_total) {
		assert_false(probe.swap_disk);
		assert_false(probe.markers_tried);
	}
	if (probe.markers)
		assert_true(probe.markers_tried);
	assert_string_equal(unit_log, "");
}

static void test_faults(void **state)
{
	struct probe probe;

	(void)state;
	probe_with(&probe, "no-cachestat");
	assert_false(probe.cachestat);
	probe_with(&probe, "no-pagemap-scan");
	assert_false(probe.pagemap_scan);
	assert_true(probe.pagemap);
	probe_with(&probe, "assume-markers");
	assert_true(probe.markers && probe.markers_tried);
}

/* It leaves no descriptor behind. */
static void test_no_leak(void **state)
{
	int before = dup(0), after;
	struct probe probe;

	(void)state;
	assert_true(before >= 0);
	close(before);
	probe_run(&probe);
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

static void test_count(void **state)
{
	uint64_t resident, swapped;
	int fd;

	(void)state;
	assert_int_equal(probe_cachestat(-1, 0, 1, &resident, &swapped),
			 have_cachestat() ? -EBADF : -ENOSYS);
	if (!have_cachestat())
		SKIP("no cachestat here");
	fd = memfd_create("unit", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)(8 * page_size())), 0);
	assert_int_equal(pwrite(fd, "x", 1, (off_t)(2 * page_size())), 1);
	assert_int_equal(pwrite(fd, "x", 1, (off_t)(5 * page_size())), 1);
	assert_int_equal(probe_cachestat(fd, 0, 8, &resident, &swapped), 0);
	assert_int_equal(resident + swapped, 2);
	assert_int_equal(probe_cachestat(fd, 2, 1, &resident, &swapped), 0);
	assert_int_equal(resident + swapped, 1);
	assert_int_equal(probe_cachestat(fd, 3, 2, &resident, &swapped), 0);
	assert_int_equal(resident + swapped, 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_no_leak),
		cmocka_unit_test(test_count),
	};

	return RUN_TESTS(tests);
}
