package debug

import (
	"fmt"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/mem"
)

// What was at an address where nothing is mapped when a program dies of it: a library that
// was unloaded while a pointer to a function of it was kept, or a large block of the heap that
// free has given back to the kernel. The log has the calls that unmapped it.

// lowest is the first address that is not near that of a NULL pointer (linux
// mm/Kconfig, DEFAULT_MMAP_MIN_ADDR).
const lowest = 1 << 16

// maxUnmapLogs bounds how many intervals are looked through, from the last one back.
const maxUnmapLogs = 64

// Unmapped says what was mapped where a program accessed or executed memory that is not, and
// which event unmapped it. "" where it did not die of that, or nothing was there in the time
// that is looked at.
func Unmapped(s *replay.Session, f *replay.FinalImage) string {
	si := abi.Siginfo(f.Siginfo)
	if !si.IsFault() || si.Signo() != abi.SIGSEGV || si.Addr() < lowest || si.Addr() >= mem.MaxUser {
		return ""
	}
	addr := si.Addr()
	if _, ok := mappingAt(f.Maps, addr); ok {
		return ""
	}
	images := s.Rec.ImagesOf(f.PID)
	if len(images) == 0 {
		return ""
	}
	infos := images[len(images)-1]
	before := 0
	for i := range infos {
		before += infos[i].Events
	}
	looked := 0
	for i := len(infos) - 1; i >= max(0, len(infos)-maxUnmapLogs); i-- {
		if looked += infos[i].Events; looked > maxLooked && i < len(infos)-1 {
			return ""
		}
		iv, err := s.Rec.Interval(infos[i].ID)
		if err != nil {
			return ""
		}
		before -= infos[i].Events
		if was, n, ok := unmappedIn(iv.Maps, iv.Events, addr); ok {
			return fmt.Sprintf("%#x was %s until that was unmapped (event %d)", addr, mappedName(&was, addr), before+n)
		}
	}
	return ""
}

// mappingAt returns the mapping that has an address.
func mappingAt(maps []checkpoint.Mapping, addr uint64) (m checkpoint.Mapping, ok bool) {
	for _, m := range maps {
		if addr >= m.Start && addr < m.End {
			return m, true
		}
	}
	return m, false
}

// unmappedIn goes through a log that begins with maps, and returns what it unmapped last at an
// address, and by which of its events.
func unmappedIn(maps []checkpoint.Mapping, events []checkpoint.Event, addr uint64) (was checkpoint.Mapping, n int, ok bool) {
	now, isMapped := mappingAt(maps, addr)
	for i := range events {
		for _, op := range events[i].Maps {
			has := addr >= op.Start && addr < op.End
			switch {
			case op.Kind == checkpoint.MapOpMap && has:
				now, isMapped = op.Map, true
				now.Start, now.End = op.Start, op.End
			case op.Kind == checkpoint.MapOpMove && addr >= op.New && addr < op.NewEnd:
				now, isMapped = checkpoint.Mapping{Start: op.New, End: op.NewEnd}, true
			case (op.Kind == checkpoint.MapOpUnmap || op.Kind == checkpoint.MapOpMove) && has && isMapped:
				was, n, ok, isMapped = now, i, true, false
			}
		}
	}
	return was, n, ok && !isMapped
}

// mappedName names a byte of a mapping: of a file by its place there.
func mappedName(m *checkpoint.Mapping, addr uint64) string {
	switch {
	case m.Name == "":
		return fmt.Sprintf("anonymous memory at %#x-%#x", m.Start, m.End)
	case m.Object == 0:
		return m.Name
	}
	return fmt.Sprintf("%s+%#x", m.Name, addr-m.Start+m.Offset)
}
