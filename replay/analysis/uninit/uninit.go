package uninit

import (
	"vplay/checkpoint"
	"vplay/replay/analysis/taint"
)

// The checker: what is undefined, and what is told of it.

// OriginKind says what made bytes that are undefined.
type OriginKind uint8

// The kinds of origins.
const (
	Unknown OriginKind = iota
	Heap               // a block
	Grown              // the end of a block that realloc made larger
	Stack              // a function's frame
)

// Origin is where undefined bytes came to be.
type Origin struct {
	Kind OriginKind
	// PC is the return address of the call of the allocator, or code of the function whose frame it is.
	PC       uint64
	Position checkpoint.Position // Heap and Grown: of the call
	Addr     uint64              // of the block
	Size     uint64              // bytes
}

// Report is a use of undefined bytes.
type Report struct {
	taint.Use
	Origin Origin
}

// Checker follows a process through its intervals. It is used by one goroutine.
type Checker struct {
	Engine *taint.Engine

	tell      func(r *Report)
	position  func() checkpoint.Position
	functions map[uint64]string // where the functions are that have models
	origins   []Origin          // by tag
	frames    map[uint64]taint.Tag
	callers   map[uint64]taint.Tag // of origins that were too many to be kept one by one
	blocks    map[uint64]uint64    // size by address
	told      map[place]bool
}

// place tells reports apart: an instruction, and of a system call the argument.
type place struct {
	pc   uint64
	kind taint.UseKind
	nr   int64
	arg  int
	from uint64 // origin's code
}

// Bounds.
const (
	maxOrigins = 1 << 20 // calls of the allocator that are kept, 64 MB
	maxBlocks  = 1 << 22
	maxTold    = 1 << 14
)

// New returns a checker. tell is called for each report before what is used, position returns where the machine is.
func New(tell func(r *Report), position func() checkpoint.Position) *Checker {
	c := &Checker{tell: tell, position: position, functions: map[uint64]string{}, told: map[place]bool{}}
	c.Engine = taint.New(taint.Options{Use: c.use, Stack: c.frame, Model: c.model})
	c.Reset()
	return c
}

// Reset begins with another program, as execve(2) does.
func (c *Checker) Reset() {
	c.Engine.Reset()
	c.origins = append(c.origins[:0], Origin{})
	c.frames, c.callers, c.blocks = map[uint64]taint.Tag{}, map[uint64]taint.Tag{}, map[uint64]uint64{}
	clear(c.functions)
}

// Functions are the names of the functions that have models.
func Functions() (names []string) {
	for n := range models() {
		names = append(names, n)
	}
	return names
}

// SetFunction says where a function is, by its name.
func (c *Checker) SetFunction(pc uint64, name string) {
	if c.functions[pc] != name {
		c.functions[pc] = name
		c.Engine.Forget()
	}
}

// model is taint.Options.Model.
func (c *Checker) model(pc uint64) taint.Model {
	name, ok := c.functions[pc]
	if !ok {
		return nil
	}
	return function{c, name}
}

// function is the model of a function.
type function struct {
	c    *Checker
	name string
}

// Enter implements taint.Model.
func (f function) Enter(_ *taint.Engine, x *taint.Frame) taint.Return {
	return models()[f.name](f.c, f.name, x)
}

// frame is taint.Options.Stack. The code of a function that made a frame stands for it.
func (c *Checker) frame(pc uint64) taint.Tag {
	t, ok := c.frames[pc]
	if !ok {
		if len(c.origins) >= maxOrigins {
			return 0xffffffff
		}
		t = taint.Tag(len(c.origins))
		c.origins = append(c.origins, Origin{Kind: Stack, PC: pc})
		c.frames[pc] = t
	}
	return t
}

// origin returns the tag of a block.
func (c *Checker) origin(o Origin) taint.Tag {
	if len(c.origins) >= maxOrigins {
		if t, ok := c.callers[o.PC]; ok {
			return t
		}
		return 0xffffffff
	}
	t := taint.Tag(len(c.origins))
	c.origins = append(c.origins, o)
	c.callers[o.PC] = t
	return t
}

// use is taint.Options.Use.
func (c *Checker) use(u *taint.Use) bool {
	r := Report{Use: *u}
	if int(u.Tag) < len(c.origins) {
		r.Origin = c.origins[u.Tag]
	}
	p := place{pc: u.PC, kind: u.Kind, nr: u.NR, arg: u.Arg}
	if u.NR != 0 || u.Kind >= taint.Argument {
		p.from = r.Origin.PC
	}
	if !c.told[p] && len(c.told) < maxTold {
		c.told[p] = true
		c.tell(&r)
	}
	return true
}
