package x86

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"
)

// kernel is one function of testdata/kernels.c.
type kernel struct {
	name string
	n    uint64
	want uint64
	code []byte
}

const (
	kernelText  = 0x400000
	kernelHeap  = 0x10000000
	kernelStack = 0x7fff00000000
	kernelDone  = 0x500000 // the return address; a breakpoint stands there
)

func loadKernels(tb testing.TB) []kernel {
	tb.Helper()
	data, err := os.ReadFile("testdata/kernels.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var ks []kernel
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Fields(line)
		n, err1 := strconv.ParseUint(f[1], 10, 64)
		want, err2 := strconv.ParseUint(f[2], 10, 64)
		code, err3 := hex.DecodeString(f[3])
		if err1 != nil || err2 != nil || err3 != nil {
			tb.Fatalf("kernels.txt: %q", f[0])
		}
		ks = append(ks, kernel{f[0], n, want, code})
	}
	return ks
}

// start returns a CPU about to call k(heap, n).
func (k *kernel) start() *CPU {
	bus := newTestBus()
	bus.add(kernelText, len(k.code), "rx")
	bus.put(kernelText, k.code)
	bus.add(kernelHeap, 16<<20, "rw")
	bus.add(kernelStack-1<<16, 1<<16, "rw")
	bus.add(kernelDone, 1, "rx")
	c := New(bus, &CPUIdentity{Vendor: VendorAMD})
	c.RIP = kernelText
	c.R[RDI], c.R[RSI] = kernelHeap, k.n
	c.R[RSP] = kernelStack - 8
	bus.put(kernelStack-8, le.AppendUint64(nil, kernelDone))
	c.SetBreakpoints([]uint64{kernelDone})
	return c
}

func TestKernels(t *testing.T) {
	for _, k := range loadKernels(t) {
		t.Run(k.name, func(t *testing.T) {
			c := k.start()
			if e := c.Run(1 << 40); e != ExitBreak {
				t.Fatalf("exit %d, fault %+v at %#x", e, c.Fault, c.RIP)
			}
			if c.R[RAX] != k.want {
				t.Errorf("rax = %d, want %d", c.R[RAX], k.want)
			}
			t.Logf("%d instructions", c.Retired)
		})
	}
}

func BenchmarkKernels(b *testing.B) {
	for _, k := range loadKernels(b) {
		b.Run(k.name, func(b *testing.B) {
			var n uint64
			for b.Loop() {
				b.StopTimer()
				c := k.start()
				b.StartTimer()
				if e := c.Run(1 << 40); e != ExitBreak {
					b.Fatalf("exit %d, fault %+v", e, c.Fault)
				}
				n += c.Retired
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "MIPS")
		})
	}
}
