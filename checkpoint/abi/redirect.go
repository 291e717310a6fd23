package abi

import "strconv"

// A call that waits while another thread runs must not write the program's
// memory at a time that the log does not name. So the recorder gives the kernel
// other addresses, in memory of its own inside the program (the scratch), and
// copies what came when the thread has its turn:
//
//	r, err := abi.Redirect(mem, nr, args, scratch) // at the call's entry
//	... write each of r.Init, run the call with r.Args ...
//	writes := r.Results(mem, ret)                  // at its exit, with the turn
//	... write each of writes, in this order, and log it ...
//
// What the program sees is what the kernel would have done with the program's own
// addresses. Outputs that overlap keep their distances in the scratch, so the kernel
// itself settles which byte is the later one. Argument blocks that point to outputs
// (vectors, message headers) are copied once more, with the addresses changed, apart
// from all outputs: a vector that lies in its own buffer is read before the buffer
// is written, as the kernel does it.

// Write is bytes for an address: of the scratch in Redirection.Init, of the
// program in Redirection.Results.
type Write struct {
	Addr uint64
	Data []byte
}

// Move says that the kernel finds Len bytes of the program at To instead of at
// From.
type Move struct {
	From, To, Len uint64 // addresses of the program and of the scratch, bytes

	rule  moveRule
	count int    // which of Redirection.counts the rule goes by
	old   []byte // what the scratch held before, but for moveCounted
}

// moveRule says which bytes of a move the kernel has written.
type moveRule uint8

const (
	moveChanged moveRule = iota // those that are not what they were
	moveWhole                   // all of a call that succeeded, else as moveChanged
	moveCounted                 // as many as the result says; never filled before
	moveNone                    // none: the kernel only reads
)

// moveCount says how many bytes the moves of one count have got, in their order:
// base and unit times the result. A call for many messages has a count for each, in
// a word of the scratch, good when index is below the result.
type moveCount struct {
	unit, base uint64
	word       uint64
	index      int64
	batch      bool
}

// Redirection is how a call is made to write to scratch memory. It is good for
// one call, with its restarts: restart_syscall goes on with the addresses that the
// kernel has got already.
type Redirection struct {
	Args  [6]uint64 // for the kernel: rdi, rsi, rdx, r10, r8, r9
	Init  []Write   // what must be in the scratch before the call
	Moved []Move    // what the kernel may write; empty when the call writes nothing
	Size  uint64    // bytes of scratch in use, from its start on

	counts []moveCount
}

// ScratchError says that the scratch is too small for a call.
type ScratchError struct{ Need uint64 } // bytes, in whole pages

func (e *ScratchError) Error() string {
	return "abi: the call needs " + strconv.FormatUint(e.Need, 10) + " bytes of scratch memory"
}

// NotRedirectedError says that a call must run with the program's own addresses,
// and why. When it blocks, the kernel may write at any time until it returns.
type NotRedirectedError struct{ Why string }

func (e *NotRedirectedError) Error() string { return "abi: the call cannot be redirected: " + e.Why }

// Reasons of a NotRedirectedError.
const (
	// The kernel is to find the fault itself: which error it is, and what it has
	// done by then, depends on the call. It writes what comes before the
	// fault to the program's own memory.
	whyFault    = "an output or what tells where it is cannot be accessed"
	whyLong     = "its outputs are too long"
	whyRefused  = "the kernel refuses these arguments"
	whyOverlap  = "an output overlaps what the kernel reads after it has written"
	whyScratch  = "an output lies in the scratch memory"
	whyUnknown  = "what it writes is not known"
	whyReal     = "the word must be the one that other threads see"
	whyGift     = "the pages themselves may become the pipe's"
	whyRestarts = "it goes on with the addresses of the call that was interrupted"
	whyHelper   = "waits only for the kernel's own helper program"
)

// Redirect returns how call nr with the given arguments is made to write to
// scratch instead of to the program. m is the program's memory at the call's entry;
// when it has [Hints], their Writable decides what the kernel can write, else what can
// be read counts as writable. The scratch must be mapped, writable, and in no other
// use until Results has been called; it starts at a page's boundary.
//
// NULL stays NULL, and input arguments stay where they are. Whether the call may block is
// MayBlock's to say: calls that do not are redirected all the same, so a caller asks first.
//
// Errors are a *ScratchError, after which a larger scratch helps, and a
// *NotRedirectedError, after which the call runs as it is.
func Redirect(m Memory, nr int64, args [6]uint64, scratch Range) (*Redirection, error) {
	d := redirector{m: m, args: args}
	d.hints, _ = m.(Hints)
	s, known := Lookup(nr)
	f := redirects[nr]
	switch {
	case notRedirected[nr] != "":
		d.refuse(notRedirected[nr])
	case f != nil:
		f(&d)
	case !known, s.Irregular, s.Effect == EffectOpaque, s.Effect == EffectRefuse:
		d.refuse(whyUnknown)
	default:
		d.kinds(s)
	}
	return d.layOut(scratch)
}

// notRedirected has the rows that keep their own addresses, though they may
// block and write, each with the reason.
var notRedirected = map[int64]string{
	SYS_FUTEX:           whyReal,
	SYS_VMSPLICE:        whyGift,
	SYS_RESTART_SYSCALL: whyRestarts,
	SYS_KEYCTL:          whyHelper,
	SYS_IOCTL:           "no request that is known both waits for another thread and writes",
	SYS_FCNTL:           "no command both waits and writes",
}

// slot is where an address stands that the kernel is given: argument off, or
// byte off of a block.
type slot struct{ block, off int }

const inArgs = -1 // slot.block

// want is an output before it has an address in the scratch.
type want struct {
	at      slot
	addr, n uint64
	rule    moveRule
	count   int
	each    piece  // the moved part of each element when stride is not 0
	stride  uint64 // bytes of an element
}

// piece is a part of a block or of an element.
type piece struct {
	off, n uint64
	rule   moveRule
	count  int
}

// block is a copy of something that the kernel reads, with addresses changed,
// and the parts of it that it writes.
type block struct {
	at     slot
	from   uint64 // where the program has it
	data   []byte
	pieces []piece
}

// redirector collects what a call writes.
type redirector struct {
	m      Memory
	hints  Hints
	args   [6]uint64
	wants  []want
	blocks []block
	counts []moveCount
	words  map[int]slot // by count: where its word is
	total  uint64
	why    string // not empty: no redirection
}

func (d *redirector) refuse(why string) {
	if d.why == "" {
		d.why = why
	}
}

// writable reports whether the kernel's copies to n bytes at addr cannot fault.
func (d *redirector) writable(addr, n uint64) bool {
	switch {
	case addr >= TaskSize || n > TaskSize-addr:
		return false
	case d.hints != nil:
		return d.hints.Writable(addr, n)
	}
	return accessible(d.m, addr, n) == n
}

// maxMoves bounds the outputs of one call: of a batch of messages, each with
// its vector.
const maxMoves = 1 << 16

// out wants n bytes at addr moved.
func (d *redirector) out(w want) {
	if w.n == 0 || w.addr == 0 || d.why != "" {
		return
	}
	if w.n > MaxOutput || d.total+w.n > MaxOutput || len(d.wants) == maxMoves {
		d.refuse(whyLong)
		return
	}
	if !d.writable(w.addr, w.n) {
		d.refuse(whyFault)
		return
	}
	d.total += w.n
	d.wants = append(d.wants, w)
}

// arg wants n bytes at argument i moved, of which the kernel writes some.
func (d *redirector) arg(i int, n uint64) {
	d.out(want{at: slot{inArgs, i}, addr: d.args[i], n: n})
}

// counted returns a new count that goes by the call's result.
func (d *redirector) counted(unit, base uint64) int {
	d.counts = append(d.counts, moveCount{unit: unit, base: base})
	return len(d.counts) - 1
}

// buffer wants n bytes at argument i moved, of which the result counts those that
// were written.
func (d *redirector) buffer(i int, n, unit, base uint64) {
	d.out(want{at: slot{inArgs, i}, addr: d.args[i], n: n, rule: moveCounted, count: d.counted(unit, base)})
}

// block copies n bytes that the kernel reads at addr, and returns the copy's
// index; false says that they cannot be read.
func (d *redirector) block(at slot, addr, n uint64) (int, bool) {
	b := block{at: at, from: addr, data: make([]byte, n)}
	if d.m == nil || addr >= TaskSize || d.m.ReadAt(addr, b.data) != len(b.data) {
		d.refuse(whyFault)
		return 0, false
	}
	d.blocks = append(d.blocks, b)
	return len(d.blocks) - 1, true
}

// written adds a part that the kernel writes to a block.
func (d *redirector) written(i int, p piece) {
	b := &d.blocks[i]
	if !d.writable(b.from+p.off, p.n) {
		d.refuse(whyFault)
		return
	}
	b.pieces = append(b.pieces, p)
}

// overlapsOutput reports whether a byte of [addr, addr+n) is wanted, other than
// in a block.
func (d *redirector) overlapsOutput(addr, n uint64) bool {
	for i := range d.wants {
		if w := &d.wants[i]; overlap(w.addr, w.n, addr, n) {
			return true
		}
	}
	return false
}

// overlap reports whether two ranges have a byte in common. One that wraps, which
// no program can have, has none.
func overlap(a, an, b, bn uint64) bool { return a < b+bn && b < a+an && an != 0 && bn != 0 }
