//go:build linux && amd64

package jit

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"vplay/replay/x86"
)

// BenchmarkPauses collects garbage while a guest runs, which has to leave generated code for it first, and reports
// the pauses: half of them are at most p50-us, 99 of 100 at most p99-us.
func BenchmarkPauses(b *testing.B) {
	pool, err := Open()
	if err != nil {
		b.Fatal(err)
	}
	for _, x := range []struct {
		name   string
		engine func(*x86.CPU) x86.Engine
	}{
		{"interpreter", func(*x86.CPU) x86.Engine { return x86.BlockEngine{} }},
		{"generated code", func(c *x86.CPU) x86.Engine { return pool.Engine(c) }},
	} {
		b.Run(x.name, func(b *testing.B) {
			c := loopForever()
			g := x.engine(c)
			if e, ok := g.(*Engine); ok {
				defer e.Close()
			}
			c.SetEngine(g)
			var wg sync.WaitGroup
			wg.Go(func() { c.Run(^uint64(0)) })
			time.Sleep(50 * time.Millisecond)
			before := pauses()
			for b.Loop() {
				runtime.GC()
			}
			after := pauses()
			c.Interrupt()
			wg.Wait()
			b.ReportMetric(1e6*quantile(before, after, 0.5), "p50-us")
			b.ReportMetric(1e6*quantile(before, after, 0.99), "p99-us")
		})
	}
}

// loopForever returns a processor in a loop of two units.
func loopForever() *x86.CPU {
	bus := &textBus{}
	copy(bus.text[:], []byte{0x83, 0xc0, 0x01, 0x01, 0xc3, 0xeb, 0, 0x31, 0xc3, 0xff, 0xc1, 0xeb, 0xf3})
	c := x86.New(bus, host())
	c.RIP = textAt
	return c
}

func pauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// quantile returns the upper end of the bucket in which q of the pauses between two readings are.
func quantile(before, after *metrics.Float64Histogram, q float64) float64 {
	var all, sum uint64
	for i := range after.Counts {
		all += after.Counts[i] - before.Counts[i]
	}
	for i := range after.Counts {
		if sum += after.Counts[i] - before.Counts[i]; float64(sum) >= q*float64(all) {
			return after.Buckets[i+1]
		}
	}
	return 0
}

// TestInterruptSoon: Interrupt is heard within 100 ms, in a loop and in code that is always new.
func TestInterruptSoon(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name    string
		changes bool
	}{{"loop", false}, {"code that changes", true}} {
		t.Run(x.name, func(t *testing.T) {
			c := loopForever()
			e := pool.Engine(c)
			defer e.Close()
			e.Eager()
			c.SetEngine(e)
			if x.changes {
				c.Bus = &restlessBus{textBus: c.Bus.(*textBus), c: c}
				copy(c.Bus.(*restlessBus).text[:], []byte{0xff, 0x05, 0xfa, 0x0f, 0, 0, 0xeb, 0xf8}) // inc dword [rip+4090]; jmp -8
			}
			for range 20 {
				var asked time.Time
				time.AfterFunc(2*time.Millisecond, func() {
					asked = time.Now()
					c.Interrupt()
				})
				if exit := c.Run(^uint64(0)); exit != x86.ExitAttention {
					t.Fatalf("exit %d %+v", exit, c.Fault)
				}
				if took := time.Since(asked); took > 100*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				c.Interrupted()
			}
		})
	}
}

// restlessBus has other code behind each access.
type restlessBus struct {
	*textBus
	c  *x86.CPU
	id uint64
}

func (b *restlessBus) CodeID(uint64) uint64 { return b.id }

func (b *restlessBus) Probe(uint64, int, x86.Access) x86.Fault { return x86.Fault{} }

func (b *restlessBus) Read(_ uint64, p []byte) x86.Fault {
	clear(p)
	return x86.Fault{}
}

func (b *restlessBus) Write(uint64, []byte) x86.Fault {
	b.id++
	b.c.FlushTLBPage(textAt)
	return x86.Fault{}
}
