package debug

import (
	"testing"

	"vplay/checkpoint"
)

// TestUnmappedIn: what was unmapped last at an address, unless something is mapped there again.
func TestUnmappedIn(t *testing.T) {
	const at = 0x12345
	lib := checkpoint.Mapping{Start: 0x10000, End: 0x20000, Object: 3, Offset: 0x1000, Name: "/lib/x.so"}
	op := func(kind checkpoint.MapOpKind, start, end uint64, name string) checkpoint.Event {
		return checkpoint.Event{Maps: []checkpoint.MapOp{{Kind: kind, Start: start, End: end, Map: checkpoint.Mapping{Name: name}}}}
	}
	const mapped, unmapped, moved = checkpoint.MapOpMap, checkpoint.MapOpUnmap, checkpoint.MapOpMove
	for _, c := range []struct {
		what   string
		maps   []checkpoint.Mapping
		events []checkpoint.Event
		want   string
		event  int
	}{
		{"nothing was there", nil, []checkpoint.Event{op(unmapped, 0x10000, 0x20000, "")}, "", 0},
		{"from the beginning", []checkpoint.Mapping{lib}, []checkpoint.Event{{}, op(unmapped, 0x10000, 0x20000, "")}, "/lib/x.so+0x3345", 1},
		{"another part", []checkpoint.Mapping{lib}, []checkpoint.Event{op(unmapped, 0x10000, 0x12000, "")}, "", 0},
		{"mapped meanwhile", nil, []checkpoint.Event{op(mapped, 0x12000, 0x13000, ""), op(unmapped, 0x12000, 0x13000, "")}, "anonymous memory at 0x12000-0x13000", 1},
		{"mapped again", []checkpoint.Mapping{lib}, []checkpoint.Event{op(unmapped, 0x10000, 0x20000, ""), op(mapped, 0x12000, 0x13000, "")}, "", 0},
		{"twice", []checkpoint.Mapping{lib}, []checkpoint.Event{op(unmapped, 0x10000, 0x20000, ""), op(mapped, 0x12000, 0x13000, ""), op(unmapped, 0x12000, 0x13000, ""), op(unmapped, 0x12000, 0x13000, "")}, "anonymous memory at 0x12000-0x13000", 2},
		{"moved away", []checkpoint.Mapping{lib}, []checkpoint.Event{op(moved, 0x10000, 0x20000, "")}, "/lib/x.so+0x3345", 0},
	} {
		was, n, ok := unmappedIn(c.maps, c.events, at)
		got := ""
		if ok {
			got = mappedName(&was, at)
		}
		if got != c.want || ok && n != c.event {
			t.Errorf("%s: %q at event %d, want %q at %d", c.what, got, n, c.want, c.event)
		}
	}
}
