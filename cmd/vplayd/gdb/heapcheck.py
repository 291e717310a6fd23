# Finds the first write behind the end of a heap block: an example of a script on
# a recording. It needs vplay.py to be loaded before, as vplayd replay does:
#   vplayd replay server-1.vplay -- -ex 'source heapcheck.py'
# It looks at the newest blocks first, at glibc's malloc, and at 64-bit programs.

import gdb

stops = []
gdb.events.stop.connect(stops.append)  # each move is a stop to gdb


class Result(gdb.FinishBreakpoint):
    """Stops where malloc returns, and keeps what it returned."""

    def __init__(self):
        super().__init__(gdb.newest_frame(), internal=True)
        self.block = None

    def stop(self):
        self.block = int(gdb.parse_and_eval("$rax"))
        return True


def chunk_behind(position):
    """The address of the size of the chunk behind the block that the call of malloc at a position returned."""
    gdb.execute("vplay seek " + position, to_string=True)
    result = Result()
    gdb.execute("continue", to_string=True)
    if not result.block:
        return None
    size = int.from_bytes(gdb.selected_inferior().read_memory(result.block - 8, 8), "little") & ~7
    return result.block - 8 + size


def corruption(position):
    """The first write from outside of the C library behind a block, as (position, text), or None."""
    field = chunk_behind(position)
    gdb.execute("vplay seek crash", to_string=True)
    for when, what in vplay("writes %#x 8 10000" % field) if field else ():
        library = gdb.solib_name(int(what.split()[0], 16)) or ""
        if "/libc." not in library and order(when) > order(position):
            return when, what


def order(position):
    interval, rest = position.split(":")
    return int(interval), *map(int, rest.split("."))


calls = vplay("calls malloc 1000 Q")
found = [hit for hit in (corruption(position) for position, _ in reversed(calls)) if hit]
if found:
    when, what = min(found, key=lambda hit: order(hit[0]))
    print("the first write behind a block is at %s:\n%s" % (when, what))
    gdb.execute("vplay seek " + when)
    gdb.execute("bt")
else:
    print("nothing wrote behind the last %d blocks" % len(calls))
print("seen %d stops" % len(stops))
