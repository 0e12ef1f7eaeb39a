// SPDX-License-Identifier: GPL-2.0-only
/*
 * source.c - which source tells the states, and the check of one by another
 *
 *	auto on a kernel with markers		pagemap
 *	auto with cachestat			cachestat
 *	auto without				mincore, inexact with a disk swap
 *
 * Whatever is chosen, which pages are populated comes from the object itself,
 * never from page tables.
 */
#include "source.h"

#include <errno.h>
#include <string.h>

static const char *const name[] = {
	[SOURCE_AUTO] = "auto",
	[SOURCE_PAGEMAP] = "pagemap",
	[SOURCE_CACHESTAT] = "cachestat",
	[SOURCE_MINCORE] = "mincore",
};

/**
 * source_name() - Word for a source
 * @id:		the source
 *
 * Return: static string
 */
const char *source_name(enum source_id id)
{
	return name[id];
}

/**
 * source_parse() - Source of that name
 * @text:	as in CRIU_SHMEM_SOURCE
 * @id:		filled
 *
 * Return: 0 on success, -EINVAL
 */
int source_parse(const char *text, enum source_id *id)
{
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		if (!strcmp(text, name[i])) {
			*id = (enum source_id)i;
			return 0;
		}
	}
	return -EINVAL;
}

static const char *cannot_work(enum source_id id, const struct probe *probe)
{
	switch (id) {
	case SOURCE_PAGEMAP:
		if (!probe->pagemap)
			return "/proc/PID/pagemap cannot be read";
		if (!probe->markers_tried)
			return "no page could be swapped out to see whether this kernel leaves "
			       "markers";
		if (!probe->markers)
			return "this kernel leaves no markers: swapped pages look like "
			       "never-touched ones";
		break;
	case SOURCE_CACHESTAT:
		if (!probe->cachestat)
			return "this kernel has no cachestat (it came with Linux 6.5)";
		break;
	case SOURCE_AUTO:
	case SOURCE_MINCORE:
		break;
	}
	return NULL;
}

/**
 * source_choose() - Decide on a source
 * @source:	filled
 * @wanted:	SOURCE_AUTO, or one that must be used
 * @probe:	what works here
 * @why:	filled with the reason of an error
 *
 * Return: 0 on success, -EOPNOTSUPP when the wanted one cannot work here
 */
int source_choose(struct source *source, enum source_id wanted, const struct probe *probe,
		  const char **why)
{
	if (wanted == SOURCE_AUTO)
		wanted = probe->cachestat && probe->markers ? SOURCE_PAGEMAP
			 : probe->cachestat		    ? SOURCE_CACHESTAT
							    : SOURCE_MINCORE;
	*why = cannot_work(wanted, probe);
	if (*why)
		return -EOPNOTSUPP;
	*source = (struct source){
		.id = wanted,
		.exact = !probe->swap_disk || (probe->cachestat && wanted != SOURCE_MINCORE),
		.cachestat = probe->cachestat && wanted != SOURCE_MINCORE,
		.pagemap_scan = probe->pagemap_scan,
	};
	return 0;
}

struct guess {
	const struct source *source;
	const struct shm_object *object;
	int fd;
};

static int guess_by_mincore(void *arg, uint64_t first, uint64_t nr, unsigned char *resident)
{
	struct guess *guess = arg;

	return source_mincore_guess(guess->fd, first, nr, resident);
}

/* Page tables first; what they do not show, mincore may. */
static int guess_by_pagemap(void *arg, uint64_t first, uint64_t nr, unsigned char *resident)
{
	struct guess *guess = arg;
	int ret;

	ret = source_pagemap_guess(guess->object, guess->source->pagemap_scan, first, nr, resident);
	return ret ? guess_by_mincore(arg, first, nr, resident) : 0;
}

/**
 * source_read() - States of an object's pages
 * @source:	from source_choose()
 * @object:	its size and references are used
 * @fd:		the object
 * @state:	filled; must be empty; on an error empty
 *
 * Return: 0 on success, negative error code
 */
int source_read(struct source *source, const struct shm_object *object, int fd,
		struct residency *state)
{
	struct guess guess = { source, object, fd };
	uint64_t pages = shm_pages(object->size);
	int ret;

	if (source->cachestat)
		ret = source_cachestat_read(fd, pages,
					    source->id == SOURCE_PAGEMAP ? guess_by_pagemap
									 : guess_by_mincore,
					    &guess, &source->calls, state);
	else
		ret = source_mincore_read(fd, pages, state);
	if (ret)
		residency_free(state);
	return ret;
}
