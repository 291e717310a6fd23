package lockstep

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"vplay/checkpoint"
)

// What callers see on every system: options, results, differences and errors. Nothing
// here needs ptrace; the part that runs is in the files with _linux_amd64 in their
// names.

// ErrNotSupported is the error of Run where there is no x86-64 Linux to run
// recorded code on.
var ErrNotSupported = errors.New("lockstep: recorded instructions can be executed on linux/amd64 only")

// HostError says that the process beside the emulator could not be made or
// steered on this machine.
type HostError struct {
	What string
	Err  error
}

func (e *HostError) Error() string { return fmt.Sprintf("lockstep: %s: %v", e.What, e.Err) }
func (e *HostError) Unwrap() error { return e.Err }

// RangeError says that From is not in its interval.
type RangeError struct {
	From, End checkpoint.Position
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("lockstep: %s is behind the end of its interval, %s", e.From, e.End)
}

// Options says what stretch to run.
type Options struct {
	// From is where the comparison starts. The emulator goes there alone.
	From checkpoint.Position
	// To, when not zero, is where it ends, at the latest; it must be in the
	// same interval.
	To checkpoint.Position
	// Count, when not 0, is how many instructions are run at most.
	Count uint64
	// IgnoreUndefined leaves out flags that the manuals leave undefined. They
	// are never compared on a CPU that is Unlike the recorded one.
	IgnoreUndefined bool
	// Progress, when not nil, is called now and then with the steps taken
	// since it was last.
	Progress func(steps uint64)
}

// Result is what running a stretch gave.
type Result struct {
	From, To checkpoint.Position
	// Steps is how many instructions and REP iterations were executed by both
	// sides and compared.
	Steps uint64
	// Alone is how many instructions the emulator executed alone, because
	// their result is the log's or the machine's: SYSCALL, RDTSC, CPUID, MOV SS.
	Alone uint64
	// Approximate is how many results the CPU's maker keeps secret were
	// within one unit in the last place and not the same (x87 FSIN and its kin).
	Approximate uint64
	Took        time.Duration
	// Difference is the first one, nil when there is none.
	Difference *Difference
	// Err is nil, or why replay could not go on: *replay.DivergenceError when
	// machine and log differ though the CPU does as the emulator does,
	// *replay.NotCapturedError, *replay.UnsupportedError.
	Err error
}

// Difference is the first instruction that emulator and CPU execute
// differently.
type Difference struct {
	At    checkpoint.Position // before the instruction
	TID   checkpoint.TID
	RIP   uint64
	Bytes []byte // of the instruction
	Row   string // of the emulator's table: mnemonic and encoding
	// Before are the operands, in the instruction's order, then implied
	// registers and those that either side changed.
	Before []Value
	// Items is what differs afterwards, at least one.
	Items []Item
}

// Value is an operand.
type Value struct {
	Name  string // "rax", "[0x7ffe10a8]", "ymm3"
	Value string
}

// Item is one thing that is not the same on both sides.
type Item struct {
	Name          string
	Emulator, CPU string
}

func (d *Difference) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "difference at %s (rip %#x): %s [% x]", d.At, d.RIP, d.Row, d.Bytes)
	for _, i := range d.Items {
		fmt.Fprintf(&s, "; %s: emulator %s, CPU %s", i.Name, i.Emulator, i.CPU)
	}
	return s.String()
}
