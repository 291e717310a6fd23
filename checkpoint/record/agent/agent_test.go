package agent

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vplay/checkpoint/abi"
	"vplay/tests/need"
)

// TestBlob builds the agent anew and compares it with the file that is committed. Another
// compiler than Debian 12's makes other code.
func TestBlob(t *testing.T) {
	gcc := need.Program(t, "gcc")
	v, err := exec.Command(gcc, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	need.Machine(t, "Debian 12's gcc", strings.Contains(string(v), "Debian 12.2.0"))
	file := filepath.Join(t.TempDir(), "agent.bin")
	if b, err := exec.Command("sh", "src/build.sh", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, blob) {
		t.Error("agent.bin is not what its source makes: go generate ./checkpoint/record/agent")
	}
	if p := Places(); p.End != uint64(len(blob)) || p.End > TextSize || p.Entry >= p.Entered || p.Entered >= p.Tail || p.Tail >= p.Gate || p.Gate >= p.Made {
		t.Errorf("places %+v, code of %d bytes", p, len(blob))
	}
}

// memory can be written everywhere.
type memory struct{}

func (memory) ReadAt(_ uint64, b []byte) int { return len(b) }
func (memory) Writable(_, _ uint64) bool     { return true }
func (memory) Datagram(int32) bool           { return false }

// callOfCommand returns the call whose commands have the row.
func callOfCommand(nr uint32) int64 {
	for _, call := range []int64{abi.SYS_IOCTL, abi.SYS_FCNTL, abi.SYS_SETSOCKOPT, abi.SYS_FUTEX, abi.SYS_MADVISE} {
		if v := tableOfRows()[uint32(call)].val; nr >= v&0xffff && nr < v&0xffff+v>>16 {
			return call
		}
	}
	return -1
}

// effects are those of the agent's calls that change more than what they write: the recorder follows them in the log.
var effects = map[int64]abi.Effect{
	abi.SYS_MMAP: abi.EffectMem, abi.SYS_BRK: abi.EffectMem, abi.SYS_RT_SIGACTION: abi.EffectSignal, abi.SYS_RT_SIGPROCMASK: abi.EffectSignal,
	abi.SYS_MUNMAP: abi.EffectMem, abi.SYS_MREMAP: abi.EffectMem, abi.SYS_MADVISE: abi.EffectMem,
}

// TestRows compares what the agent logs of its calls with what the recorder would.
func TestRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for nr, r := range tableOfRows() {
		call, cmd := int64(nr), uint64(0)
		if nr >= callCount { // of a command
			call, cmd = callOfCommand(nr), uint64(r.val)
		}
		if r.when == byCommand {
			continue
		}
		if nr < callCount != (call == int64(nr)) || len(r.outs) > 2 {
			t.Errorf("row %d: call %d, %d outputs", nr, call, len(r.outs))
		}
		s, ok := abi.Lookup(call)
		if !ok || s.Effect != abi.EffectPlain && r.when != writes && effects[call] != s.Effect {
			t.Errorf("%d: known %t, effect %v", call, ok, s.Effect)
		}
		for range 50 {
			var args [6]uint64
			for i := range args {
				args[i] = 1<<20 + uint64(i)<<16 + rnd.Uint64N(4096)
			}
			if nr >= callCount {
				args[tableOfRows()[uint32(call)].arg] = cmd
			}
			for _, o := range r.outs {
				if o.how == array {
					args[o.of] = rnd.Uint64N(4096)
				}
			}
			switch r.when {
			case truncates:
				args[r.arg] &^= uint64(r.val)
			case isNull:
				args[r.arg] = 0
			case shrinks:
				args[2], args[3] = args[1], abi.MREMAP_MAYMOVE
			case newMemory:
				args[2], args[3] = args[2]&^abi.PROT_EXEC, abi.MAP_PRIVATE|abi.MAP_ANONYMOUS|args[3]&mapAdvice
			default:
			}
			ret := int64(rnd.Uint64N(4096))
			if effect, _ := abi.EffectOf(call, args); effect != abi.EffectPlain && r.when != writes && effects[call] != effect {
				t.Fatalf("%s%#x: effect %v", s.Name, args, effect)
			}
			// Random bytes wait once, while the machine starts.
			if r.waits == notAtAll && call != abi.SYS_GETRANDOM && abi.MayBlock(call, args) {
				t.Fatalf("%s%#x may wait for another thread", s.Name, args)
			}
			want, err := abi.Outputs(nil, memory{}, call, args, ret)
			if err != nil {
				t.Fatalf("%s%#x: %v", s.Name, args, err)
			}
			var got []abi.Range
			for _, o := range r.outs {
				n := uint64(o.size)
				switch o.how {
				case counted:
					n *= min(uint64(ret), args[o.of])
				case array:
					n *= args[o.of]
				case address: // the length there is 0
					got = append(got, abi.Range{Addr: args[o.of], Len: 4})
					n = 0
				}
				if n != 0 {
					got = append(got, abi.Range{Addr: args[o.arg], Len: n})
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s%#x = %d: the agent logs %#x, the recorder %#x", s.Name, args, ret, got, want)
			}
		}
	}
}

// TestDamagedRing: records that a program has overwritten are refused.
func TestDamagedRing(t *testing.T) {
	s := Shared(make([]byte, Size))
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		for i := range 1024 {
			s[ring+i] = byte(rnd.Uint64N(256))
		}
		s.put(blockHead, rnd.Uint64N(2048))
		log, err := s.Take(bytes.Clone, func(*Record) {}) // it must end, and not panic
		n := 0
		Records(log, func(r *Record) { n += recordHead })
		if uint64(len(log)) != s.at(blockHead) && err == nil || n > len(log) {
			t.Fatalf("%d of %d bytes, %d of records, and no error", len(log), s.at(blockHead), n)
		}
	}
	s.put(blockHead, ringSize+8)
	if _, err := s.Take(bytes.Clone, func(*Record) {}); err == nil {
		t.Error("a ring that is fuller than it can be was read")
	}
}

// TestWritable: what is known of memory that can be written grows with a mapping, and ends with it.
func TestWritable(t *testing.T) {
	s := Shared(make([]byte, Size))
	is := func(start, end uint64, want bool) {
		t.Helper()
		if s.IsWritable(start, end) != want {
			t.Errorf("[%#x,%#x) can be written: %t", start, end, !want)
		}
	}
	is(0, 0x1000, false)
	s.AddWritable(0x10000, 0x20000)
	for i := range uint64(writableCount - 1) {
		s.AddWritable(0x100000+i<<16, 0x101000+i<<16)
	}
	is(0x10000, 0x20000, true)
	s.AddWritable(0x10000, 0x30000) // it has grown, and takes no other's place
	is(0x18000, 0x30000, true)
	is(0x100000, 0x101000, true)
	is(0x18000, 0x30001, false)
	s.AddWritable(0x40000, 0x50000) // the first that was said is forgotten
	is(0x100000, 0x101000, false)
	is(0x110000, 0x111000, true)
	s.ForgetWritable(0x2f000, 0x41000)
	is(0x10000, 0x2f000, true)
	is(0x2f000, 0x30000, false)
	is(0x40000, 0x41000, false)
	is(0x41000, 0x50000, true)
	s.ForgetWritable(0x42000, 0x43000)
	is(0x41000, 0x42000, true)
	is(0x43000, 0x44000, false)
	s.ForgetWritable(0, ^uint64(0))
	is(0x110000, 0x111000, false)
}
