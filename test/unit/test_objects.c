// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_objects.c - which shared memory a task has, on tasks made for it
 *
 * Most tests make something in this process and look at it through /proc like
 * at any other task.
 */
#define UNIT_CAPTURE_LOG
#include "unit.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/vfs.h>

#include "objects.h"

#define TMPFS_SUPER_MAGIC 0x01021994

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static const unsigned int pages = 8;

static size_t bytes(unsigned int nr)
{
	return nr * page_size();
}

/* A memfd of @pages pages; ino is filled. */
static int make_memfd(const char *name, uint64_t *ino)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes(pages)), 0);
	assert_int_equal(fstat(fd, &st), 0);
	*ino = st.st_ino;
	return fd;
}

static void *map_fd(int fd, unsigned int nr, unsigned int offset, int flags)
{
	void *map = mmap(NULL, bytes(nr), PROT_READ | PROT_WRITE, flags, fd, (off_t)bytes(offset));

	assert_ptr_not_equal(map, MAP_FAILED);
	return map;
}

static void scan_self(struct shm_objects *objects)
{
	*objects = (struct shm_objects){ 0 };
	log_clear();
	assert_int_equal(objects_add_task(objects, getpid()), 0);
}

static struct shm_object *find(const struct shm_objects *objects, bool sysv, uint64_t ino)
{
	struct shm_object *found = NULL;

	for (size_t i = 0; i < objects->nr; i++) {
		struct shm_object *object = objects->object[i];

		if (object->ino != ino || (object->kind == SHM_SYSV) != sysv)
			continue;
		assert_null(found);
		found = object;
	}
	return found;
}

/* The object that a mapping belongs to, and the reference for it. */
static struct shm_object *find_map(const struct shm_objects *objects, const void *map,
				   struct shm_ref *ref)
{
	for (size_t i = 0; i < objects->nr; i++)
		for (size_t k = 0; k < objects->object[i]->nr_refs; k++) {
			*ref = objects->object[i]->ref[k];
			if (ref->fd < 0 && ref->start == (uintptr_t)map)
				return objects->object[i];
		}
	return NULL;
}

static unsigned int refs_of(const struct shm_object *object, pid_t pid, bool fd)
{
	unsigned int nr = 0;

	for (size_t i = 0; i < object->nr_refs; i++)
		nr += object->ref[i].pid == pid && (object->ref[i].fd >= 0) == fd;
	return nr;
}

/* Opening leads to the object itself, with its size. */
static void check_open(struct shm_objects *objects, struct shm_object *object, uint64_t size)
{
	int fd = object_open(objects, object);
	struct stat st;

	if (fd == -EPERM && geteuid()) {
		print_message("skip: opening map_files needs privileges\n");
		return;
	}
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, object->ino);
	assert_int_equal(object->size, size);
	close(fd);
}

static void check_ref(const struct shm_ref *ref, const void *map, unsigned int nr,
		      unsigned int offset)
{
	assert_int_equal(ref->pid, getpid());
	assert_int_equal(ref->start, (uintptr_t)map);
	assert_int_equal(ref->end - ref->start, bytes(nr));
	assert_int_equal(ref->offset, bytes(offset));
}

static void test_anonymous(void **state)
{
	void *map = map_fd(-1, pages, 0, MAP_SHARED | MAP_ANONYMOUS);
	void *private = map_fd(-1, pages, 0, MAP_PRIVATE | MAP_ANONYMOUS);
	struct shm_objects objects;
	struct shm_object *object;
	struct shm_ref ref;

	(void)state;
	scan_self(&objects);
	object = find_map(&objects, map, &ref);
	assert_non_null(object);
	assert_int_equal(object->kind, SHM_ANON);
	assert_int_equal(object->nr_refs, 1);
	assert_string_equal(object->name, "/dev/zero");
	assert_int_equal(object->ipc_ns, 0);
	assert_false(object->recorded);
	assert_false(ref.locked);
	check_ref(&ref, map, pages, 0);
	assert_null(find_map(&objects, private, &ref));
	check_open(&objects, object, bytes(pages));
	objects_free(&objects);
	munmap(map, bytes(pages));
	munmap(private, bytes(pages));
}

/* prctl() gives it another path in /proc/PID/maps. */
static void test_named_anonymous(void **state)
{
	void *map = map_fd(-1, pages, 0, MAP_SHARED | MAP_ANONYMOUS);
	struct shm_objects objects;
	struct shm_object *object;
	struct shm_ref ref;

	(void)state;
	if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, map, bytes(pages), "a name")) {
		munmap(map, bytes(pages));
		SKIP("no names for anonymous memory here");
	}
	scan_self(&objects);
	object = find_map(&objects, map, &ref);
	assert_non_null(object);
	assert_int_equal(object->kind, SHM_ANON);
	objects_free(&objects);
	munmap(map, bytes(pages));
}

/* Parts, twice, privately, by descriptor: one object. */
static void test_memfd(void **state)
{
	struct shm_object *object;
	struct shm_objects objects;
	uint64_t ino;
	int fd = make_memfd("whole and parts", &ino), second = dup(fd);
	void *whole = map_fd(fd, pages, 0, MAP_SHARED), *again = map_fd(fd, pages, 0, MAP_SHARED);
	void *part = map_fd(fd, 2, 3, MAP_SHARED), *private = map_fd(fd, 3, 5, MAP_PRIVATE);
	struct shm_ref ref;

	(void)state;
	scan_self(&objects);
	object = find(&objects, false, ino);
	assert_non_null(object);
	assert_int_equal(object->kind, SHM_MEMFD);
	assert_string_equal(object->name, "/memfd:whole and parts");
	assert_ptr_equal(find_map(&objects, whole, &ref), object);
	check_ref(&ref, whole, pages, 0);
	assert_ptr_equal(find_map(&objects, again, &ref), object);
	assert_ptr_equal(find_map(&objects, part, &ref), object);
	check_ref(&ref, part, 2, 3);
	if (find_map(&objects, private, &ref))
		check_ref(&ref, private, 3, 5);
	assert_in_range(refs_of(object, getpid(), false), 3, 4);
	assert_int_equal(refs_of(object, getpid(), true), 2);
	check_open(&objects, object, bytes(pages));
	objects_free(&objects);
	munmap(whole, bytes(pages));
	munmap(again, bytes(pages));
	munmap(part, bytes(2));
	munmap(private, bytes(3));
	close(second);
	close(fd);
}

static void test_memfd_unmapped(void **state)
{
	struct shm_objects objects;
	struct shm_object *object;
	uint64_t ino;
	int fd = make_memfd("only held", &ino);

	(void)state;
	scan_self(&objects);
	object = find(&objects, false, ino);
	assert_non_null(object);
	assert_int_equal(object->nr_refs, 1);
	assert_int_equal(object->ref[0].fd, fd);
	assert_int_equal(object->ref[0].pid, getpid());
	check_open(&objects, object, bytes(pages));
	/* By now the descriptor may lead elsewhere. */
	assert_int_equal(dup2(0, fd), fd);
	assert_true(object_open(&objects, object) < 0);
	close(fd);
	assert_true(object_open(&objects, object) < 0);
	objects_free(&objects);
}

/* A FIFO without a writer: opening it would wait for one for ever. */
static int open_fifo(void *path)
{
	struct shm_objects objects = { 0 };
	struct shm_ref ref = { .pid = getpid() };

	ref.fd = open(path, O_RDONLY | O_NONBLOCK);
	if (ref.fd < 0 || objects_dev(&objects))
		return 1;
	return object_open_ref(&objects, &ref) == -ESTALE ? 0 : 1;
}

static void test_fifo(void **state)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/fifo", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(in_child(open_fifo, path, 20), 0);
}

/* Unmapped, or something else mapped there. */
static void test_stale_mapping(void **state)
{
	void *map = map_fd(-1, pages, 0, MAP_SHARED | MAP_ANONYMOUS);
	struct shm_objects objects;
	struct shm_object *object;
	struct shm_ref ref;

	(void)state;
	scan_self(&objects);
	object = find_map(&objects, map, &ref);
	assert_non_null(object);
	assert_ptr_equal(
		mmap(map, bytes(pages), PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		map);
	assert_true(object_open(&objects, object) < 0);
	munmap(map, bytes(pages));
	assert_true(object_open(&objects, object) < 0);
	objects_free(&objects);
}

static int make_segment(void)
{
	return shmget(IPC_PRIVATE, bytes(pages), IPC_CREAT | 0600);
}

static void test_sysv(void **state)
{
	struct shm_objects objects;
	struct shm_object *object;
	void *first, *second;
	int id = make_segment();
	struct shm_ref ref;

	(void)state;
	if (id < 0)
		SKIP("shmget: %s", strerror(errno));
	first = shmat(id, NULL, 0);
	second = shmat(id, NULL, SHM_RDONLY);
	/* From now on it goes with its last attachment. */
	shmctl(id, IPC_RMID, NULL);
	scan_self(&objects);
	object = find(&objects, true, (uint64_t)id);
	assert_non_null(object);
	assert_int_equal(object->nr_refs, 2);
	assert_true(object->ipc_ns != 0);
	assert_int_equal(strncmp(object->name, "/SYSV", 5), 0);
	assert_null(strstr(object->name, "deleted"));
	assert_ptr_equal(find_map(&objects, first, &ref), object);
	check_ref(&ref, first, pages, 0);
	assert_ptr_equal(find_map(&objects, second, &ref), object);
	check_ref(&ref, second, pages, 0);
	check_open(&objects, object, bytes(pages));
	objects_free(&objects);
	shmdt(first);
	shmdt(second);
}

struct shared {
	int fd;
	void *map;
};

static int open_again(void *arg)
{
	struct shared *shared = arg;

	return map_fd(shared->fd, 1, 2, MAP_SHARED) ? 0 : 1;
}

/* A child has what it inherited, and a mapping of its own. */
static void test_several_tasks(void **state)
{
	struct shm_objects objects;
	struct shm_object *object;
	struct shared shared;
	uint64_t ino;
	pid_t pid;

	(void)state;
	shared.fd = make_memfd("family", &ino);
	shared.map = map_fd(shared.fd, pages, 0, MAP_SHARED);
	pid = task_start(open_again, &shared);
	assert_true(pid > 0);
	scan_self(&objects);
	assert_int_equal(objects_add_task(&objects, pid), 0);
	object = find(&objects, false, ino);
	assert_non_null(object);
	assert_int_equal(refs_of(object, getpid(), false), 1);
	assert_int_equal(refs_of(object, getpid(), true), 1);
	assert_int_equal(refs_of(object, pid, false), 2);
	assert_int_equal(refs_of(object, pid, true), 1);
	for (size_t i = 0; i < object->nr_refs; i++)
		assert_int_equal(object->ref[i].image_pid, object->ref[i].pid);
	check_open(&objects, object, bytes(pages));
	/* When one of them has gone, the other still leads there. */
	object->ref[0] = object->ref[object->nr_refs - 1];
	task_stop(pid);
	check_open(&objects, object, bytes(pages));
	assert_true(objects_add_task(&objects, pid) < 0);
	objects_free(&objects);
	munmap(shared.map, bytes(pages));
	close(shared.fd);
}

static void test_locked(void **state)
{
	unsigned char *map = map_fd(-1, pages, 0, MAP_SHARED | MAP_ANONYMOUS);
	struct shm_objects objects;
	struct shm_object *object;
	struct shm_ref ref;

	(void)state;
	if (!lock_memory(map + bytes(2), bytes(1))) {
		munmap(map, bytes(pages));
		SKIP("mlock: %s", strerror(errno));
	}
	scan_self(&objects);
	object = find_map(&objects, map + bytes(2), &ref);
	assert_non_null(object);
	assert_true(ref.locked);
	check_ref(&ref, map + bytes(2), 1, 2);
	assert_ptr_equal(find_map(&objects, map, &ref), object);
	assert_false(ref.locked);
	check_ref(&ref, map, 2, 0);
	assert_ptr_equal(find_map(&objects, map + bytes(3), &ref), object);
	assert_false(ref.locked);
	assert_int_equal(object->nr_refs, 3);
	assert_int_equal(log_count("mlocked"), 1);
	objects_free(&objects);
	munmap(map, bytes(pages));
}

/* Files on a mounted tmpfs are recognised, said once, and not taken. */
static void test_tmpfs_file(void **state)
{
	struct shm_objects objects;
	struct statfs fs;
	void *map, *again;
	char path[64];
	struct stat st;
	int fd;

	(void)state;
	if (statfs("/dev/shm", &fs) || fs.f_type != TMPFS_SUPER_MAGIC)
		SKIP("/dev/shm is no tmpfs");
	snprintf(path, sizeof(path), "/dev/shm/unit-%d", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes(pages)), 0);
	assert_int_equal(fstat(fd, &st), 0);
	map = map_fd(fd, pages, 0, MAP_SHARED);
	again = map_fd(fd, pages, 0, MAP_SHARED);
	unlink(path);
	scan_self(&objects);
	assert_int_equal(objects_add_task(&objects, getpid()), 0);
	for (size_t i = 0; i < objects.nr; i++)
		assert_null(strstr(objects.object[i]->name, path));
	assert_null(find(&objects, false, st.st_ino));
	assert_int_equal(log_count(path), 1);
	assert_int_equal(log_count("left alone"), 1);
	objects_free(&objects);
	munmap(map, bytes(pages));
	munmap(again, bytes(pages));
	close(fd);
}

/* A file may look like a memfd by name. */
static void test_lookalike(void **state)
{
	struct shm_objects objects;
	char path[512];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s/memfd:x", (char *)*state);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes(pages)), 0);
	map = map_fd(fd, pages, 0, MAP_SHARED);
	scan_self(&objects);
	for (size_t i = 0; i < objects.nr; i++)
		assert_null(strstr(objects.object[i]->name, "memfd:x"));
	objects_free(&objects);
	munmap(map, bytes(pages));
	close(fd);
}

/* Names go to logs and terminals, and a memfd is named by its task. */
static void test_control_characters(void **state)
{
	struct shm_objects objects;
	struct shm_object *object;
	uint64_t ino;
	int fd = make_memfd("a\033[31m\r\nb\x7f", &ino);
	void *map = map_fd(fd, pages, 0, MAP_SHARED);

	(void)state;
	scan_self(&objects);
	object = find(&objects, false, ino);
	assert_non_null(object);
	for (const char *c = object->name; *c; c++)
		assert_in_range((unsigned char)*c, ' ', 0x7e);
	objects_free(&objects);
	munmap(map, bytes(pages));
	close(fd);
}

static void test_long_name(void **state)
{
	struct shm_objects objects;
	struct shm_object *object;
	char name[250];
	uint64_t ino;
	int fd;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	fd = make_memfd(name, &ino);
	scan_self(&objects);
	object = find(&objects, false, ino);
	assert_non_null(object);
	assert_int_equal(strlen(object->name), sizeof(object->name) - 1);
	objects_free(&objects);
	close(fd);
}

/* CRIU does not dump the segments of its own IPC namespace. */
static void test_detached_own_namespace(void **state)
{
	struct shm_objects objects = { 0 };
	int id = make_segment();

	(void)state;
	if (id < 0)
		SKIP("shmget: %s", strerror(errno));
	assert_int_equal(objects_add_detached(&objects, getpid()), 0);
	assert_int_equal(objects.nr, 0);
	shmctl(id, IPC_RMID, NULL);
}

/* Two segments, one attached; their ids go to shared memory. */
static int other_namespace(void *arg)
{
	int *id = arg;

	if (unshare(CLONE_NEWIPC))
		return 1;
	id[0] = make_segment();
	id[1] = make_segment();
	return shmat(id[1], NULL, 0) == (void *)-1;
}

static void test_detached(void **state)
{
	struct shm_objects objects = { 0 };
	uint64_t before, after;
	struct shm_object *object;
	struct stat st;
	int *id;
	pid_t pid;

	(void)state;
	if (geteuid())
		SKIP("an IPC namespace needs root");
	id = map_fd(-1, 1, 0, MAP_SHARED | MAP_ANONYMOUS);
	pid = task_start(other_namespace, id);
	if (pid < 0)
		SKIP("cannot make an IPC namespace");
	assert_int_equal(stat("/proc/self/ns/ipc", &st), 0);
	before = st.st_ino;
	assert_int_equal(objects_add_task(&objects, pid), 0);
	assert_int_equal(objects_add_detached(&objects, pid), 0);
	object = find(&objects, true, (uint64_t)id[0]);
	assert_non_null(object);
	assert_int_equal(object->nr_refs, 0);
	check_open(&objects, object, bytes(pages));
	object = find(&objects, true, (uint64_t)id[1]);
	assert_non_null(object);
	assert_int_equal(object->nr_refs, 1);
	check_open(&objects, object, bytes(pages));
	assert_int_equal(stat("/proc/self/ns/ipc", &st), 0);
	after = st.st_ino;
	assert_int_equal(before, after);
	objects_free(&objects);
	task_stop(pid);
	munmap(id, bytes(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anonymous),
		cmocka_unit_test(test_named_anonymous),
		cmocka_unit_test(test_memfd),
		cmocka_unit_test(test_memfd_unmapped),
		cmocka_unit_test_setup_teardown(test_fifo, setup_dir, teardown_dir),
		cmocka_unit_test(test_stale_mapping),
		cmocka_unit_test(test_sysv),
		cmocka_unit_test(test_several_tasks),
		cmocka_unit_test(test_locked),
		cmocka_unit_test(test_tmpfs_file),
		cmocka_unit_test_setup_teardown(test_lookalike, setup_dir, teardown_dir),
		cmocka_unit_test(test_control_characters),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_detached_own_namespace),
		cmocka_unit_test(test_detached),
	};

	return RUN_TESTS(tests);
}
