//go:build linux && amd64

package record

import (
	"encoding/binary"
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// The CPU is presented as x86-64-v2. Where CPUID can be made to fault its
// answers are edited; elsewhere glibc is told by its tunables not to choose
// code beyond that level, and a program that uses it all the same is refused
// at replay, by name.

// hwcaps are the names of glibc's tunable glibc.cpu.hwcaps for what lies above
// x86-64-v2 (sysdeps/x86/cpu-tunables.c); names that a version does not know
// are ignored by it.
var hwcaps = []string{
	"AVX", "AVX2", "AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512ER", "AVX512PF", "AVX512VL",
	"FMA", "FMA4", "BMI1", "BMI2", "LZCNT", "MOVBE", "ERMS", "FSRM", "RTM", "OSXSAVE", "XSAVE", "XSAVEC", "F16C",
	"AVX_Fast_Unaligned_Load",
}

const tunables = "GLIBC_TUNABLES"

// guestEnv is the program's environment: the given one and the tunables.
func (t *tracer) guestEnv() []string {
	if t.canFaultCPUID() {
		return t.opt.Env
	}
	mine := "glibc.cpu.hwcaps=-" + strings.Join(hwcaps, ",-")
	env := make([]string, 0, len(t.opt.Env)+1)
	old := ""
	for _, e := range t.opt.Env {
		if v, ok := strings.CutPrefix(e, tunables+"="); ok {
			old = v
			continue
		}
		env = append(env, e)
	}
	t.noteOnce("CPUID cannot be trapped here: " + tunables + " limits glibc to x86-64-v2")
	return append(env, tunables+"="+mergeTunables(old, mine))
}

// mergeTunables joins two values of GLIBC_TUNABLES; a later hwcaps list would
// replace an earlier one, so ours is appended to the program's own.
func mergeTunables(old, mine string) string {
	if old == "" {
		return mine
	}
	name, list, _ := strings.Cut(mine, "=")
	parts := strings.Split(old, ":")
	for i, p := range parts {
		if n, v, ok := strings.Cut(p, "="); ok && n == name {
			parts[i] = n + "=" + v + "," + list
			return strings.Join(parts, ":")
		}
	}
	return old + ":" + mine
}

// canFaultCPUID reports whether the kernel and CPU can make CPUID fault: the
// cpuid_fault flag of /proc/cpuinfo, found by trying on a call that changes
// nothing (ARCH_GET_CPUID always answers, so the flag is read).
func (t *tracer) canFaultCPUID() bool { return hasCPUFlag("cpuid_fault") }

// maxSubleaf bounds the subleaves that are kept of one leaf.
const maxSubleaf = 64

// hostLeaves asks the CPU all leaves.
func hostLeaves() []checkpoint.CPUIDLeaf {
	var out []checkpoint.CPUIDLeaf
	for _, base := range []uint32{0, 0x80000000} {
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

// identity describes the CPU as the program sees it.
func (t *tracer) identity() checkpoint.Identity {
	id := checkpoint.Identity{Level: "x86-64-v2", Faulting: t.trap.cpuid, XCR0: xgetbv()}
	leaves := hostLeaves()
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
	if t.trap.cpuid {
		for i := range leaves {
			present(&leaves[i])
		}
		t.trap.answers = leaves
	}
	id.CPUID = leaves
	return id
}

func first4(a, b, c, d uint32) [4]uint32 { return [4]uint32{a, b, c, d} }

// present clears in one leaf what is above x86-64-v2. Leaf 0xD.0 stays real:
// XCR0 cannot be changed from user mode, and programs size buffers by it.
func present(l *checkpoint.CPUIDLeaf) {
	switch {
	case l.Leaf == 1:
		// FMA 12, MOVBE 22, XSAVE 26, OSXSAVE 27, AVX 28, F16C 29, RDRAND 30.
		l.ECX &^= 1<<12 | 1<<22 | 1<<26 | 1<<27 | 1<<28 | 1<<29 | 1<<30
		// AES 25, PCLMULQDQ 1: not in v2.
		l.ECX &^= 1<<25 | 1<<1
	case l.Leaf == 7 && l.Subleaf == 0:
		// FDP_EXCPTN_ONLY 6 and deprecated FCS and FDS 13 are no features: they
		// say what FXSAVE stores, which replay has to know.
		l.EBX &= 1<<6 | 1<<13
		l.ECX, l.EDX = l.ECX&(1<<16), 0
	case l.Leaf == 7:
		l.EAX, l.EBX, l.ECX, l.EDX = 0, 0, 0, 0
	case l.Leaf == 0xd && l.Subleaf == 1:
		l.EAX &^= 1<<1 | 1<<2 | 1<<3 | 1<<4
	case l.Leaf == 0x80000001:
		// ABM 5, XOP 11, FMA4 16, TBM 21, MONITORX 29; RDTSCP stays.
		l.ECX &^= 1<<5 | 1<<11 | 1<<16 | 1<<21 | 1<<29
	}
}

// cpuidAnswer is what a trapped CPUID answers.
func (t *tracer) cpuidAnswer(leaf, sub uint32) checkpoint.CPUIDLeaf {
	var first *checkpoint.CPUIDLeaf
	for i := range t.trap.answers {
		l := &t.trap.answers[i]
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
func (t *tracer) guestSetsAffinity() error {
	a := &t.call.args
	if pid := int(int32(a[0])); pid != 0 && pid != t.pid {
		return nil
	}
	var old, mask unix.CPUSet
	b := make([]byte, min(a[1], 128))
	if t.readMem(a[2], b) != len(b) {
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
		t.origMask = mask
	}
	if err := unix.SchedSetaffinity(0, &old); err != nil {
		return err
	}
	return t.patch(func(r *unix.PtraceRegs) { r.Orig_rax = ^uint64(0) })
}

// answerAffinity replaces the mask that sched_getaffinity has returned by the
// one that the program would have without the recorder.
func (t *tracer) answerAffinity(ret int64) {
	a := &t.call.args
	if pid := int(int32(a[0])); pid != 0 && pid != t.pid {
		return
	}
	b := make([]byte, min(uint64(ret), a[1], 128))
	for i := range len(b) * 8 {
		if t.origMask.IsSet(i) {
			b[i/8] |= 1 << (i % 8)
		}
	}
	if _, err := pwrite(t.mem, b, a[2]); err != nil {
		t.log.Warn().Err(err).Msg("affinity mask not corrected")
	}
}
