/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * record.h - tasks -> objects -> states
 */
#ifndef SHP_RECORD_H
#define SHP_RECORD_H

#include <stdbool.h>

#include "objects.h"
#include "proc.h"
#include "source.h"

struct record {
	struct source source;
	struct shm_objects objects;
	struct proc_pids tasks; /* those looked at */
	unsigned int failures;	/* tasks and objects not recorded, each with a warning */
};

int record_tree(struct record *record, pid_t root);
int record_task(struct record *record, pid_t pid);
bool record_has_task(const struct record *record, pid_t pid);
uint64_t record_cold_pages(const struct record *record);
void record_free(struct record *record);

#endif
