package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vplay/tests/need"
)

// TestPrograms wants each program that a test starts by name in
// tests/need/programs.txt, so that tests/run.sh installs it on a new machine.
// Programs that go through need.Program are held to the list when they run.
func TestPrograms(t *testing.T) {
	var all []string
	check := func(place, name string) {
		all = append(all, name)
		if name != "go" && !strings.Contains(name, "/") && !need.Listed()[name] {
			t.Errorf("%s starts %s, which tests/need/programs.txt does not list", place, name)
		}
	}
	for _, p := range goFiles(t, true) {
		if !strings.HasSuffix(p, "_test.go") && !strings.HasPrefix(p, filepath.Join(root, "tests")) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range started(f) {
			check(p, name)
		}
	}
	scripts, err := filepath.Glob(filepath.Join(root, "cmd", "vplayd", "testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range scripts {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			for _, name := range recorded(line) {
				check(p, name)
			}
		}
	}
	if len(all) < 20 {
		t.Errorf("found %d programs only: %q", len(all), all)
	}
}

// started returns the names of the programs that f starts through os/exec, where
// they are constants.
func started(f *ast.File) (names []string) {
	place := map[string]int{"Command": 0, "CommandContext": 1, "LookPath": 0}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		i, ok := place[s.Sel.Name]
		if pkg, isName := s.X.(*ast.Ident); !ok || !isName || pkg.Name != "exec" || i >= len(call.Args) {
			return true
		}
		if lit, isLit := call.Args[i].(*ast.BasicLit); isLit {
			if name, err := strconv.Unquote(lit.Value); err == nil {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}

// recorded returns the programs that a line of a script runs: behind exec, and
// those that vplayd records successfully.
func recorded(line string) (names []string) {
	f := strings.Fields(strings.TrimPrefix(line, "! "))
	for i := 1; i < len(f); i++ {
		isExec := i == 1 && f[0] == "exec"
		isRecord := f[i-1] == "--" && f[0] != "fails" && strings.Contains(line, "vplayd record ")
		if (isExec || isRecord) && f[i] != "vplayd" && !strings.ContainsAny(f[i], "$/") {
			names = append(names, f[i])
		}
	}
	return names
}
