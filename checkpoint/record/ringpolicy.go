package record

import "time"

// Which intervals stay in the ring: the decision alone, on numbers, so that it can be
// tested without a program. Dropping and writing them is in ring.go.

// ringEntry is what an interval of the ring counts: the memory that it takes, about, and
// the program's CPU time when it began.
type ringEntry struct {
	bytes int64
	start time.Duration
}

// firstKept returns the index of the first interval of a ring, oldest first, that stays when
// the program's CPU time is now: those before it go, because the ring takes more than limit
// bytes, or because the one after is enough to go back by keep. The newest always stays.
func firstKept(ring []ringEntry, now, keep time.Duration, limit int64) int {
	var bytes int64
	for _, e := range ring {
		bytes += e.bytes
	}
	first := 0
	for ; first < len(ring)-1; first++ {
		if bytes <= limit && now-ring[first+1].start < keep {
			break
		}
		bytes -= ring[first].bytes
	}
	return first
}
