// SPDX-License-Identifier: GPL-2.0-only
/*
 * record.c - tasks -> objects -> states
 *
 * Theory of operation: a dump calls this when all tasks are frozen and before
 * CRIU has read anything, so the states are those the workload had. The whole
 * tree is taken at once: the objects first, then the state of each object, read
 * one time however many tasks share it. What cannot be recorded gets a warning
 * and is left out; it is restored as CRIU alone would.
 */
#include "record.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

static void task_failed(struct record *record, pid_t pid, int ret)
{
	if (ret == -ESRCH || ret == -ENOENT) {
		pr_info("task %d has gone\n", (int)pid);
		return;
	}
	pr_warn("task %d: its shared memory is not recorded: %s\n", (int)pid, strerror(-ret));
	record->failures++;
}

static void object_failed(struct record *record, const struct shm_object *object, int ret)
{
	const char *why = strerror(-ret);

	if (ret == -EOPNOTSUPP) {
		pr_info("%s %#" PRIx64 " (%s): hugetlb memory is never swapped, left alone\n",
			shm_kind_name(object->kind), object->ino, object->name);
		return;
	}
	if (ret == -EBUSY)
		why = "kernel.shm_rmid_forced would destroy the segment when it is looked at";
	pr_warn("%s %#" PRIx64 " (%s): not recorded: %s\n", shm_kind_name(object->kind),
		object->ino, object->name, why);
	record->failures++;
}

static int record_object(struct record *record, struct shm_object *object)
{
	int fd, ret;

	fd = object_open(&record->objects, object);
	if (fd < 0)
		return fd;
	ret = source_read(&record->source, object, fd, &object->state);
	close(fd);
	if (ret)
		return ret;
	object->recorded = true;
	pr_debug("%s %#" PRIx64 " (%s): %" PRIu64 " bytes, pages: %" PRIu64 " resident, %" PRIu64
		 " swapped, %" PRIu64 " holes\n",
		 shm_kind_name(object->kind), object->ino, object->name, object->size,
		 object->state.count[PAGE_RESIDENT], object->state.count[PAGE_SWAPPED],
		 object->state.count[PAGE_HOLE]);
	return 0;
}

static int record_states(struct record *record)
{
	for (size_t i = 0; i < record->objects.nr; i++) {
		struct shm_object *object = record->objects.object[i];
		int ret;

		if (object->recorded || object->done)
			continue;
		ret = record_object(record, object);
		/* One try: a second task would only repeat the warning. */
		object->done = true;
		if (ret == -ENOMEM)
			return ret;
		if (ret)
			object_failed(record, object, ret);
	}
	return 0;
}

static int add_task(struct record *record, pid_t pid)
{
	int ret = objects_add_task(&record->objects, pid);

	if (ret == -ENOMEM)
		return ret;
	if (ret)
		task_failed(record, pid, ret);
	return 0;
}

/**
 * record_tree() - Record what a task and its descendants share
 * @record:	source must be chosen, the rest empty
 * @root:	the task
 *
 * Return: 0 on success, -ESRCH when there is no such task, -ENOMEM; what could
 *	   not be recorded is counted in failures
 */
int record_tree(struct record *record, pid_t root)
{
	int ret;

	ret = proc_tree(root, &record->tasks);
	for (size_t i = 0; !ret && i < record->tasks.nr; i++)
		ret = add_task(record, record->tasks.pid[i]);
	if (ret)
		return ret;
	ret = objects_add_detached(&record->objects, root);
	if (ret == -ENOMEM)
		return ret;
	if (ret) {
		pr_warn("task %d: detached SysV segments are not recorded: %s\n", (int)root,
			strerror(-ret));
		record->failures++;
	}
	return record_states(record);
}

/**
 * record_task() - Record what one more task has
 * @record:	extended
 * @pid:	the task
 *
 * Return: 0 on success, -ENOMEM
 */
int record_task(struct record *record, pid_t pid)
{
	int ret;

	if (record_has_task(record, pid))
		return 0;
	ret = proc_pids_add(&record->tasks, pid);
	if (!ret)
		ret = add_task(record, pid);
	return ret ? ret : record_states(record);
}

/**
 * record_has_task() - Was this task looked at
 * @record:	the record
 * @pid:	the task
 *
 * Return: true when it was
 */
bool record_has_task(const struct record *record, pid_t pid)
{
	for (size_t i = 0; i < record->tasks.nr; i++)
		if (record->tasks.pid[i] == pid)
			return true;
	return false;
}

/**
 * record_cold_pages() - How much was swapped
 * @record:	the record
 *
 * Return: pages
 */
uint64_t record_cold_pages(const struct record *record)
{
	uint64_t cold = 0;

	for (size_t i = 0; i < record->objects.nr; i++)
		cold += record->objects.object[i]->state.count[PAGE_SWAPPED];
	return cold;
}

/**
 * record_free() - Free a record
 * @record:	left empty, the source stays
 */
void record_free(struct record *record)
{
	objects_free(&record->objects);
	proc_pids_free(&record->tasks);
	record->failures = 0;
}
