// SPDX-License-Identifier: GPL-2.0-only
/*
 * wl.c - what the test workloads share: pattern, page-out, command loop
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wl.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#define NR_CACHESTAT 451

/* Freshly written pages may sit in per-CPU batches: page out again till gone */
#define PAGEOUT_ROUNDS 200
#define POLL_NS (3 * 1000 * 1000)
#define MAX_VIEWS 32
#define BLOCK_PAGES 32

static char rundir[256];
static char task_name[32];
static unsigned long last_seq;
static struct wl_view views[MAX_VIEWS];
static size_t nr_views;
static int (*verify_hook)(char *text, size_t len);

/* ---- files in the run directory ---- */

/**
 * run_path() - Path of a file in the run directory
 * @buf:	result
 * @len:	its size
 * @task:	in the directory of this task, not in the top one
 * @name:	file name
 */
static void run_path(char *buf, size_t len, bool task, const char *name)
{
	snprintf(buf, len, "%s/%s%s%s", rundir, task ? task_name : "", task ? "/" : "", name);
}

/**
 * write_text() - Write a whole file and rename it into place
 * @path:	final name
 * @text:	content
 */
static void write_text(const char *path, const char *text)
{
	char tmp[400];
	FILE *f;

	snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	f = fopen(tmp, "w");
	if (!f)
		_exit(3);
	fputs(text, f);
	if (fclose(f) || rename(tmp, path))
		_exit(3);
}

/**
 * wl_write() - Write a formatted file into the run directory, by rename
 * @name:	name relative to the run directory
 * @fmt:	printf format
 */
void wl_write(const char *name, const char *fmt, ...)
{
	char path[320], text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	run_path(path, sizeof(path), false, name);
	write_text(path, text);
}

/**
 * wl_die() - Leave the reason in RUNDIR/error and exit
 * @fmt:	printf format; the text of errno is appended
 */
void wl_die(const char *fmt, ...)
{
	char text[400];
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	wl_write("error", "%s: %s (%s)\n", task_name, text, strerror(err));
	_exit(1);
}

/**
 * wl_become() - Take a task name and make its directory
 * @task:	name of the task, "main" for the first
 */
void wl_become(const char *task)
{
	char path[320];

	snprintf(task_name, sizeof(task_name), "%s", task);
	last_seq = 0;
	run_path(path, sizeof(path), true, "");
	if (mkdir(path, 0755) && errno != EEXIST)
		wl_die("mkdir %s", path);
	run_path(path, sizeof(path), true, "pid");
	snprintf(path, sizeof(path), "%s/pid", task_name);
	wl_write(path, "%d\n", (int)getpid());
}

/**
 * wl_init() - First call of each workload
 * @dir:	run directory, exists
 * @task:	name of the task
 */
void wl_init(const char *dir, const char *task)
{
	snprintf(rundir, sizeof(rundir), "%s", dir);
	wl_become(task);
}

/** wl_ready() - Tell the driver that the workload is set up */
void wl_ready(void)
{
	wl_write("ready", "ready\n");
}

/**
 * wl_child_ready() - Tell the parent task that this one is set up
 * @task:	own name
 */
void wl_child_ready(const char *task)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/ready", task);
	wl_write(name, "ready\n");
}

/**
 * wl_wait_child() - Wait until another task is set up
 * @task:	its name
 */
void wl_wait_child(const char *task)
{
	struct timespec ts = { .tv_nsec = POLL_NS };
	char path[320];

	snprintf(path, sizeof(path), "%s/%s/ready", rundir, task);
	while (access(path, F_OK))
		nanosleep(&ts, NULL);
}

/* ---- objects ---- */

/** wl_page() - Page size. Return: bytes */
size_t wl_page(void)
{
	return sysconf(_SC_PAGESIZE);
}

/** wl_pages() - Number of pages of an object, the last may be a part of one */
size_t wl_pages(const struct wl_object *obj)
{
	return (obj->size + wl_page() - 1) / wl_page();
}

/**
 * wl_parse_size() - Number with an optional suffix K, M, G or T
 * @text:	the number
 *
 * Return: bytes
 */
size_t wl_parse_size(const char *text)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	char *end;
	size_t n = strtoull(text, &end, 0);

	suffix = *end ? strchr(suffixes, *end) : NULL;
	return suffix ? n << (10 * (suffix - suffixes + 1)) : n;
}

/** wl_arg() - Argument @n, or @fallback where there is none */
const char *wl_arg(int argc, char **argv, int n, const char *fallback)
{
	return n < argc ? argv[n] : fallback;
}

/** mix() - Spread the bits of a number (a 64-bit finalizer). Return: the mix */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/**
 * plan_mixed() - Blocks of pages of one state, now and then a block of all
 * @seed:	seed of the object
 * @page:	page index
 *
 * Return: the state: about a quarter hot, half cold, a quarter holes
 */
static enum wl_state plan_mixed(uint64_t seed, size_t page)
{
	uint64_t h = mix(seed ^ (page / BLOCK_PAGES));

	if ((h >> 60) == 0)
		h = mix(seed + page);
	switch (h & 7) {
	case 0:
	case 1:
		return WL_HOT;
	case 2:
	case 3:
		return WL_HOLE;
	default:
		return WL_COLD;
	}
}

/**
 * plan_sparse() - Ten pages in an object of any size
 * @pages:	pages of the object
 * @page:	page index
 *
 * Return: the state: five cold, five hot, the rest holes
 */
static enum wl_state plan_sparse(size_t pages, size_t page)
{
	size_t step = pages / 10;

	if (page % step || page / step >= 10)
		return WL_HOLE;
	return (page / step) & 1 ? WL_COLD : WL_HOT;
}

/**
 * wl_plan() - What state a page is meant to have
 * @obj:	object
 * @page:	page index
 *
 * Return: the state
 */
enum wl_state wl_plan(const struct wl_object *obj, size_t page)
{
	switch (obj->layout[0]) {
	case 'a':
		return page & 1 ? WL_COLD : WL_HOT;
	case 'c':
		return WL_COLD;
	case 'h':
		return WL_HOT;
	case 's':
		return plan_sparse(wl_pages(obj), page);
	default:
		return plan_mixed(obj->seed, page);
	}
}

/**
 * sparse_run() - plan_run() for an object too large to go through its pages
 * @pages:	pages of the object
 * @page:	first page
 * @end:	where to stop looking
 *
 * Return: number of pages
 */
static size_t sparse_run(size_t pages, size_t page, size_t end)
{
	size_t step = pages / 10, next = (page / step + 1) * step;

	if (page % step == 0 && page / step < 10)
		return 1;
	if (next / step >= 10 || next > end)
		next = end;
	return next - page;
}

/**
 * plan_run() - Length of the run of one state that starts at a page
 * @obj:	object
 * @page:	first page
 * @end:	where to stop looking
 *
 * Return: number of pages
 */
static size_t plan_run(const struct wl_object *obj, size_t page, size_t end)
{
	enum wl_state state = wl_plan(obj, page);
	size_t n = 1;

	if (obj->layout[0] == 's')
		return sparse_run(wl_pages(obj), page, end);
	while (page + n < end && wl_plan(obj, page + n) == state)
		n++;
	return n;
}

/**
 * next_filled() - Next page of a view that is no hole
 * @obj:	object
 * @first:	first page of the view
 * @i:		where to start, counted from @first
 * @pages:	pages of the view
 *
 * Return: index counted from @first, @pages or more if there is none
 */
static size_t next_filled(const struct wl_object *obj, size_t first, size_t i, size_t pages)
{
	while (i < pages && wl_plan(obj, first + i) == WL_HOLE)
		i += plan_run(obj, first + i, first + pages);
	return i;
}

/**
 * page_bytes() - Bytes of a page that lie inside the object
 * @obj:	object
 * @page:	page index
 *
 * Return: page size, or less for the last page
 */
static size_t page_bytes(const struct wl_object *obj, size_t page)
{
	size_t left = obj->size - page * wl_page();

	return left < wl_page() ? left : wl_page();
}

/**
 * wl_pattern() - What a page must hold
 * @obj:	object
 * @page:	page index
 * @generation:	how often it was rewritten
 * @buf:	a page
 */
void wl_pattern(const struct wl_object *obj, size_t page, uint64_t generation, void *buf)
{
	uint64_t base = mix(obj->seed * 31 + page) ^ (generation * 0x100000001b3ULL);
	size_t words = wl_page() / sizeof(uint64_t);
	uint64_t *out = buf;
	size_t i;

	for (i = 0; i < words; i++)
		out[i] = base + i * 0x9e3779b97f4a7c15ULL;
}

/**
 * write_plan() - Write the plan of an object for the driver
 * @obj:	object
 */
static void write_plan(const struct wl_object *obj)
{
	size_t page, n, pages = wl_pages(obj);
	char path[320];
	FILE *f;

	snprintf(path, sizeof(path), "%s/plan-%s", rundir, obj->name);
	f = fopen(path, "w");
	if (!f)
		wl_die("%s", path);
	for (page = 0; page < pages; page += n) {
		n = plan_run(obj, page, pages);
		fprintf(f, "%zu %zu %c\n", page, n, wl_plan(obj, page));
	}
	if (fclose(f))
		wl_die("%s", path);
}

/**
 * wl_publish() - Tell the driver how it reaches an object, and its plan
 * @obj:	object
 * @how:	"map", "fd" or "shm"
 * @where:	address, descriptor or id
 */
void wl_publish(const struct wl_object *obj, const char *how, uint64_t where)
{
	char path[320];
	FILE *f;

	write_plan(obj);
	run_path(path, sizeof(path), false, "objects");
	f = fopen(path, "a");
	if (!f)
		wl_die("%s", path);
	fprintf(f, "%s %s %s %#llx %zu\n", obj->name, task_name, how, (unsigned long long)where,
		obj->size);
	if (fclose(f))
		wl_die("%s", path);
}

/**
 * wl_fill() - Write the pattern into all hot and cold pages of a mapping
 * @obj:	object
 * @addr:	a writable mapping of it
 * @first:	first page of the object that is mapped there
 * @pages:	how many
 */
void wl_fill(const struct wl_object *obj, char *addr, size_t first, size_t pages)
{
	char *buf = malloc(wl_page());
	size_t i;

	for (i = next_filled(obj, first, 0, pages); i < pages;
	     i = next_filled(obj, first, i + 1, pages)) {
		wl_pattern(obj, first + i, 0, buf);
		memcpy(addr + i * wl_page(), buf, page_bytes(obj, first + i));
	}
	free(buf);
}

/**
 * vma_of() - Find the VMA that holds an address
 * @addr:	address
 * @start:	result: its start
 * @end:	result: its end
 */
static void vma_of(const void *addr, unsigned long *start, unsigned long *end)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", start, end) == 2 && *start <= (unsigned long)addr &&
		    *end > (unsigned long)addr) {
			fclose(f);
			return;
		}
	}
	wl_die("no mapping at %p", addr);
}

/**
 * open_mapping() - Open what is mapped at an address
 * @addr:	address
 *
 * Return: descriptor, or -1
 */
static int open_mapping(const void *addr)
{
	unsigned long start, end;
	char path[80];

	vma_of(addr, &start, &end);
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", start, end);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/**
 * nr_cached() - Pages of a range that are resident, by cachestat(2)
 * @fd:		the object
 * @page:	first page
 * @pages:	how many
 *
 * Return: number, or -1 where the kernel cannot tell
 */
static long nr_cached(int fd, size_t page, size_t pages)
{
	uint64_t range[2] = { page * wl_page(), pages * wl_page() };
	uint64_t stat[5];

	if (syscall(NR_CACHESTAT, fd, range, stat, 0))
		return -1;
	return stat[0];
}

/**
 * pageout_round() - Ask once for all cold pages of a mapping to be paged out
 * @obj:	object
 * @fd:		descriptor of it, to see what is left
 * @addr:	mapping
 * @first:	first page mapped there
 * @pages:	how many
 *
 * Return: cold pages still resident, or -1 where the kernel cannot tell
 */
static long pageout_round(const struct wl_object *obj, int fd, char *addr, size_t first,
			  size_t pages)
{
	long n, left = 0;
	size_t i, run;

	for (i = 0; i < pages; i += run) {
		run = plan_run(obj, first + i, first + pages);
		if (wl_plan(obj, first + i) != WL_COLD)
			continue;
		if (nr_cached(fd, first + i, run) == 0)
			continue;
		if (madvise(addr + i * wl_page(), run * wl_page(), MADV_PAGEOUT))
			wl_die("MADV_PAGEOUT of %s", obj->name);
		n = nr_cached(fd, first + i, run);
		left = n < 0 || left < 0 ? -1 : left + n;
	}
	return left;
}

/**
 * wl_pageout() - Page the cold pages of a mapping out
 * @obj:	object
 * @addr:	mapping with the pages present in this task's page table
 * @first:	first page mapped there
 * @pages:	how many
 *
 * Without swap nothing goes out: the driver looks at the result.
 */
void wl_pageout(const struct wl_object *obj, char *addr, size_t first, size_t pages)
{
	struct timespec ts = { .tv_nsec = 2000000 };
	int round, fd = open_mapping(addr);
	long left = 1;

	for (round = 0; round < PAGEOUT_ROUNDS && left; round++) {
		left = pageout_round(obj, fd, addr, first, pages);
		if (left < 0 && round > 8)
			break;
		if (left)
			nanosleep(&ts, NULL);
	}
	if (fd >= 0)
		close(fd);
}

/**
 * wl_setup() - Fill a whole object through a mapping and page the cold out
 * @obj:	object
 * @addr:	mapping of all of it
 */
void wl_setup(const struct wl_object *obj, char *addr)
{
	wl_fill(obj, addr, 0, wl_pages(obj));
	wl_pageout(obj, addr, 0, wl_pages(obj));
}

/** wl_map_anon() - Map anonymous shared memory. Return: address */
void *wl_map_anon(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		wl_die("mmap of %zu bytes", size);
	return p;
}

/** wl_map_fd() - Map a descriptor shared. Return: address */
void *wl_map_fd(int fd, size_t size, off_t offset, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, offset);

	if (p == MAP_FAILED)
		wl_die("mmap of descriptor %d", fd);
	return p;
}

/** wl_memfd() - Make a memfd of a size. Return: descriptor */
int wl_memfd(const char *name, size_t size, unsigned int flags)
{
	int fd = memfd_create(name, flags);

	if (fd < 0 || ftruncate(fd, size))
		wl_die("memfd of %zu bytes", size);
	return fd;
}

/* ---- views: how this task sees objects ---- */

/** add_view() - Remember a view for the commands */
static void add_view(struct wl_view view)
{
	if (nr_views == MAX_VIEWS)
		wl_die("too many views");
	views[nr_views++] = view;
}

/** wl_see_map() - This task has a mapping of an object */
void wl_see_map(struct wl_object *obj, void *addr, size_t first, size_t pages, int prot)
{
	add_view((struct wl_view){ obj, WL_VIEW_MAP, addr, -1, first, pages, prot });
}

/** wl_see_fd() - This task has a descriptor of an object, and verifies by it */
void wl_see_fd(struct wl_object *obj, int fd)
{
	add_view((struct wl_view){ obj, WL_VIEW_FD, NULL, fd, 0, wl_pages(obj), 0 });
}

/** wl_see_shm() - This task knows the id of a SysV segment */
void wl_see_shm(struct wl_object *obj, int id)
{
	add_view((struct wl_view){ obj, WL_VIEW_SHM, NULL, id, 0, wl_pages(obj), 0 });
}

/** wl_forget_views() - After fork: the child does not see what the parent sees */
void wl_forget_views(void)
{
	nr_views = 0;
}

/**
 * view_open() - Make the pages of a view readable
 * @v:		view
 *
 * Return: address, NULL with errno set
 */
static char *view_open(const struct wl_view *v)
{
	size_t len = v->pages * wl_page();
	void *p;

	switch (v->kind) {
	case WL_VIEW_MAP:
		if (!(v->prot & PROT_READ) && mprotect(v->addr, len, PROT_READ))
			return NULL;
		return v->addr;
	case WL_VIEW_FD:
		p = mmap(NULL, len, PROT_READ, MAP_SHARED, v->fd, 0);
		return p == MAP_FAILED ? NULL : p;
	default:
		p = shmat(v->fd, NULL, SHM_RDONLY);
		return p == (void *)-1 ? NULL : p;
	}
}

/**
 * view_close() - Undo view_open()
 * @v:		view
 * @addr:	what it returned
 */
static void view_close(const struct wl_view *v, char *addr)
{
	if (v->kind == WL_VIEW_MAP && !(v->prot & PROT_READ))
		mprotect(addr, v->pages * wl_page(), v->prot);
	else if (v->kind == WL_VIEW_FD)
		munmap(addr, v->pages * wl_page());
	else if (v->kind == WL_VIEW_SHM)
		shmdt(addr);
}

/**
 * view_size_wrong() - Check the size of the object behind a descriptor
 * @v:		view
 *
 * Return: true if there is a descriptor and its size is not the object's
 */
static bool view_size_wrong(const struct wl_view *v)
{
	struct stat st;

	if (v->kind != WL_VIEW_FD)
		return false;
	return fstat(v->fd, &st) || (size_t)st.st_size != v->obj->size;
}

/**
 * verify_view() - Compare all filled pages of a view with the pattern
 * @v:		view
 * @text:	result: what is wrong
 * @len:	its size
 *
 * Holes are not read: reading a hole through a shared mapping fills it.  That
 * they are holes still, the driver sees from outside.
 *
 * Return: 0 if right, -1 if not
 */
static int verify_view(const struct wl_view *v, char *text, size_t len)
{
	char *want = malloc(wl_page()), *addr = view_open(v);
	size_t i, page;
	int ret = 0;

	if (!addr || view_size_wrong(v)) {
		snprintf(text, len, "%s: cannot read, or size is wrong", v->obj->name);
		ret = -1;
	}
	for (i = 0; !ret; i++) {
		i = next_filled(v->obj, v->first, i, v->pages);
		if (i >= v->pages)
			break;
		page = v->first + i;
		wl_pattern(v->obj, page, 0, want);
		if (memcmp(want, addr + i * wl_page(), page_bytes(v->obj, page))) {
			snprintf(text, len, "%s: page %zu of %zu differs", v->obj->name, page,
				 wl_pages(v->obj));
			ret = -1;
		}
	}
	if (addr)
		view_close(v, addr);
	free(want);
	return ret;
}

/** wl_on_verify() - Let a workload verify more than its views */
void wl_on_verify(int (*fn)(char *text, size_t len))
{
	verify_hook = fn;
}

/* ---- commands ---- */

/** cmd_verify() - All views hold what they must. Return: 0 or -1 */
static int cmd_verify(char *text, size_t len)
{
	size_t i;

	for (i = 0; i < nr_views; i++)
		if (verify_view(&views[i], text, len))
			return -1;
	return verify_hook ? verify_hook(text, len) : 0;
}

/** cmd_touch_hot() - Read a byte of each hot page of each mapping. Return: 0 */
static int cmd_touch_hot(char *text, size_t len)
{
	volatile char sink;
	size_t i, k, n = 0;

	for (i = 0; i < nr_views; i++) {
		if (views[i].kind != WL_VIEW_MAP || !(views[i].prot & PROT_READ))
			continue;
		for (k = 0; k < views[i].pages; k++) {
			if (wl_plan(views[i].obj, views[i].first + k) != WL_HOT)
				continue;
			sink = views[i].addr[k * wl_page()];
			(void)sink;
			n++;
		}
	}
	snprintf(text, len, "%zu pages", n);
	return 0;
}

/** cmd_pageout() - Page the cold pages of each mapping out again. Return: 0 */
static int cmd_pageout(char *text, size_t len)
{
	size_t i;

	for (i = 0; i < nr_views; i++)
		if (views[i].kind == WL_VIEW_MAP)
			wl_pageout(views[i].obj, views[i].addr, views[i].first, views[i].pages);
	snprintf(text, len, "%zu views", nr_views);
	return 0;
}

/** cmd_quit() - End this task; its children were told before. Never returns */
static int cmd_quit(char *text, size_t len)
{
	(void)text;
	(void)len;
	while (wait(NULL) > 0 || errno == EINTR)
		;
	_exit(0);
}

static const struct {
	const char *name;
	int (*fn)(char *text, size_t len);
} commands[] = {
	{ "verify", cmd_verify },
	{ "touch-hot", cmd_touch_hot },
	{ "pageout", cmd_pageout },
	{ "quit", cmd_quit },
};

/**
 * run_command() - Run a command by its name
 * @name:	name
 * @text:	result: text of the answer
 * @len:	its size
 *
 * Return: 0 or -1
 */
static int run_command(const char *name, char *text, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return commands[i].fn(text, len);
	snprintf(text, len, "no command %s", name);
	return -1;
}

/**
 * wl_poll() - Serve a command if there is a new one
 *
 * Return: true if there was one
 */
bool wl_poll(void)
{
	char path[320], name[32] = "", text[256] = "", answer[320];
	unsigned long seq;
	int n, ret;
	FILE *f;

	run_path(path, sizeof(path), true, "cmd");
	f = fopen(path, "r");
	if (!f)
		return false;
	n = fscanf(f, "%lu %31s", &seq, name);
	fclose(f);
	if (n != 2 || seq == last_seq)
		return false;
	last_seq = seq;
	ret = run_command(name, text, sizeof(text));
	snprintf(answer, sizeof(answer), "%lu %s %s\n", seq, ret ? "fail" : "ok", text);
	run_path(path, sizeof(path), true, "ans");
	write_text(path, answer);
	return true;
}

/** wl_loop() - Serve commands for ever */
void wl_loop(void)
{
	struct timespec ts = { .tv_nsec = POLL_NS };

	for (;;) {
		if (!wl_poll())
			nanosleep(&ts, NULL);
	}
}
