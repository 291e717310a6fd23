package controlflow

import (
	"cmp"
	"slices"

	"vplay/replay/x86"
)

// Code is the code of a program, with what is known of where its calls and indirect jumps led. It is used by one
// goroutine. All that is known must be added before the first question.
type Code struct {
	o       Options
	entries map[uint64]bool     // functions that were called
	targets map[uint64][]uint64 // of branches that were executed

	spans []span
	done  bool
}

// Options say how code is read.
type Options struct {
	// Fetch copies code at an address and returns how many bytes of it are known.
	Fetch func(pc uint64, b []byte) int
	ID    *x86.CPUIdentity
}

// New returns code of which nothing is known yet.
func New(o Options) *Code {
	return &Code{o: o, entries: map[uint64]bool{}, targets: map[uint64][]uint64{}}
}

// AddEntry says that a function begins at an address, as it was called.
func (c *Code) AddEntry(pc uint64) { c.entries[pc] = true }

// AddTarget says that the branch at an address has led to another one. Of direct branches it need not be said.
func (c *Code) AddTarget(from, to uint64) {
	if !slices.Contains(c.targets[from], to) {
		c.targets[from] = append(c.targets[from], to)
	}
}

// Targets returns where a branch has led to, as far as that was added. The caller must not change it.
func (c *Code) Targets(from uint64) []uint64 { return c.targets[from] }

// Each calls f for the instructions from first to last, which follow each other in memory.
func (c *Code) Each(first, last uint64, f func(pc uint64, in *x86.Inst)) {
	var b [15]byte
	for pc := first; pc <= last; {
		in, err := x86.DecodeInst(b[:c.o.Fetch(pc, b[:])], pc, c.o.ID)
		if err != nil {
			return
		}
		f(pc, &in)
		pc += uint64(in.Len)
	}
}

// span is a basic block and its function.
type span struct {
	first, last uint64
	of          *function
	node        int
}

// maxSpan is how many bytes a basic block has at most.
const maxSpan = 1 << 16

// Controls returns the addresses of the conditional branches, and jumps through registers or memory, of its function that decide
// whether the instruction at pc is executed, in order; nil where no function is known there, or where it is executed whenever its function is called.
func (c *Code) Controls(pc uint64) (out []uint64) {
	c.make()
	i, _ := slices.BinarySearchFunc(c.spans, pc, func(s span, pc uint64) int {
		if s.first > pc {
			return 1
		}
		return -1
	})
	for i--; i >= 0 && pc-c.spans[i].first < maxSpan; i-- {
		s := &c.spans[i]
		if pc > s.last {
			continue
		}
		for _, b := range s.of.nodes[s.node].by {
			out = append(out, s.of.nodes[b].last)
		}
		slices.Sort(out)
		return out
	}
	return nil
}

// make makes the graphs of all functions that were called.
func (c *Code) make() {
	if c.done {
		return
	}
	c.done = true
	list := make([]uint64, 0, len(c.entries))
	for e := range c.entries {
		list = append(list, e)
	}
	slices.Sort(list)
	for _, e := range list {
		f := c.function(e)
		if f == nil {
			continue
		}
		f.postdominators()
		f.control()
		for i := 1; i < len(f.nodes); i++ {
			c.spans = append(c.spans, span{f.nodes[i].first, f.nodes[i].last, f, i})
		}
	}
	slices.SortStableFunc(c.spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
}
