# SPDX-License-Identifier: GPL-2.0-only
"""Exceptions that the test modules share."""


class Unavailable(Exception):
    """This machine lacks what a test needs; the text says what."""


class Skip(Exception):
    """The test does not apply here; the text says why."""


class Failure(Exception):
    """A test found what must not be."""
