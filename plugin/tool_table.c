// SPDX-License-Identifier: GPL-2.0-only
/*
 * tool_table.c - objects as a table or as JSON
 */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "tool.h"

/**
 * table_sizes() - A size for people
 * @text:	filled
 * @size:	of @text
 * @bytes:	the size
 */
void table_sizes(char *text, size_t size, uint64_t bytes)
{
	static const char *const unit[] = { "B", "K", "M", "G", "T", "P", "E" };
	double n = (double)bytes;
	size_t i = 0;

	while (n >= 1024 && i < sizeof(unit) / sizeof(unit[0]) - 1) {
		n /= 1024;
		i++;
	}
	snprintf(text, size, i && n < 10 && n != (double)(uint64_t)n ? "%.1f%s" : "%.0f%s", n,
		 unit[i]);
}

static uint64_t holes(const struct shm_object *object)
{
	return shm_pages(object->size) - object->state.count[PAGE_RESIDENT] -
	       object->state.count[PAGE_SWAPPED];
}

static void pages_size(char *text, size_t size, uint64_t pages)
{
	table_sizes(text, size, pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

static unsigned int tasks_of(const struct shm_object *object)
{
	unsigned int tasks = 0;

	for (size_t i = 0; i < object->nr_refs; i++) {
		bool seen = false;

		for (size_t j = 0; j < i && !seen; j++)
			seen = object->ref[j].image_pid == object->ref[i].image_pid;
		tasks += !seen;
	}
	return tasks;
}

static void print_row(const struct shm_object *object)
{
	char size[24], resident[24], swapped[24], hole[24];

	table_sizes(size, sizeof(size), object->size);
	pages_size(resident, sizeof(resident), object->state.count[PAGE_RESIDENT]);
	pages_size(swapped, sizeof(swapped), object->state.count[PAGE_SWAPPED]);
	pages_size(hole, sizeof(hole), holes(object));
	printf("%-6s %10" PRIu64 " %8s %9s %9s %9s %5u  %s\n", shm_kind_name(object->kind),
	       object->ino, size, resident, swapped, hole, tasks_of(object), object->name);
}

/**
 * table_objects() - Objects as a table on stdout
 * @objects:	those recorded are shown
 */
void table_objects(const struct shm_objects *objects)
{
	char resident[24], swapped[24];
	uint64_t sum[PAGE_STATES] = { 0 };

	printf("%-6s %10s %8s %9s %9s %9s %5s  %s\n", "KIND", "SHMID", "SIZE", "RESIDENT",
	       "SWAPPED", "HOLES", "TASKS", "NAME");
	for (size_t i = 0; i < objects->nr; i++) {
		const struct shm_object *object = objects->object[i];

		if (!object->recorded)
			continue;
		print_row(object);
		sum[PAGE_RESIDENT] += object->state.count[PAGE_RESIDENT];
		sum[PAGE_SWAPPED] += object->state.count[PAGE_SWAPPED];
	}
	pages_size(resident, sizeof(resident), sum[PAGE_RESIDENT]);
	pages_size(swapped, sizeof(swapped), sum[PAGE_SWAPPED]);
	printf("%zu objects, %s resident, %s swapped\n", objects->nr, resident, swapped);
}

static struct json_object *json_ref(const struct shm_ref *ref)
{
	struct json_object *out = json_object_new_object();

	json_object_object_add(out, "pid", json_object_new_int(ref->image_pid));
	if (ref->fd >= 0) {
		json_object_object_add(out, "fd", json_object_new_int(ref->fd));
		return out;
	}
	json_object_object_add(out, "start", json_object_new_int64((int64_t)ref->start));
	json_object_object_add(out, "end", json_object_new_int64((int64_t)ref->end));
	json_object_object_add(out, "offset", json_object_new_int64((int64_t)ref->offset));
	json_object_object_add(out, "locked", json_object_new_boolean(ref->locked));
	return out;
}

static struct json_object *json_object_of(const struct shm_object *object)
{
	struct json_object *out = json_object_new_object(), *refs = json_object_new_array();

	json_object_object_add(out, "kind", json_object_new_string(shm_kind_name(object->kind)));
	json_object_object_add(out, "shmid", json_object_new_int64((int64_t)object->ino));
	json_object_object_add(out, "name", json_object_new_string(object->name));
	json_object_object_add(out, "size", json_object_new_int64((int64_t)object->size));
	json_object_object_add(out, "resident_pages",
			       json_object_new_int64((int64_t)object->state.count[PAGE_RESIDENT]));
	json_object_object_add(out, "swapped_pages",
			       json_object_new_int64((int64_t)object->state.count[PAGE_SWAPPED]));
	json_object_object_add(out, "hole_pages", json_object_new_int64((int64_t)holes(object)));
	json_object_object_add(out, "runs", json_object_new_int64((int64_t)object->state.nr));
	for (size_t i = 0; i < object->nr_refs; i++)
		json_object_array_add(refs, json_ref(&object->ref[i]));
	json_object_object_add(out, "refs", refs);
	return out;
}

/**
 * json_objects() - Objects as JSON on stdout
 * @objects:	those recorded are shown
 * @source:	what told the states
 * @exact:	the states are exact
 *
 * Return: EXIT_YES or EXIT_TROUBLE
 */
int json_objects(const struct shm_objects *objects, const char *source, bool exact)
{
	struct json_object *root = json_object_new_object(), *list = json_object_new_array();
	int ret;

	json_object_object_add(root, "page_size", json_object_new_int64(sysconf(_SC_PAGESIZE)));
	json_object_object_add(root, "source", json_object_new_string(source));
	json_object_object_add(root, "exact", json_object_new_boolean(exact));
	for (size_t i = 0; i < objects->nr; i++)
		if (objects->object[i]->recorded)
			json_object_array_add(list, json_object_of(objects->object[i]));
	json_object_object_add(root, "objects", list);
	ret = puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
	json_object_put(root);
	return ret < 0 ? EXIT_TROUBLE : EXIT_YES;
}
