package api

// Symbols tells what addresses, lines and names of the program mean at the target's
// present position. Like the target it is never called twice at once.
type Symbols interface {
	// Stack returns the frames of a thread, innermost first, at most limit of
	// them. A function that was inlined has a frame of its own before the frame
	// it was inlined into.
	Stack(tid, limit int) []Frame

	// Lines returns where the code of a source line begins, the line itself
	// included; a line without code stands for the next that has some. file is the
	// client's path.
	Lines(file string, line int) []Place
	// Functions returns where the functions of a name are entered, behind their
	// prologues, also where they were inlined.
	Functions(name string) []Place

	// Line returns the source line at pc and the code around pc that belongs to it.
	Line(pc uint64) (Line, bool)
	// Extent returns where the function at pc begins and ends.
	Extent(pc uint64) (low, high uint64, ok bool)
	// Body returns the address behind the prologue of the function at entry.
	Body(entry uint64) uint64

	// Scopes lists the variables that can be seen from a frame.
	Scopes(f *Frame) []Scope
	// Eval evaluates an expression in a frame.
	Eval(f *Frame, expr string) (Value, error)
	// EvalCalling is Eval for an expression that may call functions; run does it.
	EvalCalling(f *Frame, expr string, run Runner) (Value, error)
	// Assign returns what gives to, which Eval or Scopes returned, the value of an
	// expression in a frame.
	Assign(f *Frame, to *Value, expr string, run Runner) (Patch, error)
	// Modules lists the program and its libraries, and Sources the source files that
	// they are known to be made of, most at most.
	Modules() []Module
	Sources(most int) []string
	// Condition returns a test of an expression at pc for [Breakpoint]: false
	// where the expression is 0, true also where it cannot be evaluated. code is the same as one of
	// [Breakpoint.Conditions], nil where it has no such form.
	Condition(pc uint64, expr string) (test func(m Machine) bool, code []byte)

	// Disassemble returns the instruction at the start of b, which stands at pc,
	// and its length; at most len(b), at least 1.
	Disassemble(b []byte, pc uint64) (text string, n int)
	// Symbol names an address, "" where nothing is known of it.
	Symbol(addr uint64) string
}

// Runner runs functions of the program.
type Runner interface {
	// Call calls the function at entry with what the calling convention wants in integer
	// and in vector registers, and returns rax and the low half of xmm0.
	Call(entry uint64, ints, vectors []uint64) (rax, xmm0 uint64, err error)
	// Place puts bytes where functions can read and write them.
	Place(b []byte) (addr uint64, err error)
}

// Patch is what must be stored to give a variable another value.
type Patch struct {
	// Register is where: an index of Registers.GPR, or one of those that follow;
	// InMemory for none.
	Register int
	Addr     uint64 // in a register: how many bytes from its start
	Bytes    []byte
}

// Registers of a Patch besides the general ones.
const (
	InMemory  = -1
	PatchRIP  = 16
	PatchYMM0 = 32
)

// Frame is one function activation, or a function inlined in one.
type Frame struct {
	Function string // "" when it is not known
	Module   string // path of the file it is in; may be empty
	File     string // as the compiler was given it; may be empty
	Line     int
	PC       uint64 // of the next instruction: in a caller, where the call returns to
	CFA      uint64 // what the stack pointer was before the call; 0 when not known
	Inlined  bool   // it shares PC and CFA with the frame that follows
	Handle   any    // the Symbols' own
}

// Module is the program, or a library.
type Module struct {
	Path       string
	Base, End  uint64
	BuildID    string // hexadecimal; may be empty
	SymbolFile string // that what is known of it comes from, besides the recording; may be empty
	HasLines   bool   // source lines, types and variables are known
	HasNames   bool   // names of functions are
}

// Place is where a breakpoint goes.
type Place struct {
	Addr uint64
	File string
	Line int
}

// Line is the code of one source line around an address.
type Line struct {
	File       string
	Line       int
	Start, End uint64
	IsStart    bool // the address is a place to stop at for the line
}

// Scope is a group of variables.
type Scope struct {
	Name      string
	Hint      string // the protocol's presentationHint; may be empty
	Expensive bool
	Variables func() []Value
}

// Value is a variable, part of one, or the result of an expression.
type Value struct {
	Name string
	Expr string // the expression that has the value; "" when there is none
	Text string
	Type string
	Addr uint64
	Size int64 // in bytes; 0 when it is not in memory
	// Named and Indexed are how many children it has by name and by index.
	Named, Indexed int
	// Children returns count children from start on, all when count is 0.
	Children func(start, count int) []Value
	// Pointer is what a pointer points to, for clients that show memory; else 0.
	Pointer uint64
	// Format is Text with integers in base 2, 8 or 16; nil where it would be the same.
	Format func(radix int) string
	// Again reads the value once more; nil where it does not change.
	Again  func() Value
	Handle any // the Symbols' own
	// Bits is an integer, truth value or pointer as 64 bits; IsNumber says that it
	// is one.
	Bits     uint64
	IsNumber bool
}
