// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_config.c - settings from the file and the environment
 */
#define UNIT_CAPTURE_LOG
#include "unit.h"

#include "config.h"

static const char *const key[] = {
	"CRIU_SHMEM_SOURCE", "CRIU_SHMEM_WINDOW", "CRIU_SHMEM_COLD",
	"CRIU_SHMEM_STRICT", "CRIU_SHMEM_CONF",
};

static void clear_environment(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(key); i++)
		unsetenv(key[i]);
}

static int setup(void **state)
{
	clear_environment();
	log_clear();
	return setup_dir(state);
}

static int teardown(void **state)
{
	clear_environment();
	return teardown_dir(state);
}

/* Loads a file with this text. */
static int load(const char *dir_path, const char *text, struct config *config)
{
	int dir = open_dir(dir_path);
	char path[512];

	snprintf(path, sizeof(path), "%s/conf", dir_path);
	write_file_at(dir, "conf", text, strlen(text));
	close(dir);
	setenv("CRIU_SHMEM_CONF", path, 1);
	log_clear();
	return config_load(config);
}

static void assert_defaults(const struct config *config)
{
	assert_int_equal(config->source, SOURCE_AUTO);
	assert_int_equal(config->window, CONFIG_WINDOW_DEFAULT);
	assert_false(config->cold_in);
	assert_false(config->strict);
}

static void test_defaults(void **state)
{
	struct config config;

	(void)state;
	memset(&config, 0xff, sizeof(config));
	config_defaults(&config);
	assert_defaults(&config);
}

static void test_set(void **state)
{
	static const struct {
		const char *key;
		const char *value;
		struct config want;
	} cases[] = {
#define W CONFIG_WINDOW_DEFAULT
		{ "CRIU_SHMEM_SOURCE", "auto", { SOURCE_AUTO, W, false, false } },
		{ "CRIU_SHMEM_SOURCE", "pagemap", { SOURCE_PAGEMAP, W, false, false } },
		{ "CRIU_SHMEM_SOURCE", "cachestat", { SOURCE_CACHESTAT, W, false, false } },
		{ "CRIU_SHMEM_SOURCE", "mincore", { SOURCE_MINCORE, W, false, false } },
		{ "CRIU_SHMEM_WINDOW", "1048576", { SOURCE_AUTO, 1 << 20, false, false } },
		{ "CRIU_SHMEM_WINDOW", "128K", { SOURCE_AUTO, 128 << 10, false, false } },
		{ "CRIU_SHMEM_WINDOW", "128k", { SOURCE_AUTO, 128 << 10, false, false } },
		{ "CRIU_SHMEM_WINDOW", "3M", { SOURCE_AUTO, 3 << 20, false, false } },
		{ "CRIU_SHMEM_WINDOW", "3m", { SOURCE_AUTO, 3 << 20, false, false } },
		{ "CRIU_SHMEM_WINDOW", "1G", { SOURCE_AUTO, 1 << 30, false, false } },
		{ "CRIU_SHMEM_WINDOW", "1g", { SOURCE_AUTO, 1 << 30, false, false } },
		{ "CRIU_SHMEM_WINDOW", "1024M", { SOURCE_AUTO, 1 << 30, false, false } },
		{ "CRIU_SHMEM_COLD", "out", { SOURCE_AUTO, W, false, false } },
		{ "CRIU_SHMEM_COLD", "in", { SOURCE_AUTO, W, true, false } },
		{ "CRIU_SHMEM_STRICT", "0", { SOURCE_AUTO, W, false, false } },
		{ "CRIU_SHMEM_STRICT", "1", { SOURCE_AUTO, W, false, true } },
#undef W
	};
	struct config config;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		config_defaults(&config);
		assert_int_equal(config_set(&config, cases[i].key, cases[i].value, "x"), 0);
		assert_int_equal(config.source, cases[i].want.source);
		assert_int_equal(config.window, cases[i].want.window);
		assert_int_equal(config.cold_in, cases[i].want.cold_in);
		assert_int_equal(config.strict, cases[i].want.strict);
	}
	assert_string_equal(unit_log, "");
}

/* Set back as well as set. */
static void test_set_twice(void **state)
{
	struct config config;

	(void)state;
	config_defaults(&config);
	assert_int_equal(config_set(&config, "CRIU_SHMEM_STRICT", "1", "x"), 0);
	assert_int_equal(config_set(&config, "CRIU_SHMEM_STRICT", "0", "x"), 0);
	assert_int_equal(config_set(&config, "CRIU_SHMEM_COLD", "in", "x"), 0);
	assert_int_equal(config_set(&config, "CRIU_SHMEM_COLD", "out", "x"), 0);
	assert_defaults(&config);
}

static void test_window_rounding(void **state)
{
	struct config config;
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%" PRIu64, 2 * page_size() + 1);
	assert_int_equal(config_set(&config, "CRIU_SHMEM_WINDOW", text, "x"), 0);
	assert_int_equal(config.window, 2 * page_size());
	snprintf(text, sizeof(text), "%" PRIu64, page_size());
	assert_int_equal(config_set(&config, "CRIU_SHMEM_WINDOW", text, "x"), 0);
	assert_int_equal(config.window, page_size());
	snprintf(text, sizeof(text), "%" PRIu64, page_size() - 1);
	assert_int_equal(config_set(&config, "CRIU_SHMEM_WINDOW", text, "x"), -EINVAL);
}

static void test_bad_values(void **state)
{
	static const struct {
		const char *key;
		const char *value;
	} cases[] = {
		{ "CRIU_SHMEM_SOURCE", "" },
		{ "CRIU_SHMEM_SOURCE", "Auto" },
		{ "CRIU_SHMEM_SOURCE", "cache" },
		{ "CRIU_SHMEM_SOURCE", "mincore " },
		{ "CRIU_SHMEM_WINDOW", "" },
		{ "CRIU_SHMEM_WINDOW", "0" },
		{ "CRIU_SHMEM_WINDOW", "1" },
		{ "CRIU_SHMEM_WINDOW", "-4194304" },
		{ "CRIU_SHMEM_WINDOW", "4T" },
		{ "CRIU_SHMEM_WINDOW", "4MB" },
		{ "CRIU_SHMEM_WINDOW", "4 M" },
		{ "CRIU_SHMEM_WINDOW", "4.5M" },
		{ "CRIU_SHMEM_WINDOW", "0x100000" },
		{ "CRIU_SHMEM_WINDOW", "1025M" },
		{ "CRIU_SHMEM_WINDOW", "2G" },
		{ "CRIU_SHMEM_WINDOW", "M" },
		{ "CRIU_SHMEM_WINDOW", "99999999999999999999" },
		{ "CRIU_SHMEM_WINDOW", "18014398509481985K" },
		{ "CRIU_SHMEM_WINDOW", "17179869185G" },
		{ "CRIU_SHMEM_COLD", "" },
		{ "CRIU_SHMEM_COLD", "In" },
		{ "CRIU_SHMEM_COLD", "1" },
		{ "CRIU_SHMEM_STRICT", "" },
		{ "CRIU_SHMEM_STRICT", "2" },
		{ "CRIU_SHMEM_STRICT", "yes" },
		{ "CRIU_SHMEM_STRICT", "01" },
	};
	struct config config;

	(void)state;
	config_defaults(&config);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		log_clear();
		if (config_set(&config, cases[i].key, cases[i].value, "here:7") != -EINVAL)
			fail_msg("%s=%s is accepted", cases[i].key, cases[i].value);
		assert_defaults(&config);
		assert_non_null(strstr(unit_log, "here:7"));
		assert_non_null(strstr(unit_log, cases[i].key));
		assert_non_null(strstr(unit_log, "want"));
	}
}

static void test_unknown_key(void **state)
{
	static const char *const unknown[] = {
		"CRIU_SHMEM_CONF", "CRIU_SHMEM_FAULT", "criu_shmem_cold", "SOURCE", "",
	};
	struct config config;

	(void)state;
	config_defaults(&config);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_int_equal(config_set(&config, unknown[i], "1", "x"), -EINVAL);
	assert_int_equal(log_count("unknown setting"), ARRAY_SIZE(unknown));
	assert_defaults(&config);
}

static void test_file(void **state)
{
	struct config config;

	assert_int_equal(load(*state,
			      "# all of them\n"
			      "\n"
			      "   \t\n"
			      "CRIU_SHMEM_SOURCE=cachestat\n"
			      "  CRIU_SHMEM_WINDOW\t=  8M  # a comment\n"
			      "CRIU_SHMEM_COLD = in\r\n"
			      "#CRIU_SHMEM_STRICT=0\n"
			      "CRIU_SHMEM_STRICT=1",
			      &config),
			 0);
	assert_string_equal(unit_log, "");
	assert_int_equal(config.source, SOURCE_CACHESTAT);
	assert_int_equal(config.window, 8 << 20);
	assert_true(config.cold_in);
	assert_true(config.strict);
}

/* Every bad line is named, the good ones count. */
static void test_file_errors(void **state)
{
	struct config config;

	assert_int_equal(load(*state,
			      "CRIU_SHMEM_STRICT=1\n"
			      "CRIU_SHMEM_SPEED=9\n"
			      "\n"
			      "no equals sign\n"
			      "CRIU_SHMEM_WINDOW=\n"
			      "=\n"
			      "CRIU_SHMEM_COLD=in=out\n"
			      "CRIU_SHMEM_SOURCE=mincore\n",
			      &config),
			 -EINVAL);
	assert_true(config.strict);
	assert_int_equal(config.source, SOURCE_MINCORE);
	assert_int_equal(config.window, CONFIG_WINDOW_DEFAULT);
	assert_false(config.cold_in);
	assert_int_equal(log_count("/conf:"), 5);
	assert_int_equal(log_count("/conf:2: "), 1);
	assert_int_equal(log_count("/conf:4: "), 1);
	assert_int_equal(log_count("/conf:5: "), 1);
	assert_int_equal(log_count("/conf:6: "), 1);
	assert_int_equal(log_count("/conf:7: "), 1);
}

static void test_last_line_wins(void **state)
{
	struct config config;

	assert_int_equal(load(*state, "CRIU_SHMEM_COLD=in\nCRIU_SHMEM_COLD=out\n", &config), 0);
	assert_false(config.cold_in);
}

static void test_environment_over_file(void **state)
{
	struct config config;

	setenv("CRIU_SHMEM_COLD", "out", 1);
	setenv("CRIU_SHMEM_SOURCE", "mincore", 1);
	assert_int_equal(load(*state,
			      "CRIU_SHMEM_COLD=in\n"
			      "CRIU_SHMEM_SOURCE=cachestat\n"
			      "CRIU_SHMEM_STRICT=1\n",
			      &config),
			 0);
	assert_false(config.cold_in);
	assert_int_equal(config.source, SOURCE_MINCORE);
	assert_true(config.strict);
}

static void test_bad_environment(void **state)
{
	struct config config;

	setenv("CRIU_SHMEM_COLD", "warm", 1);
	assert_int_equal(load(*state, "CRIU_SHMEM_STRICT=1\n", &config), -EINVAL);
	assert_non_null(strstr(unit_log, "environment"));
	assert_true(config.strict);
}

/* A file that was asked for must be there; the default one need not. */
static void test_missing_file(void **state)
{
	struct config config;
	char path[512];

	snprintf(path, sizeof(path), "%s/none", (char *)*state);
	setenv("CRIU_SHMEM_CONF", path, 1);
	assert_int_equal(config_load(&config), -ENOENT);
	assert_defaults(&config);
	assert_non_null(strstr(unit_log, path));
	setenv("CRIU_SHMEM_CONF", *state, 1);
	assert_int_equal(config_load(&config), -EISDIR);
	setenv("CRIU_SHMEM_CONF", "/dev/null", 1);
	log_clear();
	assert_int_equal(config_load(&config), 0);
	assert_defaults(&config);
	assert_string_equal(unit_log, "");
}

static void test_no_default_file(void **state)
{
	struct config config;

	(void)state;
	if (!access(CONFIG_FILE, F_OK))
		SKIP("there is a " CONFIG_FILE);
	assert_int_equal(config_load(&config), 0);
	assert_defaults(&config);
	setenv("CRIU_SHMEM_STRICT", "1", 1);
	assert_int_equal(config_load(&config), 0);
	assert_true(config.strict);
	assert_string_equal(unit_log, "");
}

#define CONFIG_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFIG_TEST(test_defaults),
		CONFIG_TEST(test_set),
		CONFIG_TEST(test_set_twice),
		CONFIG_TEST(test_window_rounding),
		CONFIG_TEST(test_bad_values),
		CONFIG_TEST(test_unknown_key),
		CONFIG_TEST(test_file),
		CONFIG_TEST(test_file_errors),
		CONFIG_TEST(test_last_line_wins),
		CONFIG_TEST(test_environment_over_file),
		CONFIG_TEST(test_bad_environment),
		CONFIG_TEST(test_missing_file),
		CONFIG_TEST(test_no_default_file),
	};

	return RUN_TESTS(tests);
}
