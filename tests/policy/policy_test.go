// Package policy tests the repository itself: layers, file sizes, docs.
package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// goFiles returns the Go files of the repository, without generated ones.
func goFiles(t *testing.T, tests bool) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		generated := strings.HasSuffix(p, "_gen.go") || strings.HasSuffix(p, "_gen_test.go")
		if strings.HasSuffix(p, ".go") && !generated && (tests || !strings.HasSuffix(p, "_test.go")) {
			out = append(out, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("found %d Go files only", len(out))
	}
	return out
}

// TestSizes bounds hand-written functions to 100 lines and files to 800.
func TestSizes(t *testing.T) {
	for _, p := range goFiles(t, false) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := fset.Position(f.End()).Line; n > 800 {
			t.Errorf("%s has %d lines", p, n)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line; n > 100 {
				t.Errorf("%s: %s has %d lines", p, fn.Name.Name, n)
			}
		}
	}
}

// TestPackageDocs wants a comment for every package.
func TestPackageDocs(t *testing.T) {
	docs := map[string]bool{}
	for _, p := range goFiles(t, true) {
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(p)
		docs[dir] = docs[dir] || f.Doc != nil
	}
	for dir, ok := range docs {
		if !ok {
			t.Errorf("package %s has no comment", dir)
		}
	}
}

// imports is the graph of our packages, the lower ones first: what each may import
// itself. An arrow leads to a package above it in the list only, so there is no cycle.
// Packages of tests may import all, and are imported by tests alone.
var imports = []struct {
	pkg string
	of  string
}{
	{"checkpoint/abi", ""},
	{"checkpoint/abi/ptrace", ""},
	{"dwarf/elffile", ""},
	{"dwarf/agentexpr", ""},
	{"dwarf", "dwarf/agentexpr dwarf/elffile"},
	{"replay/x86", ""},
	{"replay/x86/jit", "dwarf/agentexpr replay/x86"},
	{"replay/mem/rangemap", ""},
	{"replay/mem", "replay/mem/rangemap"},
	{"replay/debug/api", ""},
	{"gdbstub", "dwarf/agentexpr replay/debug/api"},
	{"gdbstub/dap", "replay/debug/api gdbstub"},
	{"checkpoint", ""},
	{"loader/image/imagetest", "checkpoint"},
	{"loader/image", "checkpoint dwarf/elffile"},
	{"checkpoint/record/agent", "checkpoint/abi"},
	{"checkpoint/record", "checkpoint checkpoint/abi checkpoint/abi/ptrace checkpoint/record/agent loader/image replay/mem/rangemap replay/x86"},
	{"checkpoint/corefile", "checkpoint checkpoint/abi loader/image"},
	{"loader", "checkpoint checkpoint/abi loader/image replay/mem replay/x86 dwarf"},
	{"replay/sys", "checkpoint checkpoint/abi loader replay/mem"},
	{"replay", "checkpoint checkpoint/abi loader loader/image replay/mem replay/mem/rangemap replay/sys replay/x86"},
	{"replay/lockstep", "checkpoint checkpoint/abi/ptrace replay replay/mem replay/x86"},
	{"replay/analysis/internal/randomcode", "replay/x86"},
	{"replay/analysis/dataflow", "replay/mem replay/x86"},
	{"replay/observe", "checkpoint dwarf replay replay/analysis/dataflow replay/mem replay/x86"},
	{"replay/analysis/taint", "checkpoint checkpoint/abi replay replay/analysis/dataflow replay/mem replay/x86"},
	{"replay/analysis/uninit", "checkpoint replay/analysis/taint"},
	{"replay/analysis/slice", "checkpoint checkpoint/abi replay replay/analysis/dataflow replay/mem replay/x86"},
	{"replay/analysis/controlflow", "replay replay/mem replay/observe replay/x86"},
	{"replay/analysis/windows", "checkpoint replay replay/mem/rangemap replay/observe replay/x86"},
	{"replay/debug/text", ""},
	{"replay/debug", "checkpoint checkpoint/abi loader loader/image dwarf dwarf/agentexpr replay replay/analysis/controlflow replay/analysis/slice replay/analysis/taint replay/mem replay/x86 replay/debug/api replay/debug/text"},
	{"replay/analysis/race", "checkpoint"},
	{"replay/analysis/heap", "checkpoint checkpoint/abi replay/mem replay/observe replay/x86"},
	{"replay/analysis/script", "checkpoint checkpoint/abi dwarf loader loader/image replay replay/analysis/race replay/analysis/taint replay/analysis/uninit replay/debug replay/mem replay/observe replay/x86 replay/analysis/heap replay/mem/rangemap"},
	{"replay/analysis/report", "checkpoint checkpoint/abi loader replay replay/analysis/slice replay/debug replay/debug/api replay/debug/text"},
	{"replay/analysis/debugcode", "checkpoint checkpoint/abi dwarf loader loader/image replay replay/debug replay/mem replay/observe replay/sys replay/x86"},
	{"replay/analysis/export", "checkpoint checkpoint/abi dwarf loader loader/image replay replay/analysis/heap replay/debug replay/debug/text replay/mem replay/observe replay/x86"},
	{"replay/analysis/deviate", "checkpoint loader loader/image replay replay/analysis/controlflow replay/analysis/slice replay/debug replay/debug/text replay/mem replay/x86"},
	{"cmd/vplayd/internal/sandbox", ""},
	{"cmd/vplayd", "*"},
}

// TestImports holds the packages to the graph, and prints it with -v.
func TestImports(t *testing.T) {
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "vplay/...")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		list := strings.Fields(line)
		pkg := strings.TrimPrefix(list[0], "vplay/")
		if strings.HasPrefix(pkg, "tests/") || strings.HasSuffix(pkg, "gen") {
			continue
		}
		got[pkg] = nil
		for _, i := range list[1:] {
			if name, ours := strings.CutPrefix(i, "vplay/"); ours {
				got[pkg] = append(got[pkg], name)
			}
		}
	}
	below := map[string]bool{}
	for _, p := range imports {
		for _, i := range got[p.pkg] {
			if p.of != "*" && !slices.Contains(strings.Fields(p.of), i) || !below[i] {
				t.Errorf("%s imports %s", p.pkg, i)
			}
		}
		for _, i := range strings.Fields(p.of) {
			if p.of != "*" && !slices.Contains(got[p.pkg], i) {
				t.Errorf("%s does not import %s any more: take it from the graph", p.pkg, i)
			}
		}
		if _, ok := got[p.pkg]; !ok {
			t.Errorf("there is no package %s", p.pkg)
		}
		t.Logf("%-28s -> %s", p.pkg, strings.Join(got[p.pkg], " "))
		delete(got, p.pkg)
		below[p.pkg] = true
	}
	for pkg := range got {
		t.Errorf("%s is not in the graph", pkg)
	}
}

// libraries says which packages of a module are wanted, where the module holds much
// more: delve is here for DWARF only; its debugger would bring eBPF, telemetry and
// the disassemblers of five processors along.
var libraries = map[string][]string{
	"github.com/go-delve/delve/": {"pkg/dwarf", "pkg/dwarf/frame", "pkg/dwarf/godwarf", "pkg/dwarf/leb128", "pkg/dwarf/op", "pkg/dwarf/reader", "pkg/dwarf/regnum"},
}

// TestObservers: whoever wants to be told of what a recorded program did goes by package observe. The machine's own callbacks are for it, and for what
// package replay does itself.
func TestObservers(t *testing.T) {
	for _, p := range goFiles(t, true) {
		rel, err := filepath.Rel(root, p)
		if err != nil {
			t.Fatal(err)
		}
		if dir := filepath.ToSlash(filepath.Dir(rel)); dir == "replay" || dir == "replay/observe" {
			continue
		}
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"OnEvent", "OnApplied"} {
			if strings.Contains(string(b), "."+name+" =") {
				t.Errorf("%s sets Machine.%s", rel, name)
			}
		}
	}
}

// TestLibraries checks that of such a module nothing else is built in.
func TestLibraries(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "vplay/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for module, wanted := range libraries {
		used := 0
		for _, dep := range strings.Fields(string(out)) {
			name, ok := strings.CutPrefix(dep, module)
			if !ok {
				continue
			}
			if used++; !slices.Contains(wanted, name) {
				t.Errorf("package %s of %s is built in", name, module)
			}
		}
		if used == 0 {
			t.Errorf("nothing of %s is used: it need not be in go.mod", module)
		}
	}
}

// TestSkips keeps every skip of a test in package need, whose words
// tests/run.sh lists, and the packages of tests out of what is built.
func TestSkips(t *testing.T) {
	for _, p := range goFiles(t, true) {
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		home := filepath.Join(root, "tests", "need")
		if filepath.Dir(p) == home {
			continue
		}
		imports := map[string]bool{}
		for _, s := range f.Imports {
			imports[strings.Trim(s.Path.Value, `"`)] = true
		}
		for name := range imports {
			if strings.HasPrefix(name, "vplay/tests/") && !strings.HasSuffix(p, "_test.go") && !strings.HasPrefix(p, filepath.Join(root, "tests")) {
				t.Errorf("%s is not a test and imports %s", p, name)
			}
		}
		for _, call := range skips(f) {
			if imports["testing"] {
				t.Errorf("%s calls %s; package vplay/tests/need skips tests", p, call)
			}
		}
	}
}

// skips returns the names of the methods called in f that skip a test.
func skips(f *ast.File) (calls []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Skip" || s.Sel.Name == "Skipf" || s.Sel.Name == "SkipNow") {
			calls = append(calls, s.Sel.Name)
		}
		return true
	})
	return calls
}

// TestScriptSkips wants the words of package need from scripts, too.
func TestScriptSkips(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "cmd", "vplayd", "testdata", "script", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts found", err)
	}
	for _, p := range files {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if _, why, ok := strings.Cut(line, "] skip "); ok && !strings.HasPrefix(why, "'needs ") {
				t.Errorf("%s: %s", p, line)
			}
		}
	}
}

// TestTopLevel holds the top level to what it is meant to be.
func TestTopLevel(t *testing.T) {
	want := map[string]bool{}
	for _, n := range strings.Fields(`cmd gdbstub replay checkpoint loader dwarf tests go.mod go.sum Justfile README.md
		LICENSE CHANGELOG.md .git .gitignore .golangci.yml .ci bin`) {
		want[n] = true
	}
	list, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !want[e.Name()] && !strings.HasSuffix(e.Name(), ".vplay") {
			t.Errorf("%s stands at the top level", e.Name())
		}
	}
}

// TestNoReplace keeps go.mod free of replacements.
func TestNoReplace(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "replace") {
		t.Error("go.mod has a replace directive")
	}
}
