// SPDX-License-Identifier: GPL-2.0-only
/*
 * demo_workload.c - a program with hot, cold and untouched shared memory
 *
 * demo_workload RUNDIR MIB
 *
 * Theory of operation: it makes an anonymous shared mapping, a memfd and a SysV
 * segment (in an IPC namespace of its own) of MIB MiB each, writes the hot and
 * the cold stripes, pages the cold ones out and serves the commands "verify"
 * and "pageout". The files in RUNDIR are those of test/workloads/wl.h, so that
 * test/lib/workload.py can drive it.
 *
 * The stripes are made for the picture of criu-shmem map, which has eight rows:
 * an object is 8 x 24 cells, and a cell's state goes by row + column, so that
 * the stripes run slantwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define NR_OBJECTS 3

/* 3 MiB is the smallest size that makes whole pages of a 192nd part. */
#define SIZE_STEP (3UL << 20)
#define COLUMNS 24
#define CELLS (8 * COLUMNS)

/* Of PERIOD cells the first are hot, then come cold ones, then holes. */
#define PERIOD 12
#define HOT_CELLS 3
#define COLD_CELLS 6

/* A page just written may need more than one try on its way out. */
#define PAGEOUT_ROUNDS 64
#define PAUSE_NS (3 * 1000 * 1000)

/* Bit 63 of a pagemap entry. */
#define PM_PRESENT (1ULL << 63)

enum state {
	HOT = 'R',
	COLD = 'S',
	HOLE = 'H',
};

struct object {
	const char *name;
	const char *how; /* the driver reaches it by: map, fd, shm */
	uint64_t where;	 /* address, descriptor, id */
	unsigned char *map;
};

static struct object objects[NR_OBJECTS] = {
	{ .name = "anonymous", .how = "map" },
	{ .name = "memfd", .how = "fd" },
	{ .name = "sysv", .how = "shm" },
};

static const char *rundir;
static size_t size; /* of each object */
static size_t page;

/* ---- files in the run directory ---- */

static void write_text(const char *name, const char *text)
{
	char path[512], tmp[520];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", rundir, name);
	snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	file = fopen(tmp, "w");
	if (!file)
		_exit(3);
	fputs(text, file);
	if (fclose(file) || rename(tmp, path))
		_exit(3);
}

static void die(const char *what) __attribute__((noreturn));

static void die(const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "%s: %s\n", what, strerror(errno));
	write_text("error", text);
	_exit(1);
}

/* ---- layout and content ---- */

static enum state cell_state(size_t cell)
{
	size_t at = (cell / COLUMNS + cell % COLUMNS) % PERIOD;

	return at < HOT_CELLS ? HOT : at < HOT_CELLS + COLD_CELLS ? COLD : HOLE;
}

static size_t cell_words(void)
{
	return size / CELLS / sizeof(uint64_t);
}

/* No two words of all objects are equal, and none that is written is 0. */
static uint64_t word(const struct object *object, size_t i)
{
	uint64_t nr = (uint64_t)(object - objects + 1) << 40 | i;

	return nr * 0x9e3779b97f4a7c15ULL;
}

static void fill(struct object *object)
{
	uint64_t *data = (uint64_t *)object->map;
	size_t words = cell_words();

	for (size_t cell = 0; cell < CELLS; cell++) {
		if (cell_state(cell) == HOLE)
			continue;
		for (size_t i = cell * words; i < (cell + 1) * words; i++)
			data[i] = word(object, i);
	}
}

/* Index of the first word that is not as written, or the number of words. */
static size_t first_wrong(const struct object *object)
{
	const uint64_t *data = (const uint64_t *)object->map;
	size_t words = cell_words();

	for (size_t cell = 0; cell < CELLS; cell++) {
		bool hole = cell_state(cell) == HOLE;

		for (size_t i = cell * words; i < (cell + 1) * words; i++)
			if (data[i] != (hole ? 0 : word(object, i)))
				return i;
	}
	return CELLS * words;
}

/* ---- making the objects ---- */

static void *make_anonymous(void)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void *make_memfd(struct object *object)
{
	int fd = memfd_create("demo", 0);

	if (fd < 0 || ftruncate(fd, (off_t)size))
		die("memfd_create");
	object->where = (uint64_t)fd;
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void *make_sysv(struct object *object)
{
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);

	if (id < 0)
		die("shmget");
	object->where = (uint64_t)id;
	return shmat(id, NULL, 0);
}

static void make(struct object *object)
{
	void *map;

	switch (*object->how) {
	case 'm':
		map = make_anonymous();
		object->where = (uintptr_t)map;
		break;
	case 'f':
		map = make_memfd(object);
		break;
	default:
		map = make_sysv(object);
		break;
	}
	if (map == MAP_FAILED)
		die(object->name);
	object->map = map;
	/* A huge page would fill the holes beside the stripes; best effort. */
	madvise(map, size, MADV_NOHUGEPAGE);
	fill(object);
}

static void publish(const struct object *object, FILE *list)
{
	size_t pages = size / CELLS / page;
	char name[64], plan[CELLS * 32] = "";
	size_t used = 0;

	fprintf(list, "%s main %s %#llx %zu\n", object->name, object->how,
		(unsigned long long)object->where, size);
	for (size_t cell = 0; cell < CELLS; cell++)
		used += (size_t)snprintf(plan + used, sizeof(plan) - used, "%zu %zu %c\n",
					 cell * pages, pages, cell_state(cell));
	snprintf(name, sizeof(name), "plan-%s", object->name);
	write_text(name, plan);
}

static void publish_all(void)
{
	char path[512];
	FILE *list;

	snprintf(path, sizeof(path), "%s/objects", rundir);
	list = fopen(path, "w");
	if (!list)
		die("objects");
	for (size_t i = 0; i < NR_OBJECTS; i++)
		publish(&objects[i], list);
	if (fclose(list))
		die("objects");
}

/* ---- paging the cold stripes out ---- */

/* Pages of a cell that this process has mapped: those have not gone out. */
static size_t present(const unsigned char *at, size_t pages, int pagemap)
{
	size_t found = 0;
	uint64_t entry;

	for (size_t i = 0; i < pages; i++) {
		off_t offset = (off_t)(((uintptr_t)at / page + i) * sizeof(entry));

		if (pread(pagemap, &entry, sizeof(entry), offset) != (ssize_t)sizeof(entry))
			die("/proc/self/pagemap");
		found += !!(entry & PM_PRESENT);
	}
	return found;
}

static size_t pageout_round(const struct object *object, int pagemap)
{
	size_t bytes = size / CELLS, left = 0;

	for (size_t cell = 0; cell < CELLS; cell++) {
		unsigned char *at = object->map + cell * bytes;

		if (cell_state(cell) != COLD || !present(at, bytes / page, pagemap))
			continue;
		if (madvise(at, bytes, MADV_PAGEOUT))
			die("MADV_PAGEOUT");
		left += present(at, bytes / page, pagemap);
	}
	return left;
}

/*
 * A page just written sits in a batch of the CPU that wrote it, out of the
 * reach of reclaim until that CPU looks: so each round runs on another one.
 */
static void next_cpu(const cpu_set_t *allowed, int *cpu)
{
	cpu_set_t one;

	do {
		*cpu = (*cpu + 1) % CPU_SETSIZE;
	} while (!CPU_ISSET(*cpu, allowed));
	CPU_ZERO(&one);
	CPU_SET(*cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* Without swap nothing goes: the driver looks at the result. */
static void pageout_all(void)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	int cpu = 0, pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	cpu_set_t allowed;
	size_t left = 1;

	if (pagemap < 0 || sched_getaffinity(0, sizeof(allowed), &allowed))
		die("/proc/self/pagemap");
	for (int round = 0; round < PAGEOUT_ROUNDS && left; round++) {
		left = 0;
		for (size_t i = 0; i < NR_OBJECTS; i++)
			left += pageout_round(&objects[i], pagemap);
		if (left) {
			nanosleep(&pause, NULL);
			next_cpu(&allowed, &cpu);
		}
	}
	sched_setaffinity(0, sizeof(allowed), &allowed);
	close(pagemap);
}

/* ---- commands ---- */

static bool verify(char *text, size_t len)
{
	for (size_t i = 0; i < NR_OBJECTS; i++) {
		size_t wrong = first_wrong(&objects[i]);

		if (wrong < size / sizeof(uint64_t)) {
			snprintf(text, len, "%s: wrong content at offset %zu", objects[i].name,
				 wrong * sizeof(uint64_t));
			return false;
		}
	}
	snprintf(text, len, "%zu bytes", NR_OBJECTS * size);
	return true;
}

/* Read "SEQ COMMAND" from a file, true when it is there and new. */
static bool next_command(unsigned long *last, char name[32])
{
	char path[512];
	unsigned long seq;
	FILE *file;
	int n;

	snprintf(path, sizeof(path), "%s/main/cmd", rundir);
	file = fopen(path, "r");
	if (!file)
		return false;
	n = fscanf(file, "%lu %31s", &seq, name);
	fclose(file);
	if (n != 2 || seq == *last)
		return false;
	*last = seq;
	return true;
}

static void serve(void)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	char name[32], text[128], answer[192];
	unsigned long last = 0;
	bool ok;

	for (;;) {
		if (!next_command(&last, name)) {
			nanosleep(&pause, NULL);
			continue;
		}
		text[0] = 0;
		ok = !strcmp(name, "verify") ? verify(text, sizeof(text))
					     : !strcmp(name, "pageout");
		if (!strcmp(name, "pageout"))
			pageout_all();
		snprintf(answer, sizeof(answer), "%lu %s %s\n", last, ok ? "ok" : "fail", text);
		write_text("main/ans", answer);
	}
}

int main(int argc, char **argv)
{
	char path[512];

	if (argc != 3 || atol(argv[2]) <= 0) {
		fprintf(stderr, "usage: demo_workload RUNDIR MIB\n");
		return 2;
	}
	rundir = argv[1];
	page = (size_t)sysconf(_SC_PAGESIZE);
	size = ((size_t)atol(argv[2]) << 20) / SIZE_STEP * SIZE_STEP;
	snprintf(path, sizeof(path), "%s/main", rundir);
	if (mkdir(path, 0700) && errno != EEXIST)
		die(path);
	if (!size || size / CELLS % page)
		die("size is not a multiple of 192 pages");
	if (unshare(CLONE_NEWIPC))
		die("IPC namespace");
	for (size_t i = 0; i < NR_OBJECTS; i++)
		make(&objects[i]);
	pageout_all();
	publish_all();
	write_text("ready", "ready\n");
	serve();
}
