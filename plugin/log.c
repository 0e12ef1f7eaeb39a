// SPDX-License-Identifier: GPL-2.0-only
/*
 * log.c - messages: to CRIU's log inside CRIU, to stderr in the tool
 *
 * print_on_level() is a symbol of the criu binary. The reference is weak, so
 * the same object serves the tool and the tests, where it is NULL.
 */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

#include "criu-plugin-abi.h"

#pragma weak print_on_level

int log_tool_level = LOG_WARN;

static const char *level_tag(enum log_level level)
{
	switch (level) {
	case LOG_ERROR:
		return "Error (shmem_plugin): ";
	case LOG_WARN:
		return "Warn  (shmem_plugin): ";
	default:
		return "shmem_plugin: ";
	}
}

/**
 * log_at() - Write one message
 * @level:	importance
 * @format:	printf format, ending with a newline
 *
 * errno is kept, so that a message can stand between a failed call and the
 * use of its error.
 */
void log_at(enum log_level level, const char *format, ...)
{
	int saved = errno;
	char text[1024];
	va_list ap;
	int len;

	va_start(ap, format);
	len = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (len < 0)
		return;
	if ((size_t)len >= sizeof(text))
		text[sizeof(text) - 2] = '\n';

	if (print_on_level)
		print_on_level(level, "%s%s", level_tag(level), text);
	else if ((int)level <= log_tool_level)
		fprintf(stderr, "criu-shmem: %s", text);
	errno = saved;
}
