package x86

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// TestAccessLog has each access told behind its instruction, with its bytes: by the loop and by a Bus that
// hands out no pages; and none of an instruction that faults but for the iterations before.
func TestAccessLog(t *testing.T) {
	const data = 0x200000
	code := []byte{
		0x48, 0x8b, 0x07, // mov (%rdi),%rax
		0x89, 0x47, 0x10, // mov %eax,0x10(%rdi)
		0x0f, 0x10, 0x87, 0xf8, 0x0f, 0, 0, // movups 0xff8(%rdi),%xmm0: two pages
		0x0f, 0x11, 0x47, 0x20, // movups %xmm0,0x20(%rdi)
		0x80, 0x47, 0x10, 0x01, // addb $1,0x10(%rdi)
		0x48, 0x81, 0xc7, 0xfd, 0x1f, 0, 0, // add $0x1ffd,%rdi
		0xf3, 0xaa, // rep stosb: the fourth faults
	}
	type access struct {
		pc, addr  uint64
		store     bool
		data, old string
	}
	hex := func(b []byte) string { return fmt.Sprintf("%x", b) }
	for _, m := range []struct {
		name         string
		slow, noData bool
	}{{"pages", false, false}, {"Bus", true, false}, {"no data", false, true}} {
		t.Run(m.name, func(t *testing.T) {
			bus := newTestBus()
			bus.add(testText, len(code), "rx")
			bus.put(testText, code)
			bus.add(data, 2*pageSize, "rw")
			for i := range uint64(2 * pageSize) {
				bus.put(data+i, []byte{byte(i*7 + 1)})
			}
			for a := uint64(data); a < data+2*pageSize; a += pageSize {
				bus.pages[a].slow = m.slow
			}
			at := func(off, n int) []byte {
				b := make([]byte, n)
				for i := range b {
					b[i] = byte((off+i)*7 + 1)
				}
				return b
			}
			c := New(bus, nil)
			c.RIP, c.R[RDI], c.R[RCX] = testText, data, 100
			var got []access
			log := &AccessLog{NoData: m.noData}
			log.Tell = func(list []LoggedAccess) {
				for i := range list {
					x := &list[i]
					b, old := log.Bytes(x)
					got = append(got, access{x.PC - testText, x.Addr - data, x.Store, hex(b), hex(old)})
					if !m.noData && int(x.Size) != len(b) {
						t.Errorf("access of %d bytes has %d", x.Size, len(b))
					}
				}
			}
			c.LogAccesses(log)
			if e := c.Run(^uint64(0)); e != ExitFault || c.Fault.Addr != data+2*pageSize || c.R[RCX] != 97 {
				t.Fatalf("it came to %v, fault at %#x, rcx %d", e, c.Fault.Addr, c.R[RCX])
			}
			rax := at(0, 4)
			inc := slices.Clone(rax[:1])
			inc[0]++
			al := hex(rax[:1])
			want := []access{
				{0, 0, false, hex(at(0, 8)), ""},
				{3, 0x10, true, hex(rax), hex(at(0x10, 4))},
				{6, 0xff8, false, hex(at(0xff8, 16)), ""},
				{13, 0x20, true, hex(at(0xff8, 16)), hex(at(0x20, 16))},
				{17, 0x10, false, al, ""},
				{17, 0x10, true, hex(inc), al},
			}
			for i := range 3 {
				want = append(want, access{28, uint64(0x1ffd + i), true, al, hex(at(0x1ffd+i, 1))})
			}
			if m.noData {
				for i := range want {
					want[i].data, want[i].old = "", ""
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("accesses\n%v\nwant\n%v", got, want)
			}
			if b := bus.pages[data+pageSize].b[pageSize-3:]; !bytes.Equal(b, []byte{rax[0], rax[0], rax[0]}) {
				t.Errorf("stored % x", b)
			}

			// Behind a flush the pages are looked up again.
			bus.pages[data] = &testPage{r: true, w: true}
			c.FlushTLB()
			got = got[:0]
			c.RIP, c.R[RDI] = testText, data
			if e := c.Run(c.Retired + 1); e != ExitLimit || c.R[RAX] != 0 || len(got) != 1 {
				t.Errorf("behind a flush: %v, rax %#x, %d accesses", e, c.R[RAX], len(got))
			}

			// And without a log nothing is told.
			c.LogAccesses(nil)
			got = got[:0]
			c.RIP = testText
			if e := c.Run(c.Retired + 2); e != ExitLimit || len(got) != 0 {
				t.Errorf("without a log: %v, %d accesses", e, len(got))
			}
		})
	}
}

// TestAccessLogParts: an operand of 32 bytes that handlers access in two parts is told as one access, two operands of a comparison
// that follow each other as two.
func TestAccessLogParts(t *testing.T) {
	const data = 0x200000
	code := []byte{
		0xc5, 0xfe, 0x6f, 0x07, // vmovdqu (%rdi),%ymm0
		0xc5, 0xfe, 0x7f, 0x47, 0x40, // vmovdqu %ymm0,0x40(%rdi)
		0xa7, // cmpsl
	}
	for _, noData := range []bool{false, true} {
		bus := newTestBus()
		bus.add(testText, len(code), "rx")
		bus.put(testText, code)
		bus.add(data, pageSize, "rw")
		for i := range uint64(pageSize) {
			bus.put(data+i, []byte{byte(i)})
		}
		c := New(bus, nil)
		c.RIP, c.R[RDI], c.R[RSI] = testText, data, data+4
		var got []string
		log := &AccessLog{NoData: noData}
		log.Tell = func(list []LoggedAccess) {
			for i := range list {
				b, old := log.Bytes(&list[i])
				got = append(got, fmt.Sprintf("%#x+%d %t %x %x", list[i].Addr-data, list[i].Size, list[i].Store, b, old))
			}
		}
		c.LogAccesses(log)
		c.Run(3)
		row := func(from, n int) (b []byte) {
			for i := range n {
				if !noData {
					b = append(b, byte(from+i))
				}
			}
			return b
		}
		want := []string{
			fmt.Sprintf("0x0+32 false %x ", row(0, 32)), fmt.Sprintf("0x40+32 true %x %x", row(0, 32), row(0x40, 32)),
			fmt.Sprintf("0x0+4 false %x ", row(0, 4)), fmt.Sprintf("0x4+4 false %x ", row(4, 4)),
		}
		if !slices.Equal(got, want) {
			t.Errorf("accesses\n%q\nwant\n%q", got, want)
		}
	}
}
