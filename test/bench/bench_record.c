// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_record.c - recording an object's state, against walks of its holes
 *
 * bench_record SHAPE SIZE REPS [reclaim]
 *
 * One repetition is, one after the other: an lseek SEEK_DATA/SEEK_HOLE walk,
 * source_read() as a dump calls it, cachestat for every page ("pages" only).
 * With "reclaim" it is then all done again after the driver has had the memory
 * cgroup reclaimed, so that pages which are out have left the swap cache too;
 * the resident ones are locked meanwhile.
 */
#include "bench.h"

#include "image.h"

struct times {
	uint64_t walk[BENCH_REPS_MAX];
	uint64_t record[BENCH_REPS_MAX];
	uint64_t pages[BENCH_REPS_MAX];
};

static uint64_t time_walk(const struct bench *b)
{
	uint64_t begin = bench_now();
	off_t at = 0;

	while (at >= 0) {
		at = lseek(b->fd, at, SEEK_DATA);
		if (at >= 0)
			at = lseek(b->fd, at, SEEK_HOLE);
	}
	if (errno != ENXIO)
		bench_die(1, "lseek");
	return bench_now() - begin;
}

static uint64_t time_pages(const struct bench *b)
{
	uint64_t begin = bench_now(), resident, swapped;

	for (uint64_t i = 0; i < b->pages; i++)
		bench_count(b, i, 1, &resident, &swapped);
	return bench_now() - begin;
}

static uint64_t time_record(const struct bench *b, struct source *source, struct shm_object *object)
{
	uint64_t begin, end;

	residency_free(&object->state);
	begin = bench_now();
	if (source_read(source, object, b->fd, &object->state))
		bench_die(1, "source_read");
	end = bench_now();
	if (!bench_as_planned(b, &object->state)) {
		fputs("source_read tells another state than the object has\n", stderr);
		exit(1);
	}
	return end - begin;
}

/* How many pages mincore takes for resident: more than there are, with a swap cache. */
static uint64_t in_core(const struct bench *b)
{
	unsigned char *vec = malloc(b->pages);
	uint64_t nr = 0;

	if (!vec || mincore(b->map, b->pages * b->page, vec))
		bench_die(1, "mincore");
	for (uint64_t i = 0; i < b->pages; i++)
		nr += vec[i] & 1;
	free(vec);
	return nr;
}

static void measure(const struct bench *b, struct shm_object *object, struct source *source,
		    int reps, const char *when)
{
	static struct times times;
	char name[64];

	for (int i = -1; i < reps; i++) {
		/* The first round warms up. */
		int slot = i < 0 ? 0 : i;

		times.walk[slot] = time_walk(b);
		source->calls = 0;
		times.record[slot] = time_record(b, source, object);
		if (b->shape == SHAPE_PAGES)
			times.pages[slot] = time_pages(b);
	}
	bench_check(b);
	snprintf(name, sizeof(name), "%swalk", when);
	bench_print(name, times.walk, reps);
	snprintf(name, sizeof(name), "%srecord", when);
	bench_print(name, times.record, reps);
	snprintf(name, sizeof(name), "%sperpage", when);
	bench_print(name, times.pages, b->shape == SHAPE_PAGES ? reps : 0);
	printf("%scalls %" PRIu64 "\n%sincore %" PRIu64 "\n", when, source->calls, when,
	       in_core(b));
}

/* Lets everything be reclaimed but the resident pages. */
static void reclaim(const struct bench *b)
{
	if (mlock2(b->map, b->pages * b->page, MLOCK_ONFAULT))
		bench_die(BENCH_SKIP, "mlock2");
	bench_stop_at("reclaim");
	munlock(b->map, b->pages * b->page);
	bench_settle(b);
}

static void print_image(const struct shm_object *object)
{
	struct image_info info = { .source = "bench", .exact = true };
	struct shm_object *list[] = { (struct shm_object *)object };
	struct shm_objects objects = { .object = list, .nr = 1 };
	uint8_t *data;
	size_t size;

	if (image_encode(&objects, &info, &data, &size))
		bench_die(1, "image_encode");
	free(data);
	printf("image %zu\nresident %" PRIu64 "\nswapped %" PRIu64 "\n", size,
	       object->state.count[PAGE_RESIDENT], object->state.count[PAGE_SWAPPED]);
}

/* A task has the object mapped, and its resident pages are in its page tables. */
static void add_mapping(const struct bench *b, struct shm_object *object)
{
	struct shm_ref ref = {
		.pid = getpid(),
		.image_pid = getpid(),
		.fd = -1,
		.start = (uintptr_t)b->map,
		.end = (uintptr_t)b->map + b->pages * b->page,
	};

	if (object_add_ref(object, &ref))
		bench_die(1, "object_add_ref");
}

int main(int argc, char **argv)
{
	struct shm_object object = { .kind = SHM_MEMFD, .name = "bench", .recorded = true };
	struct source source;
	struct bench b;
	int reps;

	if (argc < 4) {
		fprintf(stderr, "usage: bench_record SHAPE SIZE REPS [reclaim]\n");
		return 2;
	}
	reps = bench_reps(argv[3]);
	object.size = bench_size(argv[2]);
	bench_make(&b, bench_shape_named(argv[1]), object.size);
	add_mapping(&b, &object);
	bench_source(&source);
	bench_stop_at("ready");
	measure(&b, &object, &source, reps, "");
	print_image(&object);
	if (argc > 4) {
		reclaim(&b);
		measure(&b, &object, &source, reps, "reclaimed-");
	}
	residency_free(&object.state);
	free(object.ref);
	return 0;
}
