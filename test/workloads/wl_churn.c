// SPDX-License-Identifier: GPL-2.0-only
/*
 * wl_churn.c - a task that reads, checks and rewrites its pages all the time
 *
 * wl_churn RUNDIR SIZE
 *
 * The driver runs it under a memory limit below its size: it swaps in and out
 * without a pause, so whatever a dump has recorded is out of date at once.
 * Each page carries a generation; private memory knows which one it must be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wl.h"

#define POLL_EVERY 256

static struct wl_object obj = { .name = "churn", .seed = 701, .layout = "cold" };
static uint32_t *generation;
static char *pages;
static char *want;
static char wrong[128];
static unsigned long rounds;

/** page_right() - Compare a page with its generation; keep the first fault */
static bool page_right(size_t page)
{
	wl_pattern(&obj, page, generation[page], want);
	if (!memcmp(want, pages + page * wl_page(), wl_page()))
		return true;
	if (!wrong[0])
		snprintf(wrong, sizeof(wrong), "churn: page %zu is not of generation %u", page,
			 generation[page]);
	return false;
}

/** verify_all() - All pages, and all those looked at before. Return: 0 or -1 */
static int verify_all(char *text, size_t len)
{
	size_t i;

	for (i = 0; i < wl_pages(&obj); i++)
		page_right(i);
	snprintf(text, len, "%s", wrong[0] ? wrong : "right");
	return wrong[0] ? -1 : 0;
}

/** churn() - Check a page, and rewrite every fourth */
static void churn(size_t page)
{
	if (!page_right(page) || rand() % 4)
		return;
	generation[page]++;
	wl_pattern(&obj, page, generation[page], pages + page * wl_page());
}

int main(int argc, char **argv)
{
	wl_init(wl_arg(argc, argv, 1, "."), "main");
	obj.size = wl_parse_size(wl_arg(argc, argv, 2, "32M"));
	generation = calloc(wl_pages(&obj), sizeof(*generation));
	want = malloc(wl_page());
	pages = wl_map_anon(obj.size);
	if (!generation || !want)
		wl_die("malloc");
	wl_fill(&obj, pages, 0, wl_pages(&obj));
	wl_publish(&obj, "map", (uint64_t)pages);
	wl_on_verify(verify_all);
	wl_ready();
	for (;;) {
		churn(rand() % wl_pages(&obj));
		if (++rounds % POLL_EVERY == 0)
			wl_poll();
	}
}
