# Finds the first write behind the end of a heap block: an example of a script on
# a recording. It needs vplay.py to be loaded before, as vplayd replay does:
#   vplayd replay server-1.vplay -- -ex 'source heapcheck.py'
# It looks at the newest blocks first, at glibc's malloc, and at 64-bit programs.
#
# What lies behind a block is the size of the next one, which the allocator alone
# may write. A write is the allocator's if malloc, free or one of their kin is on
# the stack; so what strcpy, memcpy or sprintf write is found, too.

import gdb

stops = []
gdb.events.stop.connect(stops.append)  # each move is a stop to gdb

ALLOCATES = ("malloc", "calloc", "realloc")
RELEASES = ("free", "realloc")
ALLOCATOR = {
    "malloc", "free", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc",
    "int_malloc", "int_free", "int_realloc", "int_memalign", "malloc_consolidate", "sysmalloc", "unlink_chunk", "malloc_trim",
}


class Result(gdb.FinishBreakpoint):
    """Stops where an allocation returns, and keeps what it returned."""

    def __init__(self):
        super().__init__(gdb.newest_frame(), internal=True)
        self.block = None

    def stop(self):
        self.block = int(gdb.parse_and_eval("$rax"))
        return True


def order(position):
    interval, rest = position.split(":")
    return int(interval), *map(int, rest.split("."))


def calls(names, letters):
    """The calls of functions, oldest first, as (position, text)."""
    found = []
    for name in names:
        try:
            found += vplay("calls %s 1000 %s" % (name, letters))
        except gdb.GdbError:
            pass  # the program has no such function
    return sorted(found, key=lambda call: order(call[0]))


def chunk_behind(position):
    """What the allocation at a position returned, and the address of the size of the chunk behind it."""
    gdb.execute("vplay seek " + position, to_string=True)
    result = Result()
    gdb.execute("continue", to_string=True)
    if not result.block:
        return None, None
    size = int.from_bytes(gdb.selected_inferior().read_memory(result.block - 8, 8), "little") & ~7
    return result.block, result.block - 8 + size


def released(block, position, releases):
    """The position where a block ends: it is released, or the recording ends."""
    for when, what in releases:
        if order(when) > order(position) and what.partition("(")[2].startswith("%#x)" % block):
            return when
    return None


def plain(name):
    """A function's name without the prefixes that the C library's own names have."""
    for prefix in ("__GI_", "__libc_"):
        name = name.replace(prefix, "")
    return name.strip("_")


known = {}  # the start of a function: whether it is a part of the allocator


def by_allocator(position):
    """Whether the allocator is on the stack at a position."""
    gdb.execute("vplay seek " + position, to_string=True)
    frame = gdb.newest_frame()
    start = gdb.parse_and_eval("$pc") if frame.function() is None else frame.function().value()
    start = int(start.address or start) if start.type.code == gdb.TYPE_CODE_FUNC else int(start)
    if not known.get(start):
        known[start] = False
        while frame is not None and frame.is_valid() and not known[start]:
            known[start] = plain(frame.name() or "") in ALLOCATOR
            frame = frame.older()
    return known[start]


def corruption(position, releases):
    """The first write behind a block that is not the allocator's, as (position, text), or None."""
    block, field = chunk_behind(position)
    end = block and released(block, position, releases)
    gdb.execute("vplay seek " + (end or "crash"), to_string=True)
    found = vplay("writes %#x 8 10000" % field) if field else ()
    for when, what in sorted(found, key=lambda hit: order(hit[0])):
        if order(when) > order(position) and not by_allocator(when):
            return when, what
    return None


releases = calls(RELEASES, "P")
found = [hit for hit in (corruption(position, releases) for position, _ in reversed(calls(ALLOCATES, "Q"))) if hit]
if found:
    when, what = min(found, key=lambda hit: order(hit[0]))
    print("the first write behind a block is at %s:\n%s" % (when, what))
    gdb.execute("vplay seek " + when)
    gdb.execute("bt")
else:
    print("nothing wrote behind the last %d blocks" % len(calls(ALLOCATES, "Q")))
print("seen %d stops" % len(stops))
