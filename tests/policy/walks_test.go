package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWalks holds the walks through the packages in replay/debug/RATIONALE.md to the code:
// each function, type and method that they name is there, and consecutive names are in one
// package or in two of which one imports the other, directly or by others.
func TestWalks(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "replay", "debug", "RATIONALE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n## Three walks through the packages\n")
	text, _, _ = strings.Cut(text, "\n## ")
	walks := strings.Split(text, "\n\nA ")[1:]
	if len(walks) != 3 {
		t.Fatalf("%d walks are written down, want 3", len(walks))
	}
	folders, declared := foldersByName(), map[string]map[string]bool{}
	for _, walk := range walks {
		names, last := qualified(walk), ""
		if len(names) < 8 {
			t.Errorf("a walk of %d names only: %.60q", len(names), walk)
		}
		for _, name := range names {
			pkg, rest, _ := strings.Cut(name, ".")
			folder, ok := folders[pkg]
			if !ok {
				t.Errorf("%s: there is no package %s", name, pkg)
				continue
			}
			if declared[pkg] == nil {
				declared[pkg] = declarations(t, filepath.Join(root, folder))
			}
			if !declared[pkg][rest] {
				t.Errorf("%s is not in %s", name, folder)
			}
			if last != "" && last != folder && !reaches(last, folder) && !reaches(folder, last) && !handsOver[[2]string{last, folder}] {
				t.Errorf("%s: no arrow leads from %s to %s, or back", name, last, folder)
			}
			last = folder
		}
	}
}

// handsOver are the steps between packages that do not know each other.
var handsOver = map[[2]string]bool{
	{"replay/sys", "gdbstub"}:   true, // what is in memory now is asked for
	{"gdbstub", "replay/debug"}: true, // by api.Target, as cmd/vplayd has joined them
}

// qualified returns the names PACKAGE.NAME and PACKAGE.TYPE.METHOD that stand in backquotes.
func qualified(text string) (names []string) {
	for _, m := range regexp.MustCompile("`([a-z0-9]+(?:\\.[A-Za-z]\\w*){1,2})`").FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// foldersByName returns the folders of our packages, by the packages' names.
func foldersByName() map[string]string {
	out := map[string]string{}
	for _, p := range imports {
		out[filepath.Base(p.pkg)] = p.pkg
	}
	return out
}

// reaches reports whether a package imports another, directly or by others.
func reaches(from, to string) bool {
	for _, p := range imports {
		if p.pkg != from {
			continue
		}
		for _, i := range strings.Fields(p.of) {
			if i == to || reaches(i, to) {
				return true
			}
		}
	}
	return false
}

// declarations returns what a package declares: NAME, and TYPE.METHOD for the methods of its
// types and interfaces.
func declarations(t *testing.T, folder string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(folder, err)
	}
	files = slices.DeleteFunc(files, func(p string) bool { return strings.HasSuffix(p, "_test.go") })
	for _, p := range files {
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				out[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						declareType(out, s)
					}
				}
			}
		}
	}
	return out
}

// receiver returns "TYPE." for a method, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if of, ok := typ.(*ast.IndexExpr); ok {
		typ = of.X
	}
	return typ.(*ast.Ident).Name + "."
}

// declareType adds a type, and the methods of an interface.
func declareType(out map[string]bool, s *ast.TypeSpec) {
	out[s.Name.Name] = true
	face, ok := s.Type.(*ast.InterfaceType)
	if !ok {
		return
	}
	for _, m := range face.Methods.List {
		for _, name := range m.Names {
			out[s.Name.Name+"."+name.Name] = true
		}
	}
}
