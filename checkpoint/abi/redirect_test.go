package abi

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

// Every row that may block and write has a redirection, or stands in the list of those
// that have none; and nothing stands there that does not belong there.
func TestEveryRowThatBlocksIsRedirected(t *testing.T) {
	outputKind := func(a Arg) bool {
		return a.Kind == KindOut || a.Kind == KindInOut || a.Kind == KindIovOut || a.Kind == KindSockOut
	}
	var blocking []string
	for _, s := range Table() {
		writes := s.Irregular || slices.ContainsFunc(s.Args, outputKind)
		if s.Restart == RestartNone || !writes {
			if notRedirected[s.NR] != "" || redirects[s.NR] != nil {
				t.Errorf("%s has a redirection of its own or a reason for none, and does not block and write", s.Name)
			}
			continue
		}
		blocking = append(blocking, s.Name)
		if notRedirected[s.NR] != "" {
			t.Logf("not redirected: %s: %s", s.Name, notRedirected[s.NR])
			continue
		}
		if redirects[s.NR] == nil && (s.Irregular || s.Effect == EffectOpaque || s.Effect == EffectRefuse) {
			t.Errorf("%s blocks and writes, and has neither a redirection nor a reason for none", s.Name)
			continue
		}
		checkEachOutputMoves(t, s)
	}
	if len(blocking) < 30 {
		t.Errorf("only %d rows block and write: %v", len(blocking), blocking)
	}
}

// checkEachOutputMoves redirects a row whose output arguments have a page of zeros
// each: all of these addresses must be others for the kernel.
func checkEachOutputMoves(t *testing.T, s *Syscall) {
	t.Helper()
	m := newFake()
	var args [6]uint64
	for i, a := range s.Args {
		args[i] = 8 // lengths and counts
		if a.Kind.IsAddr() {
			args[i] = 0x10000 * uint64(i+1)
			m.mapPages(args[i], PageSize)
		}
		switch a.Kind {
		case KindIovOut:
			for k := range uint64(8) {
				m.words(args[i]+k*16, args[i]+0x800, 8)
			}
		case KindLenPtr:
			m.words(args[i], 16)
		}
	}
	r, err := Redirect(hinted{m, true}, s.NR, args, Range{1 << 30, 1 << 24})
	if err != nil {
		t.Errorf("%s: %v", s.Name, err)
		return
	}
	for i, a := range s.Args {
		switch a.Kind {
		case KindOut, KindInOut, KindIovOut, KindSockOut, KindLenPtr:
			if r.Args[i]-1<<30 >= r.Size {
				t.Errorf("%s: %s is %#x, not in the scratch", s.Name, a.Name, r.Args[i])
			}
		default:
			if r.Args[i] != args[i] && !(s.Irregular && a.Kind == KindPtr) {
				t.Errorf("%s: %s, an input, is changed", s.Name, a.Name)
			}
		}
	}
}

func TestRedirectErrors(t *testing.T) {
	scratch := Range{1 << 30, 4 * PageSize}
	long := newFake().mapPages(pa, 1<<20)
	tests := []struct {
		name string
		m    Memory
		nr   int64
		args [6]uint64
		why  string
		need uint64
	}{
		{name: "fits", m: fourPages(), nr: SYS_READ, args: argv(3, pa, 4096)},
		{name: "NULL", m: fourPages(), nr: SYS_READ, args: argv(3, 0, 4096)},
		{name: "nothing", m: fourPages(), nr: SYS_READ, args: argv(3, 0x90000, 0)},
		{name: "hole", m: fourPages(), nr: SYS_READ, args: argv(3, pa, 4097), why: whyFault},
		{name: "scratch too small", m: long, nr: SYS_READ, args: argv(3, pa, 1<<20), need: 1 << 20},
		{name: "too long", m: everywhere{}, nr: SYS_READ, args: argv(3, pa, 1<<31), why: whyLong},
		{name: "in the scratch", m: everywhere{}, nr: SYS_READ, args: argv(3, 1<<30, 16), why: whyScratch},
		{name: "unknown number", m: fourPages(), nr: 9999, args: argv(3, pa, 16), why: whyUnknown},
		{name: "opaque", m: fourPages(), nr: SYS_IO_GETEVENTS, args: argv(1, 1, 1, pa), why: whyUnknown},
		{name: "refused", m: fourPages(), nr: SYS_RSEQ, args: argv(pa, 32), why: whyUnknown},
		{name: "futex", m: fourPages(), nr: SYS_FUTEX, args: argv(pa, FUTEX_LOCK_PI), why: whyReal},
		{name: "long vector", m: fourPages(), nr: SYS_READV, args: argv(3, pa, MaxIov+1), why: whyRefused},
		{name: "NULL in a vector", m: fourPages().words(pa, pb, 8, 0, 8), nr: SYS_READV, args: argv(3, pa, 2), why: whyFault},
		{name: "header in its buffer", m: fourPages().words(pa, pb, 16, pc, 1, 0, 0, 0).words(pc, pa, 56), nr: SYS_RECVMSG, args: argv(3, pa, 0), why: whyOverlap},
		{name: "header in its buffer, no name", m: fourPages().words(pa, 0, 0, pc, 1, 0, 0, 0).words(pc, pa, 56), nr: SYS_RECVMSG, args: argv(3, pa, 0)},
		{name: "descriptors", m: everywhere{}, nr: SYS_POLL, args: argv(pa, 1<<21, 0), why: whyLong},
		{name: "message inside the batch", m: fourPages().words(pa, 0, 0, pc, 1, 0, 0, 0).words(pc, pa+8, 56), nr: SYS_SENDMMSG, args: argv(3, pa, 1), why: whyOverlap},
		{name: "vector of one message in the buffer of another", m: fourPages().words(pa, 0, 0, pc, 1, 0, 0, 0, 0, 0, 0, pd, 1, 0, 0, 0, 0).words(pc, pd, 16).words(pd, pb, 16), nr: SYS_RECVMMSG, args: argv(3, pa, 2), why: whyOverlap},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Redirect(tt.m, tt.nr, tt.args, scratch)
			var not *NotRedirectedError
			var small *ScratchError
			switch {
			case tt.why != "":
				if !errors.As(err, &not) || not.Why != tt.why {
					t.Errorf("%v, want %s", err, tt.why)
				}
			case tt.need != 0:
				if !errors.As(err, &small) || small.Need < tt.need {
					t.Fatalf("%v, want a need of %d", err, tt.need)
				}
				if _, err := Redirect(tt.m, tt.nr, tt.args, Range{scratch.Addr, small.Need}); err != nil {
					t.Errorf("with what it needs: %v", err)
				}
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// What another thread wrote to the program while a call waited stays, but for
// what the call itself has written.
func TestResultsLeaveWhatOthersWrote(t *testing.T) {
	m := fourPages().mapPages(1<<30, PageSize*4).words(pa, 0x0000_0001_0000_0003) // POLLIN on 3
	r, err := Redirect(m, SYS_PPOLL, argv(pa, 1, pb, 0, 8), Range{1 << 30, 4 * PageSize})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range r.Init {
		m.bytes(w.Addr, w.Data)
	}
	m.words(pa, 0x0055_0004_0000_0007).words(pb, 77) // another thread
	m.bytes(r.Args[0]+6, []byte{1, 0})               // the kernel: revents
	got := r.Results(m, 1)
	if len(got) != 1 || got[0].Addr != pa+6 || string(got[0].Data) != "\x01\x00" {
		t.Errorf("results %x", got)
	}
	if got := r.Results(m, fail(EFAULT)); len(got) != 1 || len(got[0].Data) != 1 {
		t.Errorf("results of an error %x: only what changed", got)
	}
}

// A buffer that a device may fill (O_DIRECT) keeps its place in the page.
func TestRedirectKeepsAlignment(t *testing.T) {
	m := newFake().mapPages(pa, 1<<16).words(pa, pa+0x1200, 512, pa+0x2238, 24, pa+0x3e00, 0x1000)
	r, err := Redirect(m, SYS_READV, argv(3, pa, 3), Range{1 << 30, 1 << 20})
	if err != nil || len(r.Moved) != 3 {
		t.Fatal(r, err)
	}
	for _, v := range r.Moved {
		if align := uint64(64); (v.To-v.From)%align != 0 || v.Len >= 512 && (v.To-v.From)%PageSize != 0 {
			t.Errorf("%#x, %d bytes, is at %#x", v.From, v.Len, v.To)
		}
	}
}

func TestMayBlock(t *testing.T) {
	const now, forever = 0, 1<<64 - 1
	tests := []struct {
		nr   int64
		args [6]uint64
		want bool
	}{
		{SYS_READ, argv(3, pa, 1), true},
		{SYS_FSTAT, argv(3, pa), false},
		{SYS_CREAT, argv(pa, 0), true},
		{SYS_POLL, argv(pa, 1, now), false},
		{SYS_POLL, argv(pa, 1, forever), true},
		{SYS_POLL, argv(pa, 1, 1<<32), false}, // an int
		{SYS_EPOLL_WAIT, argv(3, pa, 1, now), false},
		{SYS_EPOLL_PWAIT2, argv(3, pa, 1, pb), true},
		{SYS_WAIT4, argv(0, pa, 1), false},
		{SYS_WAIT4, argv(0, pa, 2), true},
		{SYS_WAITID, argv(0, 0, pa, 5), false},
		{SYS_RECVMSG, argv(3, pa, 0x40), false},
		{SYS_RECVFROM, argv(3, pa, 1, 2), true},
		{SYS_FLOCK, argv(3, 2), true},
		{SYS_FLOCK, argv(3, 6), false},
		{SYS_FCNTL, argv(3, F_GETLK, pa), false},
		{SYS_FCNTL, argv(3, F_SETLKW, pa), true},
		{SYS_FCNTL, argv(3, F_OFD_SETLKW, pa), true},
		{SYS_FCNTL, argv(3, 999), true},
		{SYS_FUTEX, argv(pa, FUTEX_WAIT|128), true},
		{SYS_FUTEX, argv(pa, FUTEX_WAKE|128), false},
		{SYS_IOCTL, argv(3, 0x5401), false},
		{SYS_IOCTL, argv(3, 0x5403), true},
		{SYS_IOCTL, argv(3, 0xc0502100), true},  // SECCOMP_IOCTL_NOTIF_RECV
		{SYS_IOCTL, argv(3, 0xc0182101), false}, // SECCOMP_IOCTL_NOTIF_SEND
		{SYS_IOCTL, argv(3, 0xc050ee00), true},  // not in the table
		{SYS_OPENAT, argv(0, pa, O_NONBLOCK), false},
		{SYS_OPENAT, argv(0, pa, 0), true},
		{SYS_VFORK, argv(), true},
		{SYS_CLONE, argv(CLONE_VFORK), true},
		{SYS_CLONE, argv(17), false},
		{SYS_SYSLOG, argv(2, pa, 8), true},
		{SYS_SYSLOG, argv(3, pa, 8), false},
		{SYS_CLOSE, argv(3), false},
		{9999, argv(), true},
		{-1, argv(), true},
	}
	for _, tt := range tests {
		if got := MayBlock(tt.nr, tt.args); got != tt.want {
			t.Errorf("MayBlock(%s) = %v", Format(everywhere{}, tt.nr, tt.args), got)
		}
	}
}

// hostile is fuzzMemory that says that everything can be written.
type hostile struct{ fuzzMemory }

func (hostile) Writable(uint64, uint64) bool { return true }
func (hostile) Datagram(int32) bool          { return true }

// Redirect stays within the scratch, and moves each address to one place, whatever the
// arguments are.
func FuzzRedirect(f *testing.F) {
	seed := binary.LittleEndian.AppendUint64(nil, 0x10000)
	seed = binary.LittleEndian.AppendUint64(seed, 64)
	for _, s := range Table() {
		f.Add(s.NR, uint64(3), uint64(0x10000), uint64(0x20000), uint64(16), uint64(0x10008), uint64(8), int64(5), uint32(1<<16), seed)
		f.Add(s.NR, uint64(0x10000), uint64(2), uint64(4), uint64(0x10000), uint64(0x10008), uint64(8), int64(-14), uint32(1<<20), seed)
	}
	f.Fuzz(func(t *testing.T, nr int64, a0, a1, a2, a3, a4, a5 uint64, ret int64, size uint32, seed []byte) {
		args := [6]uint64{a0, a1, a2, a3, a4, a5}
		scratch := Range{0x7000_0000, uint64(size) % (1 << 22)}
		for _, m := range []Memory{fuzzMemory{seed}, hostile{fuzzMemory{seed}}} {
			r, err := Redirect(m, nr, args, scratch)
			MayBlock(nr, args)
			if err != nil {
				var not *NotRedirectedError
				var small *ScratchError
				if !errors.As(err, &not) && !(errors.As(err, &small) && small.Need > scratch.Len && small.Need < 4*MaxOutput) {
					t.Fatal(err)
				}
				continue
			}
			checkWithin(t, r, scratch)
			o := NewOverlay(m, r.Results(m, ret))
			if _, err := Outputs(nil, o, nr, args, ret); err != nil && !errors.Is(err, ErrOpaque) {
				t.Fatal(err)
			}
		}
	})
}

func checkWithin(t *testing.T, r *Redirection, scratch Range) {
	t.Helper()
	inside := func(addr, n uint64) bool { return addr >= scratch.Addr && n <= r.Size && addr-scratch.Addr <= r.Size-n }
	if r.Size > scratch.Len {
		t.Fatalf("%d bytes in use of %d", r.Size, scratch.Len)
	}
	for _, w := range r.Init {
		if !inside(w.Addr, uint64(len(w.Data))) {
			t.Fatalf("Init at %#x, %d bytes", w.Addr, len(w.Data))
		}
	}
	for _, v := range r.Moved {
		if !inside(v.To, v.Len) || v.From >= TaskSize || v.Len > TaskSize-v.From || overlap(v.From, v.Len, scratch.Addr, scratch.Len) {
			t.Fatalf("moved %x", v)
		}
	}
}

// The overlay is the memory that the writes would leave.
func TestOverlayIsWhatWritingLeaves(t *testing.T) {
	m := newFake().mapPages(pa, 2*PageSize)
	writes := []Write{{pa + 10, []byte("abcdefgh")}, {pa + 30, []byte("x")}, {pa + 12, []byte("123")}, {pa + 5, []byte("ZYXWVUTS")}, {pa + PageSize - 1, []byte("qr")}, {pa + 2*PageSize - 1, []byte("end and beyond")}}
	o := NewOverlay(m, writes)
	after := newFake().mapPages(pa, 2*PageSize)
	for _, w := range writes {
		for i, c := range w.Data {
			if w.Addr+uint64(i) < pa+2*PageSize {
				after.bytes(w.Addr+uint64(i), []byte{c})
			}
		}
	}
	for addr := uint64(pa); addr < pa+40; addr++ {
		for n := range 40 {
			got, want := make([]byte, n), make([]byte, n)
			if o.ReadAt(addr, got) != after.ReadAt(addr, want) || string(got) != string(want) {
				t.Fatalf("%d bytes at %#x: %q, want %q", n, addr, got, want)
			}
		}
	}
	got := make([]byte, 3*PageSize)
	if n := o.ReadAt(pa, got); n != 2*PageSize || string(got[PageSize-1:PageSize+1]) != "qr" || got[n-1] != 'e' {
		t.Errorf("%d bytes, %q", n, got[PageSize-1:PageSize+1])
	}
}
