package debug

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/debug/text"
)

// The answers to questions about a recording are values. String writes one for people,
// on a line that begins with what "seek" takes where it is about a moment; what a
// recording named is printable there. In JSON they are for scripts, with the names as
// they are.

// Access is a load or a store of memory that was asked about.
type Access struct {
	Position    checkpoint.Position `json:"position"` // before the instruction
	At          loader.Location     `json:"at"`
	Instruction string              `json:"instruction"` // or the system call it makes
	IsStore     bool                `json:"store"`
	Addr        uint64              `json:"addr"`   // of what was asked for
	Len         uint64              `json:"length"` // bytes
	// Old and New are the bytes before and after a store, New what a load read: at most
	// 64 bytes, as far as they are known.
	Old Bytes `json:"old,omitempty"`
	New Bytes `json:"new"`
	// IsChanged says that the store changed a byte.
	IsChanged bool `json:"changed"`
}

// Bytes are bytes of memory, hexadecimal in JSON.
type Bytes []byte

// MarshalText implements encoding.TextMarshaler.
func (b Bytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, b), nil }

// String writes where the program was, what it did, and what became of the bytes.
func (a Access) String() string {
	s := fmt.Sprintf("%s  %s  %s  ", a.Position, placeText(a.At), a.Instruction)
	switch {
	case !a.IsStore:
		return s + value(a.New, a.Len)
	case !a.IsChanged:
		return s + value(a.New, a.Len) + " (the same as before)"
	}
	return s + value(a.Old, a.Len) + " -> " + value(a.New, a.Len)
}

// Call is a call of a function.
type Call struct {
	Position  checkpoint.Position `json:"position"` // before its first instruction
	Addr      uint64              `json:"addr"`     // of that
	Function  string              `json:"function,omitempty"`
	IsInlined bool                `json:"inlined"` // into From
	Arguments []Argument          `json:"arguments,omitempty"`
	// From is where the call returns to; for an inlined function, where it begins. Nil
	// where the stack was not captured.
	From *loader.Location `json:"from,omitempty"`
	// SP is the stack pointer there: of calls on one stack the inner one has the lower.
	SP uint64 `json:"-"`
}

// String writes the call as C does, and from where.
func (c Call) String() string {
	name := fmt.Sprintf("%#x", c.Addr)
	if c.Function != "" {
		name = text.Printable(c.Function)
	}
	if c.IsInlined {
		return fmt.Sprintf("%s  %s, inlined  from %s", c.Position, name, placeText(*c.From))
	}
	args := make([]string, len(c.Arguments))
	for i, a := range c.Arguments {
		args[i] = a.String()
	}
	return fmt.Sprintf("%s  %s(%s)  from %s", c.Position, name, strings.Join(args, ", "), callerText(c.From))
}

// Argument is an integer argument of a call.
type Argument struct {
	Bits uint64
	Type byte // see argumentTypes
}

// String writes a pointer, or what is as large, in hexadecimal.
func (a Argument) String() string {
	t := argumentTypes[a.Type]
	shift := 64 - 8*t.size
	v := a.Bits << shift
	switch {
	case a.Type == 'P' || a.Type == 'Q' && v>>shift > 1<<16:
		return fmt.Sprintf("%#x", v)
	case t.signed:
		return strconv.FormatInt(int64(v)>>shift, 10)
	}
	return strconv.FormatUint(v>>shift, 10)
}

// MarshalText implements encoding.TextMarshaler.
func (a Argument) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Execution is an instruction that is about to be executed.
type Execution struct {
	Position checkpoint.Position `json:"position"`
	At       loader.Location     `json:"at"`
	// From is where the stack pointer points to: the caller, at a function's first
	// instruction. Nil where the stack was not captured.
	From *loader.Location `json:"from,omitempty"`
}

// String writes where it is, and from where.
func (x Execution) String() string {
	return fmt.Sprintf("%s  %s  from %s", x.Position, placeText(x.At), callerText(x.From))
}

// Event is an entry of the log.
type Event struct {
	Number   int                 `json:"number"` // from the beginning of the program, as "seek event" counts
	Position checkpoint.Position `json:"position"`
	TID      int                 `json:"tid"`
	Kind     string              `json:"kind"`
	Text     string              `json:"text"` // as strace writes it
}

// String writes its number, position and text.
func (e Event) String() string { return fmt.Sprintf("#%d  %s  %s", e.Number, e.Position, e.Text) }

// Module is an ELF file in memory.
type Module struct {
	Base    uint64 `json:"base"`
	Bias    uint64 `json:"bias"` // what is added to the file's addresses
	Path    string `json:"path"`
	BuildID string `json:"build_id,omitempty"`
}

// String writes two lines: what it is, and how gdb loads symbols for it by hand.
func (m Module) String() string {
	return fmt.Sprintf("%#x %s build-id %s\n  add-symbol-file FILE -o %#x", m.Base, m.Path, m.BuildID, m.Bias)
}

// When is the position at which the cursor stands, under the name of the question (and of rr's).
type When struct {
	Position checkpoint.Position `json:"position"`
}

// String writes the position.
func (m When) String() string { return m.Position.String() }

// placeText names an instruction: function, module and source line, as far as known.
func placeText(l loader.Location) string {
	s := fmt.Sprintf("%#x %s", l.Addr, l)
	if src := l.Source(); src != "" {
		s += " " + src
	}
	return text.Printable(s)
}

// callerText names where a call returns to.
func callerText(l *loader.Location) string {
	if l == nil {
		return "where the stack was not captured"
	}
	return placeText(*l)
}

// value prints bytes: up to eight as a number, as the program has it, the rest
// in the order of memory. n is how many there are, b those that can be read: none where
// nothing is mapped, or was captured.
func value(b []byte, n uint64) string {
	switch {
	case len(b) == 0:
		return "<unreadable>"
	case uint64(len(b)) == n && n <= 8:
		v := uint64(0)
		for i, x := range b {
			v |= uint64(x) << (8 * i)
		}
		return fmt.Sprintf("%#x", v)
	case uint64(len(b)) < n:
		return fmt.Sprintf("%x...", b)
	}
	return hex.EncodeToString(b)
}
