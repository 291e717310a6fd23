//go:build linux && amd64

package jit

import (
	"bytes"

	"vplay/replay/x86"
)

// Which code is executed: CPU.OnCode, and the Bus's notes of executed pages. Linked units ask nobody, so
// each stores a byte when it is entered, one instruction and no flags. Between two calls of
// Run those bytes are looked at.

// maxUnits bounds the units that are kept.
const maxUnits = 1 << 17

// seen returns the bytes, by unit.
func (e *Engine) seen() []byte {
	at := e.seenAt(0)
	return e.pool.rw[at : at+maxUnits]
}

// seenAt returns the offset of the byte of unit id.
func (e *Engine) seenAt(id int) int { return e.chunk + jumpTables + id }

// clearSeen begins anew: the translations were flushed.
func (e *Engine) clearSeen() {
	if e.running { // by a handler, or because memory for code is full
		e.reportSeen(e.t.c)
	}
	clear(e.seen()[:len(e.all)])
	e.cleared++
}

// clearSeenOf is clearSeen for the units of a page, which may be nil: another page may have come to its address.
func (e *Engine) clearSeenOf(p *page) {
	if p == nil || len(p.units) == 0 {
		return
	}
	if e.running {
		e.reportSeen(e.t.c)
	}
	for _, u := range p.units {
		e.seen()[u.id], u.reported = 0, 0
	}
}

// reportSeen calls OnCode for the units that were entered and are not reported yet.
func (e *Engine) reportSeen(c *x86.CPU) {
	if c.OnCode == nil {
		return
	}
	seen := e.seen()[:len(e.all)]
	for at := 0; ; {
		i := bytes.IndexByte(seen[at:], 1)
		if i < 0 {
			return
		}
		at += i
		seen[at] = 0
		if u := e.all[at]; u.reported != e.cleared {
			u.reported = e.cleared
			c.OnCode(u.pc, u.end)
			c.Bus.Translate(u.page.base, x86.Exec)
			if u.next != nil {
				c.Bus.Translate(u.next.base, x86.Exec)
			}
		}
	}
}
