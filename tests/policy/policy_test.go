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
		if strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_gen.go") && (tests || !strings.HasSuffix(p, "_test.go")) {
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

// layers says which of our packages a package may import, directly or not.
// A package that is not named here may import all.
var layers = map[string][]string{
	"vplay/checkpoint/abi":      {},
	"vplay/replay/x86":          {},
	"vplay/replay/mem/rangemap": {},
	"vplay/replay/mem":          {"vplay/replay/mem/rangemap"},
	"vplay/dwarf":               {},
	"vplay/gdbstub":             {},
	"vplay/gdbstub/dap":         {"vplay/gdbstub"},
	"vplay/checkpoint":          {"vplay/checkpoint/abi"},
	"vplay/loader":              {"vplay/checkpoint", "vplay/checkpoint/abi", "vplay/replay/mem", "vplay/replay/mem/rangemap", "vplay/replay/x86", "vplay/dwarf"},
	"vplay/replay/sys":          {"vplay/checkpoint", "vplay/checkpoint/abi", "vplay/replay/mem", "vplay/replay/mem/rangemap", "vplay/replay/x86", "vplay/loader", "vplay/dwarf"},
	"vplay/replay":              {"vplay/checkpoint", "vplay/checkpoint/abi", "vplay/replay/mem", "vplay/replay/mem/rangemap", "vplay/replay/x86", "vplay/replay/sys", "vplay/loader", "vplay/dwarf"},
	"vplay/replay/lockstep":     {"vplay/replay", "vplay/checkpoint", "vplay/checkpoint/abi", "vplay/replay/mem", "vplay/replay/mem/rangemap", "vplay/replay/x86", "vplay/replay/sys", "vplay/loader", "vplay/dwarf"},
	"vplay/checkpoint/record":   {"vplay/checkpoint", "vplay/checkpoint/abi", "vplay/loader", "vplay/replay/mem", "vplay/replay/mem/rangemap", "vplay/replay/x86", "vplay/dwarf"},
}

// TestLayers checks the import graph against design's direction.
func TestLayers(t *testing.T) {
	for pkg, allowed := range layers {
		out, err := exec.Command("go", "list", "-deps", pkg).Output()
		if err != nil {
			t.Errorf("go list %s: %v", pkg, err)
			continue
		}
		ok := map[string]bool{pkg: true}
		for _, a := range allowed {
			ok[a] = true
		}
		for _, dep := range strings.Fields(string(out)) {
			if strings.HasPrefix(dep, "vplay/") && !ok[dep] && !strings.HasPrefix(dep, pkg+"/internal/") {
				t.Errorf("%s imports %s", pkg, dep)
			}
		}
	}
}

// libraries says which packages of a module are wanted, where the module holds much
// more: delve is here for DWARF only; its debugger would bring eBPF, telemetry and
// the disassemblers of five processors along.
var libraries = map[string][]string{
	"github.com/go-delve/delve/": {"pkg/dwarf", "pkg/dwarf/frame", "pkg/dwarf/godwarf", "pkg/dwarf/leb128", "pkg/dwarf/op", "pkg/dwarf/reader", "pkg/dwarf/regnum"},
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
