package dwarf

import (
	"debug/elf"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	realgdb "vplay/tests/gdb"
	"vplay/tests/need"
)

// compilers are those that TestAgainstGDB compiles with.
var compilers = flag.String("compilers", "gcc", "compilers of the programs that are compared with gdb: gcc,clang")

// core is the memory and the registers of a program in a core file, as gdb
// writes it (elf(5), linux include/uapi/linux/elfcore.h).
type core struct {
	f    *elf.File
	regs Regs
	fp   []byte // the FXSAVE area

	image *elf.File // what the core leaves out: pages that are as in the file
	bias  uint64
}

func openCore(t *testing.T, path, bin string, bias uint64) *core {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	image, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { image.Close() })
	c := &core{f: f, image: image, bias: bias}
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		le := binary.LittleEndian
		for len(b) >= 12 {
			name, desc, kind := le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
			d := b[12+(name+3)&^3:][:desc]
			switch kind {
			case 1: // NT_PRSTATUS: the registers stand behind 112 bytes
				for i, n := range []int{R15, R14, R13, R12, RBP, RBX, R11, R10, R9, R8, RAX, RCX, RDX, RSI, RDI, -1, RIP, -1, -1, RSP} {
					if n >= 0 {
						c.regs.Set(n, le.Uint64(d[112+8*i:]))
					}
				}
			case 2: // NT_FPREGSET
				c.fp = d
			}
			b = b[12+(name+3)&^3+(desc+3)&^3:]
		}
	}
	return c
}

func (c *core) ReadMemory(addr uint64, b []byte) int {
	for _, p := range c.f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			n, _ := p.ReadAt(b, int64(addr-p.Vaddr))
			if n < len(b) && n > 0 {
				n += c.ReadMemory(addr+uint64(n), b[n:])
			}
			return n
		}
	}
	for _, p := range c.image.Progs {
		if a := addr - c.bias; p.Type == elf.PT_LOAD && a >= p.Vaddr && a-p.Vaddr < p.Filesz {
			n, _ := p.ReadAt(b, int64(a-p.Vaddr))
			return n
		}
	}
	return 0
}

// vector reads xmm registers from the FXSAVE area.
func (c *core) vector(n uint64, b []byte) bool {
	if n < 17 || n > 32 {
		return false
	}
	copy(b, c.fp[160+16*(n-17):][:16])
	return true
}

// gdbFrame is what gdb says of one frame.
type gdbFrame struct {
	function     string
	args, locals []string // "name = value"
}

// parseFrames takes gdb's output apart.
func parseFrames(out string) (frames []gdbFrame) {
	head := regexp.MustCompile(`^#\d+ +(?:0x[0-9a-f]+ in )?(.+?) \(.*\) at `)
	var list *[]string
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		switch m := head.FindStringSubmatch(line); {
		case m != nil:
			frames = append(frames, gdbFrame{function: m[1]})
			list = nil
		case len(frames) == 0:
		case line == "=args":
			list = &frames[len(frames)-1].args
		case line == "=locals":
			list = &frames[len(frames)-1].locals
		case line == "=end":
			list = nil
		case list != nil && strings.Contains(line, " = "):
			*list = append(*list, line)
		}
	}
	return frames
}

// gdbCommands make gdb stop at the crash and tell all.
func gdbCommands(core string) []string {
	cmds := []string{
		"set width 0", "set confirm off", "set print pretty off", "set print null-stop on", "set print entry-values no",
		"set print static-members off", "set disable-randomization on", "run", "python print('main is', gdb.parse_and_eval('(long)&main'))",
		"generate-core-file " + core,
	}
	return append(cmds, `python
f = gdb.newest_frame()
n = 0
while f is not None and n < 20:
    f.select()
    gdb.execute("frame")
    for what in ["args", "locals"]:
        print("=" + what)
        try:
            gdb.execute("info " + what)
        except gdb.error as e:
            print(e)
    block = f.block() # info locals leaves out constants that are no integers
    while block is not None:
        for s in block:
            if s.addr_class == gdb.SYMBOL_LOC_CONST_BYTES:
                print(s.name, "=", s.value(f).format_string())
        if block.function is not None:
            break
        block = block.superblock
    print("=end")
    if f.name() == "main":
        break
    f = f.older()
    n += 1
end`)
}

// TestAgainstGDB compares every argument and local variable of every frame at a
// crash with what gdb says of it.
func TestAgainstGDB(t *testing.T) {
	need.Ptrace(t)
	need.Program(t, "gdb")
	for _, compiler := range strings.Split(*compilers, ",") {
		for _, source := range []string{"vars.c", "vars.cc"} {
			for _, flags := range []string{"-O0 -gdwarf-5", "-O0 -gdwarf-4 -static-pie", "-O2 -gdwarf-5 -static-pie", "-O2 -gdwarf-4", "-O1 -gdwarf-5", "-Og -gdwarf-5"} {
				t.Run(compiler+"/"+source+"/"+flags, func(t *testing.T) {
					t.Parallel()
					againstGDB(t, compiler, source, strings.Fields(flags))
				})
			}
		}
	}
}

func againstGDB(t *testing.T, compiler, source string, flags []string) {
	if strings.HasSuffix(source, ".cc") {
		compiler = map[string]string{"gcc": "g++", "clang": "clang++"}[compiler]
	}
	dir := t.TempDir()
	dump := filepath.Join(dir, "core")
	if !slices.Contains(flags, "-static-pie") {
		flags = append(flags, "-static", "-no-pie")
	}
	bin, image := compiled(t, compiler, filepath.Join("testdata", source), flags...)
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte(strings.Join(gdbCommands(dump), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	out := realgdb.Batch(t, "file "+bin, "source "+script)
	want := parseFrames(out)
	at := regexp.MustCompile(`main is (\d+)`).FindStringSubmatch(out)
	if len(want) < 3 || at == nil {
		t.Fatalf("gdb said\n%s", out)
	}
	m, err := Open(image, nil)
	if err != nil {
		t.Fatal(err)
	}
	main, _ := strconv.ParseUint(at[1], 10, 64)
	entry, ok := m.Lookup("main")
	if !ok {
		t.Fatal("there is no main")
	}
	got := ourFrames(openCore(t, dump, bin, main-entry), m, main-entry)
	if len(got) < len(want) {
		t.Fatalf("%d frames, gdb has %d: %v\n%s", len(got), len(want), got, out)
	}
	for i, w := range want {
		g := got[i]
		if !strings.HasPrefix(plainFunction(w.function), plainFunction(g.function)) {
			t.Errorf("frame %d is %s, gdb says %s", i, g.function, w.function)
		}
		compareVariables(t, fmt.Sprintf("%d %s arguments", i, g.function), g.args, w.args)
		compareVariables(t, fmt.Sprintf("%d %s locals", i, g.function), g.locals, w.locals)
	}
}

func plainFunction(s string) string { s, _, _ = strings.Cut(s, "<"); return s }

// ourFrames is the same by this package.
func ourFrames(c *core, m *Module, bias uint64) (out []gdbFrame) {
	find := func(addr uint64) (*Module, uint64, bool) {
		if _, _, ok := m.Function(addr - bias); ok {
			return m, bias, true
		}
		return nil, 0, false
	}
	for _, e := range Envs(Backtrace(c.regs, c, find, 30), c) {
		e.Vector = c.vector
		e.Symbolize = func(addr uint64) string {
			name, off, ok := m.Within(addr - bias)
			if !ok || off == 0 {
				return name
			}
			return fmt.Sprintf("%s+%d", name, off)
		}
		for _, s := range e.Scopes() {
			f := gdbFrame{function: s.Function}
			for _, v := range s.Arguments() {
				f.args = append(f.args, v.Name+" = "+v.String())
			}
			for _, v := range s.Locals() {
				f.locals = append(f.locals, v.Name+" = "+v.String())
			}
			out = append(out, f)
		}
	}
	return out
}

// gdb shows the parameters of C++ functions in symbols, and this package does not.
var symbolParameters = regexp.MustCompile(`<([^<>()]*)\([^<>]*?\)( const)?(\+\d+)?>`)

func compareVariables(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range want {
		want[i] = symbolParameters.ReplaceAllString(want[i], "<$1$3>")
	}
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	// gdb lists a variable of a block in an inlined function once more, as it is
	// in the abstract function: nowhere.
	want = slices.DeleteFunc(want, func(w string) bool {
		name, _, ok := strings.Cut(w, " = <optimized out>")
		return ok && !slices.Contains(got, w) && slices.ContainsFunc(got, func(g string) bool {
			return strings.HasPrefix(g, name+" = ") && slices.Contains(want, g)
		})
	})
	for _, d := range difference(got, want) {
		t.Errorf("%s: %s", what, d)
	}
}

// difference lists what only one side has, with its name.
func difference(got, want []string) (out []string) {
	for _, g := range got {
		if !slices.Contains(want, g) {
			out = append(out, "here     "+g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			out = append(out, "gdb says "+w)
		}
	}
	return out
}
