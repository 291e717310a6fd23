package heap

import (
	"encoding/binary"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// The blocks: what the calls of the allocator make of them, and which bytes are marked by that.

// Call is a place in the program's execution: where a function was called, and from which code.
type Call struct {
	At     checkpoint.Position
	Caller uint64 // the return address
}

// Block is a block of the heap.
type Block struct {
	Addr, Size uint64
	Allocated  Call
	Freed      Call // of a freed block
}

// Tracker follows the heap of one process through its intervals, in their order. The functions and maps of a zero Tracker
// are to be set; its methods are called as observe.Options.Ordered has it.
type Tracker struct {
	// Whole says that the process begins with the recording, so that all its blocks are known.
	Whole bool
	// Problem is called with each misuse, where it happens; v is as in observe's callbacks. Each place is told once.
	Problem func(v *observe.View, p *Problem)
	// Place returns the address of code that stands for a misuse at pc, where each is told once: that of the innermost call outside
	// of the C library.
	Place func(v *observe.View, pc uint64) uint64
	// Caller, when set, is called with the return address of each call that allocates or frees, when it is seen first: the code
	// may be unmapped later.
	Caller func(v *observe.View, ret uint64)

	// Allocated, Freed and Bytes count blocks, and what was asked for.
	Allocated, Freed, Bytes uint64

	marks   mem.Marks
	blocks  map[uint64]Block
	freed   []Block        // the last maxFreed, as a ring
	next    int            // in freed, the place of the next one
	last    map[uint64]int // by address, where the block freed last is in freed
	threads map[checkpoint.TID]*thread
	callers map[uint64]bool
	headers bool           // there are headers between blocks, as glibc has them
	scans   extents        // code of the functions of scanned
	copies  extents        // code of the functions of copying
	seen    map[place]bool // what was told
	tries   map[uint64]int // by pc: how often an access was looked at
}

// thread is what a thread is doing.
type thread struct {
	calls []call // of the allocator, that have not returned
	text  textCall
}

// call is a call of one of Functions.
type call struct {
	slot uint64 // of its return address
	name string
	args [6]uint64
	at   checkpoint.Position
}

// maxFreed is how many freed blocks are remembered.
const maxFreed = 1 << 18

// Marks returns the marks, for observe.Observer.
func (t *Tracker) Marks() *mem.Marks { return &t.marks }

// Reset forgets all blocks: the process executes another program.
func (t *Tracker) Reset() {
	t.marks.Drop(0, mem.MaxUser)
	t.blocks, t.last, t.freed, t.next = map[uint64]Block{}, map[uint64]int{}, nil, 0
	t.scans, t.copies = extents{}, extents{}
	t.threads, t.callers = map[checkpoint.TID]*thread{}, map[uint64]bool{}
	t.seen, t.tries = map[place]bool{}, map[uint64]int{}
}

// Blocks returns the blocks that are allocated, by address. They must not be changed.
func (t *Tracker) Blocks() map[uint64]Block { return t.blocks }

// FreedBlocks returns the addresses and sizes of the blocks freed last.
func (t *Tracker) FreedBlocks() map[uint64]uint64 {
	out := make(map[uint64]uint64, len(t.last))
	for a, i := range t.last {
		if _, isAllocated := t.blocks[a]; !isAllocated {
			out[a] = t.freed[i].Size
		}
	}
	return out
}

func (t *Tracker) thread(id checkpoint.TID) *thread {
	x := t.threads[id]
	if x == nil {
		x = &thread{}
		t.threads[id] = x
	}
	return x
}

// Enter is called at the first instruction of one of Functions. isGlibc says that it is in the GNU C library.
func (t *Tracker) Enter(v *observe.View, name string, isGlibc bool) {
	c := v.CPU()
	r := functions[name]
	if r.isC {
		t.headers = isGlibc
	}
	th := t.thread(v.TID())
	k := call{c.R[x86.RSP], name, v.Arguments(), v.Position()}
	isContinued := false
	for n := len(th.calls); n > 0 && th.calls[n-1].slot <= k.slot; n = len(th.calls) {
		// A function that ends in a jump to another one has the same slot. So has one behind a function that was left by
		// longjmp, so the argument must be the same, too.
		l := &th.calls[n-1]
		isContinued = n == 1 && l.slot == k.slot && l.args[0] == k.args[0]
		th.calls = th.calls[:n-1]
	}
	if th.calls = append(th.calls, k); len(th.calls) > 1 || isContinued {
		return
	}
	switch _, isBlock := t.blocks[k.args[0]]; {
	case k.args[0] == 0:
	case r.Frees, r.Resizes && !isBlock: // for the error
		var b [8]byte
		v.ReadMemory(k.slot, b[:])
		t.release(v, &k, t.caller(v, binary.LittleEndian.Uint64(b[:])))
	}
}

// caller notes the return address of a call.
func (t *Tracker) caller(v *observe.View, ret uint64) uint64 {
	if !t.callers[ret] {
		t.callers[ret] = true
		if t.Caller != nil {
			t.Caller(v, ret)
		}
	}
	return ret
}

// Leave is called where a call has returned whose return address was at slot, whatever function it was of.
func (t *Tracker) Leave(v *observe.View, slot uint64) {
	th := t.threads[v.TID()]
	if th == nil {
		return
	}
	n := len(th.calls)
	for n > 0 && th.calls[n-1].slot < slot {
		n--
	}
	th.calls = th.calls[:n]
	if n == 0 || th.calls[n-1].slot != slot {
		return
	}
	k := th.calls[n-1]
	if th.calls = th.calls[:n-1]; n > 1 {
		return
	}
	r := functions[k.name]
	result := v.CPU().R[x86.RAX]
	if b, ok := t.blocks[k.args[0]]; r.tells && ok && result > b.Size {
		// Whoever asks may use them.
		b.Size = result
		t.blocks[b.Addr] = b
		t.mark(b)
	}
	if r.size == nil {
		return
	}
	size, _ := r.Asked(k.args[:])
	caller := t.caller(v, v.CPU().RIP)
	result, ok := r.Block(v, k.args[:], result)
	if !ok {
		return
	}
	if r.Resizes && (result != 0 || size == 0) {
		if old, ok := t.blocks[k.args[0]]; ok {
			t.take(old, Call{v.Position(), caller})
		}
	}
	if result != 0 {
		t.give(Block{Addr: result, Size: size, Allocated: Call{k.at, caller}})
	}
}

// give notes a block that the program was given.
func (t *Tracker) give(b Block) {
	if end := b.Addr + b.Size; b.Addr < granule || end < b.Addr || end >= mem.MaxUser {
		return
	}
	t.blocks[b.Addr] = b
	t.Allocated++
	t.Bytes += b.Size
	t.mark(b)
}

// mark marks what is around an allocated block.
func (t *Tracker) mark(b Block) {
	end := b.Addr + b.Size
	t.marks.Remove(b.Addr, end)
	t.marks.Add(end, t.gapEnd(&b))
	if t.headers {
		t.marks.Add(b.Addr-header, b.Addr)
	}
}

// header is what glibc has in front of each block, granule what blocks begin at multiples of, and leastChunk how far apart two of them
// are at least (malloc/malloc.c, MINSIZE). Other allocators may have no headers, and blocks that begin behind each other.
const (
	header       = 8
	granule      = 16
	leastChunk   = 32
	otherGranule = 8
)

// gapEnd returns up to where no block can begin behind b.
func (t *Tracker) gapEnd(b *Block) uint64 {
	end := b.Addr + b.Size
	if t.headers {
		return max((end+header+granule-1)&^(granule-1), b.Addr+leastChunk)
	}
	return (end + otherGranule - 1) &^ (otherGranule - 1)
}

// take notes that a block was freed.
func (t *Tracker) take(b Block, by Call) {
	delete(t.blocks, b.Addr)
	t.Freed++
	b.Freed = by
	t.marks.Add(b.Addr, b.Addr+b.Size)
	if len(t.freed) < maxFreed {
		t.freed = append(t.freed, b)
	} else {
		t.forget(t.next)
		t.freed[t.next] = b
	}
	t.last[b.Addr] = t.next
	t.next = (t.next + 1) % maxFreed
}

// forget takes the marks of freed block i away, unless they are another one's since.
func (t *Tracker) forget(i int) {
	b := &t.freed[i]
	if t.last[b.Addr] != i {
		return
	}
	delete(t.last, b.Addr)
	if _, isAllocated := t.blocks[b.Addr]; !isAllocated {
		t.marks.Remove(b.Addr, b.Addr+b.Size)
	}
}

// release frees the block of a call, or tells what is wrong with that.
func (t *Tracker) release(v *observe.View, k *call, caller uint64) {
	a := k.args[0]
	if b, ok := t.blocks[a]; ok {
		t.take(b, Call{k.at, caller})
		return
	}
	p := &Problem{Kind: InvalidFree, Function: k.name, Addr: a, At: k.at}
	if i, ok := t.last[a]; ok {
		p.Kind, p.Block = DoubleFree, &t.freed[i]
	} else if p.Block = t.inside(a); p.Block == nil && !t.Whole {
		return
	}
	t.Problem(v, p)
}

// inside returns the allocated block that an address is in, nil where there is none.
func (t *Tracker) inside(a uint64) *Block {
	for _, b := range t.blocks {
		if a-b.Addr < b.Size {
			return &b
		}
	}
	return nil
}
