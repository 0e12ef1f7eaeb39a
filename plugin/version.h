/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * version.h - version of the plugin and the tool
 */
#ifndef SHP_VERSION_H
#define SHP_VERSION_H

#define SHP_VERSION "0.1.0"

#endif
