// SPDX-License-Identifier: GPL-2.0-only
/*
 * proc.c - what /proc tells about a task
 */
#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* include/linux/sched.h: field 9 of /proc/PID/stat. */
#define TASK_EXITING 0x00000004
#define TASK_SIGNALED 0x00000400

#define PROC_PATH_MAX 128

/* maps shows a path of PATH_MAX, its newlines as four characters. */
#define PROC_VMA_PATH_MAX 8192

static void proc_path(char path[PROC_PATH_MAX], pid_t pid, const char *below)
{
	if (pid == PROC_SELF)
		snprintf(path, PROC_PATH_MAX, "/proc/self/%s", below);
	else
		snprintf(path, PROC_PATH_MAX, "/proc/%d/%s", (int)pid, below);
}

/**
 * proc_open() - Open a file below /proc/PID
 * @pid:	the task
 * @flags:	for open(); O_CLOEXEC is added
 * @format:	path below /proc/PID
 *
 * Return: descriptor, negative error code
 */
int proc_open(pid_t pid, int flags, const char *format, ...)
{
	char below[96], path[PROC_PATH_MAX];
	va_list ap;
	int fd;

	va_start(ap, format);
	vsnprintf(below, sizeof(below), format, ap);
	va_end(ap);
	proc_path(path, pid, below);
	do {
		fd = open(path, flags | O_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

static int open_stream(pid_t pid, const char *name, FILE **file)
{
	int fd = proc_open(pid, O_RDONLY, "%s", name);

	if (fd < 0)
		return fd;
	*file = fdopen(fd, "r");
	if (!*file) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return 0;
}

/* Right after a read that has failed or ended: a task that dies gives ESRCH here. */
static int stream_error(FILE *file)
{
	if (!ferror(file))
		return 0;
	return errno ? -errno : -EIO;
}

static int read_small(pid_t pid, const char *name, char *text, size_t size)
{
	int fd = proc_open(pid, O_RDONLY, "%s", name);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	while (len < size - 1) {
		n = read(fd, text + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	n = n < 0 ? -errno : 0;
	close(fd);
	text[len] = '\0';
	return (int)n;
}

static bool flagged_exiting(pid_t pid)
{
	unsigned int flags;
	char text[1024], state, *name_end;

	if (read_small(pid, "stat", text, sizeof(text)))
		return true;
	name_end = strrchr(text, ')');
	if (!name_end || sscanf(name_end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return false;
	return state == 'Z' || state == 'X' || (flags & (TASK_EXITING | TASK_SIGNALED));
}

static void status_line(const char *line, struct proc_status *status)
{
	unsigned long long n;

	if (!strncmp(line, "NSpid:", 6)) {
		const char *last = strrchr(line, '\t');

		if (last)
			status->image_pid = (pid_t)strtol(last, NULL, 10);
	} else if (sscanf(line, "VmLck: %llu", &n) == 1) {
		status->locked = n << 10;
	} else if (sscanf(line, "SigPnd: %llx", &n) == 1 || sscanf(line, "ShdPnd: %llx", &n) == 1) {
		if (n & 1ULL << (SIGKILL - 1))
			status->dying = true;
	}
}

/**
 * proc_status() - What the plugin needs of /proc/PID/status
 * @pid:	the task
 * @status:	filled
 *
 * Return: 0 on success, negative error code
 */
int proc_status(pid_t pid, struct proc_status *status)
{
	char *line = NULL;
	size_t size = 0;
	FILE *file;
	int ret;

	*status = (struct proc_status){ .image_pid = pid };
	ret = open_stream(pid, "status", &file);
	if (ret)
		return ret;
	while (getline(&line, &size, file) >= 0)
		status_line(line, status);
	ret = stream_error(file);
	free(line);
	fclose(file);
	if (!ret && !status->dying)
		status->dying = flagged_exiting(pid);
	return ret;
}

static bool parse_vma(char *line, struct proc_vma *vma)
{
	unsigned int major, minor;
	char perms[8];
	int used = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &vma->start, &vma->end, perms, &vma->offset, &major, &minor, &vma->ino,
		   &used) < 7)
		return false;
	vma->dev = makedev(major, minor);
	vma->shared = perms[3] == 's';
	vma->locked = false;
	vma->path = line + used;
	return used > 0;
}

/* "VmFlags: rd wr sh lo ": two letters each. */
static bool flags_locked(const char *line)
{
	return !strncmp(line, "VmFlags:", 8) && strstr(line, " lo");
}

/* A mapping is known whole only when the next one starts. */
struct smaps_state {
	struct proc_vma vma;
	char path[PROC_VMA_PATH_MAX]; /* the line is gone by then */
	bool pending;
};

static int smaps_flush(struct smaps_state *state, proc_vma_fn fn, void *arg)
{
	bool pending = state->pending;

	state->pending = false;
	return pending ? fn(&state->vma, arg) : 0;
}

static int smaps_line(struct smaps_state *state, char *line, proc_vma_fn fn, void *arg)
{
	struct proc_vma vma;
	int ret;

	if (flags_locked(line)) {
		state->vma.locked = true;
		return 0;
	}
	if (!parse_vma(line, &vma))
		return 0;
	ret = smaps_flush(state, fn, arg);
	snprintf(state->path, sizeof(state->path), "%s", vma.path);
	state->vma = vma;
	state->vma.path = state->path;
	state->pending = true;
	return ret;
}

/**
 * proc_for_each_vma() - Call a function for each mapping of a task
 * @pid:	the task
 * @maps:	PROC_SMAPS when mlocked mappings must be told apart
 * @fn:		called in address order; a result other than 0 ends the walk
 * @arg:	for it
 *
 * Return: 0 on success, what @fn returned, negative error code
 */
int proc_for_each_vma(pid_t pid, enum proc_maps maps, proc_vma_fn fn, void *arg)
{
	struct smaps_state state = { 0 };
	char *line = NULL;
	size_t size = 0;
	FILE *file;
	ssize_t len;
	int ret;

	ret = open_stream(pid, maps == PROC_SMAPS ? "smaps" : "maps", &file);
	if (ret)
		return ret;
	while (!ret) {
		len = getline(&line, &size, file);
		if (len < 0) {
			ret = stream_error(file);
			break;
		}
		if (len && line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (maps == PROC_SMAPS)
			ret = smaps_line(&state, line, fn, arg);
		else if (parse_vma(line, &state.vma))
			ret = fn(&state.vma, arg);
	}
	if (maps == PROC_SMAPS && !ret)
		ret = smaps_flush(&state, fn, arg);
	free(line);
	fclose(file);
	return ret;
}

/**
 * proc_pids_add() - Append a task
 * @pids:	extended
 * @pid:	the task
 *
 * Return: 0 on success, -ENOMEM
 */
int proc_pids_add(struct proc_pids *pids, pid_t pid)
{
	if (pids->nr == pids->cap) {
		size_t cap = pids->cap ? 2 * pids->cap : 16;
		pid_t *grown = reallocarray(pids->pid, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		pids->pid = grown;
		pids->cap = cap;
	}
	pids->pid[pids->nr++] = pid;
	return 0;
}

static bool gone(int ret)
{
	return ret == -ENOENT || ret == -ESRCH;
}

/* A child is listed with the thread that forked it. */
static int add_children_of_thread(struct proc_pids *pids, pid_t pid, const char *tid)
{
	char name[64];
	int ret, child;
	FILE *file;

	snprintf(name, sizeof(name), "task/%.20s/children", tid);
	ret = open_stream(pid, name, &file);
	if (ret)
		return gone(ret) ? 0 : ret;
	while (!ret && fscanf(file, "%d", &child) == 1)
		ret = proc_pids_add(pids, child);
	if (!ret)
		ret = stream_error(file);
	fclose(file);
	return gone(ret) ? 0 : ret;
}

static int add_children(struct proc_pids *pids, pid_t pid)
{
	struct dirent *entry = NULL;
	char path[64];
	int ret = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return gone(-errno) ? 0 : -errno;
	while (!ret && (errno = 0, entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ret = add_children_of_thread(pids, pid, entry->d_name);
	if (!entry && errno && !gone(-errno))
		ret = -errno;
	closedir(dir);
	return ret;
}

/* Children are listed only by a kernel with CONFIG_PROC_CHILDREN, as CRIU needs it. */
static int check_children_file(pid_t root)
{
	int fd = proc_open(root, O_RDONLY, "task/%d/children", (int)root);

	if (fd >= 0)
		close(fd);
	return fd >= 0 ? 0 : fd == -ENOENT && !kill(root, 0) ? -EOPNOTSUPP : fd;
}

/**
 * proc_tree() - A task and all its descendants, as `criu dump -t` takes them
 * @root:	the task
 * @pids:	filled, root first; on an error empty
 *
 * Return: 0 on success, -ESRCH when there is no such task, -EOPNOTSUPP when this
 *	   kernel does not list children, other error code
 */
int proc_tree(pid_t root, struct proc_pids *pids)
{
	int ret;

	*pids = (struct proc_pids){ 0 };
	if (root <= 0 || kill(root, 0)) {
		if (root <= 0 || errno != EPERM)
			return -ESRCH;
	}
	ret = check_children_file(root);
	if (!ret)
		ret = proc_pids_add(pids, root);
	for (size_t i = 0; !ret && i < pids->nr; i++)
		ret = add_children(pids, pids->pid[i]);
	if (ret)
		proc_pids_free(pids);
	return ret;
}

/**
 * proc_pids_free() - Free a list of tasks
 * @pids:	left empty
 */
void proc_pids_free(struct proc_pids *pids)
{
	free(pids->pid);
	*pids = (struct proc_pids){ 0 };
}

/**
 * proc_ns_ino() - Which namespace a task is in
 * @pid:	the task
 * @ns:		"ipc", "mnt", ...
 * @ino:	filled: a number that names the namespace
 *
 * Return: 0 on success, negative error code
 */
int proc_ns_ino(pid_t pid, const char *ns, uint64_t *ino)
{
	char below[32], path[PROC_PATH_MAX];
	struct stat st;

	snprintf(below, sizeof(below), "ns/%s", ns);
	proc_path(path, pid, below);
	if (stat(path, &st))
		return -errno;
	*ino = st.st_ino;
	return 0;
}

/**
 * proc_fs_type() - Type of a mounted file system, without touching it
 * @pid:	task in whose mount namespace to look
 * @dev:	device as /proc/PID/maps shows it
 * @type:	filled, "" when nothing with that device is mounted there
 * @size:	of @type
 *
 * Return: 0 on success, negative error code
 */
int proc_fs_type(pid_t pid, dev_t dev, char *type, size_t size)
{
	unsigned int major, minor;
	char *line = NULL;
	size_t len = 0;
	FILE *file;
	int ret;

	*type = '\0';
	ret = open_stream(pid, "mountinfo", &file);
	if (ret)
		return ret;
	while (getline(&line, &len, file) >= 0) {
		char *dash, *end;

		if (sscanf(line, "%*d %*d %u:%u", &major, &minor) != 2 ||
		    makedev(major, minor) != dev)
			continue;
		dash = strstr(line, " - ");
		if (!dash)
			continue;
		end = strchr(dash + 3, ' ');
		if (end)
			*end = '\0';
		snprintf(type, size, "%s", dash + 3);
		break;
	}
	ret = stream_error(file);
	free(line);
	fclose(file);
	return ret;
}
