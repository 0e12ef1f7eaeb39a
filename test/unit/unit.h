/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unit.h - what the unit tests share
 *
 * A test that cannot run here says why with SKIP(). Random data comes from a
 * fixed seed; SEED=N in the environment chooses another, and CHECK() prints it.
 * A program that defines UNIT_CAPTURE_LOG gets the messages of the code under
 * test in unit_log instead of on stderr.
 */
#ifndef SHP_UNIT_H
#define SHP_UNIT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define SKIP(...)                                                                                  \
	do {                                                                                       \
		print_message("skip: " __VA_ARGS__);                                               \
		print_message("\n");                                                               \
		skip();                                                                            \
	} while (0)

/* Exit status of a test program: 0 or 1. */
#define RUN_TESTS(tests) (cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0)

static inline uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* valgrind 3.19 does not know cachestat and PAGEMAP_SCAN. */
static inline bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

/* The address sanitizer makes mlock() do nothing. */
static inline bool lock_memory(void *start, size_t size)
{
	return !syscall(SYS_mlock, start, size);
}

/* Random numbers: xorshift, good enough to make cases with. */
struct rng {
	uint64_t seed;
	uint64_t state;
};

static inline struct rng rng_start(void)
{
	const char *text = getenv("SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

	return (struct rng){ seed, seed * 0x9e3779b97f4a7c15ULL | 1 };
}

static inline uint64_t rng_below(struct rng *rng, uint64_t limit)
{
	rng->state ^= rng->state << 13;
	rng->state ^= rng->state >> 7;
	rng->state ^= rng->state << 17;
	return (rng->state >> 11) % limit;
}

#define CHECK(rng, condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_msg("%s, with SEED=%" PRIu64, #condition, (rng)->seed);               \
	} while (0)

/* A directory of one's own: cmocka setup and teardown; *state is its path. */

static inline int setup_dir(void **state)
{
	const char *base = getenv("TMPDIR");
	char *path = NULL;

	if (asprintf(&path, "%s/shmem-unit-XXXXXX", base ? base : "/tmp") < 0)
		return -1;
	if (!mkdtemp(path)) {
		free(path);
		return -1;
	}
	*state = path;
	return 0;
}

static inline int teardown_dir(void **state)
{
	char *path = *state;
	struct dirent *entry;
	DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir)))
		if (unlinkat(dirfd(dir), entry->d_name, 0))
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	if (dir)
		closedir(dir);
	rmdir(path);
	free(path);
	return 0;
}

static inline int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static inline void write_file_at(int dir, const char *name, const void *data, size_t size)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
}

/*
 * Runs a function in a child, for what must not touch this process: mounts,
 * limits, users. Its result (0 to 255) is returned; -1 when it was killed, as
 * it is after @seconds. cmocka's asserts do not work in a child.
 */
static inline int in_child(int (*fn)(void *arg), void *arg, unsigned int seconds)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		alarm(seconds);
		_exit(fn(arg));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/*
 * Starts a task that prepares itself with @fn, then stands still until
 * task_stop(), or until its parent ends. Its pid; -1 when @fn did not return 0.
 */
static inline pid_t task_start(int (*fn)(void *arg), void *arg)
{
	char ready = 0;
	int pipe_fd[2];
	pid_t pid;

	if (pipe2(pipe_fd, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fn(arg) || write(pipe_fd[1], &ready, 1) != 1)
			_exit(1);
		close(pipe_fd[1]);
		for (;;)
			pause();
	}
	close(pipe_fd[1]);
	if (pid > 0 && read(pipe_fd[0], &ready, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(pipe_fd[0]);
	return pid;
}

static inline void task_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#ifdef UNIT_CAPTURE_LOG

#include "criu-plugin-abi.h"

static char unit_log[8192];

static inline void log_clear(void)
{
	*unit_log = '\0';
}

static inline unsigned int log_count(const char *text)
{
	unsigned int count = 0;

	for (const char *at = unit_log; (at = strstr(at, text)); at += strlen(text))
		count++;
	return count;
}

/* log.c prefers CRIU's function where there is one. */
void print_on_level(unsigned int level, const char *format, ...)
{
	size_t used = strlen(unit_log);
	va_list ap;

	(void)level;
	va_start(ap, format);
	vsnprintf(unit_log + used, sizeof(unit_log) - used, format, ap);
	va_end(ap);
}

#endif

#endif
