// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_fault.c - CRIU_SHMEM_FAULT
 */
#define UNIT_CAPTURE_LOG
#include "unit.h"

#include "fault.h"

static const struct {
	enum fault fault;
	const char *name;
} faults[] = {
	{ FAULT_NO_CACHESTAT, "no-cachestat" },
	{ FAULT_NO_PAGEMAP_SCAN, "no-pagemap-scan" },
	{ FAULT_NO_PROCESS_MADVISE, "no-process-madvise" },
	{ FAULT_NO_POPULATE_READ, "no-populate-read" },
	{ FAULT_NO_GUESS, "no-guess" },
	{ FAULT_ASSUME_MARKERS, "assume-markers" },
	{ FAULT_PAGEOUT_REFUSED, "pageout-refused" },
};

static unsigned int number_on(void)
{
	unsigned int on = 0;

	for (int i = 0; i < FAULT_MAX; i++)
		on += fault_on((enum fault)i);
	return on;
}

static void test_none(void **state)
{
	static const char *const text[] = {
		"",
		",",
		",,",
		"none",
		"no-cachestatx",
		"no-cache",
		"xno-cachestat",
		"NO-CACHESTAT",
		"no-cachestat no-guess",
		"-",
	};

	(void)state;
	unsetenv("CRIU_SHMEM_FAULT");
	assert_int_equal(number_on(), 0);
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		setenv("CRIU_SHMEM_FAULT", text[i], 1);
		assert_int_equal(number_on(), 0);
	}
	assert_string_equal(unit_log, "");
}

static void test_one(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_SIZE(faults), FAULT_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		setenv("CRIU_SHMEM_FAULT", faults[i].name, 1);
		log_clear();
		assert_true(fault_on(faults[i].fault));
		assert_non_null(strstr(unit_log, faults[i].name));
		assert_int_equal(number_on(), 1);
	}
}

static void test_list(void **state)
{
	(void)state;
	setenv("CRIU_SHMEM_FAULT", ",no-guess,,unknown,pageout-refused,", 1);
	assert_true(fault_on(FAULT_NO_GUESS));
	assert_true(fault_on(FAULT_PAGEOUT_REFUSED));
	assert_int_equal(number_on(), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_list),
	};

	return RUN_TESTS(tests);
}
