/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wl.h - what the test workloads share
 *
 * Theory of Operation
 *
 * A workload is started as "wl_NAME RUNDIR SIZE [MODE [LAYOUT]]".  It creates
 * shared memory objects, fills the pages that its layout calls hot or cold,
 * pages the cold ones out, and then serves commands until it is told to quit.
 *
 * A pipe to the test driver could not be dumped by CRIU, so commands are
 * files: the driver renames RUNDIR/TASK/cmd into place ("SEQ COMMAND"), the
 * task polls for it, removes it and renames RUNDIR/TASK/ans into place ("SEQ
 * ok|fail TEXT").  While no command is pending the task has no descriptor open
 * at any moment, so this survives a dump and a restore.
 *
 * RUNDIR/objects  how the driver reaches each object: one line
 *                 "NAME TASK map|fd|shm WHERE SIZE"
 * RUNDIR/plan-N   the planned page states of object N: lines "START COUNT C",
 *                 C one of H (hole), R (resident), S (swapped)
 * RUNDIR/ready    the workload is set up
 * RUNDIR/error    why it gave up
 */
#ifndef WL_H
#define WL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Page states, spelled as in the plan files */
enum wl_state {
	WL_HOLE = 'H',
	WL_HOT = 'R',
	WL_COLD = 'S',
};

/**
 * struct wl_object - one shared memory object and what it must hold
 * @name:	name in RUNDIR/objects and in messages
 * @seed:	seed of layout and content
 * @size:	size in bytes, need not be a multiple of the page size
 * @layout:	"mixed", "alternate", "cold", "hot" or "sparse"
 */
struct wl_object {
	const char *name;
	uint64_t seed;
	size_t size;
	const char *layout;
};

enum wl_view_kind {
	WL_VIEW_MAP,
	WL_VIEW_FD,
	WL_VIEW_SHM,
};

/**
 * struct wl_view - one way in which a task sees an object
 * @obj:	the object
 * @kind:	mapping, descriptor without a mapping, SysV id without one
 * @addr:	address of the mapping
 * @fd:		descriptor, or SysV id
 * @first:	first page of the object that is seen
 * @pages:	how many are seen
 * @prot:	protection of the mapping
 */
struct wl_view {
	struct wl_object *obj;
	enum wl_view_kind kind;
	char *addr;
	int fd;
	size_t first;
	size_t pages;
	int prot;
};

/* Life of a task */
void wl_init(const char *rundir, const char *task);
void wl_become(const char *task);
const char *wl_rundir(void);
const char *wl_task(void);
void wl_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void wl_write(const char *path, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void wl_ready(void);
void wl_child_ready(const char *task);
void wl_wait_child(const char *task);
void wl_loop(void) __attribute__((noreturn));
bool wl_poll(void);
void wl_on_verify(int (*fn)(char *text, size_t len));

/* Objects and their pages */
size_t wl_page(void);
size_t wl_pages(const struct wl_object *obj);
size_t wl_parse_size(const char *text);
const char *wl_arg(int argc, char **argv, int n, const char *fallback);
enum wl_state wl_plan(const struct wl_object *obj, size_t page);
void wl_pattern(const struct wl_object *obj, size_t page, uint64_t generation, void *buf);
void wl_publish(const struct wl_object *obj, const char *how, uint64_t where);
size_t wl_next_filled(const struct wl_object *obj, size_t first, size_t i, size_t pages);
size_t wl_page_bytes(const struct wl_object *obj, size_t page);
void wl_fill(const struct wl_object *obj, char *addr, size_t first, size_t pages);
void wl_pageout(const struct wl_object *obj, char *addr, size_t first, size_t pages);
void wl_setup(const struct wl_object *obj, char *addr);
void wl_see_map(struct wl_object *obj, void *addr, size_t first, size_t pages, int prot);
void wl_see_fd(struct wl_object *obj, int fd);
void wl_see_shm(struct wl_object *obj, int id);
void wl_forget_views(void);

/* Making objects */
void *wl_map_anon(size_t size);
void *wl_map_fd(int fd, size_t size, off_t offset, int prot);
int wl_memfd(const char *name, size_t size, unsigned int flags);

#endif /* WL_H */
