package slice

import (
	"sync"
	"sync/atomic"

	"vplay/replay/x86"
)

// The instructions of a program, each known once. The tracers of several stretches, on
// goroutines of their own, and the walk share them.

// program is safe for concurrent use.
type program struct {
	mu   sync.RWMutex
	ids  map[key]uint32
	list []*instruction
	// codes numbers the instructions whose variants do not count.
	codes map[code]uint32
	over  atomic.Bool // the trace lacks something
}

// maxInstructions bounds the different instructions of a program, to some 800 MB. A browser
// executes half as many; code that changes itself may go on for ever.
const maxInstructions = 1 << 20

// tooMany says that the trace is not complete.
func (p *program) tooMany() { p.over.Store(true) }

// key tells instructions apart: other code may come to an address.
type key struct {
	pc    uint64
	in    x86.Inst
	frame bool
	left  bool
}

// code is an instruction whatever variant it is.
type code struct {
	pc uint64
	in x86.Inst
}

func newProgram() *program { return &program{ids: map[key]uint32{}, codes: map[code]uint32{}} }

// instruction returns what is known of in at pc.
func (p *program) instruction(pc uint64, in *x86.Inst, frame bool) (*instruction, uint32) {
	k := key{pc: pc, in: *in, frame: frame}
	p.mu.RLock()
	id, ok := p.ids[k]
	p.mu.RUnlock()
	if !ok {
		made := compile(pc, in, frame)
		p.mu.Lock()
		defer p.mu.Unlock()
		if id, ok = p.ids[k]; !ok {
			if len(p.list) >= maxInstructions {
				p.tooMany()
				return p.list[0], 0
			}
			id = p.add(k, made)
		}
		return p.list[id], id
	}
	return p.at(id), id
}

// add adds an instruction. The caller holds mu.
func (p *program) add(k key, made *instruction) uint32 {
	n, ok := p.codes[code{k.pc, k.in}]
	if !ok {
		n = uint32(len(p.codes))
		p.codes[code{k.pc, k.in}] = n
	}
	made.code = n
	id := uint32(len(p.list))
	p.ids[k], p.list = id, append(p.list, made)
	return id
}

// left returns the variant of a string instruction that was left between two iterations.
func (p *program) left(id uint32) uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.list[id]
	of := key{pc: k.PC, in: k.Inst, left: true}
	if id, ok := p.ids[of]; ok {
		return id
	}
	l := *k
	l.retires = false
	return p.add(of, &l)
}

// at returns instruction id.
func (p *program) at(id uint32) *instruction {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.list[id]
}

// all returns the instructions known now. The caller must not change them.
func (p *program) all() []*instruction {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.list
}
