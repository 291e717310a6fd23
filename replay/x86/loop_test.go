package x86

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"testing"
)

// TestLoopSharesVariables: tools that bring the run loop into static single
// assignment form give each variable a phi at each place where its cases meet, and the
// compiler walks a table of the calls it expands for each of its basic blocks.
// So the cases declare no variables, and what most of them do is not a call.
func TestLoopSharesVariables(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "run_gen.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	cases, variables, calls := 0, 0, 0
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			cases++
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				variables += len(n.Lhs)
			}
		case *ast.CallExpr:
			if !isConversion(n) {
				calls++
			}
		}
		return true
	})
	if cases != kindCount-1 { // all but kGeneric
		t.Errorf("%d cases of %d: this is not the run loop", cases, kindCount-1)
	}
	if variables > 8 || calls > 200 { // the variables of the ways out of a block
		t.Errorf("%d variables of cases, %d calls", variables, calls)
	}
}

// TestLoopIsShort bounds the run loop, which is what the package takes longest to
// compile: a mechanism that multiplies its cases shows here.
func TestLoopIsShort(t *testing.T) {
	text, err := os.ReadFile("run_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	const most = 22_000
	if n := bytes.Count(text, []byte("\n")); n > most {
		t.Errorf("run_gen.go has %d lines, want %d at most", n, most)
	}
}

// isConversion reports whether n is a conversion to a basic type, or one of
// package unsafe.
func isConversion(n *ast.CallExpr) bool {
	switch f := n.Fun.(type) {
	case *ast.ParenExpr: // to a pointer
		return true
	case *ast.Ident:
		_, basic := types.Universe.Lookup(f.Name).(*types.TypeName)
		return basic || f.Name == "mxcsr"
	case *ast.SelectorExpr:
		pkg, ok := f.X.(*ast.Ident)
		return ok && pkg.Name == "unsafe"
	}
	return false
}
