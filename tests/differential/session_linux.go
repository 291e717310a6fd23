//go:build linux && amd64

package differential

import (
	"bytes"
	"fmt"
	"strings"

	"vplay/replay/x86"
)

// A run of both sides: cases are executed on the CPU and in the emulator and compared,
// differences are run again, and failing cases are shrunk. How an outcome is compared is
// in diff.go, and how cases are made in generate.go.

// Failure is a case on which the two sides disagree. Want is the CPU's.
type Failure struct {
	Case      *Case
	Want, Got Outcome
	Diff      string
}

// Session compares CPU and emulator.
type Session struct {
	CPU      *CPU
	Emulator *Emulator

	// Times is how often the emulator executes each case by blocks, with more and more of it translated
	// (Emulator.RunBlocks); 0 has it execute by the number of instructions, once.
	Times int

	// LeftOut counts the cases that differ and are not reported.
	LeftOut LeftOut

	want, got []Outcome // of the last batch
}

// compatCS selects the 32-bit code segment (USER32_CS, Linux
// arch/x86/include/asm/segment.h).
const compatCS = 0x23

// LeftOut is how many cases differ and are no failures, by reason.
type LeftOut struct {
	Own       int // the address hit memory of the harness
	Close     int // the last unit of a transcendental
	Compat    int // to 32-bit code, which the emulator refuses
	Number    int // asked for the limit that is the CPU's number, which a case does not say
	Microcode int // the CPU's microcode decides
	Disturbed int // the CPU did what the emulator does the second time
}

func (l *LeftOut) add(m LeftOut) {
	l.Own += m.Own
	l.Close += m.Close
	l.Compat += m.Compat
	l.Number += m.Number
	l.Microcode += m.Microcode
	l.Disturbed += m.Disturbed
}

func (l LeftOut) String() string {
	return fmt.Sprintf("left out: %d in the harness's memory, %d in the last bit, %d to 32-bit code, %d for the CPU's number, %d to microcode, %d disturbed",
		l.Own, l.Close, l.Compat, l.Number, l.Microcode, l.Disturbed)
}

// Check runs the cases on both sides, at the same time, and returns those
// that differ twice: a timer's signal between may have changed the outcome on
// the CPU (the kernel's return from a signal clears NT, for example).
func (s *Session) Check(cases []*Case) ([]Failure, error) {
	for len(s.want) < len(cases) {
		s.want, s.got = append(s.want, Outcome{}), append(s.got, Outcome{})
	}
	want, got := s.want[:len(cases)], s.got[:len(cases)]
	p := s.CPU.Start(cases, want)
	for i := range cases {
		if s.Times == 0 {
			s.Emulator.run(cases[i], &got[i])
		} else {
			got[i] = onlyOutcome(cases[i], s.Emulator.RunBlocks(cases[i], s.Times))
		}
	}
	if err := p.Wait(); err != nil {
		return nil, err
	}
	var l []Failure
	for i := range cases {
		d := Diff(cases[i], &want[i], &got[i])
		switch {
		case d == "":
		case s.CPU.owns(got[i].Trap):
			s.LeftOut.Own++
		case isClose(cases[i], &want[i], &got[i]):
			s.LeftOut.Close++
		case want[i].Out.Seg[x86.CS] == compatCS && got[i].Problem != "":
			s.LeftOut.Compat++
		case asksNumber(cases[i], &got[i]):
			s.LeftOut.Number++
		case asksMicrocode(cases[i], &want[i], &got[i]):
			s.LeftOut.Microcode++
		default:
			l = append(l, Failure{cases[i], want[i].clone(), got[i].clone(), d})
		}
	}
	return s.confirm(l)
}

// Learn asks the CPU for the instructions whose CPUID bit it does not show: a hypervisor can clear the bit, but not have the
// instructions fault. Those that it executes all the same the emulator executes from then on. It returns one row for each such bit.
func (s *Session) Learn() ([]int, error) {
	var learnt []int
	g := NewGenerator(1, s.Emulator.ID())
	for i := range x86.Rows() {
		r := &x86.Rows()[i]
		if i == 0 || WhyNotRun(r) != "" && !r.Attr("refuse") || !s.Emulator.ID().Lacks(r) {
			continue
		}
		cases := make([]*Case, 16)
		for j := range cases {
			cases[j] = g.Case(i)
		}
		o, err := s.CPU.Run(cases)
		if err != nil {
			return nil, err
		}
		for j, k := range cases {
			if done := o[j].Problem == "" && (!o[j].Trap.Taken || o[j].Trap.Vector != trapUD); done && s.Emulator.learn(k) {
				learnt = append(learnt, i)
				break
			}
		}
	}
	return learnt, nil
}

// onlyOutcome returns what all outcomes of a case are, or the first with a problem that says that they are not
// the same.
func onlyOutcome(k *Case, l []Outcome) Outcome {
	for i := range l[1:] {
		if d := Diff(k, &l[0], &l[i+1]); d != "" {
			l[0].Problem = fmt.Sprintf("time %d is not as time 0: %s", i+1, d)
			break
		}
	}
	return l[0]
}

// asksNumber reports whether the emulator refused LSL, which it does for one
// selector alone: there Linux keeps the number of CPU and node. The shaper
// avoids it, but memory that it does not write may hold it.
func asksNumber(k *Case, got *Outcome) bool {
	return k.Row > 0 && x86.Rows()[k.Row].Mnemonic == "LSL" && strings.HasPrefix(got.Problem, "unsupported ")
}

// asksMicrocode reports whether one side alone took LOCK before VERR or VERW: two CPUs of
// family 25, model 17 and stepping 1 differ in it (RATIONALE.md).
func asksMicrocode(k *Case, want, got *Outcome) bool {
	isUD := func(o *Outcome) bool { return o.Trap.Taken && o.Trap.Vector == trapUD }
	return isUD(want) != isUD(got) && hasLockedVerify(k.Code)
}

// hasLockedVerify finds LOCK, perhaps other prefixes, and the opcode of VERR or VERW.
func hasLockedVerify(code []byte) bool {
	locked := false
	for i, b := range code {
		switch {
		case b == 0xf0:
			locked = true
		case b&0xf0 == 0x40 || bytes.IndexByte([]byte{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3}, b) >= 0:
		case locked && b == 0x0f && i+2 < len(code) && code[i+1] == 0 && code[i+2]>>4&3 == 2: // ModRM.reg is 4 or 5
			return true
		default:
			locked = false
		}
	}
	return false
}

// confirm runs failing cases once more on the CPU, and drops those that come to
// what the emulator says after all.
func (s *Session) confirm(l []Failure) ([]Failure, error) {
	var sure []Failure
	for _, f := range l {
		again, err := s.CPU.Run([]*Case{f.Case})
		if err != nil {
			return nil, err
		}
		if Diff(f.Case, &again[0], &f.Got) != "" {
			sure = append(sure, f)
		} else {
			s.LeftOut.Disturbed++
		}
	}
	return sure, nil
}

// Shrink returns a failing case with as little state as still fails: fields
// go back to their default, patches go away, one after the other.
func (s *Session) Shrink(f Failure) (Failure, error) {
	for i := len(f.Case.Lens) - 1; i >= 0 && len(f.Case.Lens) > 1; i-- {
		if i < len(f.Case.Lens) {
			if err := s.keep(&f, f.Case.without(i)); err != nil {
				return f, err
			}
		}
	}
	d := DefaultRegs()
	for pass := 0; pass < 2; pass++ {
		for i := range fields {
			k := *f.Case
			_ = fields[i].set(&k.In, fields[i].get(&d)) // what get wrote, set reads
			k.In.RIP = f.Case.In.RIP
			if err := s.keep(&f, &k); err != nil {
				return f, err
			}
		}
		for i := range f.Case.Patches {
			if i >= len(f.Case.Patches) {
				break
			}
			k := *f.Case
			k.Patches = append(append([]Patch(nil), k.Patches[:i]...), k.Patches[i+1:]...)
			if err := s.keep(&f, &k); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

// keep replaces f by k when k still fails.
func (s *Session) keep(f *Failure, k *Case) error {
	if k.String() == f.Case.String() {
		return nil
	}
	l, err := s.Check([]*Case{k})
	if err == nil && len(l) == 1 && (l[0].Want.Problem == "") == (f.Want.Problem == "") && (l[0].Got.Problem == "") == (f.Got.Problem == "") {
		*f = l[0]
	}
	return err
}
