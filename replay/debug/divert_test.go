package debug

import (
	"context"
	"encoding/binary"
	"math/rand"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug/api"
	"vplay/replay/x86"
)

// demo is the folder with the recording of vplayd demo, which any machine has.
const demo = "../../cmd/vplayd/demo"

// openFile opens a recording for the length of a test.
func openFile(t testing.TB, path string) *Cursor {
	t.Helper()
	return openWith(t, path, loader.NewSymbols([]string{demo}, false))
}

// openWith opens a recording with a finder of symbol files.
func openWith(t testing.TB, path string, symbols *image.Symbols) *Cursor {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := replay.NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(s, 64<<20, symbols)
	if err != nil {
		t.Fatal(err)
	}
	g, err := d.NewCursor()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Close()
		d.Close()
		s.Close()
		rec.Close()
	})
	return g
}

// openDemo opens the recording of the demo.
func openDemo(t testing.TB) *Cursor { return openFile(t, filepath.Join(demo, "weather.vplay")) }

// probe is a diversion with a page of code of the test's own.
type probe struct {
	*Cursor
	t    *testing.T
	at   uint64 // the page
	said strings.Builder
}

func divertDemo(t *testing.T) *probe {
	t.Helper()
	p := &probe{Cursor: openDemo(t), t: t}
	if err := p.Divert(func(b []byte) { p.said.Write(b) }); err != nil {
		t.Fatal(err)
	}
	at, err := p.AllocateMemory(4096, 7)
	if err != nil {
		t.Fatal(err)
	}
	p.at = at
	return p
}

// put writes code or data to the page.
func (p *probe) put(off int, b string) uint64 {
	p.t.Helper()
	if err := p.WriteMemory(p.at+uint64(off), []byte(b)); err != nil {
		p.t.Fatal(err)
	}
	return p.at + uint64(off)
}

// run runs code in the page, with rax and the arguments of a system call.
func (p *probe) run(ctx context.Context, kind api.ResumeKind, code string, nr int64, args ...uint64) (api.Stop, error) {
	p.t.Helper()
	r, err := p.Registers(p.tid())
	if err != nil {
		p.t.Fatal(err)
	}
	r.RIP, r.GPR[x86.RAX] = p.put(0, code), uint64(nr)
	for i, a := range args {
		r.GPR[[6]int{x86.RDI, x86.RSI, x86.RDX, x86.R10, x86.R8, x86.R9}[i]] = a
	}
	if err := p.WriteRegisters(p.tid(), r); err != nil {
		p.t.Fatal(err)
	}
	return p.ResumeDiverted(ctx, api.Resume{Kind: kind}, false)
}

const syscallCode = "\x0f\x05"

// call makes one system call.
func (p *probe) call(nr int64, args ...uint64) int64 {
	p.t.Helper()
	if stop, err := p.run(p.t.Context(), api.Step, syscallCode, nr, args...); err != nil || stop.Kind != api.StopStep {
		p.t.Fatalf("system call %d: %+v, %v", nr, stop, err)
	}
	return int64(p.state().R[x86.RAX])
}

func (p *probe) word(a uint64) uint64 {
	p.t.Helper()
	var b [8]byte
	if n, err := p.ReadMemory(a, b[:]); n < 8 {
		p.t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b[:])
}

// TestDivertedCalls asks the model of the kernel.
func TestDivertedCalls(t *testing.T) {
	p := divertDemo(t)
	fail := func(e abi.Errno) int64 { return -int64(e) }
	text := p.put(0x100, "hello\n")
	vec := make([]byte, 32)
	binary.LittleEndian.PutUint64(vec, text)
	binary.LittleEndian.PutUint64(vec[8:], 4)
	binary.LittleEndian.PutUint64(vec[16:], text+4)
	binary.LittleEndian.PutUint64(vec[24:], 2)
	iov := p.put(0x200, string(vec))
	out := p.put(0x400, strings.Repeat("\xff", 0x200))
	const bad = 0x1000
	for _, c := range []struct {
		name string
		nr   int64
		args []uint64
		want int64
	}{
		{"write", abi.SYS_WRITE, []uint64{1, text, 6}, 6},
		{"writev", abi.SYS_WRITEV, []uint64{2, iov, 2}, 6},
		{"write elsewhere", abi.SYS_WRITE, []uint64{77, text, 6}, fail(abi.EBADF)},
		{"write nothing", abi.SYS_WRITE, []uint64{1, bad, 6}, fail(abi.EFAULT)},
		{"writev of many", abi.SYS_WRITEV, []uint64{1, iov, 5000}, fail(abi.EINVAL)},
		{"fstat", abi.SYS_FSTAT, []uint64{1, out}, 0},
		{"newfstatat", abi.SYS_NEWFSTATAT, []uint64{1, text, out, 0x1000}, 0},
		{"newfstatat of a path", abi.SYS_NEWFSTATAT, []uint64{1, text, out, 0}, fail(abi.ENOSYS)},
		{"tcgets", abi.SYS_IOCTL, []uint64{1, 0x5401, out}, 0},
		{"ioctl", abi.SYS_IOCTL, []uint64{1, 0x5402, out}, fail(abi.ENOTTY)},
		{"lseek", abi.SYS_LSEEK, []uint64{1, 0, 0}, fail(abi.ESPIPE)},
		{"getpid", abi.SYS_GETPID, nil, int64(p.Process().PID)},
		{"gettid", abi.SYS_GETTID, nil, int64(p.tid())},
		{"getrandom", abi.SYS_GETRANDOM, []uint64{out, 16}, 16},
		{"getrandom nowhere", abi.SYS_GETRANDOM, []uint64{bad, 16}, fail(abi.EFAULT)},
		{"getcpu", abi.SYS_GETCPU, []uint64{out, 0}, 0},
		{"clock_gettime", abi.SYS_CLOCK_GETTIME, []uint64{abi.CLOCK_MONOTONIC, out}, 0},
		{"clock_getres", abi.SYS_CLOCK_GETRES, []uint64{0, out}, 0},
		{"gettimeofday", abi.SYS_GETTIMEOFDAY, []uint64{out, 0}, 0},
		{"time nowhere", abi.SYS_TIME, []uint64{bad}, fail(abi.EFAULT)},
		{"nanosleep", abi.SYS_NANOSLEEP, nil, 0},
		{"sigprocmask", abi.SYS_RT_SIGPROCMASK, []uint64{abi.SIG_BLOCK, text, out, 8}, 0},
		{"sigprocmask of another kind", abi.SYS_RT_SIGPROCMASK, []uint64{9, text, out, 8}, fail(abi.EINVAL)},
		{"sigaction", abi.SYS_RT_SIGACTION, []uint64{2, 0, out, 8}, 0},
		{"futex wake", abi.SYS_FUTEX, []uint64{out, 0x80 | abi.FUTEX_WAKE, 1}, 0},
		{"futex wait for what has changed", abi.SYS_FUTEX, []uint64{text, abi.FUTEX_WAIT, 1}, fail(abi.EAGAIN)},
		{"kill another", abi.SYS_KILL, []uint64{1, 9}, fail(abi.ESRCH)},
		{"kill with nothing", abi.SYS_TGKILL, []uint64{1, uint64(p.tid()), 0}, 0},
		{"open", abi.SYS_OPEN, []uint64{text, 0}, fail(abi.ENOSYS)},
		{"a number that no kernel has", 9999, nil, fail(abi.ENOSYS)},
		{"mmap of a file", abi.SYS_MMAP, []uint64{0, 4096, 3, abi.MAP_PRIVATE, 3, 0}, fail(abi.ENODEV)},
		{"mmap of nothing", abi.SYS_MMAP, []uint64{0, 0, 3, abi.MAP_PRIVATE | abi.MAP_ANONYMOUS}, fail(abi.EINVAL)},
		{"mmap of too much", abi.SYS_MMAP, []uint64{0, 1 << 60, 3, abi.MAP_PRIVATE | abi.MAP_ANONYMOUS}, fail(abi.ENOMEM)},
		{"mmap where something is", abi.SYS_MMAP, []uint64{p.at, 4096, 3, abi.MAP_ANONYMOUS | abi.MAP_FIXED_NOREPLACE}, fail(abi.EEXIST)},
		{"mmap in the kernel", abi.SYS_MMAP, []uint64{1 << 63, 4096, 3, abi.MAP_ANONYMOUS | abi.MAP_FIXED}, fail(abi.EINVAL)},
		{"munmap of what is not aligned", abi.SYS_MUNMAP, []uint64{p.at + 1, 4096}, fail(abi.EINVAL)},
		{"mprotect of a hole", abi.SYS_MPROTECT, []uint64{0x10000, 4096, 1}, fail(abi.ENOMEM)},
		{"madvise of a hole", abi.SYS_MADVISE, []uint64{0x10000, 4096, 4}, fail(abi.ENOMEM)},
		{"mremap of a hole", abi.SYS_MREMAP, []uint64{0x10000, 4096, 8192, 1}, fail(abi.EFAULT)},
	} {
		if got := p.call(c.nr, c.args...); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if s := p.said.String(); !strings.HasPrefix(s, strings.Repeat("hello\n", 2)) || !strings.Contains(s, "open gets ENOSYS") {
		t.Errorf("output %q", s)
	}
}

// TestDivertedMemory maps, moves, drops and unmaps.
func TestDivertedMemory(t *testing.T) {
	p := divertDemo(t)
	const anon = abi.MAP_PRIVATE | abi.MAP_ANONYMOUS
	a := uint64(p.call(abi.SYS_MMAP, 0, 8192, 3, anon))
	if a%4096 != 0 || p.word(a+8000) != 0 {
		t.Fatalf("mmap gives %#x", a)
	}
	if err := p.WriteMemory(a, []byte("12345678")); err != nil {
		t.Fatal(err)
	}
	was := p.word(a)
	b := uint64(p.call(abi.SYS_MREMAP, a, 8192, 1<<20, abi.MREMAP_MAYMOVE))
	if int64(b) < 0 || p.word(b) != was || p.word(b+1<<20-8) != 0 {
		t.Fatalf("mremap gives %#x", b)
	}
	if r := p.call(abi.SYS_MREMAP, b, 1<<20, 4096, 0); uint64(r) != b {
		t.Errorf("shrinking gives %#x", r)
	}
	if n, _ := p.ReadMemory(b+4096, make([]byte, 1)); n != 0 {
		t.Error("the tail is still there")
	}
	if r := p.call(abi.SYS_MADVISE, b, 4096, abi.MADV_DONTNEED); r != 0 || p.word(b) != 0 {
		t.Errorf("madvise: %d, %#x", r, p.word(b))
	}
	if r := p.call(abi.SYS_MPROTECT, b, 4096, 1); r != 0 {
		t.Errorf("mprotect: %d", r)
	}
	if stop, _ := p.run(t.Context(), api.Step, "\xc6\x07\x01", 0, b); stop.Kind != api.StopSignal || stop.Signo != int(abi.SIGSEGV) {
		t.Errorf("a store to it: %+v", stop)
	}
	if info, err := p.Siginfo(p.tid()); err != nil || binary.LittleEndian.Uint64(info[16:]) != b {
		t.Errorf("siginfo %x, %v", info, err)
	}
	if r := p.call(abi.SYS_MUNMAP, b, 4096); r != 0 {
		t.Errorf("munmap: %d", r)
	}
	now := p.call(abi.SYS_BRK, 0)
	if now != 0 { // the demo has a heap
		if r := p.call(abi.SYS_BRK, uint64(now)+10000); r != now+10000 || p.word(uint64(now)+9000) != 0 {
			t.Errorf("brk: %#x, was %#x", r, now)
		}
		if r := p.call(abi.SYS_BRK, 5); r != now+10000 {
			t.Errorf("brk of nonsense: %#x", r)
		}
	}
	maps := 0
	for ; maps < 100 && p.call(abi.SYS_MMAP, 0, 1<<28, 3, anon) > 0; maps++ {
	}
	if maps < 10 || maps > 16 {
		t.Errorf("%d mappings of 256 MiB", maps)
	}
	if err := p.FreeMemory(p.at); err != nil {
		t.Error(err)
	}
}

// TestDivertedStops: what ends a run, and how soon.
func TestDivertedStops(t *testing.T) {
	p := divertDemo(t)
	ctx, cancel := context.WithCancel(t.Context())
	var at time.Time
	time.AfterFunc(50*time.Millisecond, func() { at = time.Now(); cancel() })
	stop, err := p.run(ctx, api.Continue, "\xeb\xfe", 0)
	if d := time.Since(at); err != nil || stop.Kind != api.StopInterrupted || d > time.Second { // 2 ms on an idle machine
		t.Errorf("%+v, %v, %v after the interrupt", stop, err, d)
	}
	for _, c := range []struct {
		name, code string
		nr         int64
		args       []uint64
		kind       api.StopKind
		Value      int
	}{
		{"exit", syscallCode, abi.SYS_EXIT_GROUP, []uint64{7}, api.StopExited, 7},
		{"abort", syscallCode, abi.SYS_TGKILL, []uint64{1, uint64(p.tid()), 6}, api.StopSignal, 6},
		{"int3", "\xcc", 0, nil, api.StopSignal, 5},
		{"ud2", "\x0f\x0b", 0, nil, api.StopSignal, 4},
		{"division", "\x31\xc9\xf7\xf1", 0, nil, api.StopSignal, 8},
		{"wild jump", "\xff\xe7", 0, []uint64{0x10}, api.StopSignal, 11},
		{"not canonical", "\xff\x27", 0, []uint64{1 << 62}, api.StopSignal, 11},
	} {
		stop, err := p.run(t.Context(), api.Continue, c.code, c.nr, c.args...)
		if err != nil || stop.Kind != c.kind || stop.Signo+stop.Code != c.Value {
			t.Errorf("%s: %+v, %v", c.name, stop, err)
		}
	}
	// To wait for a lock is to wait for ever.
	lock := p.put(0x300, "\x02\x00\x00\x00")
	if _, err := p.run(t.Context(), api.Continue, syscallCode, abi.SYS_FUTEX, lock, abi.FUTEX_WAIT, 2); err == nil || !strings.Contains(err.Error(), "waits") {
		t.Errorf("futex: %v", err)
	}
	if rip := p.state().RIP; rip != p.at {
		t.Errorf("stands at %#x, not before the call", rip)
	}
	// rdtsc and cpuid are answered by the recorded CPU.
	for _, code := range []string{"\x0f\x31", "\x0f\x01\xf9", "\x0f\xa2"} {
		if stop, err := p.run(t.Context(), api.Step, code, 0); err != nil || stop.Kind != api.StopStep || p.state().RIP != p.at+uint64(len(code)) {
			t.Errorf("% x: %+v, %v", code, stop, err)
		}
	}
}

// TestDivertedRegisters: what is written is what is read, and writing what is there
// changes nothing that the machine knows.
func TestDivertedRegisters(t *testing.T) {
	p := divertDemo(t)
	before := *p.state()
	r, err := p.Registers(p.tid())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WriteRegisters(p.tid(), r); err != nil || *registersOf(p.state()) != *r || p.state().NotInUse != before.NotInUse || p.state().FPU != before.FPU {
		t.Errorf("writing back changes something: %v", err)
	}
	rng := rand.New(rand.NewSource(1))
	for range 100 {
		w := *r
		for i := range w.GPR {
			w.GPR[i] = rng.Uint64()
		}
		for i := range w.YMM {
			w.YMM[i] = [4]uint64{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64()}
		}
		for i := range w.ST {
			rng.Read(w.ST[i][:])
		}
		w.RIP, w.FSBase, w.GSBase, w.MXCSR = rng.Uint64(), rng.Uint64(), rng.Uint64(), 0x1f80|rng.Uint32()&0x3f
		w.FSW, w.FTW = uint16(rng.Intn(8))<<11, 0xffff
		if err := p.WriteRegisters(p.tid(), &w); err != nil {
			t.Fatal(err)
		}
		if got := registersOf(p.state()); *got != w {
			t.Fatalf("got  %+v\nwant %+v", *got, w)
		}
	}
}

// BenchmarkDivert makes a copy of the process, changes it and throws it away.
func BenchmarkDivert(b *testing.B) {
	g := openDemo(b)
	sp := g.state().R[x86.RSP]
	for b.Loop() {
		if err := g.Divert(nil); err != nil {
			b.Fatal(err)
		}
		if err := g.WriteMemory(sp, []byte("changed")); err != nil {
			b.Fatal(err)
		}
		g.Undivert()
	}
}

// TestDivertedAnything makes system calls at random: each is answered at once, and
// none of them does more than change the copy.
func TestDivertedAnything(t *testing.T) {
	p := divertDemo(t)
	rng := rand.New(rand.NewSource(2))
	regs := *registersOf(&p.final.Current().State)
	regions := p.final.Mem.Regions()
	numbers := []int64{
		abi.SYS_WRITE, abi.SYS_WRITEV, abi.SYS_FSTAT, abi.SYS_NEWFSTATAT, abi.SYS_IOCTL, abi.SYS_BRK, abi.SYS_MMAP, abi.SYS_MUNMAP, abi.SYS_MPROTECT,
		abi.SYS_MREMAP, abi.SYS_MADVISE, abi.SYS_GETRANDOM, abi.SYS_CLOCK_GETTIME, abi.SYS_RT_SIGPROCMASK, abi.SYS_RT_SIGACTION, abi.SYS_FUTEX, abi.SYS_TGKILL,
	}
	value := func() uint64 {
		switch rng.Intn(6) {
		case 0:
			return uint64(rng.Intn(64))
		case 1:
			return p.at + uint64(rng.Intn(4096))
		case 2:
			return uint64(1)<<rng.Intn(64) - uint64(rng.Intn(2))
		case 3:
			r := regions[rng.Intn(len(regions))]
			return (r.Start + rng.Uint64()%(r.End-r.Start)) &^ uint64(rng.Intn(2)*4095)
		case 4:
			return uint64(rng.Intn(64)) * 4096
		}
		return rng.Uint64()
	}
	for range 5_000 {
		nr := numbers[rng.Intn(len(numbers))]
		if rng.Intn(10) == 0 {
			nr = int64(rng.Intn(500))
		}
		var args []uint64
		for range 6 {
			args = append(args, value())
		}
		start := time.Now()
		_, _ = p.ResumeDiverted(t.Context(), api.Resume{Kind: api.Step}, true) // whatever the last call left
		if p.WriteMemory(p.at, []byte(syscallCode)) != nil || rng.Intn(50) == 0 {
			p.Undivert()
			if now := registersOf(p.state()); *now != regs || len(p.mem().Regions()) != len(regions) {
				t.Fatal("the recording's moment has changed")
			}
			if err := p.Divert(func([]byte) {}); err != nil {
				t.Fatal(err)
			}
			if at, err := p.AllocateMemory(4096, 7); err != nil || at != p.at {
				t.Fatalf("%#x, %v", at, err)
			}
			continue
		}
		_, err := p.run(t.Context(), api.Step, syscallCode, nr, args...)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("system call %d(%x) took %v", nr, args, d)
		}
		if err != nil && !strings.Contains(err.Error(), "cannot go on") {
			t.Errorf("system call %d(%x): %v", nr, args, err)
		}
	}
}
