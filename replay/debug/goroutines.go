package debug

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay/debug/text"
	"vplay/replay/x86"
)

// The goroutines of a Go program at the present position. What the runtime says of them
// is read by package dwarf; where those are that run is known from the threads.

// Goroutine is one goroutine at a moment.
type Goroutine struct {
	ID         uint64 `json:"id"`
	Status     string `json:"status"` // the runtime's word: running, runnable, waiting, syscall
	WaitReason string `json:"wait_reason,omitempty"`
	Thread     int    `json:"thread,omitempty"` // that runs it, or is in a system call for it
	// User is where it is in code that is not the runtime's, Current where it is at all.
	User    *loader.Location `json:"user,omitempty"`
	Current *loader.Location `json:"current,omitempty"`
	// Created is the go statement that made it, in goroutine Parent.
	Created *loader.Location `json:"created,omitempty"`
	Parent  uint64           `json:"parent,omitempty"`
	Start   *loader.Location `json:"start,omitempty"` // its first function
	Labels  []dwarf.GoLabel  `json:"labels,omitempty"`
	// Stack has its frames, innermost first, where they were asked for.
	Stack []loader.Location `json:"stack,omitempty"`
	// Problem says why it could not be read.
	Problem string `json:"problem,omitempty"`
}

// Bounds on frames of one goroutine.
const (
	fewFrames  = 8  // in which the user's function mostly is
	userFrames = 32 // in which it is looked for
	allFrames  = 64 // of a stack
)

// Goroutines returns the goroutines at the present position, in the runtime's order, with
// their stacks if asked for. more is how many there are beyond. The error is
// dwarf.ErrNoGoroutines where the program is none of Go, or nothing is known of it.
func (g *Cursor) Goroutines(ctx context.Context, stacks bool) (list []Goroutine, more int, err error) {
	err = dwarf.ErrNoGoroutines
	names := g.names()
	for _, mod := range names.Modules() {
		m := names.File(mod)
		if m == nil || !m.HasLines() {
			continue
		}
		e := &dwarf.Env{Mem: constantMemory{g, mod}}
		e.Module, e.Bias, e.PC = m, mod.Bias, mod.Bias
		(&Symbols{g}).equip(e, &x86.State{})
		found, rest, e1 := e.Goroutines()
		if errors.Is(e1, dwarf.ErrNoGoroutines) {
			continue
		}
		if e1 != nil {
			return nil, 0, e1
		}
		err, more = nil, rest
		for i := range found {
			if ctx.Err() != nil {
				return list, more, ctx.Err()
			}
			list = append(list, g.goroutine(names, &found[i], stacks))
		}
		break // a program has one runtime
	}
	return list, more, err
}

// constantMemory is the memory of the process with the constants of a module, such as
// texts, that the recording lacks and a file with the same build-id has.
type constantMemory struct {
	g   *Cursor
	mod *image.Module
}

// ReadMemory implements dwarf.Memory.
func (m constantMemory) ReadMemory(addr uint64, b []byte) int {
	mem := Memory{m.g.mem()}
	n := mem.ReadMemory(addr, b)
	if at := addr + uint64(n); n < len(b) && at >= m.mod.Base && at < m.mod.End {
		n += m.g.session.symbols.Text(m.mod, mem, at, b[n:])
	}
	return n
}

// goroutine looks up where a goroutine is.
func (g *Cursor) goroutine(names *loader.Resolver, r *dwarf.Goroutine, stacks bool) Goroutine {
	out := Goroutine{ID: r.ID, Status: r.Status.String(), WaitReason: r.WaitReason, Parent: r.Parent, Labels: r.Labels}
	if r.Err != nil {
		out.Status, out.Problem = "unknown", r.Err.Error()
		return out
	}
	regs := checkpoint.Regs{RIP: r.PC}
	regs.R[x86.RSP], regs.R[x86.RBP] = r.SP, r.BP
	if r.Thread != 0 && r.Thread < 1<<31 {
		if st, err := g.threadState(int(r.Thread)); err == nil {
			out.Thread = int(r.Thread)
			// On the thread's own stack the runtime works for the goroutine, which is
			// where it has left its stack.
			if sp := st.R[x86.RSP]; sp >= r.StackLow && sp < r.StackHigh {
				regs = checkpoint.Regs{R: st.R, RIP: st.RIP}
			}
		}
	}
	var frames []loader.Location
	limits := []int{fewFrames, userFrames}
	if stacks {
		limits = []int{allFrames}
	}
	for _, limit := range limits {
		frames = goFrames(BacktraceOf(names, &regs, limit))
		i := slices.IndexFunc(frames, func(l loader.Location) bool { return dwarf.IsUser(l.Function) })
		if i >= 0 {
			out.User = &frames[i]
		}
		if i >= 0 || len(frames) < limit {
			break
		}
	}
	if len(frames) > 0 {
		out.Current = &frames[0]
	}
	if out.User == nil {
		out.User = out.Current
	}
	if stacks {
		out.Stack = frames
	}
	out.Created, out.Start = codeAt(names, r.GoPC, 1), codeAt(names, r.StartPC, 0)
	return out
}

// goFrames leaves out what lies behind a goroutine's first frame: nothing returns from
// runtime.goexit.
func goFrames(frames []loader.Location) []loader.Location {
	for i := range frames {
		if frames[i].Function == "runtime.goexit" {
			return frames[:i+1]
		}
	}
	return frames
}

// codeAt returns the place of an address, nil for none. A return address is looked up at
// the call, which is back bytes before.
func codeAt(names *loader.Resolver, pc, back uint64) *loader.Location {
	if pc == 0 {
		return nil
	}
	l := names.At(pc - back)
	l.Addr += back
	l.Offset += back
	return &l
}

// String writes a goroutine on one line, as dlv's goroutines does, with the go statement
// and the labels.
func (g Goroutine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d  %s", g.ID, g.state())
	if g.Problem != "" {
		fmt.Fprintf(&b, "  cannot be read: %s", text.Printable(g.Problem))
	}
	if g.User != nil {
		fmt.Fprintf(&b, "  %s", goPlace(g.User))
	}
	if g.Created != nil {
		fmt.Fprintf(&b, "  created by %s", goPlace(g.Created))
		if g.Parent != 0 {
			fmt.Fprintf(&b, " in goroutine %d", g.Parent)
		}
	}
	for i, l := range g.Labels {
		if i == 0 {
			b.WriteString("  labels")
		}
		fmt.Fprintf(&b, " %q:%q", l.Key, l.Value)
	}
	for i := range g.Stack {
		fmt.Fprintf(&b, "\n    #%-2d %s", i, goPlace(&g.Stack[i]))
	}
	return b.String()
}

// state writes what a goroutine does.
func (g *Goroutine) state() string {
	s := g.Status
	if g.WaitReason != "" {
		s += " (" + text.Printable(g.WaitReason) + ")"
	}
	if g.Thread != 0 {
		s += " on thread " + strconv.Itoa(g.Thread)
	}
	return "[" + s + "]"
}

// goPlace writes a function and its line, else its address.
func goPlace(l *loader.Location) string {
	name := l.Function
	if name == "" {
		name = fmt.Sprintf("%#x", l.Addr)
	}
	if src := l.Source(); src != "" {
		name += " at " + src
	}
	return text.Printable(name)
}

func init() {
	maps.Copy(monitorCommands, map[string]monitorCommand{
		"goroutines": {usage: "goroutines [stacks|ID]", help: "the goroutines of a Go program here: state, place, go statement; with their stacks, or one with its stack", ask: askGoroutines},
	})
}

func askGoroutines(ctx context.Context, g *Cursor, args []string, _ func(string)) (answers, error) {
	only, stacks := uint64(0), len(args) == 1
	if stacks && args[0] != "stacks" {
		var err error
		if only, err = strconv.ParseUint(args[0], 10, 64); err != nil {
			return answers{none: "monitor goroutines [stacks|ID]"}, nil
		}
	}
	list, more, err := g.Goroutines(ctx, stacks)
	if only != 0 {
		list = slices.DeleteFunc(list, func(x Goroutine) bool { return x.ID != only })
	}
	a := answersOf(list, "there is no such goroutine")
	if err == nil && more > 0 {
		err = fmt.Errorf("and %d more", more)
	}
	return a, err
}
