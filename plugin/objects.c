// SPDX-License-Identifier: GPL-2.0-only
/*
 * objects.c - the shmem objects of tasks, and how to reach them
 *
 * Theory of operation: everything on the kernel's internal tmpfs shares one
 * device number, which a memfd of our own tells. /proc/PID/maps shows it for
 * mappings, /proc/PID/fd for descriptors; the path tells the kind. Files are
 * opened through /proc/PID/map_files and /proc/PID/fd only when their state is
 * read, and what was opened is compared with what was looked for.
 */
#include "objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "proc.h"
#include "sysv.h"

/**
 * shm_kind_name() - Word for a kind
 * @kind:	of an object
 *
 * Return: static string
 */
const char *shm_kind_name(enum shm_kind kind)
{
	switch (kind) {
	case SHM_ANON:
		return "anon";
	case SHM_MEMFD:
		return "memfd";
	case SHM_SYSV:
		return "sysv";
	}
	return "unknown";
}

/**
 * shm_pages() - Pages that a size takes
 * @bytes:	size of an object
 *
 * Return: pages, rounded up; no overflow for any size
 */
uint64_t shm_pages(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return bytes / page + !!(bytes % page);
}

/* Bytes of the UTF-8 character at @c, 0 when it is none or a control character. */
static size_t plain_character(const unsigned char *c)
{
	size_t len = *c < 0x80	 ? 1
		     : *c < 0xc2 ? 0
		     : *c < 0xe0 ? 2
		     : *c < 0xf0 ? 3
		     : *c < 0xf5 ? 4
				 : 0;

	if (*c < ' ' || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0))
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

/**
 * shm_plain_text() - Make a text fit for a log, a terminal and JSON
 * @text:	control characters, and bytes that are not UTF-8, become '?'
 */
void shm_plain_text(char *text)
{
	unsigned char *c = (unsigned char *)text;

	while (*c) {
		size_t len = plain_character(c);

		if (!len)
			*c = '?';
		c += len ? len : 1;
	}
}

/**
 * objects_dev() - Find the device number of the internal tmpfs
 * @objects:	dev is filled
 *
 * Return: 0 on success, negative error code
 */
int objects_dev(struct shm_objects *objects)
{
	struct stat st;
	int fd, ret = 0;

	if (objects->dev)
		return 0;
	fd = memfd_create("criu-shmem", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else
		objects->dev = st.st_dev;
	close(fd);
	return ret;
}

static int compare_objects(const void *a, const void *b)
{
	const struct shm_object *x = a, *y = b;
	bool x_sysv = x->kind == SHM_SYSV, y_sysv = y->kind == SHM_SYSV;

	if (x_sysv != y_sysv)
		return x_sysv ? 1 : -1;
	if (x->ipc_ns != y->ipc_ns)
		return x->ipc_ns < y->ipc_ns ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return 0;
}

static int append_object(struct shm_objects *objects, struct shm_object *object)
{
	if (objects->nr == objects->cap) {
		size_t cap = objects->cap ? 2 * objects->cap : 16;
		struct shm_object **grown = reallocarray(objects->object, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		objects->object = grown;
		objects->cap = cap;
	}
	objects->object[objects->nr++] = object;
	return 0;
}

/**
 * objects_add() - Find an object or add it
 * @objects:	the list
 * @key:	kind, ino, ipc_ns and name; the rest is not looked at
 * @object:	filled; owned by the list
 *
 * Return: 0 on success, -ENOMEM
 */
int objects_add(struct shm_objects *objects, const struct shm_object *key,
		struct shm_object **object)
{
	struct shm_object **node, *new;

	node = tfind(key, &objects->by_name, compare_objects);
	if (node) {
		*object = *node;
		return 0;
	}
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->kind = key->kind;
	new->ino = key->ino;
	new->ipc_ns = key->ipc_ns;
	memcpy(new->name, key->name, sizeof(new->name));
	if (append_object(objects, new)) {
		free(new);
		return -ENOMEM;
	}
	if (!tsearch(new, &objects->by_name, compare_objects)) {
		objects->nr--;
		free(new);
		return -ENOMEM;
	}
	*object = new;
	return 0;
}

/**
 * object_add_ref() - Note one more way to an object
 * @object:	extended
 * @ref:	copied
 *
 * Return: 0 on success, -ENOMEM
 */
int object_add_ref(struct shm_object *object, const struct shm_ref *ref)
{
	if (object->nr_refs == object->cap_refs) {
		size_t cap = object->cap_refs ? 2 * object->cap_refs : 4;
		struct shm_ref *grown = reallocarray(object->ref, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		object->ref = grown;
		object->cap_refs = cap;
	}
	object->ref[object->nr_refs++] = *ref;
	return 0;
}

static void nothing_to_free(void *node)
{
	(void)node;
}

/**
 * objects_free() - Free a list with all its objects
 * @objects:	left empty
 */
void objects_free(struct shm_objects *objects)
{
	tdestroy(objects->by_name, nothing_to_free);
	tdestroy(objects->left_alone, free);
	for (size_t i = 0; i < objects->nr; i++) {
		residency_free(&objects->object[i]->state);
		free(objects->object[i]->ref);
		free(objects->object[i]);
	}
	free(objects->object);
	*objects = (struct shm_objects){ 0 };
}

/* What is recognised and not handled is said once for each file. */
struct left_alone {
	dev_t dev;
	uint64_t ino;
	const char *why;
};

static int compare_left_alone(const void *a, const void *b)
{
	const struct left_alone *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return strcmp(x->why, y->why);
}

static int say_left_alone(struct shm_objects *objects, pid_t pid, dev_t dev, uint64_t ino,
			  const char *path, const char *why)
{
	struct left_alone key = { dev, ino, why }, *new;

	if (tfind(&key, &objects->left_alone, compare_left_alone))
		return 0;
	new = malloc(sizeof(*new));
	if (!new)
		return -ENOMEM;
	*new = key;
	if (!tsearch(new, &objects->left_alone, compare_left_alone)) {
		free(new);
		return -ENOMEM;
	}
	pr_info("task %d: %s (inode %" PRIu64 "): %s, left alone\n", (int)pid, path, ino, why);
	return 0;
}

struct task_scan {
	struct shm_objects *objects;
	pid_t pid;
	pid_t image_pid;
	uint64_t ipc_ns;
};

static bool kind_of_path(const char *path, enum shm_kind *kind)
{
	if (!strncmp(path, "/SYSV", 5))
		*kind = SHM_SYSV;
	else if (!strncmp(path, "/memfd:", 7))
		*kind = SHM_MEMFD;
	else if (!strncmp(path, "/dev/zero", 9) || !strncmp(path, "[anon_shmem:", 12))
		*kind = SHM_ANON;
	else
		return false;
	return true;
}

static void name_of_path(char *name, size_t size, const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path);

	if (len > sizeof(deleted) - 1 && !strcmp(path + len - sizeof(deleted) + 1, deleted))
		len -= sizeof(deleted) - 1;
	snprintf(name, size, "%.*s", (int)(len < size ? len : size - 1), path);
	shm_plain_text(name);
}

static int add_known(struct task_scan *scan, enum shm_kind kind, uint64_t ino, const char *path,
		     const struct shm_ref *ref)
{
	struct shm_object key = { .kind = kind, .ino = ino }, *object;
	int ret;

	if (kind == SHM_SYSV)
		key.ipc_ns = scan->ipc_ns;
	name_of_path(key.name, sizeof(key.name), path);
	ret = objects_add(scan->objects, &key, &object);
	return ret ? ret : object_add_ref(object, ref);
}

/* A shared mapping of some other file system: tmpfs and hugetlb get a line. */
static int other_vma(struct task_scan *scan, const struct proc_vma *vma)
{
	char type[32];
	enum shm_kind kind;
	int ret;

	if (!vma->shared || !vma->ino)
		return 0;
	ret = proc_fs_type(scan->pid, vma->dev, type, sizeof(type));
	if (ret)
		return ret;
	/* Huge pages without a mount point of their own: the kernel's internal mount. */
	if (!*type && (!strncmp(vma->path, "/anon_hugepage", 14) || kind_of_path(vma->path, &kind)))
		snprintf(type, sizeof(type), "hugetlbfs");
	if (!strcmp(type, "hugetlbfs"))
		return say_left_alone(scan->objects, scan->pid, vma->dev, vma->ino, vma->path,
				      "hugetlb memory is never swapped");
	if (!strcmp(type, "tmpfs"))
		return say_left_alone(scan->objects, scan->pid, vma->dev, vma->ino, vma->path,
				      "file on tmpfs, not in CRIU's memory images");
	return 0;
}

static int scan_vma(const struct proc_vma *vma, void *arg)
{
	struct task_scan *scan = arg;
	struct shm_ref ref = {
		.pid = scan->pid,
		.image_pid = scan->image_pid,
		.fd = -1,
		.start = vma->start,
		.end = vma->end,
		.offset = vma->offset,
		.locked = vma->locked,
	};
	enum shm_kind kind;
	int ret = 0;

	if (*vma->path != '/' && strncmp(vma->path, "[anon_shmem:", 12))
		return 0;
	if (vma->dev != scan->objects->dev)
		return other_vma(scan, vma);
	if (!kind_of_path(vma->path, &kind))
		return 0;
	if (vma->locked)
		ret = say_left_alone(scan->objects, scan->pid, vma->dev, vma->ino, vma->path,
				     "mlocked mapping");
	return ret ? ret : add_known(scan, kind, vma->ino, vma->path, &ref);
}

static int scan_fd(struct task_scan *scan, int dir, const char *name)
{
	struct shm_ref ref = { .pid = scan->pid, .image_pid = scan->image_pid };
	char path[300];
	struct stat st;
	ssize_t len;

	len = readlinkat(dir, name, path, sizeof(path) - 1);
	if (len < 0)
		return errno == ENOENT ? 0 : -errno;
	path[len] = '\0';
	if (strncmp(path, "/memfd:", 7))
		return 0;
	if (fstatat(dir, name, &st, 0))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_dev != scan->objects->dev) {
		char type[32];
		int ret = proc_fs_type(scan->pid, st.st_dev, type, sizeof(type));

		/* A file of that name on an ordinary file system is mounted somewhere. */
		if (ret || *type)
			return ret;
		return say_left_alone(scan->objects, scan->pid, st.st_dev, st.st_ino, path,
				      "hugetlb memory is never swapped");
	}
	ref.fd = (int)strtol(name, NULL, 10);
	return add_known(scan, SHM_MEMFD, st.st_ino, path, &ref);
}

static int scan_fds(struct task_scan *scan)
{
	struct dirent *entry = NULL;
	int fd, ret = 0;
	DIR *dir;

	fd = proc_open(scan->pid, O_RDONLY | O_DIRECTORY, "fd");
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		ret = -errno;
		close(fd);
		return ret;
	}
	while (!ret && (errno = 0, entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ret = scan_fd(scan, fd, entry->d_name);
	if (!entry && errno)
		ret = -errno;
	closedir(dir);
	return ret;
}

/**
 * objects_add_task() - Add the objects of one task
 * @objects:	extended
 * @pid:	the task
 *
 * Return: 0 on success, -ESRCH or -ENOENT when the task has gone, other
 *	   negative error code
 */
int objects_add_task(struct shm_objects *objects, pid_t pid)
{
	struct task_scan scan = { .objects = objects, .pid = pid };
	struct proc_status status;
	int ret;

	ret = objects_dev(objects);
	if (!ret)
		ret = proc_status(pid, &status);
	if (!ret)
		ret = proc_ns_ino(pid, "ipc", &scan.ipc_ns);
	if (ret)
		return ret;
	scan.image_pid = status.image_pid;
	ret = proc_for_each_vma(pid, status.locked ? PROC_SMAPS : PROC_MAPS, scan_vma, &scan);
	return ret ? ret : scan_fds(&scan);
}

static int add_segment(int id, void *arg)
{
	struct task_scan *scan = arg;
	struct shm_object key = {
		.kind = SHM_SYSV,
		.ino = (uint64_t)id,
		.ipc_ns = scan->ipc_ns,
	}, *object;

	snprintf(key.name, sizeof(key.name), "/SYSV id %d", id);
	return objects_add(scan->objects, &key, &object);
}

/**
 * objects_add_detached() - Add segments that no task has attached
 * @objects:	extended; the attached ones must be in it already
 * @pid:	a task; nothing is added when it shares our IPC namespace, whose
 *		segments CRIU does not dump
 *
 * Return: 0 on success, negative error code
 */
int objects_add_detached(struct shm_objects *objects, pid_t pid)
{
	struct task_scan scan = { .objects = objects, .pid = pid };
	uint64_t own = 0;
	int ret;

	ret = proc_ns_ino(pid, "ipc", &scan.ipc_ns);
	if (!ret)
		ret = proc_ns_ino(PROC_SELF, "ipc", &own);
	if (ret || own == scan.ipc_ns)
		return ret;
	objects->ipc_pid = pid;
	return sysv_for_each(pid, add_segment, &scan);
}

/**
 * object_open_ref() - Open what a task's reference leads to
 * @objects:	dev must be known
 * @ref:	pid and fd, or pid and the exact bounds of a mapping
 *
 * Return: read-only descriptor of a shmem object, -ESTALE when something else
 *	   is there by now, other negative error code
 */
int object_open_ref(const struct shm_objects *objects, const struct shm_ref *ref)
{
	struct stat st;
	int fd;

	/* Opening a descriptor of the wrong type could block: look first. */
	if (ref->fd >= 0) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)ref->pid, ref->fd);
		if (stat(path, &st))
			return -errno;
		if (st.st_dev != objects->dev || !S_ISREG(st.st_mode))
			return -ESTALE;
		fd = proc_open(ref->pid, O_RDONLY, "fd/%d", ref->fd);
	} else {
		fd = proc_open(ref->pid, O_RDONLY, "map_files/%" PRIx64 "-%" PRIx64, ref->start,
			       ref->end);
	}
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || st.st_dev != objects->dev || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* Closes the descriptor when it leads to something else. */
static int check_same(const struct shm_objects *objects, struct shm_object *object, int fd)
{
	struct stat st;
	int ret = 0;

	if (fstat(fd, &st))
		ret = -errno;
	else if (st.st_dev != objects->dev)
		ret = -EOPNOTSUPP;
	else if (st.st_ino != object->ino || st.st_size < 0)
		ret = -ESTALE;
	if (ret) {
		close(fd);
		return ret;
	}
	object->size = (uint64_t)st.st_size;
	return fd;
}

/**
 * object_open() - Open a live object through any of its references
 * @objects:	the list it is in
 * @object:	size is filled
 *
 * Return: read-only descriptor, -EOPNOTSUPP for huge pages, other negative
 *	   error code of the last try
 */
int object_open(struct shm_objects *objects, struct shm_object *object)
{
	int fd = -ESRCH;

	if (!object->nr_refs) {
		fd = sysv_open(objects->ipc_pid, (int)object->ino);
		return fd < 0 ? fd : check_same(objects, object, fd);
	}
	for (size_t i = 0; i < object->nr_refs; i++) {
		fd = object_open_ref(objects, &object->ref[i]);
		if (fd >= 0)
			fd = check_same(objects, object, fd);
		if (fd >= 0)
			break;
	}
	return fd;
}
