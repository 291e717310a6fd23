package debug

import (
	"fmt"
	"slices"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/mem"
)

// Why a byte cannot be read. A recording says of each page whether it holds all of
// it, some of it, or nothing, and where it holds nothing, whether that was taken
// out on purpose.

// why explains a byte that cannot be read.
func why(f mem.Fault) string {
	if f.Kind == mem.FaultNotCaptured {
		return fmt.Sprintf("the byte at %#x was not captured", f.Addr)
	}
	return fmt.Sprintf("nothing is mapped at %#x", f.Addr)
}

// why explains a byte that cannot be read here, with what the recording says of
// its page.
func (g *Cursor) why(f mem.Fault) string {
	if f.Kind != mem.FaultNotCaptured {
		return why(f)
	}
	ref, dropped := g.pageRecord(f.Addr)
	isFirstLoads := g.hasFirstLoads() && (dropped || ref.Kind == checkpoint.PagePartial)
	switch {
	case g.isRefused(f.Addr):
		return fmt.Sprintf("%#x is mapped, but the kernel could not give its page, which is why SIGBUS comes: most often the file has become shorter", f.Addr)
	case ref.Kind == checkpoint.PageRedacted:
		return fmt.Sprintf("the byte at %#x was redacted: its page was taken out of the recording on purpose", f.Addr)
	case isFirstLoads:
		return why(f) + ": replay does not need it, so slimming to first loads dropped it; at a position behind a store to it, it is there"
	case ref.Kind == checkpoint.PagePartial:
		return why(f) + ": the recording holds other bytes of its page"
	case dropped:
		return why(f) + ": the program did not use its page in the recorded time, nor write it, so slimming dropped it"
	}
	if g.isBehindEnd(f.Addr) {
		return fmt.Sprintf("%#x is mapped, but lies behind the end of its file", f.Addr)
	}
	if g.s.Rec.IsOfCore() {
		return why(f) + ": its page was not in the core file, nor in a file that was found when that was imported"
	}
	return why(f) + ": its page was not in the program's memory, or could not be read there"
}

// isRefused reports whether the signal that comes here, or the next event, says that the kernel could not give the page of an address:
// that the program used it before, in a longer file, or never, does not matter then.
func (g *Cursor) isRefused(a uint64) bool {
	if g.mem().IsBusError(a) {
		return true
	}
	b, err := g.Siginfo(g.tid())
	if err != nil || len(b) < abi.SizeofSiginfo {
		return false
	}
	info := abi.Siginfo(b)
	return info.Signo() == abi.SIGBUS && info.Code() == abi.BUS_ADRERR && info.Addr()/mem.PageSize == a/mem.PageSize
}

// isBehindEnd reports whether an address is behind the last page of the file that is mapped there, as long as that was
// when the recorder looked last.
func (g *Cursor) isBehindEnd(a uint64) bool {
	r, ok := g.mem().Find(a)
	if !ok || r.Object == 0 {
		return false
	}
	for _, o := range g.s.Rec.Objects() {
		if o.ID == r.Object {
			page := (a - r.Start + r.Offset) / mem.PageSize * mem.PageSize
			return o.Size > 0 && page >= uint64(o.Size)
		}
	}
	return false
}

// info returns what the manifest says of the interval that the cursor is in, the last one at the end.
func (g *Cursor) info() *checkpoint.IntervalInfo {
	infos := g.session.images[g.image].infos
	last := &infos[len(infos)-1]
	if g.final != nil {
		return last
	}
	id := g.cur.Machine().Interval()
	if i := slices.IndexFunc(infos, func(i checkpoint.IntervalInfo) bool { return i.ID == id }); i >= 0 {
		return &infos[i]
	}
	return last
}

// hasFirstLoads reports whether of pages only those bytes are recorded that replay needs.
func (g *Cursor) hasFirstLoads() bool { return g.info().FirstLoads }

// pageRecord returns what the recording says of the page of a, and whether slimming
// may have dropped it.
func (g *Cursor) pageRecord(a uint64) (ref checkpoint.PageRef, dropped bool) {
	a &^= mem.PageSize - 1
	slim := g.info().Slim
	find := g.final.Record
	if g.final == nil {
		find = g.cur.Machine().Record
	}
	if ref, ok := find(a); ok {
		return ref, slim && ref.Kind == checkpoint.PageAbsent
	}
	if r, ok := g.mem().Find(a); ok && r.Object != 0 {
		if ref, ok := g.s.Rec.ObjectPage(r.Object, (a-r.Start+r.Offset)/mem.PageSize); ok {
			return ref, false
		}
	}
	return checkpoint.PageRef{Kind: checkpoint.PageAbsent}, g.s.Rec.Sizes().Fat == 0
}

// Byte is what is known of one byte.
type Byte struct {
	Addr    uint64 `json:"addr"`
	IsKnown bool   `json:"known"`
	Value   uint8  `json:"value"`
	Reason  string `json:"reason,omitempty"` // why it is not known
}

// String says what is known of the byte.
func (b Byte) String() string {
	if !b.IsKnown {
		return b.Reason
	}
	return fmt.Sprintf("the byte at %#x is known: %#02x", b.Addr, b.Value)
}

// Byte returns what is known of the byte at an address.
func (g *Cursor) Byte(addr uint64) Byte {
	var b [1]byte
	if _, err := g.ReadMemory(addr, b[:]); err != nil {
		return Byte{Addr: addr, Reason: err.Error()}
	}
	return Byte{Addr: addr, IsKnown: true, Value: b[0]}
}
