// SPDX-License-Identifier: GPL-2.0-only
/*
 * tool_probe.c - criu-shmem probe: what this kernel, swap and CRIU allow
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "log.h"
#include "source.h"
#include "tool.h"

struct findings {
	struct probe probe;
	struct source source;
	const char *why_not; /* the source, NULL when it can be used */
	struct utsname kernel;
	char criu[64]; /* version, "" when there is no criu */
	bool criu_new; /* 4.1 or later */
	bool usable;   /* cold pages can be told and put out here */
};

/* "Version: 4.2.1" is the first line of `criu --version`. */
static void find_criu(struct findings *found)
{
	unsigned int major = 0, minor = 0;
	FILE *pipe = popen("criu --version 2>/dev/null", "re");
	char line[128];

	if (!pipe)
		return;
	while (fgets(line, sizeof(line), pipe))
		if (sscanf(line, "Version: %63s", found->criu) == 1)
			sscanf(found->criu, "%u.%u", &major, &minor);
	pclose(pipe);
	found->criu_new = major > 4 || (major == 4 && minor >= 1);
}

static void find_all(struct findings *found, const struct tool_options *options)
{
	*found = (struct findings){ 0 };
	probe_run(&found->probe);
	source_choose(&found->source, options->config.source, &found->probe, &found->why_not);
	uname(&found->kernel);
	find_criu(found);
	found->usable = !found->why_not && found->probe.map_files && found->probe.pageout &&
			found->probe.swap_total;
}

static void line(const char *what, bool yes, const char *comment)
{
	printf("  %-14s %-4s %s\n", what, yes ? "yes" : "no", comment);
}

static void print_text(const struct findings *found)
{
	const struct probe *probe = &found->probe;
	char total[24], free[24];

	table_sizes(total, sizeof(total), probe->swap_total);
	table_sizes(free, sizeof(free), probe->swap_free);
	printf("kernel %s\n", found->kernel.release);
	line("cachestat", probe->cachestat, "exact page states (Linux 6.5)");
	line("PAGEMAP_SCAN", probe->pagemap_scan, "quick reading of page tables (Linux 6.7)");
	line("markers", probe->markers,
	     probe->markers_tried ? "swapped-out shared pages seen in pagemap (patched kernel)"
				  : "not tried: no page could be swapped out");
	line("map_files", probe->map_files, "opening mappings of other tasks (root)");
	line("MADV_PAGEOUT", probe->pageout, "putting pages out (Linux 5.4)");
	printf("swap %s, %s free%s\n", total, free,
	       !probe->swap_total ? ": cold pages cannot go out"
	       : probe->swap_disk ? ", on disk or file"
				  : ", zram only");
	printf("criu %s%s\n", *found->criu ? found->criu : "not found in PATH",
	       *found->criu && !found->criu_new ? " (too old, want 4.1 or later)" : "");
	if (found->why_not)
		printf("source: none, %s\n", found->why_not);
	else
		printf("source: %s%s\n", source_name(found->source.id),
		       found->source.exact ? ", exact"
					   : ", inexact: the swap cache counts as resident");
	printf("%s\n", found->usable ? "cold pages can be told and put out here"
				     : "cold pages cannot be told and put out here");
}

static int print_json(const struct findings *found)
{
	const struct probe *probe = &found->probe;
	struct json_object *root = json_object_new_object();
	bool criu = *found->criu;

	if (!root)
		return EXIT_TROUBLE;
	json_object_object_add(root, "kernel", json_object_new_string(found->kernel.release));
	json_object_object_add(root, "cachestat", json_object_new_boolean(probe->cachestat));
	json_object_object_add(root, "pagemap_scan", json_object_new_boolean(probe->pagemap_scan));
	json_object_object_add(root, "markers", json_object_new_boolean(probe->markers));
	json_object_object_add(root, "markers_tried",
			       json_object_new_boolean(probe->markers_tried));
	json_object_object_add(root, "map_files", json_object_new_boolean(probe->map_files));
	json_object_object_add(root, "pageout", json_object_new_boolean(probe->pageout));
	json_object_object_add(root, "swap_total",
			       json_object_new_int64((int64_t)probe->swap_total));
	json_object_object_add(root, "swap_free", json_object_new_int64((int64_t)probe->swap_free));
	json_object_object_add(root, "criu", criu ? json_object_new_string(found->criu) : NULL);
	json_object_object_add(
		root, "source",
		found->why_not ? NULL : json_object_new_string(source_name(found->source.id)));
	json_object_object_add(root, "exact", json_object_new_boolean(found->source.exact));
	json_object_object_add(root, "usable", json_object_new_boolean(found->usable));
	puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
	json_object_put(root);
	return EXIT_YES;
}

/**
 * tool_probe() - criu-shmem probe
 * @options:	json, and the source that is asked for
 *
 * Return: EXIT_YES when cold pages can be told and put out here, else EXIT_NO
 */
int tool_probe(const struct tool_options *options)
{
	struct findings found;

	find_all(&found, options);
	if (options->json && print_json(&found))
		return EXIT_TROUBLE;
	if (!options->json)
		print_text(&found);
	return found.usable ? EXIT_YES : EXIT_NO;
}
