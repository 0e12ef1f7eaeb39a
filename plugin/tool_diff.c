// SPDX-License-Identifier: GPL-2.0-only
/*
 * tool_diff.c - criu-shmem diff: is what was cold at dump cold now, hot hot
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "tool.h"

struct difference {
	const struct shm_object *was;
	const struct shm_object *now; /* NULL: not found */
	uint64_t count[PAGE_STATES][PAGE_STATES];
	bool bad;
};

static bool same_ref(const struct shm_ref *was, const struct shm_ref *now)
{
	if (was->image_pid != now->image_pid || (was->fd >= 0) != (now->fd >= 0))
		return false;
	if (was->fd >= 0)
		return was->fd == now->fd;
	/* Mappings may have been merged with their neighbours. */
	return was->start >= now->start && was->start < now->end &&
	       now->offset + (was->start - now->start) == was->offset;
}

static bool same_object(const struct shm_object *was, const struct shm_object *now)
{
	if (was->kind == SHM_SYSV && now->kind == SHM_SYSV)
		return was->ino == now->ino;
	for (size_t i = 0; i < was->nr_refs; i++)
		for (size_t j = 0; j < now->nr_refs; j++)
			if (same_ref(&was->ref[i], &now->ref[j]))
				return true;
	return false;
}

static const struct shm_object *find_live(const struct shm_objects *live,
					  const struct shm_object *was)
{
	for (size_t i = 0; i < live->nr; i++)
		if (live->object[i]->recorded && same_object(was, live->object[i]))
			return live->object[i];
	return NULL;
}

static bool too_many(uint64_t wrong, uint64_t of, unsigned int threshold)
{
	return wrong > of / 1000 * threshold + of % 1000 * threshold / 1000;
}

static void compare(struct difference *diff, const struct shm_objects *live,
		    const struct shm_object *was, unsigned int threshold)
{
	uint64_t cold = was->state.count[PAGE_SWAPPED], hot = was->state.count[PAGE_RESIDENT];

	*diff = (struct difference){ .was = was, .now = find_live(live, was) };
	if (!diff->now) {
		diff->bad = true;
		return;
	}
	residency_compare(&was->state, &diff->now->state, diff->count);
	diff->bad = too_many(cold - diff->count[PAGE_SWAPPED][PAGE_SWAPPED], cold, threshold) ||
		    too_many(hot - diff->count[PAGE_RESIDENT][PAGE_RESIDENT], hot, threshold) ||
		    diff->count[PAGE_HOLE][PAGE_RESIDENT] + diff->count[PAGE_HOLE][PAGE_SWAPPED];
}

static void print_row(const struct difference *diff)
{
	const struct shm_object *was = diff->was;

	printf("%-6s %10" PRIu64 " %10" PRIu64 "/%-10" PRIu64 " %10" PRIu64 "/%-10" PRIu64
	       " %10" PRIu64 "  %-9s %s\n",
	       shm_kind_name(was->kind), was->ino, diff->count[PAGE_SWAPPED][PAGE_SWAPPED],
	       was->state.count[PAGE_SWAPPED], diff->count[PAGE_RESIDENT][PAGE_RESIDENT],
	       was->state.count[PAGE_RESIDENT],
	       diff->count[PAGE_HOLE][PAGE_RESIDENT] + diff->count[PAGE_HOLE][PAGE_SWAPPED],
	       !diff->now  ? "missing"
	       : diff->bad ? "differs"
			   : "same",
	       was->name);
}

static void add_row(struct json_object *list, const struct difference *diff)
{
	static const char *const name[] = { "hole", "resident", "swapped" };
	struct json_object *out = json_object_new_object();
	char key[32];

	json_object_object_add(out, "kind", json_object_new_string(shm_kind_name(diff->was->kind)));
	json_object_object_add(out, "shmid", json_object_new_int64((int64_t)diff->was->ino));
	json_object_object_add(out, "name", json_object_new_string(diff->was->name));
	json_object_object_add(out, "found", json_object_new_boolean(diff->now != NULL));
	json_object_object_add(out, "same", json_object_new_boolean(!diff->bad));
	for (int was = 0; was < PAGE_STATES; was++)
		for (int now = 0; now < PAGE_STATES; now++) {
			snprintf(key, sizeof(key), "%s_to_%s", name[was], name[now]);
			json_object_object_add(
				out, key, json_object_new_int64((int64_t)diff->count[was][now]));
		}
	json_object_array_add(list, out);
}

static int compare_all(const struct tool_options *options, const struct shm_objects *was,
		       const struct shm_objects *live)
{
	struct json_object *list = options->json ? json_object_new_array() : NULL;
	struct difference diff;
	bool bad = false;

	if (!list)
		printf("%-6s %10s %21s %21s %10s  %-9s %s\n", "KIND", "SHMID", "COLD: STILL/WAS",
		       "HOT: STILL/WAS", "WAS HOLE", "RESULT", "NAME");
	for (size_t i = 0; i < was->nr; i++) {
		compare(&diff, live, was->object[i], options->threshold);
		bad |= diff.bad;
		if (list)
			add_row(list, &diff);
		else
			print_row(&diff);
	}
	if (list) {
		struct json_object *root = json_object_new_object();

		json_object_object_add(root, "same", json_object_new_boolean(!bad));
		json_object_object_add(root, "objects", list);
		puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
		json_object_put(root);
	} else {
		printf("%s\n", bad ? "different" : "as at dump");
	}
	return bad ? EXIT_NO : EXIT_YES;
}

/**
 * tool_diff() - criu-shmem diff IMAGES_DIR PID
 * @options:	source, json, threshold
 * @path:	images directory
 * @pid:	root task, restored from it or left running
 *
 * Return: exit status
 */
int tool_diff(const struct tool_options *options, const char *path, pid_t pid)
{
	struct shm_objects was = { 0 };
	struct record record = { 0 };
	int ret;

	ret = tool_load(path, &was, NULL);
	if (ret)
		return ret;
	ret = tool_record(&record, options, pid);
	if (!ret)
		ret = compare_all(options, &was, &record.objects);
	objects_free(&was);
	record_free(&record);
	return ret;
}
