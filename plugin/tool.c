// SPDX-License-Identifier: GPL-2.0-only
/*
 * tool.c - criu-shmem: look at shared memory as the plugin sees it
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "log.h"
#include "source.h"
#include "tool.h"
#include "version.h"

#define DEFAULT_WIDTH 80

const char *argp_program_version = "criu-shmem " SHP_VERSION;

static const char doc[] =
	"Shows which pages of the shared memory of running tasks, or of a CRIU dump made with "
	"shmem_plugin.so, are resident, swapped out or were never touched."
	"\vCommands:\n"
	"  probe                what this kernel, swap and CRIU allow; which source is used\n"
	"  status PID           shared memory of a task and its descendants, as a table\n"
	"  map PID              the same as a picture\n"
	"  show IMAGES_DIR      the residency image of a dump, as a table\n"
	"  diff IMAGES_DIR PID  is what was cold at dump cold now, and what was hot hot\n"
	"\n"
	"Exit status: 0 yes (probe: it works here; diff: as at dump), 1 no, 2 usage or error.\n"
	"\n"
	"CRIU_SHMEM_SOURCE and " CONFIG_FILE " set the default of --source.";

enum {
	KEY_COLOR = 256,
	KEY_WIDTH,
	KEY_TOLERANCE,
};

static const struct argp_option options_list[] = {
	{ "json", 'j', NULL, 0, "Machine-readable output (not for map)", 0 },
	{ "source", 's', "NAME", 0, "auto, pagemap, cachestat or mincore", 0 },
	{ "color", KEY_COLOR, "WHEN", 0, "auto, always or never (map)", 0 },
	{ "width", KEY_WIDTH, "COLUMNS", 0, "Width of the picture (map)", 0 },
	{ "tolerance", KEY_TOLERANCE, "PERCENT", 0,
	  "How many pages of an object may differ (diff), with up to one decimal; default 1", 0 },
	{ "verbose", 'v', NULL, 0, "More messages; twice for all", 0 },
	{ 0 },
};

struct arguments {
	struct tool_options options;
	char *word[3];
	unsigned int nr;
};

static void set_color(struct argp_state *state, struct tool_options *options, const char *arg)
{
	if (!strcmp(arg, "always"))
		options->color = true;
	else if (!strcmp(arg, "never"))
		options->color = false;
	else if (strcmp(arg, "auto"))
		argp_error(state, "--color: want auto, always or never, not \"%s\"", arg);
}

static unsigned int parse_width(struct argp_state *state, const char *arg)
{
	char *end;
	unsigned long n = strtoul(arg, &end, 10);

	if (*arg < '0' || *arg > '9' || *end || n < 20 || n > 10000)
		argp_error(state, "--width: want 20 to 10000 columns, not \"%s\"", arg);
	return (unsigned int)n;
}

static unsigned int parse_tolerance(struct argp_state *state, const char *arg)
{
	char *end;
	unsigned long n = strtoul(arg, &end, 10) * 10;

	if (*end == '.' && end[1] >= '0' && end[1] <= '9') {
		n += (unsigned long)(end[1] - '0');
		end += 2;
	}
	if (*arg < '0' || *arg > '9' || *end || n > 1000)
		argp_error(state, "--tolerance: want 0 to 100 percent, not \"%s\"", arg);
	return (unsigned int)n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	struct tool_options *options = &args->options;

	switch (key) {
	case 'j':
		options->json = true;
		break;
	case 's':
		if (source_parse(arg, &options->config.source))
			argp_error(state,
				   "--source: want auto, pagemap, cachestat or mincore, "
				   "not \"%s\"",
				   arg);
		break;
	case 'v':
		log_tool_level++;
		break;
	case KEY_COLOR:
		set_color(state, options, arg);
		break;
	case KEY_WIDTH:
		options->width = parse_width(state, arg);
		break;
	case KEY_TOLERANCE:
		options->threshold = parse_tolerance(state, arg);
		break;
	case ARGP_KEY_ARG:
		if (args->nr == sizeof(args->word) / sizeof(args->word[0]))
			argp_error(state, "too many arguments");
		args->word[args->nr++] = arg;
		break;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no command");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	options_list, parse, "COMMAND [ARGUMENT...]", doc, NULL, NULL, NULL,
};

static int parse_pid(const char *text, pid_t *pid)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || *end || n <= 0 || n > INT32_MAX) {
		pr_err("\"%s\" is not a pid\n", text);
		return EXIT_TROUBLE;
	}
	*pid = (pid_t)n;
	return 0;
}

/**
 * tool_record() - Look at a task and its descendants
 * @record:	filled; must be empty
 * @options:	which source
 * @pid:	the task
 *
 * Return: 0 or EXIT_TROUBLE after a message
 */
int tool_record(struct record *record, const struct tool_options *options, pid_t pid)
{
	struct probe probe;
	const char *why;
	int ret;

	probe_run(&probe);
	ret = source_choose(&record->source, options->config.source, &probe, &why);
	if (ret) {
		pr_err("source %s cannot be used: %s\n", source_name(options->config.source), why);
		return EXIT_TROUBLE;
	}
	ret = record_tree(record, pid);
	if (ret || (record->failures && !record->objects.nr)) {
		pr_err("task %d: %s\n", (int)pid, ret ? strerror(-ret) : "nothing could be read");
		return EXIT_TROUBLE;
	}
	return 0;
}

/**
 * tool_load() - Read a residency image
 * @path:	images directory
 * @objects:	filled; must be empty
 * @info:	filled unless NULL
 *
 * Return: 0 or EXIT_TROUBLE after a message
 */
int tool_load(const char *path, struct shm_objects *objects, struct image_info *info)
{
	struct image_error error;
	struct image_info ignored;
	int dir, ret;

	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		pr_err("%s: %s\n", path, strerror(errno));
		return EXIT_TROUBLE;
	}
	ret = image_read(dir, objects, info ? info : &ignored, &error);
	close(dir);
	if (ret) {
		pr_err("%s/%s: %s\n", path, IMAGE_NAME, error.text);
		return EXIT_TROUBLE;
	}
	return 0;
}

static int do_status(const struct tool_options *options, pid_t pid)
{
	struct record record = { 0 };
	int ret = tool_record(&record, options, pid);

	if (!ret && options->json)
		ret = json_objects(&record.objects, source_name(record.source.id),
				   record.source.exact);
	else if (!ret)
		table_objects(&record.objects);
	record_free(&record);
	return ret;
}

static int do_map(const struct tool_options *options, pid_t pid)
{
	struct record record = { 0 };
	int ret = tool_record(&record, options, pid);

	for (size_t i = 0; !ret && i < record.objects.nr; i++)
		if (record.objects.object[i]->recorded)
			map_object(stdout, record.objects.object[i], options->width,
				   options->color);
	if (!ret)
		map_legend(stdout, options->color);
	record_free(&record);
	return ret;
}

static int do_show(const struct tool_options *options, const char *path)
{
	struct shm_objects objects = { 0 };
	struct image_info info;
	int ret = tool_load(path, &objects, &info);

	if (!ret && options->json)
		ret = json_objects(&objects, info.source, info.exact);
	else if (!ret)
		table_objects(&objects);
	objects_free(&objects);
	return ret;
}

static int run(const struct arguments *args)
{
	const struct tool_options *options = &args->options;
	const char *command = args->word[0];
	pid_t pid;

	if (!strcmp(command, "probe") && args->nr == 1)
		return tool_probe(options);
	if (!strcmp(command, "status") && args->nr == 2)
		return parse_pid(args->word[1], &pid) ? EXIT_TROUBLE : do_status(options, pid);
	if (!strcmp(command, "map") && args->nr == 2 && !options->json)
		return parse_pid(args->word[1], &pid) ? EXIT_TROUBLE : do_map(options, pid);
	if (!strcmp(command, "show") && args->nr == 2)
		return do_show(options, args->word[1]);
	if (!strcmp(command, "diff") && args->nr == 3)
		return parse_pid(args->word[2], &pid) ? EXIT_TROUBLE
						      : tool_diff(options, args->word[1], pid);
	pr_err("\"%s\" with %u arguments%s: no such command, see --help\n", command, args->nr - 1,
	       options->json ? " and --json" : "");
	return EXIT_TROUBLE;
}

static unsigned int terminal_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	if (columns && atoi(columns) >= 20 && atoi(columns) <= 10000)
		return (unsigned int)atoi(columns);
	return DEFAULT_WIDTH;
}

int main(int argc, char **argv)
{
	struct arguments args = { .options = { .threshold = 10, .width = terminal_width() } };
	int ret;

	setlocale(LC_ALL, "");
	argp_err_exit_status = EXIT_TROUBLE;
	args.options.color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	if (config_load(&args.options.config))
		return EXIT_TROUBLE;
	argp_parse(&argp, argc, argv, 0, NULL, &args);
	ret = run(&args);
	if (fflush(stdout) || ferror(stdout)) {
		pr_err("cannot write the output: %s\n", strerror(errno));
		return EXIT_TROUBLE;
	}
	return ret;
}
