/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * log.h - messages: to CRIU's log inside CRIU, to stderr in the tool
 *
 * Same look as CRIU's own macros. A message ends with a newline.
 */
#ifndef SHP_LOG_H
#define SHP_LOG_H

#include <errno.h>
#include <string.h>

/* CRIU's levels. */
enum log_level {
	LOG_ERROR = 1,
	LOG_WARN = 2,
	LOG_INFO = 3,
	LOG_DEBUG = 4,
};

/* Threshold of the tool; CRIU applies its own -v. */
extern int log_tool_level;

void log_at(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define pr_err(...) log_at(LOG_ERROR, __VA_ARGS__)
#define pr_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define pr_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define pr_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
