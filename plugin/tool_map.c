// SPDX-License-Identifier: GPL-2.0-only
/*
 * tool_map.c - picture of an object's pages
 *
 * One character stands for some pages, as many as needed to fit the object into
 * MAP_ROWS rows of the terminal's width. Its shape tells which state most of
 * the populated pages have, so that it can be read without colour; a cell with
 * resident and swapped pages side by side is "mixed".
 */
#include <inttypes.h>
#include <langinfo.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* A picture should fit one screen with its caption. */
#define MAP_ROWS 8

/* Room for the offset at the start of a row. */
#define MAP_MARGIN 9

enum cell {
	CELL_HOLE,
	CELL_RESIDENT,
	CELL_SWAPPED,
	CELL_MIXED,
	CELL_KINDS,
};

struct look {
	const char *block; /* UTF-8 */
	const char *ascii;
	const char *color;
	const char *meaning;
};

static const struct look look[CELL_KINDS] = {
	[CELL_HOLE] = { "·", ".", "\033[2m", "hole" },
	[CELL_RESIDENT] = { "█", "#", "\033[32m", "resident" },
	[CELL_SWAPPED] = { "░", "-", "\033[34m", "swapped" },
	[CELL_MIXED] = { "▒", "+", "\033[33m", "mixed" },
};

static bool utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static void put_cell(FILE *out, enum cell cell, bool color)
{
	const char *shape = utf8() ? look[cell].block : look[cell].ascii;

	if (color)
		fprintf(out, "%s%s\033[0m", look[cell].color, shape);
	else
		fputs(shape, out);
}

/**
 * map_legend() - What the characters mean
 * @out:	stream
 * @color:	use colours
 */
void map_legend(FILE *out, bool color)
{
	static const enum cell order[] = { CELL_RESIDENT, CELL_SWAPPED, CELL_MIXED, CELL_HOLE };

	for (size_t i = 0; i < CELL_KINDS; i++) {
		put_cell(out, order[i], color);
		fprintf(out, " %s%s", look[order[i]].meaning, i + 1 < CELL_KINDS ? "   " : "\n");
	}
}

/* A few stray pages do not make a cell mixed: one in sixteen. */
static enum cell cell_of(const uint64_t count[PAGE_STATES])
{
	uint64_t resident = count[PAGE_RESIDENT], swapped = count[PAGE_SWAPPED];

	if (!resident && !swapped)
		return CELL_HOLE;
	if (swapped <= resident / 16)
		return CELL_RESIDENT;
	if (resident <= swapped / 16)
		return CELL_SWAPPED;
	return CELL_MIXED;
}

/* Counts cell by cell, walking the runs once. */
struct cells {
	struct residency_iter iter;
	struct page_run run;
	uint64_t first;
};

static void next_cell(struct cells *cells, uint64_t pages, uint64_t count[PAGE_STATES])
{
	uint64_t end = cells->first + pages;

	memset(count, 0, sizeof(count[0]) * PAGE_STATES);
	while (cells->first < end) {
		uint64_t now = end - cells->first;

		if (!cells->run.nr && !residency_next(&cells->iter, &cells->run))
			break;
		if (now > cells->run.nr)
			now = cells->run.nr;
		count[cells->run.state] += now;
		cells->run.nr -= now;
		cells->first += now;
	}
	cells->first = end;
}

static void caption(FILE *out, const struct shm_object *object, uint64_t per_cell)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char size[24], cell[24], resident[24], swapped[24];

	table_sizes(size, sizeof(size), object->size);
	table_sizes(cell, sizeof(cell), per_cell * page);
	table_sizes(resident, sizeof(resident), object->state.count[PAGE_RESIDENT] * page);
	table_sizes(swapped, sizeof(swapped), object->state.count[PAGE_SWAPPED] * page);
	fprintf(out, "%s %s, shmid %" PRIu64 ": %s, %s resident, %s swapped; 1 character = %s\n",
		shm_kind_name(object->kind), object->name, object->ino, size, resident, swapped,
		cell);
}

/**
 * map_object() - Draw one object
 * @out:	stream
 * @object:	recorded
 * @width:	columns
 * @color:	use colours
 */
void map_object(FILE *out, const struct shm_object *object, unsigned int width, bool color)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = shm_pages(object->size);
	unsigned int columns = width > MAP_MARGIN + 8 ? width - MAP_MARGIN : 8;
	uint64_t cells = (uint64_t)columns * MAP_ROWS;
	uint64_t per_cell = pages ? (pages - 1) / cells + 1 : 1;
	struct cells walk = { .iter = residency_begin(&object->state) };
	uint64_t count[PAGE_STATES], column = 0;
	char offset[24];

	caption(out, object, per_cell);
	for (uint64_t first = 0; first < pages; first += per_cell) {
		if (!column) {
			table_sizes(offset, sizeof(offset), first * page);
			fprintf(out, "%*s ", MAP_MARGIN - 1, offset);
		}
		next_cell(&walk, pages - first < per_cell ? pages - first : per_cell, count);
		put_cell(out, cell_of(count), color);
		column = (column + 1) % columns;
		if (!column)
			fputc('\n', out);
	}
	if (column)
		fputc('\n', out);
}
