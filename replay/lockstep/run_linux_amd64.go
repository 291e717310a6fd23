package lockstep

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The run: emulator and CPU go step by step, and the first difference ends it. The
// order of the comparisons, and the way back to where a late difference began, are
// here. The traced process is in child_linux_amd64.go, its memory in
// memory_linux_amd64.go.

// Supported says whether Run can work here.
const Supported = true

const (
	// checkSteps is how many steps lie between two comparisons of all pages,
	// which cost a microsecond each.
	checkSteps = 1 << 16
	// vectorSteps is how many steps may pass without a comparison of extended
	// state when no instruction touches it.
	vectorSteps = 1 << 12
	// pollSteps is how often the context is looked at.
	pollSteps = 1 << 8
	// maxUser is where user addresses end; the vsyscall page, which the kernel
	// emulates, is above.
	maxUser = 1 << 47
)

// runner is a machine and a process that go together.
type runner struct {
	m    *replay.Machine
	c    *child
	mem  *memory
	spy  *spy
	dec  *decoder
	o    Options
	res  *Result
	like bool // this CPU is of the recorded kind
	// undefined says that flags which the manuals leave undefined are compared.
	undefined bool

	layout x86.XLayout // of XSAVE images of this machine
	img    []byte
	// stale and staleX say that the child's registers, or its extended state,
	// are not the machine's.
	stale, staleX bool
	before        x86.State // before the present instruction
	at            checkpoint.Position
	regs          ptrace.Regs
	theirs        x86.State // the CPU's extended state
	vectorDiffers bool
	steps         uint64                      // since reported to Progress
	spoil         func(r *runner, row string) // see run

	since    *replay.Snapshot // the last moment at which all pages were the same
	sinceRes Result           // what was counted then
	marked   uint64           // Steps at since
	// again is set while the stretch since then is run a second time, with
	// extended state compared at each step, and the page suspect, when that is
	// not 0: something differs at the moment seen.
	again   bool
	suspect uint64
	seen    checkpoint.Position
	first   *Difference // what was found first, when the search goes back behind it
}

// Run executes a stretch of one interval on the emulator and on this CPU.
// The error says why that is not possible: ErrNotSupported, *RangeError, *HostError, those of
// replay.Session.Machine, and the context's; what is found out about the
// recording and the emulator is in the Result.
func Run(ctx context.Context, s *replay.Session, o Options) (Result, error) {
	return run(ctx, s, o, nil)
}

// run is Run. Tests give it spoil, which makes the emulator wrong: it is called
// after each of its steps.
func run(ctx context.Context, s *replay.Session, o Options, spoil func(r *runner, row string)) (Result, error) {
	runtime.LockOSThread() // ptrace knows threads
	defer runtime.UnlockOSThread()
	began := time.Now()
	res := Result{From: o.From, To: o.From}
	m, err := s.Machine(o.From.Interval)
	if err != nil {
		return res, err
	}
	defer s.Forget(o.From.Interval)
	defer m.Close()
	if err := goTo(ctx, s, m, o); err != nil {
		if replay.Unmatched(err) {
			res.Err = err
			err = nil
		}
		return res, err
	}
	res.From = m.Position()
	c, err := startChild()
	if err != nil {
		return res, err
	}
	defer c.close()
	r := newRunner(s, m, c, o)
	r.res, r.spoil = &res, spoil
	defer r.release()
	err = r.run(ctx)
	res.To, res.Took = m.Position(), time.Since(began)
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		err = &HostError{"stepping the traced process at " + r.at.String(), err}
	}
	return res, err
}

// goTo brings the machine to where the comparison begins.
func goTo(ctx context.Context, s *replay.Session, m *replay.Machine, o Options) error {
	if o.To == (checkpoint.Position{}) {
		if err := findEnd(ctx, s, o.From.Interval); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, m.CPU.Interrupt)
	defer stop()
	goal := replay.Target{Instr: o.From.Instr, Step: o.From.Step}
	if goal != (replay.Target{}) {
		switch r, err := m.Run(goal, true); {
		case err != nil:
			return err
		case r == replay.StopEnd:
			return &RangeError{o.From, m.Position()}
		case r == replay.StopInterrupt || ctx.Err() != nil:
			return ctx.Err()
		}
	}
	m.Catch.Signal = true
	return nil
}

// findEnd runs an interval with a forced end once, so that the session knows
// the place: single steps would pass it unnoticed. Where the replay goes wrong,
// that is what the comparison will find.
func findEnd(ctx context.Context, s *replay.Session, id uint32) error {
	iv, err := s.Rec.Interval(id)
	if err != nil || !iv.End.Forced {
		return err
	}
	m, err := s.Machine(id)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.RunToEnd(ctx, nil); err != nil && !replay.Unmatched(err) {
		return err
	}
	return nil
}

func newRunner(s *replay.Session, m *replay.Machine, c *child, o Options) *runner {
	p := &spy{Bus: m.CPU.Bus, space: m.Mem}
	m.CPU.Bus = p
	m.CPU.FlushTLB()
	r := &runner{
		m: m, c: c, spy: p, o: o, stale: true, staleX: true,
		mem:  &memory{c: c, space: m.Mem, pages: map[uint64]uint64{}, shared: map[uint64]bool{}, undo: p.undo},
		dec:  &decoder{id: m.CPU.ID, classes: classes()},
		img:  make([]byte, len(c.xstate)),
		like: Unlike(&s.Rec.Manifest().CPU) == "",
	}
	r.undefined = r.like && !o.IgnoreUndefined
	r.layout = x86.DefaultLayout(hostVendor(), stateX87|stateSSE|stateAVX)
	r.dec.fit(c.xcr0() == m.CPU.ID.XCR0, r.like)
	return r
}

// The bits of XCR0 for the state that the emulator models.
const (
	stateX87 = 1 << 0
	stateSSE = 1 << 1
	stateAVX = 1 << 2
)

func (r *runner) release() {
	if r.since != nil {
		r.since.Release()
	}
}

// run steps until there is something to say: Result has it. Errors are those
// of the host, and the context's.
func (r *runner) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, r.m.CPU.Interrupt)
	defer stop()
	r.mark()
	start := r.m.CPU.Retired
	for n := uint64(1); ; n++ {
		if n%pollSteps == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.progress()
		}
		r.at = r.m.Position()
		if r.again && r.at.Compare(r.seen) > 0 {
			if r.first != nil {
				r.res.Difference = r.first
				return nil
			}
			return fmt.Errorf("the page at %#x is not the same, and no instruction since %s made that", r.suspect, r.since.Pos)
		}
		limit := r.o.Count > 0 && r.m.CPU.Retired-start >= r.o.Count ||
			r.o.To != (checkpoint.Position{}) && r.at.Compare(r.o.To) >= 0
		if limit || r.res.Steps-r.marked >= checkSteps && !r.again {
			if again, err := r.checkPages(); err != nil || again {
				if err != nil {
					return err
				}
				continue
			}
		}
		if limit {
			return nil
		}
		if done, err := r.step(ctx); done || err != nil {
			if err == nil {
				done, err = r.narrow()
			}
			if !done || err != nil {
				return err
			}
		}
	}
}

func (r *runner) progress() {
	if r.o.Progress != nil {
		r.o.Progress(r.steps)
	}
	r.steps = 0
}

// step takes one event or one instruction. done says that the Result is
// complete.
func (r *runner) step(ctx context.Context) (done bool, err error) {
	r.spy.begin()
	if e := r.m.Pending(); e != nil {
		return r.event(e)
	}
	r.before = r.m.CPU.State
	asked := r.m.InUseAsked()
	reason, rerr := r.m.Run(replay.Target{Instr: r.at.Instr, Step: r.at.Step + 1}, true)
	switch {
	case rerr == nil && reason == replay.StopEnd:
		if again, err := r.checkPages(); again || err != nil {
			return false, err
		}
		r.res.Err = r.m.CheckEnd()
		return true, nil
	case reason == replay.StopInterrupt, ctx.Err() != nil:
		return false, ctx.Err()
	case rerr != nil:
		return r.failed(rerr)
	}
	d := r.decode()
	// Which state components the child's CPU counts as in use is its own affair.
	if d != nil && d.class&isAlone != 0 || r.before.RIP >= maxUser || r.m.InUseAsked() != asked {
		return false, r.alone(d)
	}
	r.res.Steps++
	r.steps++
	return r.compare(d)
}

// alone gives the child what the emulator's instruction changed.
func (r *runner) alone(d *decoded) error {
	r.res.Alone++
	r.stale = true
	r.staleX = r.staleX || d != nil && d.class&isVector != 0
	var pages []uint64
	for _, st := range r.spy.stores {
		for a := st.addr &^ (mem.PageSize - 1); a < st.addr+uint64(st.n); a += mem.PageSize {
			pages = append(pages, a)
		}
	}
	r.spy.begin() // refresh would take them back
	for _, a := range pages {
		if err := r.mem.refresh(a); err != nil {
			return err
		}
	}
	return nil
}

// decode returns the instruction that the emulator executed, nil when there is
// none.
func (r *runner) decode() *decoded {
	if r.spy.codeN == 0 || r.spy.pc != r.before.RIP {
		return nil
	}
	return r.dec.at(r.spy.pc, r.spy.code[:r.spy.codeN])
}

// event applies the event that is due to both sides.
func (r *runner) event(e *checkpoint.Event) (done bool, err error) {
	r.res.Err = r.m.Apply()
	if r.res.Err != nil { // It is the result, not an error of this comparison.
		return true, nil //nolint:nilerr // as said
	}
	r.spy.begin() // what the event stored is no instruction's
	r.stale = true
	r.staleX = r.staleX || e.XState != nil
	return false, r.mem.follow(e)
}

// failed is called when replay could not go on at an instruction. Where the
// machine faults and the log knows nothing of it, the CPU tells who is right.
func (r *runner) failed(rerr error) (done bool, err error) {
	r.res.Err = rerr
	var diverged *replay.DivergenceError
	d := r.decode()
	if !errors.As(rerr, &diverged) || r.m.CPU.RIP != r.before.RIP || d != nil && d.class&isAlone != 0 || r.before.RIP >= maxUser {
		return true, nil
	}
	end, err := r.native(d)
	if err != nil {
		return false, err
	}
	if end.sig == 0 && !end.syscall {
		r.res.Steps++
		r.res.Err = nil
		r.differ(d, []Item{{"outcome", diverged.Got, "executed"}})
	}
	return true, nil
}

// native executes the instruction on the CPU, from the state before it.
func (r *runner) native(d *decoded) (ending, error) {
	if r.staleX {
		copy(r.img, r.c.xstate)
		if err := ptrace.SetXState(r.c.pid, r.before.XState(r.img, &r.layout)); err != nil {
			return ending{}, err
		}
		r.staleX = false
	}
	if r.stale {
		putRegs(&r.regs, &r.before)
		if err := ptrace.SetRegs(r.c.pid, &r.regs); err != nil {
			return ending{}, err
		}
		r.stale = false
	}
	for {
		end, err := r.c.step()
		if err != nil {
			return end, err
		}
		if end.hasAddr {
			keep := r.regs // the call that maps needs registers
			if err := ptrace.GetRegs(r.c.pid, &keep); err != nil {
				return end, err
			}
			loaded, err := r.mem.load(end.addr)
			if err != nil {
				return end, err
			}
			if loaded {
				keep.Orig_rax = ^uint64(0)
				if err := ptrace.SetRegs(r.c.pid, &keep); err != nil {
					return end, err
				}
				continue
			}
		}
		if err := ptrace.GetRegs(r.c.pid, &r.regs); err != nil {
			return end, err
		}
		// Some CPUs take one more step behind the last iteration.
		if d != nil && d.class&isRep != 0 && end == (ending{}) && r.regs.Rip == r.before.RIP && r.m.CPU.RIP != r.before.RIP &&
			r.regs.Rcx == r.m.CPU.R[x86.RCX] {
			continue
		}
		return end, nil
	}
}

// compare executes the emulator's last instruction on the CPU too and compares
// all that it may have changed.
func (r *runner) compare(d *decoded) (done bool, err error) {
	row := ""
	if r.spoil != nil {
		if d != nil {
			row = d.name()
		}
		r.spoil(r, row)
	}
	end, err := r.native(d)
	if err != nil {
		return false, err
	}
	items := r.diffOutcome(end)
	now, flags := &r.m.CPU.State, uint64(checkpoint.FlagsMask)
	if d != nil && !r.undefined {
		if u := d.undefined(); u != 0 {
			flags &^= u
			r.stale = true
		}
	}
	if !sameRegs(&r.regs, now, flags) {
		items = append(items, diffRegs(&r.regs, now, flags)...)
	}
	if r.again || d == nil || d.class&isVector != 0 || r.res.Steps%vectorSteps == 0 {
		l, err := r.diffVector(d)
		if err != nil {
			return false, err
		}
		items = append(items, l...)
		r.vectorDiffers = len(l) > 0
	}
	l, err := r.diffStores(d)
	if err != nil {
		return false, err
	}
	items = append(items, l...)
	if _, have := r.mem.pages[r.suspect]; have && r.again && len(items) == 0 {
		o, is, err := r.mem.differs(r.suspect)
		if err != nil {
			return false, err
		}
		if is {
			item, err := r.memoryAt(r.suspect + uint64(o))
			if err != nil {
				return false, err
			}
			items = append(items, item)
		}
	}
	if len(items) == 0 {
		return false, nil
	}
	r.differ(d, items)
	return true, nil
}

// differ completes the Result with a difference.
func (r *runner) differ(d *decoded, items []Item) {
	x := &Difference{At: r.at, TID: r.m.TID(), RIP: r.before.RIP, Items: items, Row: "no instruction"}
	if d != nil {
		x.Bytes, x.Row = append([]byte(nil), d.bytes[:d.n]...), d.name()
	} else if r.spy.pc == r.before.RIP {
		x.Bytes = append([]byte(nil), r.spy.code[:r.spy.codeN]...)
	}
	x.Before = r.operands(d, &r.regs)
	r.res.Difference = x
}

// diffOutcome compares how the instruction ended: done, or with a fault.
func (r *runner) diffOutcome(end ending) []Item {
	theirs := "executed"
	switch {
	case end.syscall:
		theirs = "a system call"
	case end.hasAddr:
		theirs = fmt.Sprintf("signal %d at address %#x", end.sig, end.addr)
	case end.sig != 0:
		theirs = fmt.Sprintf("signal %d", end.sig)
	}
	ours := "executed"
	if e := r.m.Pending(); e != nil && e.Kind == checkpoint.EventFault && e.Signo != int32(syscall.SIGTRAP) {
		ours = fmt.Sprintf("signal %d", e.Signo)
		if f := r.m.CPU.Fault.Kind; f == x86.FaultNotMapped || f == x86.FaultProtection || f == x86.FaultBeyondEOF {
			ours = fmt.Sprintf("signal %d at address %#x", e.Signo, e.Addr)
			if f == x86.FaultBeyondEOF && end.hasAddr && end.addr == e.Addr {
				return nil // the child has nothing there at all: SIGSEGV for SIGBUS
			}
		}
	}
	if ours == theirs {
		return nil
	}
	return []Item{{"outcome", ours, theirs}}
}

// diffVector compares extended state. Results that are only nearly the
// same, where they may be, are replaced by the emulator's.
func (r *runner) diffVector(d *decoded) ([]Item, error) {
	n, err := ptrace.GetXState(r.c.pid, r.img)
	if err != nil {
		return nil, err
	}
	if err := r.theirs.SetXState(r.img[:n], &r.layout); err != nil {
		return nil, err
	}
	now := &r.m.CPU.State
	if sameX(now, &r.theirs) {
		return nil, nil
	}
	if d != nil && d.class&isApprox != 0 && isClose(now, &r.theirs) {
		r.res.Approximate++
		r.staleX = true
		return nil, nil
	}
	return diffX(now, &r.theirs), nil
}

// memoryAt makes an item of the memory at a, which differs: what is left of
// its aligned 16 bytes.
func (r *runner) memoryAt(a uint64) (Item, error) {
	n := 16 - a%16
	ours, theirs := make([]byte, n), make([]byte, n)
	got, _ := r.m.Mem.Peek(a, ours)
	_, err := ptrace.ReadMem(r.c.mem, theirs[:got], a)
	return memoryItem(a, ours[:got], theirs[:got]), err
}

// mark makes the present moment the one from which a stretch can be run
// again.
func (r *runner) mark() {
	if r.since != nil {
		r.since.Release()
	}
	r.since, r.sinceRes, r.marked = r.m.Save(), *r.res, r.res.Steps
}

// checkPages compares all pages. Where one differs, the stretch since the last
// time is run again with that page compared at each step: again is set.
func (r *runner) checkPages() (again bool, err error) {
	if r.again {
		return false, nil
	}
	a, is, err := r.mem.anyDiffers()
	if err != nil {
		return false, err
	}
	if !is {
		r.mark()
		return false, nil
	}
	return true, r.rewind(a)
}

// rewind goes back to the last moment at which all was the same, with the page
// of address a, or none, under suspicion.
func (r *runner) rewind(a uint64) error {
	r.again, r.suspect, r.seen = true, a&^(mem.PageSize-1), r.m.Position()
	r.m.Restore(r.since)
	*r.res = r.sinceRes
	r.stale, r.staleX = true, true
	return r.mem.forgetAll()
}

// narrow is called with the result complete. A difference may come from memory
// that differed before, or from extended state that was not compared at
// each step: then that is what to look for.
func (r *runner) narrow() (again bool, err error) {
	if r.res.Difference == nil || r.again {
		return false, nil
	}
	a, is, err := r.mem.anyDiffers()
	if err != nil {
		return false, err
	}
	for _, st := range r.spy.stores { // this instruction's own have been compared
		is = is && (a < st.addr || a >= st.addr+uint64(st.n))
	}
	if !is {
		a = 0
	}
	if !is && !r.vectorDiffers {
		return false, nil
	}
	r.first = r.res.Difference
	return true, r.rewind(a)
}
