//go:build linux && amd64

package record

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"vplay/checkpoint/abi"
)

// What the borders between intervals cost the program: at each it stands still. The log has a line for each border at
// level debug, and one with all figures at the end.

// Borders counts borders by how long the program stood at them, in classes of a quarter of an octave: class 4k+j has
// those from 2^k(1+j/4) microseconds on.
type Borders struct {
	classes [4 * 32]uint32
	Longest time.Duration
}

// add takes a border.
func (b *Borders) add(took time.Duration) {
	b.Longest = max(b.Longest, took)
	us := max(uint64(took/time.Microsecond), 1)
	octave := bits.Len64(us) - 1
	quarter := int(us << 2 >> octave & 3)
	b.classes[min(4*octave+quarter, len(b.classes)-1)]++
}

// Percentile returns a time at which a share of the borders, 0.5 or 0.99 say, is not longer: within a quarter. It is 0
// when there was none.
func (b *Borders) Percentile(share float64) time.Duration {
	var all, seen uint32
	for _, n := range b.classes {
		all += n
	}
	for i, n := range b.classes {
		seen += n
		if n > 0 && float64(seen) >= share*float64(all) {
			above := uint64(4+i%4+1) << (i / 4) / 4 // where the next class begins
			return min(time.Duration(max(above, 1))*time.Microsecond, b.Longest)
		}
	}
	return 0
}

// borderCost is what the parts of a border took of the processor: of the tracer's thread and of the program,
// in whose name the kernel makes the clone.
type borderCost struct{ scan, clone time.Duration }

// spend adds what was spent since start to a part.
func (g *group) spend(part *time.Duration, start time.Duration) { *part += g.cpuSpent() - start }

// beginBorder returns when a border begins.
func (g *group) beginBorder() time.Time {
	g.session.border = borderCost{}
	return time.Now()
}

// noteBorder takes note of a border that began at start; m is the memory at it.
func (g *group) noteBorder(start time.Time, m *snapshot) {
	s := g.session
	took := time.Since(start)
	s.result.Stats.Cuts += took
	s.result.Stats.Borders.add(took)
	if e := s.log.Debug(); e.Enabled() {
		e.Int("pid", g.of.pid).Dur("took", took).Dur("cpu", g.cpuSpent()-m.began).Dur("scan", s.border.scan).Dur("clone", s.border.clone).
			Uint64("pages", m.private.count()).Uint64("written", m.dirty.count()).Msg("border of an interval")
	}
}

// MarshalZerologObject implements zerolog.LogObjectMarshaler.
func (s *Stats) MarshalZerologObject(e *zerolog.Event) {
	e.Uint64("events", s.Events).Uint64("calls", s.Calls).Uint64("agent_calls", s.AgentCalls).Uint64("instrs", s.Instrs).Uint64("agent_instrs", s.AgentInstrs).Uint64("referred", s.Referred).Uint64("intervals", s.Intervals).
		Uint64("forced_ends", s.ForcedEnds).Uint64("tsc_runs", s.TSCRuns).Uint64("shadows", s.Shadows).Dur("borders", s.Cuts).Dur("border_p50", s.Borders.Percentile(0.5)).
		Dur("border_p99", s.Borders.Percentile(0.99)).Dur("border_max", s.Borders.Longest).Str("stopped", s.mostStopped(12))
}

// mostStopped names the n calls that were made most often with stops, and how often.
func (s *Stats) mostStopped(n int) string {
	nrs := slices.SortedFunc(maps.Keys(s.Stopped), func(a, b int64) int { return cmp.Or(cmp.Compare(s.Stopped[b], s.Stopped[a]), cmp.Compare(a, b)) })
	var list []string
	for _, nr := range nrs[:min(n, len(nrs))] {
		list = append(list, fmt.Sprintf("%s(%d)", abi.Name(nr), s.Stopped[nr]))
	}
	return strings.Join(list, " ")
}
