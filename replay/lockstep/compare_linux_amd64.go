package lockstep

import (
	"fmt"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Differences between the two sides after one instruction, in registers, extended state
// and stored bytes, and how they are written. When to compare what is decided in
// run_linux_amd64.go.

var segNames = [6]string{"es", "cs", "ss", "ds", "fs", "gs"}

// regFile returns where the kernel's register file has the general registers,
// in encoding order.
func regFile(r *ptrace.Regs) [16]*uint64 {
	return [16]*uint64{
		&r.Rax, &r.Rcx, &r.Rdx, &r.Rbx, &r.Rsp, &r.Rbp, &r.Rsi, &r.Rdi,
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15,
	}
}

// putRegs makes the kernel's register file of a state.
func putRegs(r *ptrace.Regs, s *x86.State) {
	for i, p := range regFile(r) {
		*p = s.R[i]
	}
	r.Rip, r.Eflags, r.Orig_rax = s.RIP, s.Flags()|x86.FlagIF, ^uint64(0)
	r.Fs_base, r.Gs_base = s.FSBase, s.GSBase
	seg := func(n int) uint64 { return uint64(s.Seg[n]) }
	r.Es, r.Cs, r.Ss, r.Ds, r.Fs, r.Gs = seg(x86.ES), seg(x86.CS), seg(x86.SS), seg(x86.DS), seg(x86.FS), seg(x86.GS)
}

func hex(v uint64) string { return fmt.Sprintf("%#x", v) }

// sameRegs reports whether emulator and CPU have the same general registers;
// flags are those that are compared.
func sameRegs(r *ptrace.Regs, s *x86.State, flags uint64) bool {
	return r.Rax == s.R[0] && r.Rcx == s.R[1] && r.Rdx == s.R[2] && r.Rbx == s.R[3] &&
		r.Rsp == s.R[4] && r.Rbp == s.R[5] && r.Rsi == s.R[6] && r.Rdi == s.R[7] &&
		r.R8 == s.R[8] && r.R9 == s.R[9] && r.R10 == s.R[10] && r.R11 == s.R[11] &&
		r.R12 == s.R[12] && r.R13 == s.R[13] && r.R14 == s.R[14] && r.R15 == s.R[15] &&
		r.Rip == s.RIP && (r.Eflags^s.Flags())&flags == 0 && r.Fs_base == s.FSBase && r.Gs_base == s.GSBase &&
		uint16(r.Es) == s.Seg[x86.ES] && uint16(r.Ds) == s.Seg[x86.DS] && uint16(r.Fs) == s.Seg[x86.FS] && uint16(r.Gs) == s.Seg[x86.GS]
}

// diffRegs lists the general registers that differ.
func diffRegs(r *ptrace.Regs, s *x86.State, flags uint64) []Item {
	var l []Item
	add := func(name string, ours, theirs uint64) {
		if ours != theirs {
			l = append(l, Item{name, hex(ours), hex(theirs)})
		}
	}
	for i, p := range regFile(r) {
		add(checkpoint.RegNames[i], s.R[i], *p)
	}
	add("rip", s.RIP, r.Rip)
	if ours, theirs := s.Flags()&flags, r.Eflags&flags; ours != theirs {
		l = append(l, Item{"rflags", flagText(ours), flagText(theirs)})
	}
	add("fs_base", s.FSBase, r.Fs_base)
	add("gs_base", s.GSBase, r.Gs_base)
	segs := [6]uint64{r.Es, r.Cs, r.Ss, r.Ds, r.Fs, r.Gs}
	for i, n := range segNames {
		if i != x86.CS && i != x86.SS {
			add(n, uint64(s.Seg[i]), segs[i])
		}
	}
	return l
}

// flagText writes RFLAGS as gdb does: the value and the names of what is set.
func flagText(f uint64) string {
	names := []struct {
		bit  uint64
		name string
	}{
		{x86.FlagCF, "CF"},
		{x86.FlagPF, "PF"},
		{x86.FlagAF, "AF"},
		{x86.FlagZF, "ZF"},
		{x86.FlagSF, "SF"},
		{x86.FlagDF, "DF"},
		{x86.FlagOF, "OF"},
		{x86.FlagNT, "NT"},
		{x86.FlagAC, "AC"},
		{x86.FlagID, "ID"},
	}
	var set []string
	for _, n := range names {
		if f&n.bit != 0 {
			set = append(set, n.name)
		}
	}
	return fmt.Sprintf("%#x [%s]", f&checkpoint.FlagsMask, strings.Join(set, " "))
}

// vecText writes a vector register, high quadword first.
func vecText(v x86.Vec) string {
	return fmt.Sprintf("0x%016x_%016x_%016x_%016x", v[3], v[2], v[1], v[0])
}

func f80Text(f x86.F80) string { return fmt.Sprintf("0x%04x_%016x", f.E, f.M) }

// sameX reports whether emulator and CPU have the same extended state. The
// addresses of the last x87 instruction do not take part: CPUs keep them or
// not.
func sameX(want, got *x86.State) bool {
	return want.V == got.V && want.MXCSR == got.MXCSR && want.FPU.CW == got.FPU.CW && want.FPU.SW == got.FPU.SW &&
		want.FPU.Tag == got.FPU.Tag && want.FPU.Top == got.FPU.Top && want.FPU.R == got.FPU.R
}

// diffX lists the extended registers in which theirs, the CPU's, differ.
func diffX(ours, theirs *x86.State) []Item {
	var l []Item
	for i := range ours.V {
		if ours.V[i] != theirs.V[i] {
			l = append(l, Item{fmt.Sprintf("ymm%d", i), vecText(ours.V[i]), vecText(theirs.V[i])})
		}
	}
	f, g := &ours.FPU, &theirs.FPU
	for _, c := range []struct {
		name string
		a, b uint64
	}{
		{"mxcsr", uint64(ours.MXCSR), uint64(theirs.MXCSR)},
		{"x87 control word", uint64(f.CW), uint64(g.CW)},
		{"x87 status word", uint64(f.Status()), uint64(g.Status())},
		{"x87 tags", uint64(f.Tag), uint64(g.Tag)},
	} {
		if c.a != c.b {
			l = append(l, Item{c.name, hex(c.a), hex(c.b)})
		}
	}
	for i := range f.R {
		if f.R[i] != g.R[i] {
			l = append(l, Item{fmt.Sprintf("st(%d)", (i-int(f.Top))&7), f80Text(f.R[i]), f80Text(g.R[i])})
		}
	}
	return l
}

// isClose reports whether two states differ only as instructions may whose last
// bit is the maker's secret: by one unit in the last place, and in C1, which
// says whether it was rounded up. The emulator rounds correctly.
func isClose(ours, theirs *x86.State) bool {
	const c1 = 1 << 9
	t := *theirs
	for i := range t.FPU.R {
		if nearF80(ours.FPU.R[i], t.FPU.R[i]) {
			t.FPU.R[i] = ours.FPU.R[i]
		}
	}
	t.FPU.SW = t.FPU.SW&^c1 | ours.FPU.SW&c1
	return sameX(ours, &t)
}

// nearF80 says whether two numbers of the same sign are at most one unit in
// the last place apart, across a power of two as well.
func nearF80(a, b x86.F80) bool {
	if a.E == b.E {
		d := a.M - b.M
		return d <= 1 || -d <= 1
	}
	if a.E > b.E {
		a, b = b, a
	}
	return a.E+1 == b.E && ^a.M == 0 && b.M == 1<<63
}

// diffStores compares the bytes that the instruction stored.
func (r *runner) diffStores(d *decoded) ([]Item, error) {
	for i := range r.spy.stores {
		st := &r.spy.stores[i]
		for a := st.addr &^ (mem.PageSize - 1); a < st.addr+uint64(st.n); a += mem.PageSize {
			if _, have := r.mem.pages[a]; !have { // the CPU did not store there
				if _, err := r.mem.load(a); err != nil {
					return nil, err
				}
			}
		}
		var small [2][64]byte
		ours, theirs := small[0][:], small[1][:]
		if st.n > len(ours) {
			ours, theirs = make([]byte, st.n), make([]byte, st.n)
		}
		ours, theirs = ours[:st.n], theirs[:st.n]
		r.m.Mem.Peek(st.addr, ours) // it was stored a moment ago: all is known
		if _, err := ptrace.ReadMem(r.c.mem, theirs, st.addr); err != nil {
			return nil, err
		}
		if string(ours) == string(theirs) {
			continue
		}
		if d != nil && d.class&isPushf != 0 && len(ours) >= 2 {
			// PUSHF shows the TF that makes the CPU step.
			theirs[1] = theirs[1]&^1 | ours[1]&1
			if string(ours) == string(theirs) {
				if _, err := ptrace.WriteMem(r.c.mem, ours, st.addr); err != nil {
					return nil, err
				}
				continue
			}
		}
		return []Item{memoryItem(st.addr, ours, theirs)}, nil
	}
	return nil, nil
}

// memoryItem says in which bytes of a range memory differs.
func memoryItem(a uint64, ours, theirs []byte) Item {
	lo, hi := len(ours), 0
	for i := range ours {
		if ours[i] != theirs[i] {
			lo, hi = min(lo, i), i+1
		}
	}
	return Item{fmt.Sprintf("memory at %#x", a+uint64(lo)), fmt.Sprintf("% x", ours[lo:hi]), fmt.Sprintf("% x", theirs[lo:hi])}
}
