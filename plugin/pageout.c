// SPDX-License-Identifier: GPL-2.0-only
/*
 * pageout.c - put pages of an object out to swap
 *
 * Theory of operation: MADV_PAGEOUT works on the present entries of the
 * mapping it is called on, and passes over pages that somebody else has mapped
 * too. The tasks' own page tables are empty after a dump or restore, so a
 * window of the object is mapped here, the pages that are to go are made
 * present (MADV_POPULATE_READ) and paged out, run by run; their neighbours stay.
 * A hole must not be populated, reading it would fill it; nor a page that is
 * out already. So the object is looked at first, and again afterwards, since
 * MADV_PAGEOUT does not say what it passed over: up to PASSES times.
 */
#include "pageout.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"
#include "shmem_uapi.h"

#define PASSES 3

/* UIO_MAXIOV: what process_madvise takes at once. */
#define VECTOR_MAX 1024

/*
 * Resident neighbours closer than this are populated along: a read fault maps
 * that many around it anyway (fault_around_bytes, 64 KiB).
 */
#define FAULT_AROUND_BYTES (64ULL << 10)

/* Windows in a row from which nothing went: the rest will not go either. */
#define REFUSALS_MAX 4

/* A mapped piece of the object. */
struct window {
	unsigned char *map;
	uint64_t first;		/* pages */
	uint64_t nr;
	uint64_t page;		/* bytes */
};

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/**
 * pageout_drain_lru() - Make freshly written pages visible to reclaim
 *
 * A page just added sits in a batch of the CPU that added it, where reclaim
 * does not find it. madvise() drains the batch of the CPU it runs on, so go
 * round the CPUs that this thread may use.
 */
void pageout_drain_lru(void)
{
	cpu_set_t allowed, one;
	size_t size = page_size();
	void *page;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (!sched_setaffinity(0, sizeof(one), &one) && madvise(page, size, SHM_MADV_COLD))
			break;
	}
	if (sched_setaffinity(0, sizeof(allowed), &allowed))
		pr_warn("cannot restore the CPU affinity: %s\n", strerror(errno));
	munmap(page, size);
}

static int populate(const struct window *window, uint64_t first, uint64_t nr, int fd)
{
	unsigned char *at = window->map + (first - window->first) * window->page;
	int ret;

	if (!fault_on(FAULT_NO_POPULATE_READ)) {
		do {
			ret = madvise(at, nr * window->page, SHM_MADV_POPULATE_READ);
		} while (ret && errno == EINTR);
		if (!ret)
			return 0;
		if (errno != EINVAL)
			return -errno;
	}
	/* Before Linux 5.14: map the range again, populated. */
	at = mmap(at, nr * window->page, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
		  (off_t)(first * window->page));
	return at == MAP_FAILED ? -errno : 0;
}

struct vector {
	struct iovec iov[VECTOR_MAX];
	size_t nr;
};

static int advise_one_by_one(const struct vector *vector)
{
	for (size_t i = 0; i < vector->nr; i++)
		if (madvise(vector->iov[i].iov_base, vector->iov[i].iov_len, SHM_MADV_PAGEOUT))
			return -errno;
	return 0;
}

/* One system call for many runs, where the kernel has process_madvise (5.10). */
static int advise(struct vector *vector)
{
	static bool missing;
	int pidfd, ret = 0;

	if (!vector->nr || fault_on(FAULT_PAGEOUT_REFUSED))
		goto out;
	if (missing || vector->nr == 1 || fault_on(FAULT_NO_PROCESS_MADVISE)) {
		ret = advise_one_by_one(vector);
		goto out;
	}
	pidfd = (int)syscall(SHM_NR_pidfd_open, getpid(), 0);
	if (pidfd < 0 || syscall(SHM_NR_process_madvise, pidfd, vector->iov, vector->nr,
				 SHM_MADV_PAGEOUT, 0) < 0) {
		missing = true;
		ret = advise_one_by_one(vector);
	}
	if (pidfd >= 0)
		close(pidfd);
out:
	vector->nr = 0;
	return ret;
}

/* Reads the states of one window again: how many of the pages are still in? */
static bool went_out(int fd, const struct window *window, uint64_t resident_before)
{
	uint64_t resident, swapped;

	if (probe_cachestat(fd, window->first, window->nr, &resident, &swapped))
		return true;
	return resident < resident_before;
}

static int map_window(struct window *window, int fd, uint64_t first, uint64_t nr)
{
	void *map;

	window->page = page_size();
	window->first = first;
	window->nr = nr;
	map = mmap(NULL, nr * window->page, PROT_READ, MAP_SHARED, fd,
		   (off_t)(first * window->page));
	if (map == MAP_FAILED)
		return -errno;
	window->map = map;
	return 0;
}

/*
 * The runs of a selection, cut at window borders. Walks forward only, so that
 * the cost of a pass is the number of runs.
 */
struct cursor {
	struct residency_iter iter;
	struct page_run run;	/* what is left of the current one */
	bool valid;
};

static bool cursor_fill(struct cursor *cursor)
{
	if (!cursor->valid || !cursor->run.nr)
		cursor->valid = residency_next(&cursor->iter, &cursor->run);
	return cursor->valid;
}

static struct page_run cursor_take(struct cursor *cursor, uint64_t end)
{
	struct page_run piece = cursor->run;

	if (piece.first + piece.nr > end)
		piece.nr = end - piece.first;
	cursor->run.first += piece.nr;
	cursor->run.nr -= piece.nr;
	return piece;
}

/* Neighbouring pages to populate in one call. */
struct group {
	uint64_t first;
	uint64_t end;		/* behind the last page that is to go */
};

static int flush_group(const struct window *window, struct group *group, int fd)
{
	int ret = 0;

	if (group->end > group->first)
		ret = populate(window, group->first, group->end - group->first, fd);
	group->first = group->end = 0;
	return ret;
}

static void join_group(struct group *group, const struct page_run *run)
{
	if (!group->end)
		group->first = run->first;
	group->end = run->first + run->nr;
}

/* First walk over a window: make what is to go present. */
static int populate_window(const struct window *window, struct cursor cursor, int fd)
{
	uint64_t end = window->first + window->nr;
	struct group group = { 0 };
	int ret = 0;

	while (!ret && cursor_fill(&cursor) && cursor.run.first < end) {
		struct page_run run = cursor_take(&cursor, end);

		if (run.state == PAGE_SWAPPED)
			join_group(&group, &run);
		else if (run.state == PAGE_HOLE || run.nr * window->page >= FAULT_AROUND_BYTES)
			ret = flush_group(window, &group, fd);
	}
	return ret ? ret : flush_group(window, &group, fd);
}

/* Second walk: page it out. The cursor ends behind the window. */
static int advise_window(const struct window *window, struct cursor *cursor, struct vector *vector)
{
	uint64_t end = window->first + window->nr;
	int ret = 0;

	while (!ret && cursor_fill(cursor) && cursor->run.first < end) {
		struct page_run run = cursor_take(cursor, end);

		if (run.state != PAGE_SWAPPED)
			continue;
		vector->iov[vector->nr++] = (struct iovec){
			.iov_base = window->map + (run.first - window->first) * window->page,
			.iov_len = run.nr * window->page,
		};
		if (vector->nr == VECTOR_MAX)
			ret = advise(vector);
	}
	return ret ? ret : advise(vector);
}

static int do_window(const struct window *window, struct cursor *cursor, struct vector *vector,
		     int fd, bool *progress)
{
	uint64_t resident = UINT64_MAX, swapped;
	int ret;

	ret = populate_window(window, *cursor, fd);
	if (ret)
		return ret;
	if (probe_cachestat(fd, window->first, window->nr, &resident, &swapped))
		resident = UINT64_MAX;
	ret = advise_window(window, cursor, vector);
	if (!ret)
		*progress = went_out(fd, window, resident);
	return ret;
}

static const char *refusal(void)
{
	uint64_t total, free;

	probe_swap(&total, &free);
	return !total ? "there is no swap" :
	       !free  ? "swap is full" :
			"the kernel does not page them out";
}

/* One pass over everything that is to go. */
static int do_pass(struct pageout *po, const struct residency *todo, int fd, struct vector *vector)
{
	uint64_t pages = po->window / page_size();
	struct cursor cursor = { .iter = residency_begin(todo) };
	int refusals = 0, ret = 0;

	while (!ret && cursor_fill(&cursor)) {
		struct window window = { 0 };
		bool progress = false;
		uint64_t first = cursor.run.first, nr;

		if (cursor.run.state != PAGE_SWAPPED) {
			cursor.run.nr = 0;
			continue;
		}
		nr = todo->pages - first < pages ? todo->pages - first : pages;
		ret = map_window(&window, fd, first, nr);
		if (ret)
			return ret;
		ret = do_window(&window, &cursor, vector, fd, &progress);
		munmap(window.map, window.nr * window.page);
		refusals = progress ? 0 : refusals + 1;
		if (!ret && refusals == REFUSALS_MAX)
			ret = -EAGAIN;
	}
	return ret;
}

/* What mlocked mappings cover cannot go out. */
static int keep_locked(const struct shm_object *object, struct residency *todo)
{
	uint64_t page = page_size();
	int ret = 0;

	for (size_t i = 0; !ret && i < object->nr_refs; i++) {
		const struct shm_ref *ref = &object->ref[i];

		if (ref->fd < 0 && ref->locked)
			ret = residency_keep(todo, ref->offset / page,
					     (ref->end - ref->start) / page);
	}
	return ret;
}

static int look(struct pageout *po, const struct shm_object *object, int fd,
		struct residency *todo)
{
	struct residency now = { 0 };
	int ret;

	ret = source_read(po->source, object, fd, &now);
	if (!ret)
		ret = residency_select(todo, &object->state, &now);
	residency_free(&now);
	if (!ret)
		ret = keep_locked(object, todo);
	if (ret)
		residency_free(todo);
	return ret;
}

/**
 * pageout_object() - Page out what was swapped when the object was recorded
 * @po:		source and window; out, left and why are updated
 * @object:	state is what was recorded; not changed
 * @fd:		the object
 *
 * Return: 0 on success, also when pages stayed (see @po->left), negative error
 *	   code
 */
int pageout_object(struct pageout *po, const struct shm_object *object, int fd)
{
	struct vector *vector = calloc(1, sizeof(*vector));
	struct residency todo = { 0 };
	uint64_t first_left = 0, left = 0;
	int ret = 0;

	if (!vector)
		return -ENOMEM;
	for (int pass = 0; pass <= PASSES; pass++) {
		residency_free(&todo);
		ret = look(po, object, fd, &todo);
		if (ret)
			break;
		left = todo.count[PAGE_SWAPPED];
		if (!pass)
			first_left = left;
		if (!left || pass == PASSES)
			break;
		if (pass)
			pageout_drain_lru();
		ret = do_pass(po, &todo, fd, vector);
		if (ret == -EAGAIN)
			pass = PASSES - 1;
		else if (ret)
			break;
	}
	if (!ret || ret == -EAGAIN) {
		ret = 0;
		po->out += first_left - left;
		po->left += left;
		if (left)
			po->why = refusal();
	}
	residency_free(&todo);
	free(vector);
	return ret;
}
