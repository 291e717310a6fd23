package debug

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"vplay/checkpoint"
	"vplay/replay/debug/text"
	"vplay/replay/mem"
)

// What the recording holds of each mapping and each page, at the present position. Why
// a certain byte cannot be read is in why.go.

// PageState is what is known of a page at the present position.
type PageState uint8

// The states of a page.
const (
	PageCaptured PageState = iota
	PageZero
	PagePartly
	PageWritten // by the program or the kernel since the interval's start
	PageRedacted
	PageUnknown
	pageStates
)

var pageWords = [pageStates]string{"captured", "zero", "partly captured", "written in this interval", "redacted", "not captured"}

// String says it in words.
func (s PageState) String() string { return pageWords[s] }

// MarshalText implements encoding.TextMarshaler.
func (s PageState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *PageState) UnmarshalText(b []byte) error {
	n := slices.Index(pageWords[:], string(b))
	if n < 0 {
		return fmt.Errorf("%q is no state of a page", b)
	}
	*s = PageState(n)
	return nil
}

// ofRecord is the state of a page with a record of a kind.
var ofRecord = map[checkpoint.PageKind]PageState{
	checkpoint.PageFull: PageCaptured, checkpoint.PageZero: PageZero, checkpoint.PagePartial: PagePartly,
	checkpoint.PageRedacted: PageRedacted, checkpoint.PageAbsent: PageUnknown,
}

// stateOf returns the state of the page at a, which lies in r.
func (g *Cursor) stateOf(r *mem.Region, a uint64) PageState {
	find := g.final.Record
	switch {
	case g.final == nil:
		if g.mem().IsWritten(a) {
			return PageWritten
		}
		find = g.cur.Machine().Record
	case g.final.Written(a):
		return PageWritten
	}
	if !r.Fresh {
		if ref, ok := find(a); ok {
			return ofRecord[ref.Kind]
		}
	}
	if r.Object == 0 || r.Zero {
		return PageZero
	}
	if ref, ok := g.s.Rec.ObjectPage(r.Object, (a-r.Start+r.Offset)/mem.PageSize); ok {
		return ofRecord[ref.Kind]
	}
	return PageUnknown
}

// MappingPages is what is known of the pages of a mapping.
type MappingPages struct {
	Start uint64            `json:"start"`
	End   uint64            `json:"end"`
	Perms string            `json:"permissions"` // as /proc/PID/maps has them
	Name  string            `json:"name,omitempty"`
	Pages uint64            `json:"pages"`
	Count map[PageState]int `json:"count"` // of the first 2^20 pages
}

// maxCountedPages bounds the pages of a mapping that are counted one by one: a
// program may reserve terabytes.
const maxCountedPages = 1 << 20

// String writes the mapping, and how many pages are in which state.
func (m MappingPages) String() string {
	var parts []string
	for s := range pageStates {
		if n := m.Count[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if m.Pages > maxCountedPages {
		parts = append(parts, "the rest not counted")
	}
	return fmt.Sprintf("%#x-%#x %s %d pages: %s  %s", m.Start, m.End, m.Perms, m.Pages, strings.Join(parts, ", "), text.Printable(m.Name))
}

// Pages returns what is known of the pages of each mapping, as far as it comes before
// ctx ends.
func (g *Cursor) Pages(ctx context.Context) (out []MappingPages) {
	maps := g.maps()
	for i, r := range g.mem().Regions() {
		if ctx.Err() != nil {
			break
		}
		m := MappingPages{Start: r.Start, End: r.End, Perms: perms(maps[i]), Name: maps[i].Name, Pages: (r.End - r.Start) / mem.PageSize, Count: map[PageState]int{}}
		for p := range min(m.Pages, maxCountedPages) {
			m.Count[g.stateOf(&r, r.Start+p*mem.PageSize)]++
		}
		out = append(out, m)
	}
	return out
}

// Page is what is known of one page.
type Page struct {
	Addr     uint64    `json:"addr"` // of the page, or what was asked for where nothing is mapped
	IsMapped bool      `json:"mapped"`
	Start    uint64    `json:"start,omitempty"` // of the mapping
	End      uint64    `json:"end,omitempty"`
	Name     string    `json:"name,omitempty"` // of the mapping, or of its file
	State    PageState `json:"state"`
}

// String says what is known of the page.
func (p Page) String() string {
	if !p.IsMapped {
		return fmt.Sprintf("nothing is mapped at %#x", p.Addr)
	}
	name := p.Name
	if name == "" {
		name = "anonymous memory"
	}
	return fmt.Sprintf("the page at %#x, of %s at %#x-%#x: %s", p.Addr, text.Printable(name), p.Start, p.End, p.State)
}

// Page returns what is known of the page that holds an address.
func (g *Cursor) Page(addr uint64) Page {
	a := addr &^ (mem.PageSize - 1)
	r, ok := g.mem().Find(a)
	if !ok {
		return Page{Addr: addr, State: PageUnknown}
	}
	name := r.Name
	if o, ok := g.s.Rec.Object(r.Object); ok && name == "" {
		name = o.Path
	}
	return Page{Addr: a, IsMapped: true, Start: r.Start, End: r.End, Name: name, State: g.stateOf(&r, a)}
}
