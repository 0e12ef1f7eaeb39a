/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tool.h - the parts of criu-shmem
 *
 * Commands return the exit status: EXIT_YES, EXIT_NO or EXIT_TROUBLE. They
 * write to stdout; messages go through log.h to stderr.
 */
#ifndef SHP_TOOL_H
#define SHP_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "config.h"
#include "image.h"
#include "objects.h"
#include "probe.h"
#include "record.h"
#include "residency.h"

enum exit_status {
	EXIT_YES = 0,	  /* done; probe: it works here; diff: no difference */
	EXIT_NO = 1,	  /* probe: it does not; diff: a difference */
	EXIT_TROUBLE = 2, /* usage or error */
};

struct tool_options {
	struct config config;
	bool json;
	bool color;
	unsigned int width;	/* columns for map */
	unsigned int threshold; /* diff: per mille that may differ */
};

/* tool.c */
int tool_record(struct record *record, const struct tool_options *options, pid_t pid);
int tool_load(const char *path, struct shm_objects *objects, struct image_info *info);

/* tool_probe.c */
int tool_probe(const struct tool_options *options);

/* tool_table.c */
void table_sizes(char *text, size_t size, uint64_t bytes);
void table_objects(const struct shm_objects *objects);
int json_objects(const struct shm_objects *objects, const char *source, bool exact);

/* tool_map.c */
void map_object(FILE *out, const struct shm_object *object, unsigned int width, bool color);
void map_legend(FILE *out, bool color);

/* tool_diff.c */
int tool_diff(const struct tool_options *options, const char *dir, pid_t pid);

#endif
