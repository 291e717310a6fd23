//go:build linux && amd64

package record

import (
	"bytes"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Memory that others write. A child of a fork keeps the program's shared
// mappings, and may not be recorded: what it stores there comes in from outside.
// From the first such child on, each call's exit logs the shared pages that are
// not what they were at the exit before; the program's own stores are among
// them, which does no harm. The same goes for single objects that storers.go finds. A store that the program reads before its next call
// is missed, and ends replay with a divergence. And a program may write to its
// own memory as to a file.

// outsideLimit bounds, in pages, the shared memory that is compared.
const outsideLimit = 256

// noteSharers is called when a child has been made that shares no memory but
// the shared mappings.
func (sp *space) noteSharers() {
	for m := range sp.maps.tree.From(0) {
		if !m.private() && m.Prot&checkpoint.ProtWrite != 0 && !sp.childStores {
			sp.childStores = true
			if sp.outside == nil {
				sp.outside = map[uint64][]byte{}
			}
			sp.session.noteOnce("memory is shared with another process")
		}
	}
}

// looksAfter reports whether the pages of a mapping are compared at each call's exit.
func (sp *space) looksAfter(m *mapping) bool {
	return !m.private() && (sp.childStores && m.Prot&checkpoint.ProtWrite != 0 || sp.stored[m.Object])
}

// noteFilesChanged notes the files that the program maps and that changed
// without a call or a store of its own: what it saw of that is not in the log.
// Shared writable mappings are compared by outsideWrites.
func (sp *space) noteFilesChanged() {
	for m := range sp.maps.tree.From(0) {
		if m.Object == 0 || !m.private() && m.Prot&checkpoint.ProtWrite != 0 {
			continue
		}
		o := sp.objects.at(m.Object)
		was, ok := sp.objects.stamps[sp.objects.file(m.Object)]
		var st unix.Stat_t
		if !ok || o.Changed || unix.Stat(mapFile(sp.pid, m.Start, m.End), &st) != nil {
			continue
		}
		if now := (stamp{st.Size, st.Mtim}); now != was {
			sp.session.noteOnce(o.Path + ", which the program maps, was changed by another process: replay may differ where the program read it")
		}
	}
}

// outsideWrites returns the shared pages that have changed since the last call.
func (sp *space) outsideWrites() []checkpoint.MemWrite {
	if sp.outside == nil {
		return nil
	}
	sp.outsideFresh = true
	var out []checkpoint.MemWrite
	seen := make(map[uint64][]byte, len(sp.outside))
	for m := range sp.maps.tree.From(0) {
		if !sp.looksAfter(m) {
			continue
		}
		for a := m.Start; a < m.End; a += checkpoint.PageSize {
			if len(seen) == outsideLimit {
				sp.session.noteOnce("more memory is shared with other processes than is looked after")
				sp.outside = seen
				return out
			}
			b := make([]byte, checkpoint.PageSize)
			if sp.readMem(a, b) != len(b) {
				break
			}
			if old, ok := sp.outside[a]; !ok || !bytes.Equal(old, b) {
				out = append(out, checkpoint.MemWrite{Addr: a, Data: b})
			}
			seen[a] = b
		}
	}
	sp.outside = seen
	return out
}

// beforeOwnMem keeps, at a write's entry, what the files hold behind the program's own memory
// that it would write to: its descriptor is /proc/self/mem.
func (p *process) beforeOwnMem(c *call) error {
	if !c.toOwnMem {
		return nil
	}
	return p.space.captureFilePages(c, pageDown(c.ownMem), pageUp(c.ownMem+min(c.args[2], sharedLimit)))
}

// ownMemWrites returns what the call has written to the program's own memory.
func (sp *space) ownMemWrites(c *call, ret int64) []checkpoint.MemWrite {
	if !c.toOwnMem || ret <= 0 {
		return nil
	}
	b := make([]byte, ret)
	return []checkpoint.MemWrite{{Addr: c.ownMem, Data: b[:sp.readMem(c.ownMem, b)]}}
}
