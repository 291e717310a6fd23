package dwarf

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// The goroutines of a Go program, as its runtime keeps them: runtime.allgs points to one
// runtime.g each. Fields are looked up by name in the program's own debug information, so
// that every Go version is read with its own layout; which fields mean what is as in
// delve's pkg/proc/variables.go (parseG). Where a goroutine goes on, when it does not run,
// is in its g.sched.

// Goroutine is what the runtime knows of a goroutine.
type Goroutine struct {
	ID         uint64
	Status     GoStatus
	WaitReason string // why it waits; "" when it does not, or the reason cannot be read
	// Thread is the thread that runs it, or made its system call; 0 when there is none.
	Thread uint64
	// PC, SP and BP are where it goes on when it runs again. While it runs they are
	// those of its last wait, or of its last change to the thread's own stack.
	PC, SP, BP uint64
	// StackLow and StackHigh are the limits of its stack.
	StackLow, StackHigh uint64
	Parent              uint64 // the goroutine that made it; 0 when it is not known
	GoPC                uint64 // behind the go statement that made it
	StartPC             uint64 // of its first function
	Labels              []GoLabel
	// Err says why it could not be read; then only ID may be known.
	Err error
}

// GoLabel is a label of package runtime/pprof.
type GoLabel struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// GoStatus is a goroutine's state (runtime2.go, the constants that begin with _G).
type GoStatus uint32

// The states that have a meaning to others than the runtime.
const (
	GoIdle      GoStatus = 0
	GoRunnable  GoStatus = 1
	GoRunning   GoStatus = 2
	GoSyscall   GoStatus = 3
	GoWaiting   GoStatus = 4
	GoDead      GoStatus = 6
	GoDeadExtra GoStatus = 11 // of a thread of C that may call Go

	goScan GoStatus = 0x1000 // the collector looks at its stack
)

var goStatusNames = map[GoStatus]string{
	GoIdle: "idle", GoRunnable: "runnable", GoRunning: "running", GoSyscall: "syscall", GoWaiting: "waiting",
	GoDead: "dead", 8: "copystack", 9: "preempted", 10: "leaked", GoDeadExtra: "dead",
}

// String returns the runtime's word.
func (s GoStatus) String() string {
	if name, ok := goStatusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// exists reports whether there is a goroutine: the structures of ended ones are kept.
func (s GoStatus) exists() bool { return s != GoIdle && s != GoDead && s != GoDeadExtra }

// ErrNoGoroutines says that a module has no goroutines that could be read.
var ErrNoGoroutines = errors.New("no Go runtime with debug information")

// Bounds on what a program may say of its goroutines.
const (
	maxGoroutines = 1 << 17
	maxGoLabels   = 64      // of a goroutine
	maxAllLabels  = 1 << 16 // of all
	maxGoText     = 256     // bytes of a label or a wait reason
)

// Goroutines returns the goroutines of a Go program, in the runtime's order. Those that
// have ended are left out. The frame says the module and the memory; its registers are
// not used. more is how many the runtime has beyond those that were read. The error is
// ErrNoGoroutines, or says why their list cannot be read.
func (e *Env) Goroutines() (list []Goroutine, more int, err error) {
	if e.Module == nil {
		return nil, 0, ErrNoGoroutines
	}
	e.Module.mu.Lock()
	defer e.Module.mu.Unlock()
	defer func() {
		if recover() != nil { // over a damaged file
			list, err = nil, ErrNoGoroutines
		}
	}()
	all, ok := e.global("runtime.allgs")
	if !ok || all.golang == nil {
		return nil, 0, ErrNoGoroutines
	}
	v := all.goVar()
	switch {
	case v.err != nil:
		return nil, 0, fmt.Errorf("the list of goroutines cannot be read: %w", v.err)
	case v.kind != reflect.Slice:
		return nil, 0, ErrNoGoroutines
	}
	if n := v.length; n > maxGoroutines {
		v.length, more = maxGoroutines, int(min(n-maxGoroutines, 1<<31-1))
	}
	r := goReader{env: e, reasons: e.waitReasons(), words: map[uint64]string{}}
	for i := range v.length {
		p := v.at(i)
		g := Goroutine{}
		if s := p.deref(); p.err != nil {
			g.Err = p.err
		} else {
			g = r.goroutine(s)
		}
		if g.Err != nil || g.Status.exists() {
			list = append(list, g)
		}
	}
	return list, more, nil
}

// goReader reads goroutines of one program.
type goReader struct {
	env     *Env
	reasons *goVar            // runtime.waitReasonStrings
	words   map[uint64]string // of them, as far as read
	labels  godwarf.Type
	looked  bool // for labels
	had     int  // labels that were read
}

// waitReasons returns the runtime's texts, nil when there are none.
func (e *Env) waitReasons() *goVar {
	v, ok := e.global("runtime.waitReasonStrings")
	if !ok || v.golang == nil {
		return nil
	}
	if g := v.goVar(); g.kind == reflect.Array {
		return g
	}
	return nil
}

// goroutine reads a runtime.g.
func (r *goReader) goroutine(s *goVar) (g Goroutine) {
	var err error
	number := func(of *goVar, name string, optional bool) uint64 {
		var f *goVar
		if of != nil {
			f = of.named(name)
		}
		if f == nil {
			if !optional && err == nil {
				err = fmt.Errorf("runtime.g has no %s", name)
			}
			return 0
		}
		n := f.uintAt(0, sizeOf(f.real))
		if err == nil {
			err = f.err
		}
		return n
	}
	if s.err != nil {
		return Goroutine{Err: s.err}
	}
	g.ID = number(s, "goid", false)
	status := s.named("atomicstatus")
	if status != nil && status.kind == reflect.Struct { // before Go 1.20 it was a plain number
		g.Status = GoStatus(number(status, "value", false))
	} else {
		g.Status = GoStatus(number(s, "atomicstatus", false))
	}
	g.Status &^= goScan
	if err == nil && !g.Status.exists() {
		return g
	}
	sched := s.named("sched")
	g.PC, g.SP, g.BP = number(sched, "pc", false), number(sched, "sp", false), number(sched, "bp", true)
	stack := s.named("stack")
	g.StackLow, g.StackHigh = number(stack, "lo", false), number(stack, "hi", false)
	g.Parent, g.GoPC, g.StartPC = number(s, "parentGoid", true), number(s, "gopc", false), number(s, "startpc", false)
	if g.Status == GoWaiting {
		g.WaitReason = r.reason(number(s, "waitreason", true))
	}
	if m := s.named("m"); m != nil {
		if m = m.deref(); m.addr != 0 {
			g.Thread = number(m, "procid", true)
		}
	}
	if at := number(s, "labels", true); at != 0 {
		g.Labels = r.labelsAt(at)
	}
	g.Err = err
	return g
}

// reason returns a reason to wait in words.
func (r *goReader) reason(n uint64) string {
	if r.reasons == nil || n >= uint64(r.reasons.length) {
		return ""
	}
	s, ok := r.words[n]
	if !ok {
		s, _ = r.reasons.at(int64(n)).goText()
		r.words[n] = s
	}
	return s
}

// goText reads a string.
func (v *goVar) goText() (string, error) {
	if v.kind != reflect.String {
		return "", errGoType
	}
	v.load(goConfig{text: maxGoText})
	return v.text, v.err
}

// labelsAt reads the labels that runtime/pprof.Do has set: a runtime/pprof.labelMap,
// which since Go 1.24 is a structure with a sorted list, its names exported since 1.26.
// Maps of older versions are left out.
func (r *goReader) labelsAt(at uint64) (out []GoLabel) {
	if !r.looked {
		r.looked = true
		p := r.env.Module.goProgram()
		if off, ok := p.indexed().names[labelMapType]; ok {
			r.labels, _ = p.typeAt(off)
		}
	}
	if r.labels == nil {
		return nil
	}
	list := newGoVar(r.env, "", at, r.labels, processMemory{r.env})
	if list = list.either("Set", "LabelSet"); list != nil {
		list = list.either("List", "list")
	}
	if list == nil || list.kind != reflect.Slice || list.err != nil {
		return nil
	}
	for i := range min(list.length, maxGoLabels, int64(maxAllLabels-r.had)) {
		r.had++
		l := list.at(i)
		key, value := l.either("Key", "key"), l.either("Value", "value")
		if key == nil || value == nil {
			return nil
		}
		k, err1 := key.goText()
		v, err2 := value.goText()
		if errors.Join(err1, err2) == nil {
			out = append(out, GoLabel{k, v})
		}
	}
	return out
}

// either returns the member of the first name that there is.
func (v *goVar) either(now, before string) *goVar {
	if f := v.named(now); f != nil {
		return f
	}
	return v.named(before)
}

// IsUser reports whether a function of a Go program is of interest to who looks for
// where a goroutine is: not the runtime's own, unless programs can call it, nor what is
// internal to the library (delve's rule, G.UserCurrent).
func IsUser(function string) bool {
	for _, prefix := range []string{"internal/", "iter."} {
		if strings.HasPrefix(function, prefix) {
			return false
		}
	}
	if name, ok := strings.CutPrefix(function, "runtime."); ok {
		return name != "" && name[0] >= 'A' && name[0] <= 'Z'
	}
	return strings.Contains(function, ".") && !strings.HasPrefix(function, "runtime/internal")
}
