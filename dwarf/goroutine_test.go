package dwarf

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What the fields of goroutines mean is compared with dlv in tests/e2e
// (TestGoroutinesAgainstDelve). Here memory is hostile.

const goroutineProgram = `package main

import (
	"context"
	"runtime/pprof"
)

func main() {
	pprof.Do(context.Background(), pprof.Labels("a", "b"), func(context.Context) {})
}
`

// goroutineModule compiles a Go program and opens it.
func goroutineModule(t *testing.T, flags ...string) *Module {
	t.Helper()
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "main.go"), filepath.Join(dir, "prog")
	if err := os.WriteFile(src, []byte(goroutineProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append(append([]string{"build", "-o", bin}, flags...), src)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	b, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fakeMemory fills memory by a function of the address.
type fakeMemory func(addr uint64) uint64

func (f fakeMemory) ReadMemory(addr uint64, b []byte) int {
	for i := range b {
		at := addr + uint64(i)
		b[i] = byte(f(at&^7) >> (8 * (at & 7)))
	}
	return len(b)
}

// noMemory has nothing.
type noMemory struct{}

func (noMemory) ReadMemory(uint64, []byte) int { return 0 }

// TestGoroutinesBounded reads goroutines from memory that says anything.
func TestGoroutinesBounded(t *testing.T) {
	m := goroutineModule(t)
	const list, one, far = 0x7000_0000, 0x7100_0000, 0x7f00_0000_0002 // the low half is a state
	var all uint64                                                    // address of runtime.allgs
	if v, ok := (&Env{Frame: Frame{Module: m}, Mem: noMemory{}}).global("runtime.allgs"); !ok {
		t.Fatal("the program has no runtime.allgs")
	} else if all, ok = v.Address(); !ok {
		t.Fatal("runtime.allgs has no address")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for name, mem := range map[string]Memory{
		"none": noMemory{},
		"zero": fakeMemory(func(uint64) uint64 { return 0 }),
		"ones": fakeMemory(func(uint64) uint64 { return 0x0101010101010101 }),
		"all":  fakeMemory(func(uint64) uint64 { return ^uint64(0) }),
		"self": fakeMemory(func(a uint64) uint64 { return a }),
		"any":  fakeMemory(func(uint64) uint64 { return random.Uint64() }),
		"many": fakeMemory(func(a uint64) uint64 { // 2^40 goroutines, all of them one with as many labels
			switch {
			case a == all:
				return list
			case a == all+8:
				return 1 << 40
			case a >= list && a < one:
				return one
			case a >= far:
				return 1 << 40
			}
			return far
		}),
	} {
		got, more, err := (&Env{Frame: Frame{Module: m}, Mem: mem}).Goroutines()
		labels := 0
		for i := range got {
			labels += len(got[i].Labels)
		}
		if len(got) > maxGoroutines || more < 0 || labels > maxAllLabels {
			t.Errorf("%s: %d goroutines, %d more, %d labels", name, len(got), more, labels)
		}
		if name == "none" && (err == nil || errors.Is(err, ErrNoGoroutines)) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "many" && (err != nil || len(got) != maxGoroutines || more != 1<<31-1) {
			t.Errorf("%s: %d goroutines, %d more, %v", name, len(got), more, err)
		}
	}
}

// TestGoroutineFields reads one goroutine whose words are known.
func TestGoroutineFields(t *testing.T) {
	m := goroutineModule(t)
	e := &Env{Frame: Frame{Module: m}, Mem: noMemory{}}
	v, ok := e.global("runtime.allgs")
	if !ok {
		t.Fatal("the program has no runtime.allgs")
	}
	all, _ := v.Address()
	const at, stack = 0x100000, 0x200000
	mem := map[uint64]byte{}
	put := func(addr, x uint64, size int64) {
		for i, b := range binary.LittleEndian.AppendUint64(nil, x)[:size] {
			mem[addr+uint64(i)] = b
		}
	}
	put(all, 0x50000, 8)
	put(all+8, 2, 8)
	put(all+16, 2, 8)
	put(0x50000, at, 8)
	put(0x50008, 0xdead0000, 8) // nothing is there
	v, _ = (&Env{Frame: Frame{Module: m}, Mem: byteMap(mem)}).global("runtime.allgs")
	s := v.goVar().at(0).deref()
	for i := range uint64(sizeOf(s.real)) {
		mem[at+i] = 0
	}
	set := func(x uint64, path ...string) {
		f := s
		for _, name := range path {
			if f = f.named(name); f == nil {
				t.Fatalf("no field %v", path)
			}
		}
		put(f.addr, x, sizeOf(f.real))
	}
	set(7, "goid")
	set(uint64(GoWaiting|goScan), "atomicstatus", "value")
	set(0x401000, "sched", "pc")
	set(stack+0x100, "sched", "sp")
	set(stack, "stack", "lo")
	set(stack+0x1000, "stack", "hi")
	set(0x402000, "gopc")
	set(0x403000, "startpc")
	set(1, "parentGoid")
	list, more, err := (&Env{Frame: Frame{Module: m}, Mem: byteMap(mem)}).Goroutines()
	if err != nil || more != 0 || len(list) != 2 {
		t.Fatalf("%d goroutines, %d more, %v", len(list), more, err)
	}
	got := list[0]
	if got.ID != 7 || got.Status != GoWaiting || got.Status.String() != "waiting" || got.PC != 0x401000 || got.SP != stack+0x100 ||
		got.StackLow != stack || got.StackHigh != stack+0x1000 || got.GoPC != 0x402000 || got.StartPC != 0x403000 || got.Parent != 1 || got.Err != nil {
		t.Errorf("%+v", got)
	}
	if list[1].Err == nil {
		t.Errorf("a goroutine that is nowhere: %+v", list[1])
	}
}

// byteMap is memory of single bytes.
type byteMap map[uint64]byte

func (m byteMap) ReadMemory(addr uint64, b []byte) int {
	for i := range b {
		x, ok := m[addr+uint64(i)]
		if !ok {
			return i
		}
		b[i] = x
	}
	return len(b)
}

// TestNoGoroutines asks where there are none to be found.
func TestNoGoroutines(t *testing.T) {
	for _, flags := range [][]string{{"-ldflags=-w"}, {"-ldflags=-s -w"}} {
		m := goroutineModule(t, flags...)
		if _, _, err := (&Env{Frame: Frame{Module: m}, Mem: noMemory{}}).Goroutines(); !errors.Is(err, ErrNoGoroutines) {
			t.Errorf("%v: %v", flags, err)
		}
	}
	if _, _, err := (&Env{}).Goroutines(); !errors.Is(err, ErrNoGoroutines) {
		t.Errorf("without a module: %v", err)
	}
}

// TestIsUser has names of functions.
func TestIsUser(t *testing.T) {
	for name, want := range map[string]bool{
		"main.main": true, "net/http.(*Server).Serve": true, "time.Sleep": true, "runtime.Gosched": true, "runtime/pprof.Do": true,
		"runtime.gopark": false, "runtime.(*mheap).alloc": false, "internal/poll.(*FD).Read": false, "iter.Pull": false, "": false, "runtime.": false, "crosscall2": false,
	} {
		if IsUser(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
