// SPDX-License-Identifier: GPL-2.0-only
/*
 * config.c - settings: environment over file over defaults
 *
 * The file holds KEY=VALUE lines with the names of the environment variables;
 * '#' starts a comment. Container runtimes pass no environment to CRIU, so the
 * file is what they use.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

static const char *const config_key[] = {
	"CRIU_SHMEM_SOURCE",
	"CRIU_SHMEM_WINDOW",
	"CRIU_SHMEM_COLD",
	"CRIU_SHMEM_STRICT",
};

#define NR_KEYS (sizeof(config_key) / sizeof(config_key[0]))

/**
 * config_defaults() - Settings when nothing is said
 * @config:	filled
 */
void config_defaults(struct config *config)
{
	*config = (struct config){
		.source = SOURCE_AUTO,
		.window = CONFIG_WINDOW_DEFAULT,
	};
}

static int parse_window(const char *value, uint64_t *window)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned int shift = 0;
	unsigned long long n;
	char *end;

	if (!isdigit((unsigned char)*value))
		return -EINVAL;
	errno = 0;
	n = strtoull(value, &end, 10);
	if (errno)
		return -errno;
	switch (toupper((unsigned char)*end)) {
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	}
	if (shift)
		end++;
	if (*end || n > CONFIG_WINDOW_MAX >> shift)
		return -EINVAL;
	n <<= shift;
	if (n < page)
		return -EINVAL;
	*window = n - n % page;
	return 0;
}

static int parse_choice(const char *value, const char *no, const char *yes, bool *flag)
{
	if (!strcmp(value, no))
		*flag = false;
	else if (!strcmp(value, yes))
		*flag = true;
	else
		return -EINVAL;
	return 0;
}

/**
 * config_set() - Apply one setting
 * @config:	changed
 * @key:	name, as in the environment
 * @value:	its value
 * @where:	file or "environment", for messages
 *
 * Return: 0 on success, -EINVAL after an error message
 */
int config_set(struct config *config, const char *key, const char *value, const char *where)
{
	const char *want;
	int ret;

	if (!strcmp(key, "CRIU_SHMEM_SOURCE")) {
		want = "auto, pagemap, cachestat or mincore";
		ret = source_parse(value, &config->source);
	} else if (!strcmp(key, "CRIU_SHMEM_WINDOW")) {
		want = "bytes from one page to 1G, with an optional K, M or G";
		ret = parse_window(value, &config->window);
	} else if (!strcmp(key, "CRIU_SHMEM_COLD")) {
		want = "out or in";
		ret = parse_choice(value, "out", "in", &config->cold_in);
	} else if (!strcmp(key, "CRIU_SHMEM_STRICT")) {
		want = "0 or 1";
		ret = parse_choice(value, "0", "1", &config->strict);
	} else {
		pr_err("%s: unknown setting %s\n", where, key);
		return -EINVAL;
	}
	if (ret) {
		pr_err("%s: %s=%s: want %s\n", where, key, value, want);
		return -EINVAL;
	}
	return 0;
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}

static int set_line(struct config *config, char *line, const char *where)
{
	char *comment = strchr(line, '#');
	char *equals;

	if (comment)
		*comment = '\0';
	line = trim(line);
	if (!*line)
		return 0;
	equals = strchr(line, '=');
	if (!equals) {
		pr_err("%s: want KEY=VALUE, not \"%s\"\n", where, line);
		return -EINVAL;
	}
	*equals = '\0';
	return config_set(config, trim(line), trim(equals + 1), where);
}

static int load_file(struct config *config, const char *path, bool must_exist)
{
	char where[512], *line = NULL;
	unsigned int number = 0;
	size_t size = 0;
	int ret = 0;
	FILE *file;

	file = fopen(path, "re");
	if (!file) {
		ret = -errno;
		if (ret == -ENOENT && !must_exist)
			return 0;
		pr_err("%s: %s\n", path, strerror(-ret));
		return ret;
	}
	errno = 0;
	while (getline(&line, &size, file) >= 0) {
		snprintf(where, sizeof(where), "%s:%u", path, ++number);
		if (set_line(config, line, where))
			ret = -EINVAL;
		errno = 0;
	}
	if (errno) {
		ret = -errno;
		pr_err("%s: %s\n", path, strerror(-ret));
	}
	free(line);
	fclose(file);
	return ret;
}

/**
 * config_load() - Read the file and the environment
 * @config:	filled; on errors with whatever was right
 *
 * CRIU_SHMEM_CONF names another file than /etc/criu/shmem-plugin.conf.
 *
 * Return: 0 on success, negative error code after error messages
 */
int config_load(struct config *config)
{
	const char *path = getenv("CRIU_SHMEM_CONF");
	int ret;

	config_defaults(config);
	ret = load_file(config, path ? path : CONFIG_FILE, path);
	for (size_t i = 0; i < NR_KEYS; i++) {
		const char *value = getenv(config_key[i]);

		if (value && config_set(config, config_key[i], value, "environment"))
			ret = -EINVAL;
	}
	return ret;
}
