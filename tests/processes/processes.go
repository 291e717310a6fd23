// Package processes writes recordings of several processes by hand, for the tests of all
// that must keep processes apart: the format, replay, slimming, debuggers and the command.
//
// The family is [Parent], a shell; [Crashed], its child, which has executed a compiler and
// dies of SIGSEGV there; and [Exited], a child of two threads that ends with [ExitCode].
// Their intervals alternate. All have the same addresses, at which each has memory of its
// own, so that a process shown with another one's memory is noticed. Every interval replays.
package processes

import (
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"vplay/checkpoint"
)

// The PIDs, and how one of them ends.
const (
	Parent   = 10
	Crashed  = 20
	Exited   = 30
	Waiting  = 31 // the second thread of Exited, inside a call
	ExitCode = 3
)

// Places in the memory of each process.
const (
	Code   = 0x401000 // add $1, %eax; mov $Stack, %esp; syscall
	End    = Code + 10
	PIDAt  = Code + 0x100
	Faults = Code + 0x20 // add $1, %eax; mov $Stack, %esp; mov (%rax), %cl, which faults at address 1
	Fault  = Faults + 8
	Data   = 0x402000 // a page that begins with the PID, and with its negative at the end
	Stack  = 0x405000 // begins with 1000 times the PID; the program does not use it, debuggers do at the end
	Junk   = 0x500000 // pages that nobody uses
)

// junkPages is how many pages each process has that slimming drops.
const junkPages = 4

// Options say what differs from the family as it is.
type Options struct {
	About    int32 // Manifest.PID; 0 stands for Crashed
	Signo    int32 // by which Crashed ended, in the list; 0 stands for SIGSEGV
	Diverges int32 // a process whose last interval does not replay
	Alone    int32 // a process that is alone in the recording
	NoFinal  bool  // there are no final images
}

// intervals are the family's, by ID.
var intervals = []struct {
	pid   int32
	image uint32
	end   checkpoint.EndKind
}{
	{Parent, 0, checkpoint.EndSync},
	{Crashed, 0, checkpoint.EndExec},
	{Parent, 0, checkpoint.EndSync},
	{Crashed, 1, checkpoint.EndSync},
	{Exited, 0, checkpoint.EndExit},
	{Parent, 0, checkpoint.EndStop},
	{Crashed, 1, checkpoint.EndCrash},
}

// Of returns the IDs of a process's intervals: those of each image together.
func Of(pid int32) [][]uint32 {
	return map[int32][][]uint32{Parent: {{0, 2, 5}}, Crashed: {{1}, {3, 6}}, Exited: {{4}}}[pid]
}

// Rows are the family's processes.
func Rows() []checkpoint.Process {
	return []checkpoint.Process{
		{PID: Parent, Program: "/bin/sh", Args: []string{"sh", "-c", "cc1 weather.c; true"}, Cwd: "/src"},
		{PID: Crashed, Parent: Parent, Image: 1, Program: "/usr/lib/cc1", Args: []string{"cc1", "weather.c"}, Cwd: "/src", Signo: 11},
		{PID: Exited, Parent: Parent, Program: "/bin/true", Args: []string{"true"}, Cwd: "/", ExitCode: ExitCode},
	}
}

// Write writes the family to a file that ends with the test, and returns its path.
func Write(t testing.TB, o Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "family.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	check(t, err)
	last := map[int32]int{}
	for id := range intervals {
		last[intervals[id].pid] = id
	}
	for id := range intervals {
		pid := intervals[id].pid
		if o.Alone != 0 && pid != o.Alone {
			continue
		}
		iv := interval(t, w, uint32(id))
		if pid == o.Diverges && last[pid] == id {
			iv.Events[len(iv.Events)-1].RegHash++
		}
		check(t, w.AddInterval(iv))
		if last[pid] == id && !o.NoFinal {
			f := &checkpoint.Final{Contexts: iv.End.Contexts, Maps: iv.Maps, Signo: iv.End.Signo, Pages: []checkpoint.PageEntry{{Addr: Data, Ref: number(t, w, -int64(pid))}}}
			check(t, w.SetFinalOf(pid, f))
		}
	}
	check(t, w.Finish(manifest(o)))
	return path
}

// Open opens the family for the length of a test.
func Open(t testing.TB, o Options) *checkpoint.Recording {
	t.Helper()
	rec, err := checkpoint.Open(Write(t, o))
	check(t, err)
	t.Cleanup(func() { _ = rec.Close() }) // it was read only
	return rec
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func manifest(o Options) checkpoint.Manifest {
	m := checkpoint.Manifest{PID: o.About, Hostname: "host", Kernel: "6.1", CPU: checkpoint.Identity{Vendor: "GenuineIntel", XCR0: 3}}
	switch {
	case o.Alone != 0:
		m.PID = o.Alone
	case o.About == 0:
		m.PID = Crashed
	}
	for _, p := range Rows() {
		if p.PID == Crashed && o.Signo != 0 {
			p.Signo = o.Signo
		}
		if p.PID == m.PID {
			m.Parent, m.Program, m.Args, m.Cwd, m.Signo, m.ExitCode = p.Parent, p.Program, p.Args, p.Cwd, p.Signo, p.ExitCode
			m.Crash = p.Signo != 0
		} else if o.Alone == 0 {
			m.Processes = append(m.Processes, p)
		}
	}
	return m
}

// number adds a page that begins with a number.
func number(t testing.TB, w *checkpoint.Writer, n int64) checkpoint.PageRef {
	t.Helper()
	page := make([]byte, checkpoint.PageSize)
	binary.LittleEndian.PutUint64(page, uint64(n))
	ref, err := w.AddPage(page)
	check(t, err)
	return ref
}

// interval makes an interval, whose number is in rbx at its start.
func interval(t testing.TB, w *checkpoint.Writer, id uint32) *checkpoint.Interval {
	t.Helper()
	of := &intervals[id]
	code := make([]byte, checkpoint.PageSize)
	copy(code, []byte{0x83, 0xc0, 0x01, 0xbc, 0x00, 0x50, 0x40, 0x00, 0x0f, 0x05})
	copy(code[Faults-Code:], []byte{0x83, 0xc0, 0x01, 0xbc, 0x00, 0x50, 0x40, 0x00, 0x8a, 0x08})
	code[PIDAt-Code] = byte(of.pid)
	ref, err := w.AddPage(code)
	check(t, err)
	runs := checkpoint.Context{TID: of.pid, XState: make([]byte, 576), OrigRAX: -1}
	runs.Regs.RIP, runs.Regs.RFLAGS, runs.Regs.R[3] = Code, 0x202, uint64(id)
	after := runs
	after.Regs.R[0], after.Regs.R[4] = 1, Stack
	var e checkpoint.Event
	if of.end == checkpoint.EndCrash {
		runs.Regs.RIP, after.Regs.RIP = Faults, Fault
		e = checkpoint.Event{Kind: checkpoint.EventFault, Signo: 11, Addr: 1}
	} else {
		after.Regs.RIP, after.Regs.R[1], after.Regs.R[11] = End, End, 0x202
		e = checkpoint.Event{Kind: checkpoint.EventEnter, NR: 1}
	}
	e.TID, e.RegHash, e.Seq = of.pid, checkpoint.HashRegs(&after.Regs), uint64(id)+1
	pages := []checkpoint.PageEntry{{Addr: Code, Ref: ref}, {Addr: Data, Ref: number(t, w, int64(of.pid))}, {Addr: Stack, Ref: number(t, w, 1000*int64(of.pid))}}
	iv := &checkpoint.Interval{
		ID: id, PID: of.pid, Image: of.image, Start: []checkpoint.Context{runs},
		Maps: []checkpoint.Mapping{
			{Start: Code, End: Code + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtExec},
			{Start: Data, End: Data + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtWrite},
			{Start: Stack, End: Stack + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtWrite},
		},
		Pages:  append(pages, junk(t, w, of.pid)...),
		Events: []checkpoint.Event{e},
		End:    checkpoint.End{Kind: of.end, Contexts: []checkpoint.Context{after}, CPUTime: time.Millisecond},
	}
	switch of.end {
	case checkpoint.EndCrash:
		iv.End.Signo = 11
	case checkpoint.EndExit:
		iv.End.ExitCode = ExitCode
	default: // The kind says all.
	}
	if of.pid == Exited {
		waits := checkpoint.Context{TID: Waiting, InCall: true, XState: make([]byte, 576), Name: "waits"}
		waits.Regs.RIP, waits.Regs.RFLAGS = End, 0x202
		iv.Start, iv.End.Contexts = append(iv.Start, waits), append(iv.End.Contexts, waits)
	}
	return iv
}

// junk adds the pages that nobody uses.
func junk(t testing.TB, w *checkpoint.Writer, pid int32) (table []checkpoint.PageEntry) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(pid), 1))
	for i := range uint64(junkPages) {
		page := make([]byte, checkpoint.PageSize)
		for i := range page {
			page[i] = byte(r.Uint32())
		}
		ref, err := w.AddPage(page)
		check(t, err)
		table = append(table, checkpoint.PageEntry{Addr: Junk + i*checkpoint.PageSize, Ref: ref})
	}
	return table
}
