//go:build linux && amd64

package record

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// The CPU is presented with what the emulator knows: x86-64-v3 and the
// instructions for cryptography that go with it. Where CPUID can be made to
// fault its answers are edited; elsewhere glibc is told by its tunables not to
// choose code beyond that, and a program that uses it all the same is refused
// at replay, by name.

// hwcaps are the names of glibc's tunable glibc.cpu.hwcaps for what lies above
// that (sysdeps/x86/cpu-tunables.c); names that a version does not know are
// ignored by it.
var hwcaps = []string{
	"AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512ER", "AVX512PF", "AVX512VL", "FMA4", "RTM",
}

// canFaultCPUID reports whether the kernel and CPU can make CPUID fault, and may: the
// cpuid_fault flag of /proc/cpuinfo, found by trying on a call that changes
// nothing (ARCH_GET_CPUID always answers, so the flag is read).
func (s *session) canFaultCPUID() bool { return !s.opt.NoTrapCPUID && hasCPUFlag("cpuid_fault") }

// maxSubleaf bounds the subleaves that are kept of one leaf.
const maxSubleaf = 64

// hypervisorLeaf is the first of the leaves with which a hypervisor names itself (Linux,
// Documentation/virt/kvm/x86/cpuid.rst); programs look whether they run in a virtual machine.
const hypervisorLeaf = 0x40000000

// hostLeaves asks the CPU all leaves.
func hostLeaves() []checkpoint.CPUIDLeaf {
	var out []checkpoint.CPUIDLeaf
	for _, base := range []uint32{0, hypervisorLeaf, 0x80000000} {
		top, _, _, _ := cpuid(base, 0)
		if top < base || top-base > 0x100 {
			continue
		}
		for leaf := base; leaf <= top; leaf++ {
			out = append(out, subleaves(leaf)...)
		}
	}
	return out
}

// subleaves asks all subleaves of a leaf that has them (SDM vol. 2A, CPUID;
// AMD APM vol. 3, appendix E).
func subleaves(leaf uint32) []checkpoint.CPUIDLeaf {
	one := func(sub uint32) checkpoint.CPUIDLeaf {
		a, b, c, d := cpuid(leaf, sub)
		return checkpoint.CPUIDLeaf{Leaf: leaf, Subleaf: sub, EAX: a, EBX: b, ECX: c, EDX: d}
	}
	first := one(0)
	out := []checkpoint.CPUIDLeaf{first}
	n := uint32(1)
	switch leaf {
	case 7, 0x14, 0x17, 0x18, 0x1d, 0x20:
		n = first.EAX + 1
	case 0xd:
		n = maxSubleaf - 1
	case 4, 0xb, 0x1f, 0x8000001d, 0x80000026, 0xf, 0x10, 0x12:
		n = 8
	}
	for sub := uint32(1); sub < min(n, maxSubleaf); sub++ {
		out = append(out, one(sub))
	}
	return out
}

// HostCPU returns vendor, family, model, stepping and brand of the CPU that runs
// the caller, as it tells them itself (SDM vol. 2A, CPUID leaves 0, 1, 0x80000002
// to 4; AMD APM vol. 3, appendix E). The other fields are empty.
func HostCPU() checkpoint.Identity {
	var id checkpoint.Identity
	var name [12]byte
	_, b, c, d := cpuid(0, 0)
	binary.LittleEndian.PutUint32(name[0:], b)
	binary.LittleEndian.PutUint32(name[4:], d)
	binary.LittleEndian.PutUint32(name[8:], c)
	id.Vendor = string(name[:])
	a, _, _, _ := cpuid(1, 0)
	id.Stepping, id.Model, id.Family = a&15, a>>4&15, a>>8&15
	if id.Family == 15 {
		id.Family += a >> 20 & 0xff
	}
	if id.Family >= 6 {
		id.Model |= a >> 16 & 15 << 4
	}
	var brand []byte
	for leaf := uint32(0x80000002); leaf <= 0x80000004; leaf++ {
		for _, v := range first4(cpuid(leaf, 0)) {
			brand = binary.LittleEndian.AppendUint32(brand, v)
		}
	}
	id.Brand = strings.Trim(string(brand), " \x00")
	return id
}

// CPU returns the CPU that runs the caller, as it tells itself: with all leaves of CPUID, and the layout of
// extended state.
func CPU() checkpoint.Identity {
	id := HostCPU()
	id.Level, id.XCR0, id.CPUID = levelOf(), xgetbv(), hostLeaves()
	return id
}

// hostCPU returns the CPU as it tells itself, all leaves included. It is asked once: in a
// virtual machine each CPUID leaves the guest, and all of them take a millisecond.
func (s *session) hostCPU() checkpoint.Identity {
	if s.cpu == nil {
		id := CPU()
		aux := rdtscpAux() // the tracer thread is on the program's CPU
		id.TSCAux = &aux
		s.cpu = &id
	}
	return *s.cpu
}

// identity describes the CPU as the program sees it.
func (p *process) identity() checkpoint.Identity {
	id := p.session.hostCPU()
	if p.session.attach != nil {
		id.Level = "" // the program has seen it as it is
	}
	if id.Faulting = p.trap.cpuid; !id.Faulting {
		return id
	}
	id.CPUID = slices.Clone(id.CPUID)
	for i, own := range id.CPUID {
		if present(&id.CPUID[i]); id.CPUID[i] != own {
			id.CPUIDReal = append(id.CPUIDReal, own)
		}
	}
	p.trap.answers = id.CPUID
	return id
}

func first4(a, b, c, d uint32) [4]uint32 { return [4]uint32{a, b, c, d} }

// A feature mask holds the bits of one leaf's registers.
type featureMask struct{ eax, ebx, ecx, edx uint32 }

// The features of x86-64-v3 (System V ABI, AMD64 supplement, 3.1.1) that CPUs
// of level 2 lack, by leaf: FMA, MOVBE, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2;
// LZCNT.
var (
	level3Leaf1   = featureMask{ecx: 1<<12 | 1<<22 | 1<<27 | 1<<28 | 1<<29}
	level3Leaf7   = featureMask{ebx: 1<<3 | 1<<5 | 1<<8}
	level3LeafExt = featureMask{ecx: 1 << 5}
)

// levelOf names the level that this CPU is presented at.
func levelOf() string {
	_, _, c1, _ := cpuid(1, 0)
	_, b7, _, _ := cpuid(7, 0)
	_, _, cx, _ := cpuid(0x80000001, 0)
	if c1&level3Leaf1.ecx == level3Leaf1.ecx && b7&level3Leaf7.ebx == level3Leaf7.ebx && cx&level3LeafExt.ecx == level3LeafExt.ecx {
		return "x86-64-v3"
	}
	return "x86-64-v2"
}

// hidden are the bits that are cleared in leaves of which most may be seen, and
// shown those that stay of leaves of which most may not. Leaf 0xD.0 stays real:
// XCR0 cannot be changed from user mode, and programs size buffers by it.
var (
	hidden = map[[2]uint32]featureMask{
		// RDRAND.
		{1, 0}: {ecx: 1 << 30},
		// XSAVEOPT, whose result depends on what ran in between; XSAVES, XFD.
		{0xd, 1}: {eax: 1<<0 | 1<<3 | 1<<4},
		// XOP, FMA4, TBM, MONITORX; RDTSCP stays.
		{0x80000001, 0}: {ecx: 1<<11 | 1<<16 | 1<<21 | 1<<29},
	}
	shown = map[[2]uint32]featureMask{
		// No subleaves behind it; BMI1, AVX2, FDP_EXCPTN_ONLY, BMI2, ERMS, no FCS and FDS, ADX,
		// CLFLUSHOPT, CLWB, SHA; LA57, GFNI, VAES, VPCLMULQDQ; FSRM. FSGSBASE
		// is hidden like its bit of AT_HWCAP2.
		{7, 0}: {
			ebx: 1<<3 | 1<<5 | 1<<6 | 1<<8 | 1<<9 | 1<<13 | 1<<19 | 1<<23 | 1<<24 | 1<<29,
			ecx: 1<<8 | 1<<9 | 1<<10 | 1<<16,
			edx: 1 << 4,
		},
	}
)

// present clears in one leaf what the emulator does not know.
func present(l *checkpoint.CPUIDLeaf) {
	key := [2]uint32{l.Leaf, l.Subleaf}
	if m, ok := hidden[key]; ok {
		l.EAX, l.EBX, l.ECX, l.EDX = l.EAX&^m.eax, l.EBX&^m.ebx, l.ECX&^m.ecx, l.EDX&^m.edx
	}
	if m, ok := shown[key]; ok || l.Leaf == 7 {
		l.EAX, l.EBX, l.ECX, l.EDX = l.EAX&m.eax, l.EBX&m.ebx, l.ECX&m.ecx, l.EDX&m.edx
	}
}

// cpuidAnswer is what a trapped CPUID answers.
func (p *process) cpuidAnswer(leaf, sub uint32) checkpoint.CPUIDLeaf {
	var first *checkpoint.CPUIDLeaf
	answers := p.trap.answers
	if !p.trap.cpuid { // the program has HLT in its place
		answers = p.session.hostCPU().CPUID
	}
	for i := range answers {
		l := &answers[i]
		if l.Leaf != leaf {
			continue
		}
		if l.Subleaf == sub {
			return *l
		}
		if first == nil {
			first = l
		}
	}
	if first != nil && leaf != 7 && leaf != 0xd {
		return *first
	}
	return checkpoint.CPUIDLeaf{Leaf: leaf, Subleaf: sub}
}

// guestSetsAffinity keeps the mask that the program asks for without letting
// it leave the recorder's CPU.
func (t *thread) guestSetsAffinity() error {
	a := &t.call.args
	of := t.session.numbered(int(int32(a[0])), t)
	if of == nil {
		return nil
	}
	var old, mask unix.CPUSet
	b := make([]byte, min(a[1], 128))
	if t.space().readMem(a[2], b) != len(b) {
		return nil // EFAULT, from the kernel
	}
	for i, v := range b {
		for bit := range 8 {
			if v>>bit&1 != 0 {
				mask.Set(i*8 + bit)
			}
		}
	}
	// The kernel judges the mask on the tracer's own thread.
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return err
	}
	err := unix.SchedSetaffinity(0, &mask)
	t.call.answered, t.call.answer = true, 0
	var e unix.Errno
	if errors.As(err, &e) {
		t.call.answer = -int64(e)
	} else {
		of.affinity = mask
	}
	if err := unix.SchedSetaffinity(0, &old); err != nil {
		return err
	}
	return t.patch(func(r *ptrace.Regs) { r.Orig_rax = ^uint64(0) })
}

// numbered returns the recorded thread with a number, t for 0, nil when there is none.
func (s *session) numbered(tid int, t *thread) *thread {
	if tid == 0 {
		return t
	}
	return s.threads[tid]
}

// answerAffinity replaces the mask that sched_getaffinity has returned by the
// one that the program would have without the recorder.
func (t *thread) answerAffinity(ret int64) {
	a := &t.call.args
	of := t.session.numbered(int(int32(a[0])), t)
	if of == nil {
		return
	}
	b := make([]byte, min(uint64(ret), a[1], 128))
	for i := range len(b) * 8 {
		if of.affinity.IsSet(i) {
			b[i/8] |= 1 << (i % 8)
		}
	}
	if _, err := t.space().mem.writeAt(b, a[2]); err != nil {
		t.session.log.Warn().Err(err).Msg("affinity mask not corrected")
	}
}
