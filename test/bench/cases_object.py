# SPDX-License-Identifier: GPL-2.0-only
"""Cases that need no CRIU: the plugin's code on an object of its own."""

from figures import Row, Series, at_most, ratio, told
from machine import GIB, MIB

PAGE = 4096
NS_TO_MS = 1e-6

# Recording against one lseek walk, and cachestat calls for a mixed pair.
RECORD_MAX = 2.0
CALLS_MAX = 1.0
# A sparse object: milliseconds and kilobytes.
SPARSE_MS = 100
SPARSE_KIB = 1024
SPARSE_IMAGE = 4096
# Size of the residency image.
IMAGE_RUNS_PERCENT = 0.1
IMAGE_PAGE_BYTES = 2.0


def milliseconds(values):
    """Return nanoseconds as text in milliseconds."""
    return Series(values).scaled(NS_TO_MS).text("%.1f", " ms")


def record(machine, name, kind, shape):
    """A quarter resident, a quarter swapped: source_read against an lseek walk."""
    size = machine.size(4 * GIB, GIB)
    got = machine.measure(kind, size // 4, "bench_record", shape, size, machine.reps(51))
    yield at_most(name, "recording %d GiB / one lseek walk, %s" % (size // GIB, kind),
                  ratio(got["record"], got["walk"]), RECORD_MAX,
                  record_ns=got["record"], walk_ns=got["walk"], calls=got["calls"][0])
    yield told(name, "  recording; walk; cachestat calls", "%s; %s; %d" % (
        milliseconds(got["record"]), milliseconds(got["walk"]), got["calls"][0]))
    if shape == "runs":
        yield image_runs(name, got)


def image_runs(name, got):
    """Size of the image of 1 MiB runs."""
    data = (got["resident"][0] + got["swapped"][0]) * PAGE
    percent = 100.0 * got["image"][0] / data
    return Row(name, "  residency image / page data", "%.5f %%" % percent,
               "< %g %%" % IMAGE_RUNS_PERCENT, percent < IMAGE_RUNS_PERCENT,
               {"image_bytes": got["image"][0], "data_bytes": data})


def alternate_rows(name, got, when, where):
    """Rows of one state of an object of alternating pages."""
    pairs = got["resident"][0]
    calls = got[when + "calls"][0] / pairs
    cached = got[when + "incore"][0] - pairs
    where += ", %d %% in the swap cache" % round(100.0 * cached / got["swapped"][0])
    yield Row(name, "cachestat calls per pair of pages, %s" % where, "%.2f" % calls,
              "<= %g" % CALLS_MAX, calls <= CALLS_MAX,
              {"calls": got[when + "calls"][0], "pairs": pairs})
    yield told(name, "  time / lseek walk", ratio(got[when + "record"],
                                                  got[when + "walk"]).text("%.1f", "x"))
    yield told(name, "  time / cachestat page by page",
               ratio(got[when + "record"], got[when + "perpage"]).text("%.3f", "x"))
    yield told(name, "  recording", milliseconds(got[when + "record"]),
               record_ns=got[when + "record"], walk_ns=got[when + "walk"],
               perpage_ns=got[when + "perpage"])


def alternate(machine, name, kind):
    """Single pages, resident and swapped in turn."""
    size = machine.size(GIB, 256 * MIB)
    disk = kind == "file"
    args = ["pages", size, machine.reps(7)] + (["reclaim"] if disk else [])
    got = machine.measure(kind, size // 2, "bench_record", *args, reclaim=disk)
    yield from alternate_rows(name, got, "", kind)
    if disk:
        yield from alternate_rows(name, got, "reclaimed-", "%s, reclaimed" % kind)
    per_page = got["image"][0] / (got["resident"][0] + got["swapped"][0])
    yield Row(name, "  residency image, bytes per page", "%.3f" % per_page,
              "<= %g" % IMAGE_PAGE_BYTES, per_page <= IMAGE_PAGE_BYTES,
              {"image_bytes": got["image"][0]})


def sparse(machine, name, kind, size):
    """64 cold pages: recorded, encoded and put out again."""
    got = machine.measure(kind, 64 * PAGE, "bench_pageout", "sparse", size, machine.reps(15))
    total = [sum(t) for t in zip(got["record"], got["encode"], got["out"])]
    what = "%s memfd, 64 cold pages, %s: record + encode + page out" % (size, kind)
    yield at_most(name, what, Series(total).scaled(NS_TO_MS), SPARSE_MS, "%.1f", " ms",
                  record_ns=got["record"], encode_ns=got["encode"], out_ns=got["out"])
    yield told(name, "  record; encode; page out", "%s; %s; %s" % tuple(
        milliseconds(got[part]) for part in ("record", "encode", "out")))
    yield Row(name, "  residency image", "%d bytes" % got["image"][0], "<= %d" % SPARSE_IMAGE,
              got["image"][0] <= SPARSE_IMAGE)
    yield Row(name, "  growth of peak RSS", "%d KiB" % got["rss"][0], "<= %d KiB" % SPARSE_KIB,
              got["rss"][0] <= SPARSE_KIB)
    left = max(got["left"])
    yield Row(name, "  pages left in memory", str(left), "0", left == 0)


def pageout(machine, name, kind):
    """Throughput of pageout_object, against one bare MADV_PAGEOUT."""
    size = machine.size(GIB, 256 * MIB)
    got = machine.measure(kind, size, "bench_pageout", "cold", size, machine.reps(7))
    speed = Series(size / MIB / (ns * 1e-9) for ns in got["out"])
    yield told(name, "pageout_object of %d MiB, %s" % (size // MIB, kind),
               speed.text("%.0f", " MiB/s"), out_ns=got["out"], left=got["left"])
    yield told(name, "  time / populate and MADV_PAGEOUT of all at once",
               ratio(got["out"], got["bare"]).text(unit="x"), bare_ns=got["bare"])
    yield told(name, "  pages left in memory", str(max(got["left"])))


CASES = [
    ("record-runs-zram", record, ("zram", "runs")),
    ("record-blocks-zram", record, ("zram", "blocks")),
    ("alternate-zram", alternate, ("zram",)),
    ("sparse-64G-zram", sparse, ("zram", "64G")),
    ("sparse-16T-zram", sparse, ("zram", "16T")),
    ("pageout-zram", pageout, ("zram",)),
    ("record-runs-file", record, ("file", "runs")),
    ("record-blocks-file", record, ("file", "blocks")),
    ("alternate-file", alternate, ("file",)),
    ("sparse-64G-file", sparse, ("file", "64G")),
    ("sparse-16T-file", sparse, ("file", "16T")),
    ("pageout-file", pageout, ("file",)),
]
