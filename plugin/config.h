/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * config.h - settings: environment over file over defaults
 */
#ifndef SHP_CONFIG_H
#define SHP_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "source.h"

#define CONFIG_FILE "/etc/criu/shmem-plugin.conf"

/* A few MiB keep page tables and swap-out batches small; more gains nothing. */
#define CONFIG_WINDOW_DEFAULT (4ULL << 20)
#define CONFIG_WINDOW_MAX (1ULL << 30)

struct config {
	enum source_id source; /* CRIU_SHMEM_SOURCE */
	uint64_t window;       /* CRIU_SHMEM_WINDOW, bytes, whole pages */
	bool cold_in;	       /* CRIU_SHMEM_COLD=in: leave cold pages in RAM */
	bool strict;	       /* CRIU_SHMEM_STRICT */
};

void config_defaults(struct config *config);
int config_set(struct config *config, const char *key, const char *value, const char *where);
int config_load(struct config *config);

#endif
