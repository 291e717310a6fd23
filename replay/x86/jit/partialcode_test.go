//go:build linux && amd64

package jit

import (
	"testing"

	"vplay/replay/x86"
)

// cutBus has a page of code of which the bytes up to known are known.
type cutBus struct {
	textBus
	known uint64
}

func (b *cutBus) Translate(a uint64, k x86.Access) (*[pageSize]byte, bool) {
	page, _ := b.textBus.Translate(a, k)
	return page, false
}

func (b *cutBus) Fetch(a uint64, p []byte) (int, x86.Fault) {
	end := textAt + b.known
	if a >= end {
		return 0, x86.Fault{Kind: x86.FaultNotCaptured, Access: x86.Exec, Addr: a}
	}
	n, f := b.textBus.Fetch(a, p)
	if left := int(end - a); n > left {
		return left, x86.Fault{Kind: x86.FaultNotCaptured, Access: x86.Exec, Addr: end}
	}
	return n, f
}

// TestPartialCode: code on a page with unknown bytes is translated up to the first of them, and stops there as the
// interpreter does, wherever that is.
func TestPartialCode(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	code := []byte{
		0x48, 0xff, 0xc0, // inc rax
		0x48, 0x3d, 0x10, 0x27, 0, 0, // cmp rax, 10000
		0x75, 0xf5, // jne to the beginning
		0x48, 0x83, 0xc3, 0x01, // add rbx, 1
		0x48, 0x89, 0xd9, // mov rcx, rbx
		0x31, 0xc0, // xor eax, eax
		0xeb, 0xea, // jmp to the beginning
	}
	for cut := range len(code) + 1 {
		known := uint64(len(code) - cut)
		plain, cutting := &cutBus{known: known}, &cutBus{known: known}
		copy(plain.text[:], code)
		copy(cutting.text[:], code)
		want, got := x86.New(plain, host()), x86.New(cutting, host())
		e := pool.Engine(got)
		e.Eager()
		got.SetEngine(e)
		want.RIP, got.RIP = textAt, textAt
		x, y := want.Run(100_000), got.Run(100_000)
		if x != y || want.Fault != got.Fault || want.R != got.R || want.RIP != got.RIP || want.Retired != got.Retired || want.Flags() != got.Flags() {
			t.Errorf("%d known bytes: exit %d, fault %+v at %#x behind %d instructions, want %d, %+v at %#x behind %d", known,
				y, got.Fault, got.RIP, got.Retired, x, want.Fault, want.RIP, want.Retired)
		}
		if isWhole := cut == 0; isWhole != (x == x86.ExitLimit) || known >= 11 && e.Stats.Units == 0 {
			t.Errorf("%d known bytes: exit %d, %d units", known, x, e.Stats.Units)
		}
		e.Close()
	}
}
