package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// TestOpenings wants each file to begin with what it is for and what may go in: a comment
// that is the package's, or that stands before the first declaration and is not that
// declaration's own. Where a type comes first, the file is about the type, and its comment will do.
func TestOpenings(t *testing.T) {
	for _, p := range goFiles(t, false) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if !hasOpening(fset, f) {
			t.Errorf("%s does not say at its beginning what it is for", p)
		}
	}
}

func hasOpening(fset *token.FileSet, f *ast.File) bool {
	if f.Doc != nil || len(f.Decls) == 0 {
		return true
	}
	line := func(p token.Pos) int { return fset.Position(p).Line }
	first := f.Decls[len(f.Decls)-1].Pos() // of the first declaration but imports
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if ok && g.Tok == token.IMPORT {
			continue
		}
		if ok && g.Tok == token.TYPE && g.Doc != nil {
			return true
		}
		first = d.Pos()
		break
	}
	for _, c := range f.Comments {
		if c.Pos() > f.Name.End() && c.End() < first && line(c.End())+1 < line(first) {
			return true
		}
	}
	return false
}
