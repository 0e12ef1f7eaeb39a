// SPDX-License-Identifier: GPL-2.0-only
/*
 * check_abi.c - include/criu-plugin-abi.h against CRIU's own criu-plugin.h
 *
 * Only compiled, never run: `make check-abi`.
 */
#include <stddef.h>

#include "criu-plugin.h"

/* CRIU declares these too; ours are compared, not linked. */
#include "criu-plugin-abi.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs)

SAME(SHP_HOOK_RESUME_DEVICES_LATE, CR_PLUGIN_HOOK__RESUME_DEVICES_LATE);
SAME(SHP_HOOK_PAUSE_DEVICES, CR_PLUGIN_HOOK__PAUSE_DEVICES);
SAME(SHP_HOOK_CHECKPOINT_DEVICES, CR_PLUGIN_HOOK__CHECKPOINT_DEVICES);
SAME(SHP_STAGE_DUMP, CR_PLUGIN_STAGE__DUMP);
SAME(SHP_STAGE_PRE_DUMP, CR_PLUGIN_STAGE__PRE_DUMP);
SAME(SHP_STAGE_RESTORE, CR_PLUGIN_STAGE__RESTORE);

/* CRIU takes a descriptor of its own version or an older one, with as many hooks or fewer. */
_Static_assert(SHP_PLUGIN_VERSION <= CRIU_PLUGIN_VERSION, "CRIU would refuse the version");
_Static_assert((int)SHP_HOOK_MAX <= (int)CR_PLUGIN_HOOK__MAX, "CRIU would refuse max_hooks");

#define SAME_PLACE(member)                                                                         \
	_Static_assert(offsetof(struct shp_plugin_desc, member) ==                                 \
			       offsetof(cr_plugin_desc_t, member),                                 \
		       #member " is elsewhere");                                                   \
	_Static_assert(sizeof(((struct shp_plugin_desc *)0)->member) ==                            \
			       sizeof(((cr_plugin_desc_t *)0)->member),                            \
		       #member " has another size")

SAME_PLACE(name);
SAME_PLACE(init);
SAME_PLACE(exit);
SAME_PLACE(version);
SAME_PLACE(max_hooks);
_Static_assert(offsetof(struct shp_plugin_desc, hooks) == offsetof(cr_plugin_desc_t, hooks),
	       "hooks are elsewhere");

#define SAME_HOOK(hook)                                                                            \
	_Static_assert(__builtin_types_compatible_p(CR_PLUGIN_HOOK__##hook##_t, int(int)), #hook)

SAME_HOOK(RESUME_DEVICES_LATE);
SAME_HOOK(PAUSE_DEVICES);
SAME_HOOK(CHECKPOINT_DEVICES);
_Static_assert(__builtin_types_compatible_p(shp_init_fn, __typeof__(((cr_plugin_desc_t *)0)->init)),
	       "init has another type");
_Static_assert(__builtin_types_compatible_p(shp_exit_fn, __typeof__(((cr_plugin_desc_t *)0)->exit)),
	       "exit has another type");
