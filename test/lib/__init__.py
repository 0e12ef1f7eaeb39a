# SPDX-License-Identifier: GPL-2.0-only
"""Parts of the test drivers."""
