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
 *
 * Where the source mixes up the swap cache with memory, a second look is of no
 * use: there is one pass, and what went is what is gone from our own page table.
 * That is true as long as swap has room: reclaim unmaps a page before it finds
 * out that there is none left.
 */
#include "pageout.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"
#include "proc.h"
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
	uint64_t first; /* pages */
	uint64_t nr;
	uint64_t page; /* bytes */
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

/* Entries of pagemap read at once. */
#define PAGEMAP_BATCH 512

/* How many pages of a window are mapped here. */
static int count_present(const struct window *window, int pagemap, uint64_t *present)
{
	uint64_t entry[PAGEMAP_BATCH], done = 0;

	*present = 0;
	while (done < window->nr) {
		uint64_t left = window->nr - done,
			 now = left < PAGEMAP_BATCH ? left : PAGEMAP_BATCH;
		uint64_t at = ((uintptr_t)window->map / window->page + done) * sizeof(*entry);
		ssize_t n = pread(pagemap, entry, now * sizeof(*entry), (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < (ssize_t)sizeof(*entry))
			return n < 0 ? -errno : -EIO;
		now = (uint64_t)n / sizeof(*entry);
		for (uint64_t i = 0; i < now; i++)
			*present += !!(entry[i] & SHM_PM_PRESENT);
		done += now;
	}
	return 0;
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
	struct page_run run; /* what is left of the current one */
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
	uint64_t end; /* behind the last page that is to go */
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

/* What one pass works with. */
struct pass {
	int fd;		/* the object */
	int pagemap;	/* our own */
	bool cachestat; /* may be used */
	struct vector *vector;
	uint64_t out; /* pages that went */
};

/* Pages of a window that are in memory, or at least mapped here. */
static int count_in(const struct pass *pass, const struct window *window, uint64_t *in)
{
	uint64_t swapped;

	if (pass->cachestat)
		return probe_cachestat(pass->fd, window->first, window->nr, in, &swapped);
	return count_present(window, pass->pagemap, in);
}

static int do_window(struct pass *pass, const struct window *window, struct cursor *cursor)
{
	uint64_t before = 0, after = 0;
	int ret;

	ret = populate_window(window, *cursor, pass->fd);
	if (!ret)
		ret = count_in(pass, window, &before);
	if (!ret)
		ret = advise_window(window, cursor, pass->vector);
	if (!ret)
		ret = count_in(pass, window, &after);
	if (!ret && before > after)
		pass->out += before - after;
	return ret;
}

static const char *refusal(void)
{
	uint64_t total, free;

	probe_swap(&total, &free);
	return !total  ? "there is no swap"
	       : !free ? "swap is full"
		       : "the kernel does not page them out";
}

/* One pass over everything that is to go; -EAGAIN: given up half way. */
static int do_pass(struct pass *pass, const struct residency *todo, uint64_t pages)
{
	struct cursor cursor = { .iter = residency_begin(todo) };
	int refusals = 0, ret = 0;

	while (!ret && cursor_fill(&cursor)) {
		uint64_t first = cursor.run.first, left = todo->pages - first, out = pass->out;
		struct window window = { 0 };

		if (cursor.run.state != PAGE_SWAPPED) {
			cursor.run.nr = 0;
			continue;
		}
		ret = map_window(&window, pass->fd, first, left < pages ? left : pages);
		if (ret)
			break;
		ret = do_window(pass, &window, &cursor);
		munmap(window.map, window.nr * window.page);
		refusals = pass->out > out ? 0 : refusals + 1;
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

static int look(struct pageout *po, const struct shm_object *object, int fd, struct residency *todo)
{
	struct residency now = { 0 };
	int ret;

	ret = source_read(po->source, object, fd, &now);
	if (!ret)
		ret = residency_select(todo, &object->state, &now);
	residency_free(&now);
	if (!ret && po->keep_locked)
		ret = keep_locked(object, todo);
	if (ret)
		residency_free(todo);
	return ret;
}

static bool swap_is_full(void)
{
	uint64_t total, free;

	probe_swap(&total, &free);
	return !free;
}

/* Passes until everything is out or nothing more goes. */
static int run_passes(struct pageout *po, const struct shm_object *object, struct pass *pass)
{
	unsigned int passes = po->source->exact ? PASSES : 1;
	struct residency todo = { 0 };
	uint64_t wanted = 0, left = 0;
	bool gave_up = false;
	int ret;

	for (unsigned int i = 0;; i++) {
		ret = look(po, object, pass->fd, &todo);
		if (ret)
			return ret;
		left = todo.count[PAGE_SWAPPED];
		if (!i)
			wanted = left;
		if (!left || i == passes || gave_up)
			break;
		if (i)
			pageout_drain_lru();
		ret = do_pass(pass, &todo, po->window / page_size());
		gave_up = ret == -EAGAIN;
		residency_free(&todo);
		if (ret && !gave_up)
			return ret;
	}
	residency_free(&todo);
	if (!po->source->exact) {
		left = wanted > pass->out ? wanted - pass->out : 0;
		po->unsure |= wanted && swap_is_full();
	}
	po->out += wanted - left;
	po->left += left;
	if (left)
		po->why = refusal();
	return 0;
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
	struct pass pass = { .fd = fd, .cachestat = po->source->cachestat };
	int ret;

	pass.vector = calloc(1, sizeof(*pass.vector));
	if (!pass.vector)
		return -ENOMEM;
	pass.pagemap = proc_open(PROC_SELF, O_RDONLY, "pagemap");
	if (pass.pagemap < 0) {
		ret = pass.pagemap;
		goto out;
	}
	ret = run_passes(po, object, &pass);
	close(pass.pagemap);
out:
	free(pass.vector);
	return ret;
}
