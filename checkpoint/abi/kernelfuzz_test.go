//go:build linux && amd64

package abi

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"vplay/tests/need"
)

var (
	fuzzCalls = flag.Int("fuzzcalls", 3000, "system calls that TestFuzzKernel makes")
	fuzzSeed  = flag.Uint64("fuzzseed", 1, "where TestFuzzKernel's random numbers begin")
	fuzzRow   = flag.String("fuzzrow", "", "the one system call that TestFuzzKernel makes")
	fuzzBatch = flag.Int("fuzzbatch", -1, "the one batch of calls that TestFuzzKernel makes")
)

// excluded are the rows that the fuzzer does not call, each with the reason.
// Rows of the effects that the table itself names are in excludedEffects.
var excluded = map[string]string{
	"acct":            "would write an account of the machine's processes",
	"chroot":          "would take the files of the other calls away",
	"clock_settime":   "the machine's clock",
	"close_range":     "would close the descriptors of the other calls",
	"delete_module":   "the machine's kernel",
	"finit_module":    "the machine's kernel",
	"init_module":     "the machine's kernel",
	"kexec_file_load": "the machine's kernel",
	"kexec_load":      "the machine's kernel",
	"mount":           "would take the files of the other calls away",
	"move_mount":      "would take the files of the other calls away",
	"pivot_root":      "would take the files of the other calls away",
	"reboot":          "the machine's power",
	"restart_syscall": "goes on with the call before, whose arguments the registers hold when the kernel makes it",
	"rt_sigreturn":    "returns to whatever is on the stack; writes no memory",
	"settimeofday":    "the machine's clock",
	"swapoff":         "the machine's memory",
	"swapon":          "the machine's memory",
	"sync":            "waits for all of the machine's disks; writes no memory",
	"umount2":         "would take the files of the other calls away",
	"vhangup":         "a terminal",
	"mlockall":        "writes no memory, and makes each later call slow",
}

// excludedEffects: what the recorder does instead of listing what was written.
var excludedEffects = map[Effect]string{
	EffectMem:    "changes the memory map: tests/record has guests for it",
	EffectExec:   "replaces the program",
	EffectExit:   "does not return",
	EffectOpaque: "the recorder lists nothing, and takes all memory anew",
	EffectRefuse: "the recorder does not let it run",
}

// whyNot returns why the fuzzer does not call a row, "" when it does.
func whyNot(s *Syscall) string {
	if why := excludedEffects[s.Effect]; why != "" && !s.Absent {
		return why
	}
	return excluded[s.Name]
}

// TestFuzzKernel makes random system calls in a child and compares all its memory
// before and after each: every byte that changed must be in a range that Outputs
// lists. Arguments are of each kind, right and wrong: every sort of descriptor,
// pointers to NULL, to memory that ends too soon, to read-only memory and to none,
// lengths too small, too large and negative.
func TestFuzzKernel(t *testing.T) {
	need.Ptrace(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer pin(t)()
	f := &fuzzer{t: t, tried: map[string]int{}, worked: map[string]int{}, found: map[string]int{}}
	for _, s := range Table() {
		why := whyNot(s)
		if why == "" && (*fuzzRow == "" || *fuzzRow == s.Name) {
			for range weight(s) {
				f.rows = append(f.rows, s)
			}
		} else if why != "" && testing.Verbose() {
			t.Logf("not called: %s: %s", s.Name, why)
		}
	}
	for name := range excluded {
		if _, ok := Number(name); !ok {
			t.Errorf("%s is excluded and no system call", name)
		}
	}
	f.run()
	f.report()
}

// weight is how often a row is called: more when it writes, most when code says
// what it writes.
func weight(s *Syscall) int {
	writes := slices.ContainsFunc(s.Args, func(a Arg) bool {
		return a.Kind == KindOut || a.Kind == KindInOut || a.Kind == KindIovOut || a.Kind == KindSockOut
	})
	switch {
	case s.Irregular:
		return 5
	case writes:
		return 3
	}
	return 1
}

// The calls of a batch run in one process, and some batches in processes forked
// from one template.
const (
	batchCalls      = 40
	templateBatches = 60
)

type fuzzer struct {
	t        *testing.T
	rows     []*Syscall
	tried    map[string]int // by name: calls
	worked   map[string]int // by name: calls that did not fail
	found    map[string]int // by name: differences
	calls    int
	compared int
	lost     int
	opaque   int
	changed  int // calls that wrote something
}

func (f *fuzzer) run() {
	var w *world
	defer func() {
		if w != nil {
			w.kill()
		}
	}()
	for batch := 0; f.calls < *fuzzCalls && batch < *fuzzCalls; batch++ {
		if *fuzzBatch >= 0 && batch != *fuzzBatch {
			if batch > *fuzzBatch {
				return
			}
			continue
		}
		if w == nil || w.dead || batch%templateBatches == 0 {
			if w != nil {
				w.kill()
			}
			w = newWorld(f.t, nil)
		}
		f.batch(w, batch)
	}
}

// batch makes some calls in a fork of the template.
func (f *fuzzer) batch(w *world, number int) {
	c, err := w.fork()
	if err != nil {
		w.dead = true
		return
	}
	defer c.kill()
	g := newGen(rand.New(rand.NewPCG(*fuzzSeed, uint64(number))), w, c)
	var focus *Syscall // a batch in four is about one row: what it needs stays prepared
	if number%4 == 0 {
		focus = f.rows[g.r.IntN(len(f.rows))]
	}
	for range batchCalls {
		s := focus
		if s == nil {
			s = f.rows[g.r.IntN(len(f.rows))]
		}
		args := g.args(s)
		if effect, _ := EffectOf(s.NR, args); excludedEffects[effect] != "" && !s.Absent {
			continue
		}
		if !f.one(g, s, args, number) {
			return
		}
	}
}

// one makes a call and compares; false says that the child is no more.
func (f *fuzzer) one(g *gen, s *Syscall, args [6]uint64, batch int) bool {
	c := g.c
	f.calls++
	f.tried[s.Name]++
	ret, err := c.call(s.NR, args)
	if err != nil {
		f.lost++
		return false
	}
	if ret >= 0 || ret < -4095 {
		f.worked[s.Name]++
	}
	if *fuzzRow != "" && testing.Verbose() {
		f.t.Logf("%s = %s", Format(c, s.NR, args), FormatResult(s.NR, ret))
	}
	changed, err := c.changes()
	if err != nil {
		f.lost++
		return false
	}
	if len(changed) > 0 {
		f.changed++
	}
	for _, m := range []Memory{c, struct{ Memory }{c}} {
		listed, err := Outputs(nil, m, s.NR, args, ret)
		if err != nil {
			f.opaque++
			return true
		}
		for _, addr := range changed {
			if inRanges(listed, addr) {
				continue
			}
			if f.found[s.Name]++; f.found[s.Name] <= 3 {
				f.t.Errorf("batch %d: %s = %s: the byte at %#x changed, %d in all; listed %x; arguments %x",
					batch, Format(c, s.NR, args), FormatResult(s.NR, ret), addr, len(changed), listed, args)
			}
			return true
		}
	}
	f.compared++
	return true
}

// report prints what was done.
func (f *fuzzer) report() {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	differences := 0
	for _, n := range f.found {
		differences += n
	}
	var never []string
	for _, s := range f.rows {
		if !slices.Contains(never, s.Name) && f.worked[s.Name] == 0 {
			never = append(never, s.Name)
		}
	}
	slices.Sort(never)
	f.t.Logf("Linux %s: %d rows tried of %d, %d calls, %d rows succeeded at least once, %d calls wrote memory; %d compared, %d not listed (a fresh image), %d children lost; %d differences",
		strings.TrimSpace(string(release)), len(f.tried), len(Table()), f.calls, len(f.worked), f.changed, f.compared, f.opaque, f.lost, differences)
	f.t.Logf("rows that only failed: %s", strings.Join(never, " "))
	if differences > 0 {
		f.t.Log(fmt.Sprint(f.found))
	}
	if *fuzzRow == "" && *fuzzBatch < 0 && f.compared < *fuzzCalls/2 {
		f.t.Errorf("only %d calls compared", f.compared)
	}
}
