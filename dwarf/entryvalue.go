package dwarf

import (
	"debug/dwarf"

	"github.com/go-delve/delve/pkg/dwarf/op"
)

// What a register held when a function was entered is often lost, but the call
// may say what was put into it, in terms of what its caller still has (DWARF 5,
// 3.4: call sites). That is how an optimized program's parameters survive.

// GNU's names of before DWARF 5 (binutils, include/dwarf2.def).
const (
	tagGNUCallSite      = dwarf.Tag(0x4109)
	tagGNUCallParameter = dwarf.Tag(0x410a)
	attrGNUCallValue    = dwarf.Attr(0x2111)
)

// entryValue pushes what the expression, a register, was at the function's entry.
func (l *locator) entryValue(expr []byte) {
	c := cursor{b: expr}
	code := op.Opcode(c.u8())
	reg := uint64(code - op.DW_OP_reg0)
	if code == op.DW_OP_regx {
		reg = c.uleb()
	} else if code < op.DW_OP_reg0 || code > op.DW_OP_reg31 {
		l.err = errLost
		return
	}
	v, ok := l.env.atEntry(l.depth+1, func(p *dwarf.Entry) bool {
		where, ok := p.Val(dwarf.AttrLocation).([]byte)
		return ok && len(where) == 1 && where[0] == byte(op.DW_OP_reg0)+byte(reg)
	})
	if !ok {
		l.err = errLost
	}
	l.push(v)
}

// parameterRef pushes the value that a parameter was called with.
func (l *locator) parameterRef(off dwarf.Offset) {
	v, ok := l.env.atEntry(l.depth+1, func(p *dwarf.Entry) bool {
		of, ok := p.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		return ok && of == off
	})
	if !ok {
		l.err = errLost
	}
	l.push(v)
}

// atEntry evaluates, in the caller, the value of the parameter of the call that
// is. Callers in other modules are not asked: their entries are not this lock's.
func (e *Env) atEntry(depth int, is func(*dwarf.Entry) bool) (uint64, bool) {
	up := e.Caller
	if up == nil || up.Module == nil || up.Module != e.Module || e.Signal || up.Signal || depth > maxNested {
		return 0, false
	}
	m := up.Module
	f := m.functionAt(up.pc())
	if f == nil {
		return 0, false
	}
	fn := m.entryAt(f.offset)
	site := m.callSite(f, up.Regs.V[RIP]-up.Bias, is)
	if fn == nil || site == nil {
		return 0, false
	}
	expr, ok := site.Val(dwarf.AttrCallValue).([]byte)
	if !ok {
		if expr, ok = site.Val(attrGNUCallValue).([]byte); !ok {
			return 0, false
		}
	}
	l := &locator{env: up, m: m, h: m.headerOf(site.Offset), fn: fn, depth: depth}
	ps, err := l.run(expr, nil)
	if err != nil || len(ps) != 1 || ps[0].place != inMemory {
		return 0, false
	}
	return ps[0].addr, true // the value of the expression, not an address
}

// callSite returns the parameter of the call that returns to ret.
func (m *Module) callSite(f *function, ret uint64, is func(*dwarf.Entry) bool) *dwarf.Entry {
	r := m.data.Reader()
	r.Seek(f.offset)
	depth, inside := 0, -1
	for last := dwarf.Offset(0); ; {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag != 0 && e.Offset <= last {
			return nil
		}
		last = max(last, e.Offset)
		if e.Tag == 0 {
			if depth--; depth <= 0 {
				return nil
			}
			if depth == inside {
				return nil
			}
			continue
		}
		switch e.Tag { //nolint:exhaustive // the others are of no interest
		case dwarf.TagCallSite, tagGNUCallSite:
			at, ok := e.Val(dwarf.AttrCallReturnPC).(uint64)
			if !ok {
				at, ok = e.Val(dwarf.AttrLowpc).(uint64)
			}
			if ok && at == ret {
				inside = depth
			}
		case dwarf.TagCallSiteParameter, tagGNUCallParameter:
			if inside >= 0 && is(e) {
				return e
			}
		}
		if e.Children {
			depth++
		} else if depth == 0 {
			return nil
		}
	}
}
