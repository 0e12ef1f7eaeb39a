// SPDX-License-Identifier: GPL-2.0-only
/*
 * wl.c - life of a test workload: files, views of objects, command loop
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

#define POLL_NS (3 * 1000 * 1000)
#define MAX_VIEWS 32

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

/** wl_rundir() - The run directory */
const char *wl_rundir(void)
{
	return rundir;
}

/** wl_task() - Name of this task */
const char *wl_task(void)
{
	return task_name;
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
		i = wl_next_filled(v->obj, v->first, i, v->pages);
		if (i >= v->pages)
			break;
		page = v->first + i;
		wl_pattern(v->obj, page, 0, want);
		if (memcmp(want, addr + i * wl_page(), wl_page_bytes(v->obj, page))) {
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
	/* Gone, it is not opened again: a dump must not find it open. */
	unlink(path);
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
