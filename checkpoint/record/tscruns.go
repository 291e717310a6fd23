//go:build linux && amd64

package record

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// Programs in which RDTSC need not fault. Where it does, each switch between such a thread and another, the idle one
// included, writes CR4, which in a virtual machine takes 5 us: as much as a small server needs for a request. So for a program
// that is switched to often, all RDTSC and RDTSCP instructions of its code are looked for in its files. Where all are known the
// first byte of each becomes HLT while the thread runs, which faults in the very same way, and RDTSC itself runs again.
// HLT instructions are sites like those of the agent's jumps, and are taken out with these.
//
// Code that is not known ends it: what is mapped for execution and is no unchanged file, or one whose bytes leave a doubt.

// It is worth while to look through the code of threads that have been switched to so often, and more often where there is more code: so
// many bytes are looked through in the time that such a switch takes. That is looked at where an interval begins, and after so many stops.
const (
	switchesToCare = 1000
	bytesInSwitch  = 2500
	stopsToLook    = 128
)

// tscState is what is known of an address space's RDTSC instructions.
type tscState struct {
	stops  int  // of its threads
	due    bool // its threads are switched to so often that faults are dear
	known  bool // each is a site
	looked bool // the code was looked at as it is now, and is not known
	places tscPlaces
}

// tscFiles is what is known of files. They are looked through beside the recording, one at a time.
type tscFiles struct {
	files map[fileVersion]*tscFile
	queue chan *tscFile // nil until there is one
	left  atomic.Int32  // that are still to be looked through
}

// tscFile is a file that is looked through, or was.
type tscFile struct {
	r    *os.File
	v    fileVersion
	code foundCode // once none is left
	err  error     // likewise: nothing is known of it
}

// mostOpen is how many files may wait for it: each is open.
const mostOpen = 64

// of returns a file, which may still have to be looked through.
func (l *tscFiles) of(v fileVersion, path string) *tscFile {
	if f := l.files[v]; f != nil {
		return f
	}
	if l.files == nil {
		l.files = map[fileVersion]*tscFile{}
	}
	f := &tscFile{v: v}
	l.files[v] = f
	if f.r, f.err = os.Open(path); f.err != nil { // now: the process may have gone when it is its turn
		return f
	}
	if l.queue == nil {
		l.queue = make(chan *tscFile, mostOpen)
		go func(queue chan *tscFile) {
			for f := range queue {
				f.look()
				l.left.Add(-1)
			}
		}(l.queue)
	}
	l.left.Add(1)
	select {
	case l.queue <- f:
	default:
		l.left.Add(-1)
		f.r.Close()
		f.err = errLater
		delete(l.files, v)
	}
	return f
}

// errLater says that nothing is known of a file because too many wait.
var errLater = errors.New("too many files at once")

// look looks through the file, and closes it.
func (f *tscFile) look() {
	defer f.r.Close()
	var st unix.Stat_t
	switch err := unix.Fstat(int(f.r.Fd()), &st); {
	case err != nil:
		f.err = err
	case versionOf(&st) != f.v:
		f.err = fmt.Errorf("%s has changed", f.r.Name())
	default:
		f.code, f.err = findCode(f.r, &classTSC)
	}
}

// close has the search end behind the files that are to be looked through.
func (l *tscFiles) close() {
	if l.queue != nil {
		close(l.queue)
	}
	l.queue, l.files = nil, nil
}

// noteSwitches finds out whether the threads of the space are switched to often.
func (sp *space) noteSwitches() {
	if sp.tsc.due || sp.agent == nil {
		return
	}
	least := int64(cmp.Or(sp.session.opt.TSCAfter, switchesToCare))
	if least < 0 {
		sp.tsc.due = true
		return
	}
	least = max(least, int64(sp.codeSize()/bytesInSwitch))
	const most = 16 // threads that are asked for
	n := int64(0)
	for _, t := range sp.group.turns.threads[:min(most, len(sp.group.turns.threads))] {
		if t.space() != sp {
			continue
		}
		status, err := statusOf(t.tid)
		if err == nil {
			n += status.Number("voluntary_ctxt_switches") + status.Number("nonvoluntary_ctxt_switches")
		}
	}
	sp.tsc.due = n >= least
}

// codeSize returns how many bytes are mapped for execution.
func (sp *space) codeSize() (n uint64) {
	for _, m := range sp.maps.all() {
		if m.Prot&checkpoint.ProtExec != 0 {
			n += m.End - m.Start
		}
	}
	return n
}

// lookForTSC looks at the code of the space, if that is worth while and there is something new, and makes each
// RDTSC in it a site.
func (sp *space) lookForTSC() error {
	s, l := &sp.tsc, &sp.session.tscFiles
	if !s.due || s.known || s.looked || sp.agent == nil || l.left.Load() > 0 {
		return nil
	}
	list, ok := sp.codeFiles()
	for _, m := range list {
		m.tsc = l.of(m.version, m.path)
	}
	if l.left.Load() > 0 {
		return nil // not yet
	}
	s.looked = true
	for _, m := range list {
		ok = ok && m.tsc.err == nil
	}
	if !ok {
		return nil
	}
	if err := sp.ownCode(); err != nil { // it is compared
		return err
	}
	var sites []*site
	for _, m := range list {
		more, ok := m.sites(sp, siteTSC, &m.tsc.code)
		if !ok {
			sp.session.log.Debug().Int("pid", sp.pid).Str("file", m.path).Msg("RDTSC has to fault: the code is not known")
			return nil
		}
		sites = append(sites, more...)
	}
	s.known = sp.addHalts(sites)
	return sp.writeHalts()
}

// guardCode is called before the thread runs its own code by next, which may change: RDTSC must fault in it, one way or the other.
func (t *thread) guardTSC(next *action) error {
	sp := t.space()
	if sp.session.haltsTSC {
		return nil
	}
	if sp.tsc.stops++; sp.tsc.stops%stopsToLook == 0 || sp.session.opt.TSCAfter < 0 {
		sp.noteSwitches()
	}
	if err := sp.lookForTSC(); err != nil {
		return err
	}
	if !t.tscRuns || sp.tsc.known || next.req == ptrace.Listen || t.group().done {
		return nil
	}
	if sig := next.sig; sig != 0 { // a call that is injected takes its place, so it comes once more
		next.sig = 0
		if err := t.session.source.send(t.proc.pid, t.tid, unix.Signal(sig)); err != nil {
			return err
		}
	}
	return t.letTSC(false)
}

// letTSC has RDTSC run in the thread, or fault. Calls can be injected at the stop.
func (t *thread) letTSC(run bool) error {
	if t.tscRuns == run || !t.proc.trap.tsc || t.session.haltsTSC {
		return nil
	}
	how := uint64(prTSCSegv)
	if run {
		how = prTSCEnable
	}
	ret, err := t.callOnce(unix.SYS_PRCTL, prSetTSC, how)
	if err == nil && ret == 0 {
		t.tscRuns = run
		if run {
			t.session.result.Stats.TSCRuns++
		}
	}
	return err
}

// letTSCInCall has RDTSC run while the thread makes the call at whose entry it is. That is one that executes a program, whose loader has
// that instruction, or makes a process that may do so: if the recorder is killed before it has seen what comes of it, nobody else can
// have RDTSC run there. It faults again before the new program runs (arm), and before this thread, or its child, runs its own code.
func (t *thread) letTSCInCall() error {
	if t.tscRuns || !t.proc.trap.tsc || t.proc.trap.ownTSC || t.session.guard == nil || t.hasOwnFilter() {
		return nil
	}
	entry, before := t.regs, t.regs
	beforeCall(&before, entry.Orig_rax)
	own, u := t.withBlock(&before), t.session.guard.of(t.tid)
	u.lend(maskBorrowed, &own, t.sig.mask)
	defer u.returned()
	err := t.undo()
	if err == nil {
		err = t.enterWithTSC()
	}
	if t.regs = entry; err != nil { // killed there
		return err
	}
	return t.readRegs()
}

// enterWithTSC has RDTSC run in the thread, which stands before a call, and has it come to the entry of that.
func (t *thread) enterWithTSC() error {
	in, err := t.session.source.inject(t.proc.pid, t.tid, t.space().site)
	if err != nil {
		return err
	}
	ret, err := in.do(unix.SYS_PRCTL, prSetTSC, prTSCEnable)
	if err != nil {
		return err
	}
	t.tscRuns = ret == 0
	return in.enter()
}
