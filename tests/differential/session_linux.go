//go:build linux && amd64

package differential

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

	want, got []Outcome // of the last batch
}

// Check runs the cases on both sides, at the same time, and returns those
// that differ, twice: a timer's signal between may have changed the outcome on
// the CPU (the kernel's return from a signal clears NT, for example).
func (s *Session) Check(cases []*Case) ([]Failure, error) {
	for len(s.want) < len(cases) {
		s.want, s.got = append(s.want, Outcome{}), append(s.got, Outcome{})
	}
	want, got := s.want[:len(cases)], s.got[:len(cases)]
	p := s.CPU.Start(cases, want)
	for i := range cases {
		s.Emulator.run(cases[i], &got[i])
	}
	if err := p.Wait(); err != nil {
		return nil, err
	}
	var l []Failure
	for i := range cases {
		if d := Diff(cases[i], &want[i], &got[i]); d != "" && !s.CPU.owns(got[i].Trap) && !isClose(cases[i], &want[i], &got[i]) {
			l = append(l, Failure{cases[i], want[i].clone(), got[i].clone(), d})
		}
	}
	return s.confirm(l)
}

// confirm runs failing cases once more on the CPU.
func (s *Session) confirm(l []Failure) ([]Failure, error) {
	var sure []Failure
	for _, f := range l {
		again, err := s.CPU.Run([]*Case{f.Case})
		if err != nil {
			return nil, err
		}
		if Diff(f.Case, &f.Want, &again[0]) == "" {
			sure = append(sure, f)
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
