// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_proc.c - what is read from /proc, on real processes made for it
 */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "proc.h"

/* Mappings. */

struct find {
	uint64_t start; /* wanted */
	struct proc_vma vma;
	char path[512];
	unsigned int seen;
	uint64_t last; /* end of the one before */
	bool ordered;
	unsigned int stop_at;
};

static int find_vma(const struct proc_vma *vma, void *arg)
{
	struct find *find = arg;

	find->seen++;
	if (vma->start < find->last || vma->start >= vma->end)
		find->ordered = false;
	find->last = vma->end;
	if (vma->start == find->start) {
		find->vma = *vma;
		snprintf(find->path, sizeof(find->path), "%s", vma->path);
	}
	return find->seen == find->stop_at ? 7 : 0;
}

static void look_up(pid_t pid, enum proc_maps maps, const void *address, struct find *find)
{
	*find = (struct find){ .start = (uintptr_t)address };
	assert_int_equal(proc_for_each_vma(pid, maps, find_vma, find), 0);
	assert_int_equal(find->vma.start, (uintptr_t)address);
}

static void *map_file(int fd, uint64_t pages, uint64_t offset, int flags)
{
	void *map = mmap(NULL, pages * page_size(), PROT_READ, flags, fd,
			 (off_t)(offset * page_size()));

	assert_ptr_not_equal(map, MAP_FAILED);
	return map;
}

/* @exact: the file system shows the same inode in maps and stat; overlayfs does not. */
static void check_file_vma(int fd, const void *map, bool shared, bool exact, const char *path)
{
	struct stat st;
	struct find find;

	assert_int_equal(fstat(fd, &st), 0);
	for (int i = 0; i < 4; i++) {
		look_up(i & 1 ? getpid() : PROC_SELF, i & 2 ? PROC_SMAPS : PROC_MAPS, map, &find);
		assert_int_equal(find.vma.end - find.vma.start, 2 * page_size());
		assert_int_equal(find.vma.offset, 3 * page_size());
		if (exact) {
			assert_int_equal(find.vma.ino, st.st_ino);
			assert_int_equal(find.vma.dev, st.st_dev);
		}
		assert_int_equal(find.vma.shared, shared);
		assert_false(find.vma.locked);
		if (path)
			assert_string_equal(find.path, path);
	}
}

static void test_file_mapping(void **state)
{
	char path[512], wanted[600];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s/with two  blanks\nand a line", (char *)*state);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(5 * page_size())), 0);
	map = map_file(fd, 2, 3, MAP_SHARED);
	snprintf(wanted, sizeof(wanted), "%s/with two  blanks\\012and a line", (char *)*state);
	check_file_vma(fd, map, true, false, wanted);
	assert_int_equal(unlink(path), 0);
	strcat(wanted, " (deleted)");
	check_file_vma(fd, map, true, false, wanted);
	munmap(map, 2 * page_size());
	map = map_file(fd, 2, 3, MAP_PRIVATE);
	check_file_vma(fd, map, false, false, NULL);
	munmap(map, 2 * page_size());
	close(fd);
}

static void test_memfd_mapping(void **state)
{
	int fd = memfd_create("a name (deleted)\n7f00-7f01 rw-s", MFD_CLOEXEC);
	void *map;

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)(5 * page_size())), 0);
	map = map_file(fd, 2, 3, MAP_SHARED);
	check_file_vma(fd, map, true, true, "/memfd:a name (deleted)\\0127f00-7f01 rw-s (deleted)");
	munmap(map, 2 * page_size());
	close(fd);
}

static void test_anonymous_mapping(void **state)
{
	size_t size = page_size();
	char *map = mmap(NULL, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct find find;

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	/* Other rights than its neighbours, lest the kernel joins it to them. */
	assert_int_equal(mprotect(map + size, size, PROT_READ), 0);
	look_up(PROC_SELF, PROC_MAPS, map + size, &find);
	assert_string_equal(find.path, "");
	assert_int_equal(find.vma.end - find.vma.start, size);
	assert_int_equal(find.vma.ino, 0);
	assert_false(find.vma.shared);
	munmap(map, 3 * size);
}

static void test_locked(void **state)
{
	size_t size = page_size();
	unsigned char *map =
		mmap(NULL, 3 * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct proc_status status;
	struct find find;

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(proc_status(PROC_SELF, &status), 0);
	assert_int_equal(status.locked, 0);
	if (!lock_memory(map + size, size))
		SKIP("mlock: %s", strerror(errno));
	assert_int_equal(proc_status(getpid(), &status), 0);
	assert_int_equal(status.locked, size);
	for (int i = 0; i < 3; i++) {
		look_up(PROC_SELF, PROC_SMAPS, map + i * size, &find);
		assert_int_equal(find.vma.locked, i == 1);
		assert_non_null(strstr(find.path, "/dev/zero"));
	}
	look_up(PROC_SELF, PROC_MAPS, map + size, &find);
	assert_false(find.vma.locked);
	munmap(map, 3 * size);
}

/* Tasks. */

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/*
 * A result other than 0 ends the walk, and is the result. The task stands
 * still: one that walks its own mappings may change them meanwhile.
 */
static void test_stop(void **state)
{
	pid_t pid = task_start(nothing, NULL);
	uint64_t last = 0;

	(void)state;
	assert_true(pid > 0);
	for (int maps = PROC_MAPS; maps <= PROC_SMAPS; maps++) {
		struct find all = { .ordered = true }, some = { .stop_at = 3 };

		assert_int_equal(proc_for_each_vma(pid, (enum proc_maps)maps, find_vma, &all), 0);
		assert_true(all.seen > 5 && all.ordered);
		assert_int_equal(proc_for_each_vma(pid, (enum proc_maps)maps, find_vma, &some), 7);
		assert_int_equal(some.seen, 3);
		/* The last one too: smaps keeps it until the end of the file. */
		assert_true(!last || all.last == last);
		last = all.last;
		some = (struct find){ .stop_at = all.seen };
		assert_int_equal(proc_for_each_vma(pid, (enum proc_maps)maps, find_vma, &some), 7);
	}
	task_stop(pid);
}

static void test_status(void **state)
{
	struct proc_status status;
	pid_t pid;

	(void)state;
	pid = task_start(nothing, NULL);
	assert_true(pid > 0);
	assert_int_equal(proc_status(pid, &status), 0);
	assert_false(status.dying);
	assert_int_equal(status.locked, 0);
	assert_int_equal(status.image_pid, pid);
	kill(pid, SIGKILL);
	/* A zombie: gone in all but name. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_status(pid, &status), 0);
	assert_true(status.dying);
	waitpid(pid, NULL, 0);
}

static int odd_name(void *name)
{
	return prctl(PR_SET_NAME, name);
}

/* A name that looks like what is searched for. */
static void test_odd_name(void **state)
{
	/* A zombie in /proc/PID/stat; lines of /proc/PID/status. */
	static char name[][16] = { ")Z 1 1 1 1 1 4", "x\nNSpid:\t9", "x\nVmLck: 8 kB" };
	struct proc_status status;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		pid_t pid = task_start(odd_name, name[i]);

		assert_true(pid > 0);
		assert_int_equal(proc_status(pid, &status), 0);
		assert_int_equal(status.image_pid, pid);
		assert_int_equal(status.locked, 0);
		assert_false(status.dying);
		task_stop(pid);
	}
}

static bool is_gone(int ret)
{
	return ret == -ESRCH || ret == -ENOENT;
}

static void test_gone(void **state)
{
	pid_t pid = task_start(nothing, NULL);
	struct find find = { 0 };
	struct proc_status status;
	struct proc_pids pids;
	uint64_t ino;
	char type[8];

	(void)state;
	task_stop(pid);
	assert_true(is_gone(proc_status(pid, &status)));
	assert_true(is_gone(proc_for_each_vma(pid, PROC_MAPS, find_vma, &find)));
	assert_true(is_gone(proc_for_each_vma(pid, PROC_SMAPS, find_vma, &find)));
	assert_true(is_gone(proc_ns_ino(pid, "ipc", &ino)));
	assert_true(is_gone(proc_fs_type(pid, 1, type, sizeof(type))));
	assert_true(is_gone(proc_open(pid, O_RDONLY, "maps")));
	assert_int_equal(find.seen, 0);
	assert_int_equal(proc_tree(pid, &pids), -ESRCH);
	assert_null(pids.pid);
	assert_int_equal(proc_tree(0, &pids), -ESRCH);
	assert_int_equal(proc_tree(-1, &pids), -ESRCH);
}

/* Shared with the tasks of a tree, so that they can tell who they are. */
struct family {
	pid_t pid[5];
	bool failed;
};

static struct family *family;

static int note_self(void *arg)
{
	*(pid_t *)arg = getpid();
	return 0;
}

static int with_child(void *arg)
{
	note_self(arg);
	return task_start(note_self, (pid_t *)arg + 1) > 0 ? 0 : 1;
}

static void *forking_thread(void *done)
{
	if (task_start(with_child, &family->pid[2]) < 0)
		family->failed = true;
	sem_post(done);
	for (;;)
		pause();
	return NULL;
}

/* 0: a child by the main thread (1), one by a thread (2) that has a child (3). */
static int grow_family(void *arg)
{
	static sem_t done;
	pthread_t thread;

	(void)arg;
	note_self(&family->pid[0]);
	if (task_start(note_self, &family->pid[1]) < 0 || sem_init(&done, 0, 0) ||
	    pthread_create(&thread, NULL, forking_thread, &done))
		return 1;
	sem_wait(&done);
	return family->failed;
}

static void test_tree(void **state)
{
	struct proc_pids pids;
	pid_t root;

	(void)state;
	family = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(family, MAP_FAILED);
	root = task_start(grow_family, NULL);
	assert_true(root > 0);
	assert_int_equal(proc_tree(root, &pids), 0);
	task_stop(root);
	assert_int_equal(pids.nr, 4);
	assert_int_equal(pids.pid[0], root);
	assert_int_equal(family->pid[0], root);
	for (int i = 1; i < 4; i++) {
		bool found = false;

		for (size_t k = 0; k < pids.nr; k++)
			found |= pids.pid[k] == family->pid[i];
		assert_true(found);
	}
	proc_pids_free(&pids);
	assert_null(pids.pid);
	munmap(family, page_size());
}

static void test_pids_add(void **state)
{
	struct proc_pids pids = { 0 };

	(void)state;
	for (int i = 1; i <= 1000; i++)
		assert_int_equal(proc_pids_add(&pids, i), 0);
	assert_int_equal(pids.nr, 1000);
	for (int i = 1; i <= 1000; i++)
		assert_int_equal(pids.pid[i - 1], i);
	proc_pids_free(&pids);
	assert_int_equal(pids.nr, 0);
}

/* Namespaces and file systems. */

static int new_pid_namespace(void *arg)
{
	pid_t *pid = arg;

	if (unshare(CLONE_NEWPID))
		return 1;
	/* The new namespace begins with the next child; its pid as seen here. */
	*pid = task_start(nothing, NULL);
	return *pid > 0 ? 0 : 1;
}

static void test_pid_namespace(void **state)
{
	pid_t *inner = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0),
	      outer;
	struct proc_status status;

	(void)state;
	if (geteuid())
		SKIP("a PID namespace needs root");
	outer = task_start(new_pid_namespace, inner);
	if (outer < 0)
		SKIP("cannot make a PID namespace");
	assert_int_equal(proc_status(*inner, &status), 0);
	assert_int_equal(status.image_pid, 1);
	assert_int_equal(proc_status(outer, &status), 0);
	assert_int_equal(status.image_pid, outer);
	task_stop(outer);
	munmap(inner, page_size());
}

static int new_ipc_namespace(void *arg)
{
	(void)arg;
	return unshare(CLONE_NEWIPC);
}

static void test_ns_ino(void **state)
{
	uint64_t own, other = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(proc_ns_ino(PROC_SELF, "ipc", &own), 0);
	assert_true(own > 0);
	assert_int_equal(proc_ns_ino(getpid(), "ipc", &other), 0);
	assert_int_equal(own, other);
	assert_true(is_gone(proc_ns_ino(PROC_SELF, "nothing", &other)));
	if (geteuid())
		SKIP("an IPC namespace needs root");
	pid = task_start(new_ipc_namespace, NULL);
	if (pid < 0)
		SKIP("cannot make an IPC namespace");
	assert_int_equal(proc_ns_ino(pid, "ipc", &other), 0);
	assert_true(own != other);
	task_stop(pid);
}

static void test_fs_type(void **state)
{
	char type[32], small[3];
	int fd = memfd_create("unit", MFD_CLOEXEC);
	struct stat st;

	(void)state;
	assert_int_equal(stat("/proc/self", &st), 0);
	assert_int_equal(proc_fs_type(PROC_SELF, st.st_dev, type, sizeof(type)), 0);
	assert_string_equal(type, "proc");
	assert_int_equal(proc_fs_type(getpid(), st.st_dev, small, sizeof(small)), 0);
	assert_string_equal(small, "pr");
	/* The internal tmpfs is mounted nowhere. */
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	assert_int_equal(proc_fs_type(PROC_SELF, st.st_dev, type, sizeof(type)), 0);
	assert_string_equal(type, "");
}

static void test_open(void **state)
{
	int fd = proc_open(PROC_SELF, O_RDONLY, "task/%d/%s", getpid(), "maps");

	(void)state;
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(proc_open(PROC_SELF, O_RDONLY, "nothing"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_file_mapping, setup_dir, teardown_dir),
		cmocka_unit_test(test_memfd_mapping),
		cmocka_unit_test(test_anonymous_mapping),
		cmocka_unit_test(test_locked),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_odd_name),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_pids_add),
		cmocka_unit_test(test_pid_namespace),
		cmocka_unit_test(test_ns_ino),
		cmocka_unit_test(test_fs_type),
		cmocka_unit_test(test_open),
	};

	return RUN_TESTS(tests);
}
