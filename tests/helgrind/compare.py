"""Compares what helgrind and the script locks have found: compare.py FOLDER EXPECTED PROGRAM...

FOLDER/PROGRAM has helgrind.xml and locks.json. Two tools agree on a program where both have
races, or none, and the same lines in them, and both have locks that are taken in different orders, or none. Of a race
each tool has the pair of lines that its own schedule has led to, so that one line of each race must be the same: a line of
one that the other does not have is a difference only where no race of the other has a line in common with it."""

import json
import os
import sys
import xml.etree.ElementTree as xml


def helgrind(path, source):
    """Races as sets of lines, lock orders as sets of lines, and the other kinds."""
    races, orders, others = [], [], set()
    for error in xml.parse(path).getroot().iter("error"):
        kind = error.findtext("kind")
        lines = set()
        for stack in error.iter("stack"):
            for frame in stack.iter("frame"):
                if frame.findtext("file") == source:
                    lines.add(int(frame.findtext("line")))
                    break
        if kind == "Race":
            races.append(lines)
        elif kind == "LockOrder":
            orders.append(lines)
        else:
            others.add(kind)
    return races, orders, others


def line_of(place, source):
    name, _, line = place.rpartition("/")[2].rpartition(":")
    return {int(line)} if name == source else set()


def locks(path, source):
    races, orders = [], []
    with open(path) as f:
        rows = [json.loads(line) for line in f]
    if not any("races," in row.get("text", "") for row in rows):
        raise ValueError("the script has not ended")
    for row in rows:
        if row.get("kind") == "race":
            races.append(line_of(row["first"]["place"], source) | line_of(row["second"]["place"], source))
        elif row.get("kind") == "lock order":
            orders.append(set().union(*(line_of(way[p], source) for way in row["ways"] for p in ("held_place", "taken_place"))))
    return races, orders


def covered(a, b):
    return all(any(x & y for y in b) for x in a)


def shown(races, orders):
    parts = []
    for name, sets in (("race", races), ("order", orders)):
        if sets:
            parts.append("%s %s" % (name, ",".join(str(n) for n in sorted(set().union(*sets)))))
    return "; ".join(parts) or "-"


def expected(path):
    with open(path) as f:
        return {line.split()[0] for line in f if line.strip() and not line.startswith("#")}


def main():
    folder, known, programs = sys.argv[1], expected(sys.argv[2]), sys.argv[3:]
    differ = set()
    print("%-22s %-8s %-34s %-34s %s" % ("program", "", "helgrind", "vplayd run locks", "helgrind besides"))
    for p in programs:
        source = p + ".c"
        try:
            theirs = helgrind(os.path.join(folder, p, "helgrind.xml"), source)
            ours = locks(os.path.join(folder, p, "locks.json"), source)
        except (OSError, ValueError, xml.ParseError) as e:
            differ.add(p)
            print("%-22s %-8s %s" % (p, "failed", e))
            continue
        same = covered(theirs[0], ours[0]) and covered(ours[0], theirs[0]) and covered(theirs[1], ours[1]) and covered(ours[1], theirs[1])
        if not same:
            differ.add(p)
        print("%-22s %-8s %-34s %-34s %s" % (p, "same" if same else "differs", shown(*theirs[:2]), shown(*ours), ",".join(sorted(theirs[2]))))
    print("%d of %d agree" % (len(programs) - len(differ), len(programs)))
    wrong = (differ ^ known) & set(programs)
    for p in sorted(wrong):
        print("%s: %s" % (p, "is not in expected.txt" if p in differ else "is in expected.txt, and agrees"))
    sys.exit(1 if wrong else 0)


main()
