package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOpenings wants each file to begin with what it is for and what may go in: a comment
// that is the package's, or that stands before the first declaration and is not that
// declaration's own. Where a type comes first, the file is about the type, and its comment will do.
// An opening says by name where other things are: these files must be there.
func TestOpenings(t *testing.T) {
	files := map[string]bool{}
	for _, p := range goFiles(t, true) {
		files[filepath.Base(p)] = true
	}
	for _, p := range goFiles(t, false) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if !hasOpening(fset, f) {
			t.Errorf("%s does not say at its beginning what it is for", p)
		}
		for _, name := range namedFiles(f) {
			if !files[name] && !strings.Contains(name, "_gen") {
				t.Errorf("%s speaks of %s, which is not there", p, name)
			}
		}
	}
}

// fileName is the name of a Go file, not behind a folder's: that is another project's.
var fileName = regexp.MustCompile(`(?:^|[\s(])([a-z0-9_]+\.go)\b`)

// namedFiles returns the files that the comments before the first declaration name.
func namedFiles(f *ast.File) (names []string) {
	for _, c := range f.Comments {
		if len(f.Decls) > 0 && c.Pos() > f.Decls[firstDecl(f)].Pos() {
			break
		}
		for _, m := range fileName.FindAllStringSubmatch(c.Text(), -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// firstDecl returns the place of the first declaration that is no import, the last one's
// when there is none.
func firstDecl(f *ast.File) int {
	for i, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); !ok || g.Tok != token.IMPORT {
			return i
		}
	}
	return len(f.Decls) - 1
}

func hasOpening(fset *token.FileSet, f *ast.File) bool {
	if f.Doc != nil || len(f.Decls) == 0 {
		return true
	}
	line := func(p token.Pos) int { return fset.Position(p).Line }
	decl := f.Decls[firstDecl(f)]
	if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.TYPE && g.Doc != nil {
		return true
	}
	first := decl.Pos()
	for _, c := range f.Comments {
		if c.Pos() > f.Name.End() && c.End() < first && line(c.End())+1 < line(first) {
			return true
		}
	}
	return false
}
