//go:build linux && amd64

package jit

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"vplay/replay/x86"
)

// What the host is, and whether it lets us.

// host is the CPU that we run on.
var host = sync.OnceValue(hostIdentity)

// hostHas reports whether the host has the feature of a row.
func hostHas(feature string) bool {
	if feature == "" {
		return true
	}
	has, known := host().Has(feature)
	return has && known
}

// hostIdentity asks the host (SDM vol. 2A, CPUID).
func hostIdentity() *x86.CPUIdentity {
	_, b, _, _ := cpuid(0)
	id := &x86.CPUIdentity{Vendor: x86.VendorIntel}
	if b == 0x68747541 { // "Auth" of AuthenticAMD
		id.Vendor = x86.VendorAMD
	}
	for _, leaf := range []uint32{1, 7, 0x80000001, 0x80000008} {
		l := x86.CPUIDLeaf{Leaf: leaf}
		l.EAX, l.EBX, l.ECX, l.EDX = cpuid(leaf)
		id.Leaves = append(id.Leaves, l)
	}
	version := id.Leaves[0].EAX
	id.Family, id.Model = version>>8&15, version>>4&15
	if id.Family == 15 {
		id.Family += version >> 20 & 255
	}
	if id.Family == 6 || id.Family >= 15 {
		id.Model |= version >> 12 & 0xf0
	}
	return id
}

// chunks is how many engines there can be at a time.
const chunks = 16

// Open returns the pool of this process, or why it cannot have one: no executable memory,
// for the most part. It proves that code executes, and that a fault in it is caught.
var Open = sync.OnceValues(func() (*Pool, error) {
	p, err := newPool(chunks)
	if err != nil {
		return nil, fmt.Errorf("jit: %w", err)
	}
	p.setsGS = mayFindByGS()
	p.makeStubs()
	if err := p.handleSignals(); err != nil {
		return nil, fmt.Errorf("jit: %w", err)
	}
	if err := p.probe(); err != nil {
		return nil, fmt.Errorf("jit: %w", err)
	}
	p.openWindows()
	return p, nil
})

// probe executes code that loads from address 0, which must come back as a fault.
func (p *Pool) probe() error {
	at := p.take()
	defer p.give(at, 16)
	t := translator{assembler: assembler{buf: p.rw[:at+16], n: at}}
	t.mem(opMov, scratch, memory{base: none, index: none})
	c := new(x86.CPU)
	c.Host[wordTarget] = uint64(p.address(at))
	enter(p.address(p.enter), c)
	if c.Host[wordExit] != exitFault || c.Host[wordFault] != uint64(p.address(at)) {
		return fmt.Errorf("exit %d at %#x behind a load from address 0", c.Host[wordExit], c.Host[wordFault])
	}
	return nil
}

// From the auxiliary vector (linux include/uapi/linux/auxvec.h, arch/x86/include/uapi/asm/hwcap2.h).
const (
	atHWCAP2       = 26
	hwcap2FSGSBASE = 1 << 1
)

// mayFindByGS reports whether code may set the base of GS, which Go has no use for: whether the kernel says that it keeps one that code has set (Linux
// 5.9). Where it does not, the instruction may work all the same, as on virtual machines that hide FSGSBASE, and the base is lost whenever another thread gets the CPU.
func mayFindByGS() bool {
	v, err := unix.Auxv()
	return err == nil && slices.ContainsFunc(v, func(a [2]uintptr) bool { return a[0] == atHWCAP2 && a[1]&hwcap2FSGSBASE != 0 })
}
