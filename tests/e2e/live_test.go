package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	realgdb "vplay/tests/gdb"
	"vplay/tests/need"
)

var walks = flag.Int("walks", 6, "random walks with gdbserver and the replay side by side")

// walkFlags make a program of tests/guest/walk.c that does the same everywhere.
var walkFlags = []string{"-static", "-nostdlib", "-no-pie", "-fno-stack-protector", "-fcf-protection=none", "-O0"}

// look prints what is compared at a stop.
var look = []string{
	"bt", "info registers rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip eflags cs ss mxcsr", "p $xmm0.uint128", "p $xmm1.uint128", "p $st0",
	"x/12xg $rsp", "x/6i $pc", "p used", "p mean", "p hash", "p/x copy", "p pool[used / 2]", "info locals",
}

// walk returns a random walk through the program, as gdb commands.
func walk(r *rand.Rand) []string {
	functions := []string{"insert", "sum", "mix", "move", "average", "digits", "call3", "round"}
	one := func(s []string) string { return s[r.IntN(len(s))] }
	out := []string{"echo @start\\n", "break round", "continue"}
	for range 14 {
		switch r.IntN(14) {
		case 0:
			out = append(out, "break "+one(functions), "continue")
		case 1:
			out = append(out, fmt.Sprintf("tbreak insert if key > %d", r.IntN(100)), "continue")
		case 2:
			out = append(out, "tbreak "+one(functions), "continue", "finish")
		case 3:
			out = append(out, "watch "+one([]string{"used", "hash", "pool[5].key", "mean", "text[1]"}), "continue", "continue", "delete", "break round")
		case 4, 5:
			out = append(out, fmt.Sprintf("stepi %d", 1+r.IntN(40)))
		case 6, 7:
			out = append(out, fmt.Sprintf("next %d", 1+r.IntN(4)))
		case 8, 9:
			out = append(out, fmt.Sprintf("step %d", 1+r.IntN(6)))
		case 10:
			out = append(out, fmt.Sprintf("nexti %d", 1+r.IntN(10)))
		case 11:
			out = append(out, "up", "info frame", "finish")
		case 12:
			out = append(out, "delete", "break average", fmt.Sprintf("tbreak *%s+%d", "sum", []int{0, 1, 4}[r.IntN(3)]), "continue")
		default:
			out = append(out, "until", "advance "+one([]string{"digits", "sum", "mix"}))
		}
		out = append(out, "echo @@\\n")
		out = append(out, look...)
	}
	return append(out, "echo @end\\n")
}

// over matches what gdb says when the program is at its end: live it is gone, in a
// replay one can go back.
var over = regexp.MustCompile(`(?m)^(@end|vplay: here the program exits|No more reverse-execution|\[Inferior 1 .*exited|The program (is not being run|has no registers))`)

// noise are lines about the connection, such as that gdb 13's gdbserver cannot write the extended state of a CPU with AMX, and the
// program's own output.
var noise = regexp.MustCompile(`(?m)^(Reading .*|[Ww]arning: .*|\d+|Child exited.*)\n`)

// seen is what a gdb printed of a walk, up to the program's end.
func seen(out string) string {
	_, out, _ = strings.Cut(out, "@start\n")
	if loc := over.FindStringIndex(out); loc != nil {
		out = out[:loc[0]]
	}
	out = noise.ReplaceAllString(out, "")
	return flags.ReplaceAllStringFunc(out, func(line string) string {
		f := strings.Fields(line)
		v, _ := strconv.ParseUint(f[1], 0, 64)
		return fmt.Sprintf("%s %#x", f[0], v&^(trapFlag|resumeFlag))
	})
}

// Bits of the flags that tell of the stepping itself, in a live program: in r11
// behind a system call, and between the iterations of a REP instruction.
const (
	trapFlag   = 1 << 8
	resumeFlag = 1 << 16
)

var flags = regexp.MustCompile(`(?m)^(r11|eflags) .*$`)

// TestLiveAndReplay makes the same random walks with a live program under gdbserver
// and with its recording: each stop has the same backtrace, registers and memory.
func TestLiveAndReplay(t *testing.T) {
	t.Parallel()
	gdbserver := need.Program(t, "gdbserver")
	g := compile(t, "walk", walkFlags...)
	rec := g.record(t, "--keep", "always")
	program := g.dir + "/symbols/" + g.name
	addr := serve(t, rec, "--symbols", g.dir+"/symbols")
	connect := "target remote | " + gdbserver + " --once - " + program
	hits := strings.Contains(realgdb.Batch(t, connect, "watch text[1]", "continue"), "New value")
	need.Machine(t, "debug registers that stop a live program at a store, which some virtual machines have not", hits)
	stops := 0
	for seed := range uint64(*walks) {
		commands := walk(rand.New(rand.NewPCG(seed, 5)))
		live := seen(realgdb.Batch(t, append([]string{connect}, commands...)...))
		replay := seen(gdb(t, addr, append([]string{loadCommands, "vplay seek begin"}, commands...)...))
		a, b := strings.Split(live, "\n"), strings.Split(replay, "\n")
		for i := range max(len(a), len(b)) {
			if i >= len(a) || i >= len(b) || a[i] != b[i] {
				t.Fatalf("walk %d: line %d differs. live:\n%s\nreplay:\n%s\nall of the replay:\n%s", seed, i, strings.Join(a[min(i, len(a)):min(i+5, len(a))], "\n"), strings.Join(b[min(i, len(b)):min(i+5, len(b))], "\n"), replay)
			}
		}
		stops += strings.Count(live, "@@")
	}
	t.Logf("%d stops in %d walks", stops, *walks)
	if stops < 5**walks {
		t.Error("they test nothing")
	}
}

// TestStepsAreInverseInGDB steps n back and n forward at random places, by gdb's
// commands, and compares registers and memory.
func TestStepsAreInverseInGDB(t *testing.T) {
	t.Parallel()
	g := compile(t, "walk", walkFlags...)
	addr := serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols")
	r := rand.New(rand.NewPCG(1, 6))
	state := "python print('@@' + gdb.execute('info registers', to_string=True) + gdb.execute('x/64xg $rsp', to_string=True) + gdb.execute('output pool', to_string=True) + '\\n' + gdb.execute('monitor when', to_string=True))"
	commands := []string{loadCommands}
	const places = 12
	for range places {
		n := 1 + r.IntN(60)
		commands = append(commands, fmt.Sprintf("vplay seek %d%%", 5+r.IntN(90)), state, fmt.Sprintf("reverse-stepi %d", n), fmt.Sprintf("stepi %d", n), state)
	}
	states := strings.Split(gdb(t, addr, commands...), "@@")[1:]
	if len(states) != 2*places {
		t.Fatalf("%d states", len(states))
	}
	end := regexp.MustCompile(`(?m)^\d+:\d+\.\d+$`)
	for i := 0; i < len(states); i += 2 {
		a, b := states[i], states[i+1]
		if a[:end.FindStringIndex(a)[1]] != b[:end.FindStringIndex(b)[1]] {
			t.Errorf("place %d: before:\n%s\nafter:\n%s", i/2, a, b)
		}
	}
}
