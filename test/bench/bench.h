/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bench.h - what the bench programs share: an object in a known state, time
 *
 * Theory of operation: each program makes a memfd of its own, fills it by a
 * plan, pages out what the plan says, and checks every run of the plan with
 * cachestat(2), called here and not through the plugin. Then it prints "ready"
 * and waits for a line: bench.py looks whether the pages went to the swap that
 * was meant, and the times that follow are those of the state that was meant.
 *
 * Output: lines "NAME VALUE...", one value per repetition, times in ns.
 * Exit: 0 measured, 1 a wrong result, 77 the state could not be set up.
 *
 * Each program is one source file, so this is a header of small functions.
 */
#ifndef BENCH_H
#define BENCH_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pageout.h"
#include "probe.h"
#include "residency.h"
#include "shmem_uapi.h"
#include "source.h"

#define BENCH_SKIP 77

/* Freshly written pages sit in per-CPU batches, others remove their swap. */
#define BENCH_TRIES 50
#define BENCH_REPS_MAX 1000

enum bench_shape {
	SHAPE_RUNS,   /* by MiB: resident, swapped, hole, hole */
	SHAPE_BLOCKS, /* a quarter resident, a quarter swapped, the rest holes */
	SHAPE_PAGES,  /* single pages, resident and swapped in turn */
	SHAPE_COLD,   /* all swapped */
	SHAPE_SPARSE, /* BENCH_SPARSE swapped pages at equal distances */
};

#define BENCH_SPARSE 64

struct bench {
	enum bench_shape shape;
	uint64_t page; /* bytes */
	uint64_t pages;
	int fd;
	unsigned char *map;
};

static inline void bench_die(int code, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(code);
}

static inline uint64_t bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void bench_print(const char *name, const uint64_t *value, int nr)
{
	printf("%s", name);
	for (int i = 0; i < nr; i++)
		printf(" %" PRIu64, value[i]);
	putchar('\n');
}

/* Number with a suffix K, M, G or T. */
static inline uint64_t bench_size(const char *text)
{
	static const char suffixes[] = "KMGT";
	char *end;
	uint64_t size = strtoull(text, &end, 0);
	const char *suffix = *end ? strchr(suffixes, *end) : NULL;

	return suffix ? size << (10 * (suffix - suffixes + 1)) : size;
}

static inline int bench_reps(const char *text)
{
	int reps = atoi(text);

	return reps < 1 ? 1 : reps > BENCH_REPS_MAX ? BENCH_REPS_MAX : reps;
}

/* Says a word and waits for the driver; with no driver goes on at once. */
static inline void bench_stop_at(const char *word)
{
	char line[16];

	puts(word);
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) && strncmp(line, "go", 2))
		exit(BENCH_SKIP);
}

/* The plan */

static inline struct page_run bench_run_mib(const struct bench *b, uint64_t at)
{
	static const enum page_state state[] = { PAGE_RESIDENT, PAGE_SWAPPED, PAGE_HOLE,
						 PAGE_HOLE };
	uint64_t unit = (1u << 20) / b->page;

	return (struct page_run){ at, unit - at % unit, state[at / unit % 4] };
}

static inline struct page_run bench_run_block(const struct bench *b, uint64_t at)
{
	uint64_t quarter = b->pages / 4;

	if (at < quarter)
		return (struct page_run){ at, quarter - at, PAGE_RESIDENT };
	if (at < 2 * quarter)
		return (struct page_run){ at, 2 * quarter - at, PAGE_SWAPPED };
	return (struct page_run){ at, b->pages - at, PAGE_HOLE };
}

static inline struct page_run bench_run_sparse(const struct bench *b, uint64_t at)
{
	uint64_t stride = b->pages / BENCH_SPARSE;

	if (at % stride == 0)
		return (struct page_run){ at, 1, PAGE_SWAPPED };
	return (struct page_run){ at, stride - at % stride, PAGE_HOLE };
}

/* The run of the plan that a page begins or is in. */
static inline struct page_run bench_plan(const struct bench *b, uint64_t at)
{
	switch (b->shape) {
	case SHAPE_RUNS:
		return bench_run_mib(b, at);
	case SHAPE_BLOCKS:
		return bench_run_block(b, at);
	case SHAPE_PAGES:
		return (struct page_run){ at, 1, at % 2 ? PAGE_SWAPPED : PAGE_RESIDENT };
	case SHAPE_SPARSE:
		return bench_run_sparse(b, at);
	case SHAPE_COLD:
		break;
	}
	return (struct page_run){ at, b->pages - at, PAGE_SWAPPED };
}

static inline enum bench_shape bench_shape_named(const char *name)
{
	static const char *const names[] = { "runs", "blocks", "pages", "cold", "sparse" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return (enum bench_shape)i;
	errno = EINVAL;
	bench_die(2, name);
	return SHAPE_COLD;
}

/* Making the state */

static inline void bench_count(const struct bench *b, uint64_t first, uint64_t nr,
			       uint64_t *resident, uint64_t *swapped)
{
	struct shm_cachestat_range range = { first * b->page, nr * b->page };
	struct shm_cachestat stat = { 0 };

	if (syscall(SHM_NR_cachestat, b->fd, &range, &stat, 0))
		bench_die(BENCH_SKIP, "cachestat");
	*resident = stat.nr_cache;
	*swapped = stat.nr_evicted;
}

/* Pages of a run that are not as planned. */
static inline uint64_t bench_wrong(const struct bench *b, const struct page_run *run)
{
	uint64_t resident, swapped;

	bench_count(b, run->first, run->nr, &resident, &swapped);
	if (run->state == PAGE_HOLE)
		return resident + swapped;
	return run->nr - (run->state == PAGE_RESIDENT ? resident : swapped);
}

/* Compressible, and no two pages alike. */
static inline void bench_fill(const struct bench *b, const struct page_run *run)
{
	for (uint64_t i = run->first; i < run->first + run->nr; i++) {
		unsigned char *at = b->map + i * b->page;

		memset(at, (int)(i % 251) + 1, b->page);
		for (uint64_t k = 0; k < b->page; k += 256)
			memcpy(at + k, &i, sizeof(i));
	}
}

static inline void bench_touch(const struct bench *b, const struct page_run *run)
{
	for (uint64_t i = run->first; i < run->first + run->nr; i++)
		(void)*(volatile unsigned char *)(b->map + i * b->page);
}

/*
 * Pages a run out, page by page where it is stubborn: what is out already must
 * not be read, and MADV_PAGEOUT sees only what is mapped.
 */
static inline void bench_push(const struct bench *b, const struct page_run *run, int try)
{
	uint64_t resident, swapped;

	if (madvise(b->map + run->first * b->page, run->nr * b->page, SHM_MADV_PAGEOUT))
		bench_die(BENCH_SKIP, "MADV_PAGEOUT");
	for (uint64_t i = run->first; try && i < run->first + run->nr; i++) {
		unsigned char *at = b->map + i * b->page;

		bench_count(b, i, 1, &resident, &swapped);
		if (resident && !madvise(at, b->page, SHM_MADV_POPULATE_READ))
			madvise(at, b->page, SHM_MADV_PAGEOUT);
	}
}

/* One round over the plan; returns how many pages were found wrong. */
static inline uint64_t bench_settle_once(const struct bench *b, int try)
{
	uint64_t wrong = 0;

	for (uint64_t at = 0; at < b->pages;) {
		struct page_run run = bench_plan(b, at);
		uint64_t bad = bench_wrong(b, &run);

		at += run.nr;
		wrong += bad;
		if (bad && run.state == PAGE_SWAPPED)
			bench_push(b, &run, try);
		else if (bad && run.state == PAGE_RESIDENT)
			bench_touch(b, &run);
	}
	return wrong;
}

/* Brings the object to its plan and checks it, every run of it. */
static inline void bench_settle(const struct bench *b)
{
	uint64_t wrong = 1;

	for (int try = 0; wrong && try < BENCH_TRIES; try++) {
		if (try)
			pageout_drain_lru();
		if (try > 1)
			usleep(20000);
		wrong = bench_settle_once(b, try);
	}
	if (!wrong)
		return;
	fprintf(stderr, "%" PRIu64 " pages are not in the state that was to be measured\n", wrong);
	exit(BENCH_SKIP);
}

static inline void bench_check(const struct bench *b)
{
	for (uint64_t at = 0; at < b->pages;) {
		struct page_run run = bench_plan(b, at);

		at += run.nr;
		if (!bench_wrong(b, &run))
			continue;
		fputs("the state changed while it was measured\n", stderr);
		exit(BENCH_SKIP);
	}
}

static inline void bench_make(struct bench *b, enum bench_shape shape, uint64_t size)
{
	b->shape = shape;
	b->page = (uint64_t)sysconf(_SC_PAGESIZE);
	b->pages = size / b->page;
	b->fd = memfd_create("bench", MFD_CLOEXEC);
	if (b->fd < 0 || ftruncate(b->fd, (off_t)size))
		bench_die(BENCH_SKIP, "memfd");
	b->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, b->fd, 0);
	if (b->map == MAP_FAILED)
		bench_die(BENCH_SKIP, "mmap");
	for (uint64_t at = 0; at < b->pages;) {
		struct page_run run = bench_plan(b, at);

		at += run.nr;
		if (run.state != PAGE_HOLE)
			bench_fill(b, &run);
	}
	bench_settle(b);
}

/* The plugin's way to its source. */
static inline void bench_source(struct source *source)
{
	struct probe probe;
	const char *why;

	probe_run(&probe);
	if (source_choose(source, SOURCE_AUTO, &probe, &why)) {
		fprintf(stderr, "%s\n", why);
		exit(BENCH_SKIP);
	}
	printf("source %s\n", source_name(source->id));
}

static inline bool bench_as_planned(const struct bench *b, const struct residency *state)
{
	struct residency plan = { 0 };
	uint64_t moved[PAGE_STATES][PAGE_STATES];

	for (uint64_t at = 0; at < b->pages;) {
		struct page_run run = bench_plan(b, at);

		at += run.nr;
		if (residency_add(&plan, run.nr, run.state))
			bench_die(1, "plan");
	}
	residency_compare(&plan, state, moved);
	residency_free(&plan);
	for (int i = 0; i < PAGE_STATES; i++)
		for (int k = 0; k < PAGE_STATES; k++)
			if (i != k && moved[i][k])
				return false;
	return true;
}

#endif
