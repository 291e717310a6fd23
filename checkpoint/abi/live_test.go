//go:build linux && amd64

package abi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"vplay/tests/need"
)

// TestAgainstTheKernel is the table's oracle: a Python program makes many
// system calls under ptrace; all its writable memory is compared before and
// after each, and every byte that changed must be in a range that Outputs lists,
// even when Outputs has the hints that make it tight.
func TestAgainstTheKernel(t *testing.T) {
	need.Ptrace(t)
	python := need.Python(t)
	args := []string{"-I", "-S", "testdata/live.py"}
	for _, s := range Table() {
		args = append(args, fmt.Sprintf("%s=%d", s.Name, s.NR))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer pin(t)()
	cmd := exec.Command(python, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := &live{t: t, pid: cmd.Process.Pid, seen: map[string]int{}}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	l.run()
	if t.Failed() {
		t.Log(stderr.String())
	}
	l.report()
}

type live struct {
	t       *testing.T
	pid     int
	mem     *os.File
	active  bool // between the two marks
	stopped bool
	seen    map[string]int
	checked int
	maps    []liveMap
	arenas  [2][]byte // page contents before and after a call
}

type liveMap struct{ start, end uint64 }

func (l *live) ReadAt(addr uint64, b []byte) int {
	n, _ := l.mem.ReadAt(b, int64(addr))
	return n
}

func (l *live) Writable(addr, n uint64) bool {
	for _, m := range l.maps {
		if addr >= m.start && addr < m.end {
			if n <= m.end-addr {
				return true
			}
			n -= m.end - addr
			addr = m.end
		}
	}
	return n == 0
}

func (l *live) Datagram(int32) bool { return false }

// run takes the program from call to call until it exits.
func (l *live) run() {
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(l.pid, &ws, 0, nil); err != nil {
		l.t.Fatal(err)
	}
	if err := syscall.PtraceSetOptions(l.pid, syscall.PTRACE_O_TRACESYSGOOD); err != nil {
		l.t.Fatal(err)
	}
	l.open()
	defer func() { l.mem.Close() }()
	for inside, sig := false, 0; ; {
		if err := syscall.PtraceSyscall(l.pid, sig); err != nil {
			l.t.Fatal(err)
		}
		if _, err := syscall.Wait4(l.pid, &ws, 0, nil); err != nil {
			l.t.Fatal(err)
		}
		sig = 0
		switch {
		case ws.Exited() && ws.ExitStatus() == 0 && l.stopped:
			return
		case ws.Exited(), ws.Signaled():
			l.t.Errorf("the program ended early: %v", ws)
			return
		case ws.StopSignal() != syscall.SIGTRAP|0x80:
			if ws.StopSignal() != syscall.SIGTRAP {
				sig = int(ws.StopSignal())
			}
		case !inside:
			inside = true
			l.enter()
		default:
			inside = false
			l.exit()
		}
	}
}

func (l *live) open() {
	if l.mem != nil {
		l.mem.Close()
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", l.pid))
	if err != nil {
		l.t.Fatal(err)
	}
	l.mem = f
}

var liveState struct {
	nr     int64
	args   [6]uint64
	before map[uint64][]byte
}

func (l *live) regs() *syscall.PtraceRegs {
	var r syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(l.pid, &r); err != nil {
		l.t.Fatal(err)
	}
	return &r
}

func (l *live) enter() {
	r := l.regs()
	st := &liveState
	st.nr, st.args = int64(r.Orig_rax), [6]uint64{r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9}
	st.before = nil
	if st.nr == SYS_RSEQ { // it would write at any time
		r.Orig_rax = ^uint64(0)
		if err := syscall.PtraceSetRegs(l.pid, r); err != nil {
			l.t.Fatal(err)
		}
	}
	if l.active {
		st.before = l.snapshot(0)
	}
}

func (l *live) exit() {
	st := &liveState
	r := l.regs()
	switch st.nr {
	case SYS_EXECVE:
		l.open()
		return
	case SYS_ACCESS, SYS_FACCESSAT:
		if path, _, _ := readString(l, st.args[0], 64); strings.HasPrefix(string(path), "/vplay-live-") {
			l.active = bytes.HasSuffix(path, []byte("start"))
			l.stopped = !l.active
		}
	}
	if st.before == nil {
		return
	}
	l.compare(int64(r.Rax))
}

// compare checks the call that has just returned.
func (l *live) compare(ret int64) {
	st := &liveState
	after := l.snapshot(1) // first: it refreshes the maps
	l.seen[Name(st.nr)]++
	effect, _ := EffectOf(st.nr, st.args)
	if effect == EffectMem {
		return // pages come and go
	}
	tight, err := Outputs(nil, l, st.nr, st.args, ret)
	if err != nil {
		return
	}
	loose, err := Outputs(nil, struct{ Memory }{l}, st.nr, st.args, ret)
	if err != nil {
		l.t.Errorf("%s: listed with hints, opaque without", Name(st.nr))
	}
	l.checked++
	changed := changedBytes(st.before, after)
	for _, listed := range [][]Range{tight, loose} {
		for _, addr := range changed {
			if !inRanges(listed, addr) {
				l.t.Errorf("%s = %s: the byte at %#x changed; listed %x", Format(l, st.nr, st.args), FormatResult(st.nr, ret), addr, listed)
				break
			}
		}
	}
}

// changedBytes returns the addresses of the bytes that differ. A page that was
// not present before was zero.
func changedBytes(before, after map[uint64][]byte) []uint64 {
	var addrs []uint64
	zero := make([]byte, PageSize)
	for page, now := range after {
		was := before[page]
		if was == nil {
			was = zero
		}
		if bytes.Equal(was, now) {
			continue
		}
		for i := range now {
			if now[i] != was[i] {
				addrs = append(addrs, page+uint64(i))
			}
		}
	}
	return addrs
}

func inRanges(rs []Range, addr uint64) bool {
	for _, r := range rs {
		if addr-r.Addr < r.Len {
			return true
		}
	}
	return false
}

// snapshot returns the present pages of all writable private memory, and keeps
// the writable ranges for the hints. The pages lie in the given arena and are good
// until its next use.
func (l *live) snapshot(arena int) map[uint64][]byte {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", l.pid))
	if err != nil {
		l.t.Fatal(err)
	}
	pagemap, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", l.pid))
	if err != nil {
		l.t.Fatal(err)
	}
	defer pagemap.Close()
	l.maps = l.maps[:0]
	l.arenas[arena] = l.arenas[arena][:0]
	pages := map[uint64][]byte{}
	for _, line := range strings.Split(string(text), "\n") {
		span, rest, _ := strings.Cut(line, " ")
		low, high, ok := strings.Cut(span, "-")
		if !ok || len(rest) < 2 || rest[1] != 'w' {
			continue
		}
		start, err1 := strconv.ParseUint(low, 16, 64)
		end, err2 := strconv.ParseUint(high, 16, 64)
		if err1 != nil || err2 != nil {
			l.t.Fatalf("maps: %q", line)
		}
		l.maps = append(l.maps, liveMap{start, end})
		l.presentPages(arena, pages, pagemap, start, end)
	}
	return pages
}

func (l *live) presentPages(arena int, pages map[uint64][]byte, pagemap *os.File, start, end uint64) {
	entries := make([]byte, (end-start)/PageSize*8)
	if _, err := pagemap.ReadAt(entries, int64(start/PageSize*8)); err != nil {
		return
	}
	for i := uint64(0); i < uint64(len(entries)/8); {
		run := i
		for run < uint64(len(entries)/8) && binary.LittleEndian.Uint64(entries[run*8:])>>62 != 0 {
			run++
		}
		if run == i {
			i++
			continue
		}
		size := int((run - i) * PageSize)
		a := slices.Grow(l.arenas[arena], size)
		data := a[len(a) : len(a)+size]
		l.arenas[arena] = a[:len(a)+size]
		if l.ReadAt(start+i*PageSize, data) == len(data) {
			for j := range run - i {
				pages[start+(i+j)*PageSize] = data[j*PageSize : (j+1)*PageSize]
			}
		}
		i = run
	}
}

// report says which rows were exercised, and fails when suspiciously few were.
func (l *live) report() {
	names := make([]string, 0, len(l.seen))
	for n := range l.seen {
		names = append(names, n)
	}
	slices.Sort(names)
	l.t.Logf("%d calls of %d rows compared: %s", l.checked, len(names), strings.Join(names, " "))
	if l.checked < 500 {
		l.t.Errorf("only %d calls compared", l.checked)
	}
}
