package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"vplay/tests/need"
)

// The verb debug-code, on real recordings of code with and without optimization, by both compilers.

// debugCode runs vplayd debug-code with a file of this text and returns what it prints and its exit code.
func debugCode(t testing.TB, g *guest, rec, text string, flags ...string) (out, errors string, code int) {
	t.Helper()
	need.Program(t, "musl-gcc")
	need.Program(t, "clang")
	path := filepath.Join(t.TempDir(), "code.c")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"debug-code", "--symbols", filepath.Join(g.dir, "symbols")}, flags...)
	cmd := exec.CommandContext(limited(t, 2*time.Minute), vplayd, append(args, path, rec)...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run() // the code says how it ended
	return o.String(), strings.ReplaceAll(e.String(), filepath.Dir(path)+"/", ""), cmd.ProcessState.ExitCode()
}

// interpreterCode has the four kinds of regions, a walk through a struct, calls of the program's functions by name and
// by pointer, and state from call to call; %d is the line of the next instruction.
const interpreterCode = `#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int calls, writes, loads, stores;
struct seen { long number; struct seen *next; };
static struct seen *all;

static int length(value_t *v) {
	int n = 0;
	for (; v; v = v->next)
		n++;
	return n;
}

VPLAY_AT(interpreter.c, %d) {
	printf("%%d: op %%d pc %%d depth %%d/%%d stack:", ++calls, in->op, pc, m->depth, length(m->top));
	for (struct value *v = m->top; v; v = v->next) {
		printf(" ");
		m->print(v);
		print_value(v);
	}
	printf("\n");
}

VPLAY_ON_CALL(push) {
	struct seen *s = malloc(sizeof *s);
	s->number = n;
	s->next = all;
	all = s;
	if (calls == 2) {
		long before = total;
		push(m, 40);
		printf("pushed 40: total %%ld, %%ld; depth %%d errors %%d\n", before, total, m->depth, errors);
		printf("low %%u middle %%u high %%d kind %%c size %%zu\n", m->top->low, m->top->middle, m->top->high, m->top->kind, sizeof(value_t));
	}
}

VPLAY_ON_SYSCALL(write) {
	writes++;
	printf("write: %%ld of %%ld bytes to %%ld\n", vplay->result, vplay->args[2], vplay->args[0]);
}

VPLAY_ON_ACCESS(total) {
	if (vplay->store)
		stores++;
	else
		loads++;
}

VPLAY_AT_END {
	int n = 0;
	long sum = 0;
	for (struct seen *s = all; s; s = s->next) {
		n++;
		sum += s->number;
	}
	printf("%%d instructions, %%d pushes of %%ld, %%d writes, %%d loads and %%d stores, total %%ld\n", calls, n, sum, writes, loads, stores, total);
}
`

// interpreterOutput is what it prints.
const interpreterOutput = `1: op 0 pc 1 depth 0/0 stack:
2: op 0 pc 2 depth 1/1 stack: <2><2>
pushed 40: total 3, 43; depth 2 errors 7
low 8 middle 1 high 0 kind n size 24
3: op 2 pc 3 depth 2/2 stack: <3><3> <2><2>
4: op 3 pc 4 depth 1/1 stack: <6><6>
5: op 4 pc 5 depth 2/2 stack: <6><6> <6><6>
6: op 0 pc 6 depth 2/2 stack: <6><6> <6><6>
7: op 6 pc 7 depth 3/3 stack: <3><3> <6><6> <6><6>
8: op 5 pc 8 depth 3/3 stack: <2><2> <6><6> <6><6>
9: op 6 pc 7 depth 3/3 stack: <2><2> <6><6> <6><6>
10: op 5 pc 8 depth 3/3 stack: <1><1> <6><6> <6><6>
11: op 6 pc 7 depth 3/3 stack: <1><1> <6><6> <6><6>
12: op 5 pc 8 depth 3/3 stack: <0><0> <6><6> <6><6>
13: op 1 pc 9 depth 3/3 stack: <0><0> <6><6> <6><6>
14: op 4 pc 10 depth 2/2 stack: <6><6> <6><6>
15: op 7 pc 11 depth 2/2 stack: <6><6> <6><6>
write: 6 of 6 bytes to 1
write: 9 of 9 bytes to 1
15 instructions, 9 pushes of 29, 2 writes, 9 loads and 9 stores, total 30
`

// TestDebugCode runs all kinds of regions over the interpreter.
func TestDebugCode(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			g := compile(t, "interpreter", level)
			rec := g.record(t, "--keep", "always")
			text := fmt.Sprintf(interpreterCode, g.line(t, "next instruction"))
			for _, cc := range []string{"musl-gcc", "clang"} {
				out, errors, code := debugCode(t, g, rec, text, "--cc", cc)
				if out != interpreterOutput || code != 0 || !strings.Contains(errors, "regions were called 45 times; 1 of 1 intervals were replayed exactly") {
					t.Errorf("%s: exit code %d\n%s\n%s", cc, code, out, errors)
				}
			}
		})
	}
}

// TestDebugCodeMistakes: what debug code may not do, and what is wrong in it, is told with its line.
func TestDebugCodeMistakes(t *testing.T) {
	t.Parallel()
	plain, fast := compile(t, "interpreter", "-O0"), compile(t, "interpreter", "-O2")
	recs := map[*guest]string{plain: plain.record(t, "--keep", "always"), fast: fast.record(t, "--keep", "always")}
	place := fmt.Sprintf("VPLAY_AT(interpreter.c, %d) {\n", plain.line(t, "next instruction"))
	for _, c := range []struct {
		g     *guest
		text  string
		flags []string
		code  int
		want  string // a regular expression
	}{
		{plain, place + "\tif (executed == 3)\n\t\ttotal = 5;\n}\n", nil, 1, `code\.c:3: debug code may not write to the program's memory, and does so at total \(0x`},
		{plain, "#include <string.h>\n" + place + "\tmemset(m, 0,\n\t\tsizeof *m);\n}\n", nil, 1, `code\.c:3: debug code may not write to the program's memory`},
		{plain, place + "\tpc = 3;\n}\n", nil, 1, `code\.c:2: debug code may not write to the program's memory`},
		{fast, place + "\tpc = 3;\n}\n", nil, 1, `code\.c:2: debug code may not write to pc, which the program has in a register here`},
		{fast, "#include <stdio.h>\n" + place + "\tint lost = 1;\n\tprintf(\"%d\\n\", lost);\n}\n" + place + "\tprintf(\"%d\\n\",\n\t\tlost);\n}\n", nil, 2,
			`code\.c:\d: lost is optimized out at 0x[0-9a-f]+ \(interpreter\.c:\d+\)`},
		{plain, place + "\tfor (volatile int i = 0;; i++)\n\t\t;\n}\n", []string{"--steps", "100000"}, 1, `code\.c:2: the debug code was ended: it has executed 100000 instructions in one call(?s:.*)--steps`},
		{plain, place + "\tfor (;;)\n\t\t;\n}\n", []string{"--steps", "0", "--time", "500ms"}, 1, `it ran for longer than 500ms`},
		{plain, "#include <stdio.h>\n" + place + "\tprintf(\"%d\\n\", executd);\n\tchar *p = in->\n}\n", nil, 2, `code\.c:3: error: .*executd(?s:.*)code\.c:5: error: `},
		{plain, place + "\n\tm->print(0);\n}\n", nil, 1, `code\.c:3: the program's print_value, called here, got SIGSEGV at 0x8`},
		{plain, "int f(int n) { char b[10000]; return f(n + 1) + b[n]; }\n" + place + "\tf(1);\n}\n", nil, 1, `code\.c:1: debug code got SIGSEGV at 0x[0-9a-f]+: its stack of 8 MiB is full`},
		{plain, "VPLAY_AT(interpreter.c, 1) { }\n", nil, 2, `code\.c:1: line 1 of interpreter\.c has no code; the next line that has some is \d+`},
		{plain, "VPLAY_ON_CALL(nothing) { }\n", nil, 2, `code\.c:1: no function nothing has code of its own`},
		{plain, "VPLAY_ON_ACCESS(nothing) { }\n", nil, 1, `code\.c:1: VPLAY_ON_ACCESS\(nothing\): there is no nothing here`},
		{plain, "#include <nothing.h>\n", nil, 2, `code\.c:1:.*nothing\.h`},
	} {
		out, errors, code := debugCode(t, c.g, recs[c.g], c.text, c.flags...)
		if code != c.code || !regexp.MustCompile(c.want).MatchString(errors) {
			t.Errorf("%s: exit code %d, want %d\n%s\n%swant %s", c.text, code, c.code, out, errors, c.want)
		}
	}
}

// TestDebugCodeCalls: pointers to functions work in both directions, names of musl's and of the program's C library are told
// apart, and the code has no files.
func TestDebugCodeCalls(t *testing.T) {
	t.Parallel()
	g := compile(t, "interpreter", "-O2")
	rec := g.record(t, "--keep", "always")
	out, errors, code := debugCode(t, g, rec, `#include <stdio.h>
#include <stdlib.h>
static int compared;
static int compare(const void *a, const void *b) {
	compared++;
	return *(const int *)a - *(const int *)b;
}
static long n = 5;
VPLAY_ON_CALL(push) {
	static int once;
	if (!once++)
		printf("its own: %ld, the parameter: %ld\n", n, vplay->rsi);
}
VPLAY_ON_SYSCALL(write) {
	static int once;
	if (once++)
		return;
	int list[] = {3, 1, 2};
	vplay_program_qsort(list, 3UL, 4UL, compare);
	printf("%d %d %d %d\n", list[0], list[1], list[2], compared > 0);
	vplay_program_printf("the program's: %d %.1f\n", 7, 2.5);
	printf("none: %d\n", fopen("/etc/passwd", "r") == NULL);
	fprintf(stderr, "to stderr\n");
	for (int i = 0; i < 1000; i++)
		free(malloc(100000));
	printf("no room: %d\n", malloc(64 << 20) == NULL);
	atexit((void (*)(void))(int (*)(void))getenv);
	exit(0);
}
`, "--json", "--memory", "32")
	want := regexp.MustCompile(`^(.*"fd":1,"text":"its own: 5, the parameter: 2"\}
.*"fd":1,"text":"1 2 3 1"\}
.*"fd":1,"text":"the program's: 7 2\.5"\}
.*"fd":2,"text":"vplay: debug code calls open, which gets ENOSYS.*\}
.*"fd":1,"text":"none: 1"\}
.*"fd":2,"text":"to stderr"\}
.*"fd":1,"text":"no room: 1"\}
.*"calls":10,"exact_intervals":0,"intervals":1\}
)$`)
	if code != 0 || !want.MatchString(out) {
		t.Errorf("exit code %d\n%s\n%s", code, out, errors)
	}
}

// TestDebugCodeTypes prints objects of all kinds of types by the lines by which the program itself prints them.
func TestDebugCodeTypes(t *testing.T) {
	t.Parallel()
	header, err := os.ReadFile(filepath.Join("..", "guest", "shapes.h"))
	if err != nil {
		t.Fatal(err)
	}
	for cc, flags := range map[string][]string{"musl-gcc": {"-O0"}, "clang": {"-O1", "-gdwarf-4"}} {
		g := compile(t, "shapes", flags...)
		own, err := exec.Command(g.bin).Output()
		if err != nil {
			t.Fatal(err)
		}
		rec := g.record(t, "--keep", "always")
		text := fmt.Sprintf("#include <stdio.h>\n#include <sys/stat.h>\nVPLAY_AT(shapes.c, %d) {\n%s\n}\n", g.line(t, "behind it"), header)
		out, errors, code := debugCode(t, g, rec, text, "--cc", cc)
		if out+"end\n" != string(own) || code != 0 {
			t.Errorf("%v %s: exit code %d\n%s\nwant\n%s\n%s", flags, cc, code, out, own, errors)
		}
	}
}

// TestDebugCodeInterrupt: Ctrl-C ends an endless loop.
func TestDebugCodeInterrupt(t *testing.T) {
	t.Parallel()
	need.Program(t, "musl-gcc")
	g := compile(t, "interpreter", "-O0")
	rec := g.record(t, "--keep", "always")
	path := filepath.Join(t.TempDir(), "code.c")
	text := fmt.Sprintf("#include <stdio.h>\nVPLAY_AT(interpreter.c, %d) {\n\tputs(\"begun\");\n\tfor (;;)\n\t\t;\n}\n", g.line(t, "next instruction"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(limited(t, patience), vplayd, "debug-code", "--steps", "0", "--symbols", filepath.Join(g.dir, "symbols"), path, rec)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var b [6]byte
	if _, err := io.ReadFull(out, b[:]); err != nil || string(b[:]) != "begun\n" {
		t.Errorf("it prints %q, %v", b, err)
	}
	_ = cmd.Process.Signal(os.Interrupt) // Wait says what came of it
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}
}

// TestDebugCodeThreads: regions are called in the order of execution over several intervals and threads, each with the thread's
// own variables.
func TestDebugCodeThreads(t *testing.T) {
	t.Parallel()
	g := compile(t, "adders", "-O2", "-pthread")
	rec := g.record(t, "--keep", "always", "--force-every", "10")
	out, errors, code := debugCode(t, g, rec, `#include <stdio.h>
static int adds, ids[8], counts[8], wrong;
VPLAY_ON_CALL(add) {
	int k = 0;
	while (ids[k] && ids[k] != vplay->thread)
		k++;
	ids[k] = vplay->thread;
	wrong += mine != counts[k]++ || v != mine; // what this thread has added
	adds++;
	if (adds % 300 == 0) {
		int before = total;
		add(1000);
		wrong += head->v != 1000 || total != before + 1 || mine != counts[k];
	}
}
VPLAY_AT_END { printf("%d adds: %d %d %d, total %d, %d wrong\n", adds, counts[0], counts[1], counts[2], total, wrong); }
`)
	exact := regexp.MustCompile(`regions were called 901 times; (\d+) of (\d+) intervals were replayed exactly`).FindStringSubmatch(errors)
	if out != "900 adds: 300 300 300, total 900, 0 wrong\n" || code != 0 || exact == nil || exact[1] != exact[2] || exact[1] == "1" {
		t.Errorf("exit code %d\n%s\n%s", code, out, errors)
	}
}
