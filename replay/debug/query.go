package debug

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
	"vplay/replay/mem"
)

// Queries are questions about the past that need no movement: they are answered
// by machines of their own, the cursor stays. Each answer begins with a position
// that "seek" takes.

// defaultAnswers is how many answers a query gives unless told.
const defaultAnswers = 10

// maxAnswers bounds the answers of a query.
const maxAnswers = 10_000

func init() {
	maps.Copy(monitorCommands, map[string]monitorCommand{
		"last-write": {"last-write WHERE [LENGTH]", "the last store to memory before the present position; LENGTH in bytes, 8 unless told", monitorLastWrite},
		"writes":     {"writes WHERE [LENGTH [N]]", "the last N stores before the present position", monitorWrites},
		"reads":      {"reads WHERE [LENGTH [N]]", "the last N loads before the present position", monitorReads},
		"calls":      {"calls FUNCTION [N [TYPES]]", "the last N calls before the present position, with their first integer arguments", monitorCalls},
		"first-exec": {"first-exec WHERE", "the first time that the instruction was executed", monitorFirstExec},
	})
}

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
// over everything, and tells out how it goes on.
func (g *Cursor) find(ctx context.Context, q *replay.Search, all bool, out io.Writer) ([]replay.Moment, error) {
	if p := (checkpoint.Position{}); !all && g.final == nil {
		q.Before = g.cur.Position()
		if q.Before == p { // the very beginning: nothing is before it
			return nil, nil
		}
	}
	if shown, ok := out.(api.Progress); ok {
		q.Progress = searchProgress(g.t.Progress(), shown.Progress)
	}
	return g.t.Find(ctx, q)
}

// watchArgs reads WHERE [LENGTH [N]].
func (g *Cursor) watchArgs(args []string, kind mem.WatchKind) (*replay.Search, error) {
	if len(args) < 1 || len(args) > 3 {
		return nil, errors.New("say where: an address or a symbol, then how many bytes")
	}
	at, err := g.addresses(args[0])
	if err != nil {
		return nil, err
	}
	n, most := uint64(8), defaultAnswers
	if len(args) > 1 {
		v, err := strconv.ParseUint(args[1], 0, 64)
		if err != nil || v == 0 || v > api.MaxWatchLen || at[0]+v < at[0] {
			return nil, fmt.Errorf("bad length %q: 1 to %d bytes", args[1], api.MaxWatchLen)
		}
		n = v
	}
	if len(args) > 2 {
		if most, err = parseAnswers(args[2]); err != nil {
			return nil, err
		}
	}
	return &replay.Search{Watches: []mem.Watch{{Addr: at[0], Len: n, Kind: kind}}, Most: most}, nil
}

// interrupted says that a query was ended from outside, which is no error.
func interrupted(ctx context.Context, err error, out io.Writer) error {
	if ctx.Err() != nil {
		fmt.Fprintln(out, "interrupted")
		return nil
	}
	return err
}

// parseAnswers reads how many answers are wanted.
func parseAnswers(s string) (int, error) {
	if v, ok := parseCount(s); ok && v <= maxAnswers {
		return v, nil
	}
	return 0, fmt.Errorf("bad number %q: 1 to %d", s, maxAnswers)
}

func monitorLastWrite(ctx context.Context, g *Cursor, args []string, out io.Writer) error {
	if len(args) > 2 {
		return errors.New("last-write takes a place and a length")
	}
	return g.accesses(ctx, args, mem.WatchWrite, 1, out)
}

func monitorWrites(ctx context.Context, g *Cursor, args []string, out io.Writer) error {
	return g.accesses(ctx, args, mem.WatchWrite, 0, out)
}

func monitorReads(ctx context.Context, g *Cursor, args []string, out io.Writer) error {
	return g.accesses(ctx, args, mem.WatchRead, 0, out)
}

// accesses prints the last accesses, newest last; most 0 leaves the number to
// the arguments.
func (g *Cursor) accesses(ctx context.Context, args []string, kind mem.WatchKind, most int, out io.Writer) error {
	q, err := g.watchArgs(args, kind)
	if err != nil {
		return err
	}
	if most > 0 {
		q.Most = most
	}
	found, err := g.find(ctx, q, false, out)
	for i := range found {
		fmt.Fprintln(out, g.accessLine(&found[i]))
	}
	w := q.Watches[0]
	if len(found) == 0 && err == nil {
		what := map[mem.WatchKind]string{mem.WatchWrite: "written", mem.WatchRead: "read"}[kind]
		fmt.Fprintf(out, "the %s at %#x: not %s before here in the recorded time\n", text.Plural(int(w.Len), "byte"), w.Addr, what)
	}
	return interrupted(ctx, err, out)
}

// accessLine is one answer about memory: where the program was, what it did, and
// what became of the bytes.
func (g *Cursor) accessLine(x *replay.Moment) string {
	s := fmt.Sprintf("%s  %s  %s", x.Pos, g.place(x.RIP), g.deed(x))
	if x.Hit.Access != mem.Store {
		return s + "  " + value(x.New, x.Hit.Watch.Len)
	}
	if !x.Hit.Changed {
		return s + "  " + value(x.New, x.Hit.Watch.Len) + " (the same as before)"
	}
	return s + "  " + value(x.Old, x.Hit.Watch.Len) + " -> " + value(x.New, x.Hit.Watch.Len)
}

// place names an instruction: function, module and source line, as far as known.
func (g *Cursor) place(addr uint64) string {
	l := g.names().At(addr)
	s := fmt.Sprintf("%#x %s", addr, l)
	if src := l.Source(); src != "" {
		s += " " + src
	}
	return text.Printable(s)
}

// caller names the call that returns to an address.
func (g *Cursor) caller(ret uint64) string {
	if ret == 0 {
		return "where the stack was not captured"
	}
	l := g.names().At(ret - 1)
	l.Offset++
	s := fmt.Sprintf("%#x %s", ret, l)
	if src := l.Source(); src != "" {
		s += " " + src
	}
	return text.Printable(s)
}

// deed is the instruction of a moment, or the system call it makes.
func (g *Cursor) deed(x *replay.Moment) string {
	in := Disassemble(Memory{g.mem()}, x.RIP)
	if strings.HasPrefix(in, "syscall") {
		return "system call " + abi.Name(int64(x.R[0]))
	}
	return in
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

// monitorCalls prints the last calls of a function, the newest last.
func monitorCalls(ctx context.Context, g *Cursor, args []string, out io.Writer) error {
	if len(args) < 1 || len(args) > 3 && args[2] != inlinedTypes {
		return errors.New("say which function: calls FUNCTION [N [TYPES]]")
	}
	at, inlined, err := g.entries(args[0])
	if err != nil {
		return err
	}
	q := &replay.Search{Exec: at, Most: defaultAnswers}
	if len(args) > 1 {
		if q.Most, err = parseAnswers(args[1]); err != nil {
			return err
		}
	}
	types := "QQQ"
	if len(args) > 2 {
		types = args[2]
	}
	if types == inlinedTypes {
		for _, a := range at {
			inlined[a] = strings.Join(args[3:], " ")
		}
	}
	found, err := g.find(ctx, q, false, out)
	for i := range found {
		x := &found[i]
		if name := inlined[x.RIP]; name != "" {
			fmt.Fprintf(out, "%s  %s, inlined  from %s\n", x.Pos, text.Printable(name), g.inliner(x.RIP, name))
			continue
		}
		fmt.Fprintf(out, "%s  %s(%s)  from %s\n", x.Pos, g.function(x.RIP), arguments(&x.R, types), g.caller(x.Return))
	}
	if len(found) == 0 && err == nil {
		name := args[0]
		if inlined[at[0]] != "" {
			name = inlined[at[0]]
		} else if _, ok := parseAddress(strings.TrimPrefix(name, "*")); ok {
			name = g.function(at[0])
		}
		fmt.Fprintf(out, "%s was not called before here in the recorded time\n", text.Printable(name))
	}
	return interrupted(ctx, err, out)
}

// inlinedTypes stands for the types of arguments where a function was inlined: no
// register has them by rule, and the stack pointer does not point to where it was
// called from. The function's name follows.
const inlinedTypes = "inlined"

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

// inliner names the place where an inlined function was called.
func (g *Cursor) inliner(pc uint64, name string) string {
	stack := g.names().Stack(pc)
	for i := range stack[:len(stack)-1] {
		if l := stack[i]; l.Function != name && !strings.HasSuffix(l.Function, "::"+name) {
			continue
		}
		caller := stack[i+1]
		return text.Printable(strings.TrimSpace(fmt.Sprintf("%#x %s %s", pc, caller, caller.Source())))
	}
	return g.place(pc)
}

// function is the name of what begins at an address.
func (g *Cursor) function(addr uint64) string {
	l := g.names().At(addr)
	if l.Function == "" {
		return fmt.Sprintf("%#x", addr)
	}
	return text.Printable(l.Function)
}

// monitorFirstExec prints the first moment at which an instruction is about to
// be executed.
func monitorFirstExec(ctx context.Context, g *Cursor, args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("say which instruction: first-exec WHERE")
	}
	at, err := g.addresses(args[0])
	if err != nil {
		return err
	}
	found, err := g.find(ctx, &replay.Search{Exec: at, Most: 1, Oldest: true}, true, out)
	switch {
	case len(found) > 0:
		fmt.Fprintf(out, "%s  %s  from %s\n", found[0].Pos, g.place(found[0].RIP), g.caller(found[0].Return))
	case err == nil:
		fmt.Fprintf(out, "%#x is not executed in the recorded time\n", at[0])
	}
	return interrupted(ctx, err, out)
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

// arguments prints the integer arguments that types names, a letter each. A
// letter that is not known ends them.
func arguments(regs *[16]uint64, types string) string {
	var out []string
	for i := range min(len(types), len(argumentRegisters)) {
		t, ok := argumentTypes[types[i]]
		if !ok {
			break
		}
		shift := 64 - 8*t.size
		v := regs[argumentRegisters[i]] << shift
		switch {
		case types[i] == 'P' || types[i] == 'Q' && v>>shift > 1<<16:
			out = append(out, fmt.Sprintf("%#x", v))
		case t.signed:
			out = append(out, strconv.FormatInt(int64(v)>>shift, 10))
		default:
			out = append(out, strconv.FormatUint(v>>shift, 10))
		}
	}
	return strings.Join(out, ", ")
}
