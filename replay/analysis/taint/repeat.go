package taint

import (
	"slices"

	"vplay/replay/analysis/dataflow"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// String instructions, instructions whose accesses are watched, and those that save and restore
// all registers. What they do to memory is known only behind them.

// repeated moves marks as a string instruction did, as far as it came.
func (t *Engine) repeated(c *x86.CPU, in *x86.Inst, k *instruction) {
	n, size := uint64(1), uint64(k.Ops[0].Size)
	if in.Flags&(x86.InstRep|x86.InstRepne) != 0 {
		n = t.rcx - c.R[x86.RCX]
	}
	n *= size
	if n == 0 {
		return
	}
	src, dst := t.from[0], t.from[1]
	if c.Flags()&x86.FlagDF != 0 {
		src, dst = src-(n-size), dst-(n-size)
	}
	s := &t.step
	tag, addressed := s.tag, s.tag != 0
	data, steps := &k.Flows[0], &k.Flows[len(k.Flows)-1]
	switch {
	case data.Store >= 0 && addressed:
		t.MarkMemory(dst, n, tag)
	case data.Store >= 0 && data.Copies:
		t.eachPage(dst, n, func(a, off, n uint64) { t.moveRange(a, src+off, n) })
	case data.Store >= 0:
		t.fill(dst, n, size)
	}
	for _, f := range []*dataflow.Flow{data, steps} {
		from, has := t.cur.any(&f.Src)
		for _, l := range f.Loads {
			at := [2]uint64{src, dst}[l]
			if !has && f.Store < 0 {
				from, has = t.markIn(at, n)
			}
		}
		if addressed && !has {
			from, has = tag, true
		}
		if f.Store < 0 || !f.Dst.IsEmpty() {
			s.tag = from
			t.todo.tag = from
			f := *f
			f.Store = -1
			s.write(&f, has)
		}
		if f == data && data == steps {
			break
		}
	}
	if t.o.Wrote != nil && (t.todo.isMarked() || data.Store >= 0 && t.hasMark(dst, n)) {
		if from, has := t.markIn(dst, n); has && t.todo.tag == 0 {
			t.todo.tag = from
		}
		s.wrote(t.todo.tag)
	}
}

func (t *Engine) hasMark(a, n uint64) bool { _, has := t.markIn(a, n); return has }

// markIn returns the tag of the first of n bytes that is marked.
func (t *Engine) markIn(a, n uint64) (tag Tag, has bool) {
	t.eachPage(a, n, func(at, off, n uint64) {
		var b [64]byte
		for ; !has && n > 0; at, n = at+min(n, 64), n-min(n, 64) {
			part := b[:min(n, 64)]
			if t.Mem.Any(at, len(part)) {
				tag, has = t.Mem.Load(at, part), true
			}
		}
	})
	return tag, has
}

// eachPage calls f for each page of n bytes at a, with its key and how far from a it is.
func (t *Engine) eachPage(a, n uint64, f func(key, off, n uint64)) {
	for off := uint64(0); off < n; {
		step := min(n-off, mem.PageSize-(a+off)%mem.PageSize)
		f(t.key(a+off), off, step)
		off += step
	}
}

// moveRange copies the marks of n bytes from an address to a key.
func (t *Engine) moveRange(to, from, n uint64) {
	t.eachPage(from, n, func(key, off, n uint64) { t.Mem.Move(to+off, key, n) })
}

// fill stores the marks of RAX again and again.
func (t *Engine) fill(a, n, size uint64) {
	marks := t.cur.r[x86.RAX] & (^uint64(0) >> (64 - 8*size))
	if marks == 0 {
		t.ClearMemory(a, n)
		return
	}
	m := vector{marks}
	for off := uint64(0); off < n; off += size {
		t.Mem.Store(t.key(a+off), m.bytes()[:size], t.cur.rTag[x86.RAX])
	}
}

// spied moves marks as an instruction did whose accesses were watched: all that it wrote is made
// of all that it read.
func (t *Engine) spied(k *instruction, seen []dataflow.Access) {
	s := &t.step
	tag, has := s.tag, s.tag != 0
	if t.spy.Count > t.spy.Most {
		t.err = ErrTooMuch
	}
	t.spy.Count = 0
	for i := range k.Flows {
		if from, is := t.cur.any(&k.Flows[i].Src); is {
			tag, has = from, true
		}
	}
	for _, a := range seen {
		if from, is := t.markIn(a.Addr, uint64(a.N)); is && !a.Stores {
			tag, has = from, true
		}
	}
	for i := range k.Flows {
		f := k.Flows[i]
		f.Store = -1
		s.write(&f, has)
	}
	t.todo.tag = tag
	for _, a := range seen {
		switch {
		case !a.Stores:
		case has:
			t.MarkMemory(a.Addr, uint64(a.N), tag)
		default:
			t.ClearMemory(a.Addr, uint64(a.N))
		}
	}
	if has {
		s.wrote(tag)
	}
}

// maxSaved bounds the areas of XSAVE whose marks are kept.
const maxSaved = 1 << 12

// save keeps the marks of vector registers that were saved at an address.
func (t *Engine) save(a uint64, v *[32]vector) {
	if len(t.saved) >= maxSaved {
		clear(t.saved)
	}
	t.saved[a] = v
}

// state moves marks as XSAVE, FXSAVE, XRSTOR and FXRSTOR do: those of vector registers are kept
// beside the area and come back from there. The area itself is not marked.
func (t *Engine) state(c *x86.CPU, in *x86.Inst, k *instruction) {
	a := t.key(c.Address(in))
	if k.restores {
		if v := t.saved[a]; v != nil {
			t.todo.restore, t.todo.tag = v, t.anyTag()
		}
		return
	}
	v := t.cur.v
	t.todo.saved, t.todo.savedAt = &v, a
	t.ClearMemory(c.Address(in), stateSize)
}

// stateSize is how much of an area is cleared: FXSAVE's 512 bytes, the header, and the upper
// halves of sixteen registers (SDM vol. 1, 13.4).
const stateSize = 512 + 64 + 256

// anyTag is the tag of a vector register that has a mark, or had one.
func (t *Engine) anyTag() Tag {
	i := slices.IndexFunc(t.cur.vTag[:], func(x Tag) bool { return x != 0 })
	return t.cur.vTag[max(i, 0)]
}
