package abi

import (
	"bytes"
	"cmp"
	"slices"
)

// What happens after a redirected call has returned: its results are taken from the
// scratch, as writes for the program's own addresses. Also a view of memory with such
// writes done. How a call is redirected is in redirect.go.

// Results returns what a call that returned ret has written, as bytes for the
// program's own addresses, in the order in which they are to be written: a later one
// may overlap an earlier one. m is the program's memory after the call, with the scratch in it.
//
// Where the result counts the bytes, those bytes are returned. Of other outputs it
// returns the bytes that are not what they were at the entry: whether the kernel has
// written a byte that is the same as before cannot be seen.
//
// The caller looks whether the program can still write there: another thread may
// have unmapped it. The kernel would have answered EFAULT, with the data lost.
func (r *Redirection) Results(m Memory, ret int64) []Write {
	var all []Write
	left := make([]uint64, len(r.counts))
	good := make([]bool, len(r.counts))
	for i, c := range r.counts {
		left[i], good[i] = c.result(m, ret)
	}
	for i := range r.Moved {
		v := &r.Moved[i]
		switch {
		case v.rule == moveCounted:
			n := min(v.Len, left[v.count])
			left[v.count] -= n
			all = appendWrite(all, v.From, readMoved(m, v.To, n))
		case v.rule == moveWhole && good[v.count]:
			all = appendWrite(all, v.From, readMoved(m, v.To, v.Len))
		default:
			all = appendChanged(all, v.From, v.old, readMoved(m, v.To, v.Len))
		}
	}
	return all
}

// result returns how many bytes a count stands for, and whether the call, or the
// message, succeeded.
func (c *moveCount) result(m Memory, ret int64) (n uint64, ok bool) {
	if _, failed := ErrnoOf(ret); failed || c.batch && c.index >= ret {
		return 0, false
	}
	got := uint64(ret)
	if c.batch {
		word, _ := readUint32(m, c.word)
		got = uint64(word)
	}
	if c.unit != 0 && got > 2*MaxOutput/c.unit {
		return 2 * MaxOutput, true
	}
	return c.base + got*c.unit, true
}

// readMoved returns n bytes of the scratch, fewer when it is not there.
func readMoved(m Memory, addr, n uint64) []byte {
	if n == 0 || m == nil {
		return nil
	}
	b := make([]byte, n)
	return b[:m.ReadAt(addr, b)]
}

func appendWrite(all []Write, addr uint64, b []byte) []Write {
	if len(b) == 0 {
		return all
	}
	return append(all, Write{addr, b})
}

// appendChanged appends the runs of bytes that are not what they were.
func appendChanged(all []Write, addr uint64, old, now []byte) []Write {
	if bytes.Equal(old, now) {
		return all
	}
	for i := 0; i < len(now); {
		if now[i] == old[i] {
			i++
			continue
		}
		k := i + 1
		for k < len(now) && now[k] != old[k] {
			k++
		}
		all = append(all, Write{addr + uint64(i), now[i:k]})
		i = k
	}
	return all
}

// Overlay is a program's memory with some bytes written to it, which the program's
// memory does not have yet. It is a Memory with Hints for Outputs: what is not
// written is the program's.
type Overlay struct {
	m      Memory
	writes []overlaid // by address
}

// overlaid is a write, with its rank in time, and the highest end of those up
// to it.
type overlaid struct {
	Write
	rank int
	end  uint64
}

// NewOverlay returns m with the writes done in their order. It keeps the slices
// of bytes.
func NewOverlay(m Memory, writes []Write) *Overlay {
	o := &Overlay{m: m, writes: make([]overlaid, len(writes))}
	for i, w := range writes {
		o.writes[i] = overlaid{Write: w, rank: i}
	}
	slices.SortStableFunc(o.writes, func(a, b overlaid) int { return cmp.Compare(a.Addr, b.Addr) })
	end := uint64(0)
	for i := range o.writes {
		w := &o.writes[i]
		end = max(end, w.Addr+uint64(len(w.Data)))
		w.end = end
	}
	return o
}

// ReadAt implements Memory. Bytes that the program's memory does not have are absent.
func (o *Overlay) ReadAt(addr uint64, b []byte) int {
	n := o.m.ReadAt(addr, b)
	end := addr + uint64(n)
	first, _ := slices.BinarySearchFunc(o.writes, addr, func(w overlaid, addr uint64) int {
		if w.end <= addr {
			return -1
		}
		return 1
	})
	last := first
	for last < len(o.writes) && o.writes[last].Addr < end {
		last++
	}
	in := o.writes[first:last]
	if len(in) > 1 {
		in = slices.Clone(in)
		slices.SortFunc(in, func(a, b overlaid) int { return cmp.Compare(a.rank, b.rank) })
	}
	for _, w := range in {
		from, to := max(addr, w.Addr), min(end, w.Addr+uint64(len(w.Data)))
		if from < to {
			copy(b[from-addr:to-addr], w.Data[from-w.Addr:])
		}
	}
	return n
}

// Writable implements Hints by those of the program's memory.
func (o *Overlay) Writable(addr, n uint64) bool {
	h, ok := o.m.(Hints)
	return ok && h.Writable(addr, n)
}

// Datagram implements Hints by those of the program's memory.
func (o *Overlay) Datagram(fd int32) bool {
	h, ok := o.m.(Hints)
	return !ok || h.Datagram(fd)
}

var _ interface {
	Memory
	Hints
} = (*Overlay)(nil)
