// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_pageout.c - putting an object's cold pages out again
 *
 * bench_pageout SHAPE SIZE REPS
 *
 * One repetition is what the plugin does in a dump: record the state, encode
 * it, and when the pages have been brought in put them out again; each step is
 * timed, and the peak of memory is printed. For a "cold" object they are then
 * brought in once more and put out with one bare MADV_PAGEOUT, to compare.
 */
#include "bench.h"

#include "image.h"
#include "pageout.h"

/* The plugin's default. */
#define WINDOW (4u << 20)

struct times {
	uint64_t record[BENCH_REPS_MAX];
	uint64_t encode[BENCH_REPS_MAX];
	uint64_t out[BENCH_REPS_MAX];
	uint64_t bare[BENCH_REPS_MAX];
	uint64_t left[BENCH_REPS_MAX];
};

static uint64_t status_kib(const char *key)
{
	FILE *file = fopen("/proc/self/status", "re");
	uint64_t value = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			value = strtoull(line + strlen(key), NULL, 10);
	if (file)
		fclose(file);
	return value;
}

static void reset_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "we");

	if (!file || fputs("5", file) < 0 || fclose(file))
		bench_die(BENCH_SKIP, "clear_refs");
}

/* As CRIU reads: the pages come in, no mapping of them stays. */
static void bring_in(const struct bench *b)
{
	static unsigned char buf[1 << 20];

	for (uint64_t at = 0; at < b->pages;) {
		struct page_run run = bench_plan(b, at);
		uint64_t nr = sizeof(buf) / b->page;

		if (run.nr < nr)
			nr = run.nr;
		at += run.state == PAGE_SWAPPED ? nr : run.nr;
		if (run.state == PAGE_SWAPPED &&
		    pread(b->fd, buf, nr * b->page, (off_t)(run.first * b->page)) < 0)
			bench_die(1, "pread");
	}
}

static uint64_t time_bare(const struct bench *b)
{
	uint64_t begin = bench_now();
	unsigned char *map;

	map = mmap(NULL, b->pages * b->page, PROT_READ, MAP_SHARED, b->fd, 0);
	if (map == MAP_FAILED || madvise(map, b->pages * b->page, SHM_MADV_POPULATE_READ) ||
	    madvise(map, b->pages * b->page, SHM_MADV_PAGEOUT))
		bench_die(1, "bare page-out");
	munmap(map, b->pages * b->page);
	return bench_now() - begin;
}

static uint64_t time_out(const struct bench *b, struct source *source,
			 const struct shm_object *object, uint64_t *left)
{
	struct pageout po = { .source = source, .window = WINDOW };
	uint64_t begin = bench_now(), took;

	pageout_drain_lru();
	if (pageout_object(&po, object, b->fd))
		bench_die(1, "pageout_object");
	took = bench_now() - begin;
	*left = po.left;
	return took;
}

static uint64_t time_encode(const struct shm_object *object, size_t *size)
{
	struct image_info info = { .source = "bench", .exact = true };
	struct shm_object *list[] = { (struct shm_object *)object };
	struct shm_objects objects = { .object = list, .nr = 1 };
	uint64_t begin = bench_now(), took;
	uint8_t *data;

	if (image_encode(&objects, &info, &data, size))
		bench_die(1, "image_encode");
	took = bench_now() - begin;
	free(data);
	return took;
}

static uint64_t time_record(const struct bench *b, struct source *source, struct shm_object *object)
{
	uint64_t begin = bench_now(), took;

	residency_free(&object->state);
	if (source_read(source, object, b->fd, &object->state))
		bench_die(1, "source_read");
	took = bench_now() - begin;
	if (!bench_as_planned(b, &object->state)) {
		fputs("source_read tells another state than the object has\n", stderr);
		exit(1);
	}
	return took;
}

static void print_times(const struct times *times, int reps, bool bare)
{
	bench_print("record", times->record, reps);
	bench_print("encode", times->encode, reps);
	bench_print("out", times->out, reps);
	bench_print("bare", times->bare, bare ? reps : 0);
	bench_print("left", times->left, reps);
}

static void measure(const struct bench *b, struct source *source, int reps)
{
	struct shm_object object = {
		.kind = SHM_MEMFD,
		.size = b->pages * b->page,
		.name = "bench",
		.recorded = true,
	};
	bool bare = b->shape == SHAPE_COLD;
	static struct times times;
	uint64_t before;
	size_t image;

	reset_peak();
	before = status_kib("VmRSS:");
	for (int i = 0; i < reps; i++) {
		times.record[i] = time_record(b, source, &object);
		times.encode[i] = time_encode(&object, &image);
		bring_in(b);
		times.out[i] = time_out(b, source, &object, &times.left[i]);
		if (bare) {
			bring_in(b);
			times.bare[i] = time_bare(b);
		}
		bench_settle(b);
	}
	/* The bare page-out maps the whole object. */
	if (!bare)
		printf("rss %" PRIu64 "\n", status_kib("VmHWM:") - before);
	printf("image %zu\n", image);
	print_times(&times, reps, bare);
	residency_free(&object.state);
}

int main(int argc, char **argv)
{
	struct source source;
	struct bench b;

	if (argc < 4) {
		fprintf(stderr, "usage: bench_pageout SHAPE SIZE REPS\n");
		return 2;
	}
	bench_make(&b, bench_shape_named(argv[1]), bench_size(argv[2]));
	bench_source(&source);
	bench_stop_at("ready");
	/* Once before, so that the read buffer is not taken for the plugin's memory. */
	bring_in(&b);
	bench_settle(&b);
	measure(&b, &source, bench_reps(argv[3]));
	return 0;
}
