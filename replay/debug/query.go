package debug

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Queries are questions about the past that need no movement: they are answered
// by machines of their own, the cursor stays. They return values (answers.go); what
// prints them is elsewhere (monitorquery.go).

// names returns the resolver for the present position. It is made anew when the memory
// map has changed.
func (g *Cursor) names() *loader.Resolver {
	maps := g.maps()
	if g.known == nil || !slices.Equal(maps, g.known.Maps()) {
		g.known = loader.NewResolver(maps, present{g}, g.moduleFiles())
	}
	return g.known
}

// moduleFiles returns the files of the present program's modules.
func (g *Cursor) moduleFiles() *loader.ModuleFiles { return g.session.filesOf(g.image) }

// present reads the memory at whatever is the present position.
type present struct{ g *Cursor }

// ReadFile implements loader.FileReader.
func (p present) ReadFile(object uint32, off uint64, b []byte) int {
	return Memory{p.g.mem()}.ReadFile(object, off, b)
}

func (p present) ReadMemory(a uint64, b []byte) int { return Memory{p.g.mem()}.ReadMemory(a, b) }

// errNoSuchName is wrapped where a name is neither a number nor a symbol.
var errNoSuchName = errors.New("no such symbol")

// addresses reads WHERE: a number, or a symbol of any module.
func (g *Cursor) addresses(where string) ([]uint64, error) {
	if a, ok := parseAddress(strings.TrimPrefix(where, "*")); ok {
		return []uint64{a}, nil
	}
	var out []uint64
	names := g.names()
	for _, mod := range names.Modules() {
		if d := names.File(mod); d != nil {
			if a, ok := d.Lookup(where); ok {
				out = append(out, a+mod.Bias)
			}
		}
	}
	if err := names.Limited(); err != nil && len(out) == 0 {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: %s (expressions are for the vplay commands: monitor python)", errNoSuchName, where)
	}
	return out, nil
}

// find runs a search over what lies before the present position, or with all
// over everything; show, when not nil, is called with how it goes on.
func (g *Cursor) find(ctx context.Context, q *replay.Search, all bool, show func(string)) ([]replay.Hit, error) {
	if p := (checkpoint.Position{}); !all && g.final == nil {
		q.Before = g.cur.Position()
		if q.Before == p { // the very beginning: nothing is before it
			return nil, nil
		}
	}
	if show != nil {
		q.Progress = searchProgress(g.t.Progress(), show)
	}
	return g.t.Find(ctx, q)
}

// AccessQuery asks for the last accesses to memory before the present position.
type AccessQuery struct {
	Addr, Len uint64 // bytes
	Loads     bool   // instead of stores
	Most      int    // how many, at least 1
	// Progress, when not nil, is called now and then with how far the search is.
	Progress func(string)
}

// Accesses answers q, the newest last. Stores that change nothing are among them. Errors
// are those of a movement; what was found before one is returned with it.
func (g *Cursor) Accesses(ctx context.Context, q AccessQuery) ([]Access, error) {
	kind := mem.WatchWrite
	if q.Loads {
		kind = mem.WatchRead
	}
	found, err := g.find(ctx, &replay.Search{Watches: []mem.Watch{{Addr: q.Addr, Len: q.Len, Kind: kind}}, Most: q.Most}, false, q.Progress)
	out := make([]Access, len(found))
	for i := range found {
		x := &found[i]
		out[i] = Access{
			Position: x.Pos, At: g.names().At(x.RIP), Instruction: g.instruction(x), IsStore: x.Hit.Access == mem.Store,
			Addr: x.Hit.Watch.Addr, Len: x.Hit.Watch.Len, New: x.New, IsChanged: x.Hit.Changed,
		}
		if out[i].IsStore {
			out[i].Old = x.Old
		}
	}
	return out, err
}

// instruction is the instruction of a hit, or the system call it makes.
func (g *Cursor) instruction(x *replay.Hit) string {
	in := Disassemble(Memory{g.mem()}, x.RIP)
	if strings.HasPrefix(in, "syscall") {
		return "system call " + abi.Name(int64(x.R[0]))
	}
	return in
}

// CallQuery asks for the last calls of a function before the present position.
type CallQuery struct {
	Entries []uint64          // where it begins
	Inlined map[uint64]string // the function's name at those of Entries where it was inlined
	Types   string            // of its integer arguments; see argumentTypes
	Most    int               // how many, at least 1
	// Progress, when not nil, is called now and then with how far the search is.
	Progress func(string)
}

// Calls answers q, the newest last. Errors: as Accesses.
func (g *Cursor) Calls(ctx context.Context, q CallQuery) ([]Call, error) {
	found, err := g.find(ctx, &replay.Search{Exec: q.Entries, Most: q.Most}, false, q.Progress)
	out := make([]Call, len(found))
	for i := range found {
		x := &found[i]
		out[i] = Call{Position: x.Pos, Addr: x.RIP, Function: q.Inlined[x.RIP], SP: x.R[x86.RSP]}
		if out[i].IsInlined = out[i].Function != ""; out[i].IsInlined {
			from := g.inliner(x.RIP, out[i].Function)
			out[i].From = &from
			continue
		}
		out[i].Function, out[i].Arguments, out[i].From = g.names().At(x.RIP).Function, arguments(&x.R, q.Types), g.caller(x.Return)
	}
	return out, err
}

// FirstExecution returns the first position at which one of the instructions
// is about to be executed; ok is false when none is. Errors: as Accesses.
func (g *Cursor) FirstExecution(ctx context.Context, at []uint64, progress func(string)) (x Execution, ok bool, err error) {
	found, err := g.find(ctx, &replay.Search{Exec: at, Most: 1, Oldest: true}, true, progress)
	if len(found) == 0 {
		return x, false, err
	}
	return Execution{found[0].Pos, g.names().At(found[0].RIP), g.caller(found[0].Return)}, true, err
}

// caller returns the place that a call returns to, named by the call before it; nil
// when it is not known.
func (g *Cursor) caller(ret uint64) *loader.Location {
	if ret == 0 {
		return nil
	}
	l := g.names().At(ret - 1)
	l.Addr = ret
	l.Offset++
	return &l
}

// FunctionEntries returns where the functions of a module of Modules begin, for CallQuery, most
// at most; none where nothing is known of them.
func (g *Cursor) FunctionEntries(mod *image.Module, most int) []uint64 {
	d := g.names().File(mod)
	if d == nil {
		return nil
	}
	out := d.Entries(most)
	for i := range out {
		out[i] += mod.Bias
	}
	return out
}

// entries reads a function: an address, or a name; inlined has the names of those
// that are a place where the function was inlined, by address.
func (g *Cursor) entries(where string) (at []uint64, inlined map[uint64]string, err error) {
	at, err = g.addresses(where)
	inlined = map[uint64]string{}
	if err == nil && strings.ContainsAny(where[:1], "*0123456789") || err != nil && !errors.Is(err, errNoSuchName) {
		return at, inlined, err
	}
	names := g.names()
	for _, mod := range names.Modules() {
		if d := names.File(mod); d != nil {
			for _, pc := range d.InlineSites(where) {
				at = append(at, pc+mod.Bias)
				inlined[pc+mod.Bias] = where
			}
		}
	}
	if len(at) > 0 {
		err = nil
	}
	return at, inlined, err
}

// inliner returns the place where an inlined function was called.
func (g *Cursor) inliner(pc uint64, name string) loader.Location {
	stack := g.names().Stack(pc)
	for i := range stack[:len(stack)-1] {
		if l := stack[i]; l.Function == name || strings.HasSuffix(l.Function, "::"+name) {
			return stack[i+1]
		}
	}
	return stack[0]
}

// argumentRegisters are those of the first six integer arguments (System V ABI,
// AMD64 supplement, 3.2.3), as indexes of the register file.
var argumentRegisters = [...]int{7, 6, 2, 1, 8, 9}

// argumentTypes are the types of integer arguments, by the letters of Python's
// struct module: size in bytes, and whether signed. P is a pointer.
var argumentTypes = map[byte]struct {
	size   int
	signed bool
}{
	'b': {1, true}, 'B': {1, false}, 'h': {2, true}, 'H': {2, false}, 'i': {4, true}, 'I': {4, false},
	'q': {8, true}, 'Q': {8, false}, 'P': {8, false}, '?': {1, false},
}

// arguments returns the integer arguments that types names, a letter each. A letter
// that is not known ends them.
func arguments(regs *[16]uint64, types string) (out []Argument) {
	for i := range min(len(types), len(argumentRegisters)) {
		if _, ok := argumentTypes[types[i]]; !ok {
			break
		}
		out = append(out, Argument{regs[argumentRegisters[i]], types[i]})
	}
	return out
}
