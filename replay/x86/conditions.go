package x86

// Conditions are the conditions of breakpoints, by address: agent expressions (package agentexpr), at least one. Where all of an address are 0 an
// engine may pass the breakpoint by itself; where one is not, cannot be evaluated, or the engine does not know, CPU.Pass is asked.
// They are not changed once a CPU has them: which they are is told by the pointer.
type Conditions struct {
	At map[uint64][][]byte
}

// Of returns those at pc, none on nil.
func (s *Conditions) Of(pc uint64) [][]byte {
	if s == nil {
		return nil
	}
	return s.At[pc]
}

// Touch has the page of a in a translation cache for loads, if it may be there.
func (c *CPU) Touch(a uint64) {
	if c.loadPage(a) == nil && c.log == nil && canonical(a) {
		c.notePartial(&c.rpartial, &c.rpartialFills, a, Load)
	}
}
