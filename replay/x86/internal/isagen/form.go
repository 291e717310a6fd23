package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What a case of the run loop is: its form. Bodies are in loop.go and vector.go,
// the instructions that each form takes in binding.go.

// form says what a case executes. Two cases have different forms; the name of a
// kind comes from its form alone.
type form struct {
	op   string // the operation and its operands, AddRR; of a vector form the handler
	cond string // condition of CMOVcc, SETcc, Jcc
	from int    // bytes of a source that is extended
	size int    // bytes of the operands, 0 for forms that have one size or none

	vex      width    // of a vector form
	operands operands // of a vector form

	// Variants of another form, which an instruction is bound to first.
	dead   bool   // leaves the flags alone
	branch string // joined with a branch on this condition
	base   bool   // the memory operand is a base register and a displacement

	thread bool // the memory operand is relative to FS, without a register
}

// width is how a vector form is encoded. It begins the name of the kind.
type width string

const (
	legacy width = "V" // SSE
	vex128 width = "X"
	vex256 width = "Y"
)

// operands are those of a vector form: registers alone, or memory as the source or
// destination.
type operands string

const (
	regs   operands = "r"
	memory operands = "m"
)

// name is the name of the form's kind, without the k of its constant.
func (f form) name() string {
	s := string(f.vex) + string(f.operands) + f.op + f.cond
	if f.thread {
		s = "F" + s
	}
	for _, n := range []int{f.from, f.size} {
		if n > 0 {
			s += fmt.Sprint(n)
		}
	}
	if f.dead {
		s += "n"
	}
	if f.branch != "" {
		s += "J" + f.branch
	}
	if f.base {
		s += "b"
	}
	return s
}

// plain is the form that f is a variant of, f itself if it is none.
func (f form) plain() form {
	f.dead, f.branch, f.base = false, "", false
	return f
}

// kind is a case: of a form, or of a chain of kinds.
type kind struct {
	name  string
	form  form
	chain []string // the names of its members; form is then empty
	body  string
}

// ways are the jumps of a body.
var ways = regexp.MustCompile(`goto (\w+)`)

// exposed are operations before which all flags are kept, as before one that may leave,
// although they do not: the chains were counted so, and some would not come up otherwise.
var exposed = []string{"RolRI", "RorRI", "VShl", "VShr", "VSar"}

// leaves says how a case can end its block, as Go: on the way to the handler,
// before it has changed anything, or on a branch, when it has done its work.
func (k *kind) leaves() string {
	before, after := !leaves.MatchString(k.body) || slices.Contains(exposed, k.form.op), false
	for _, w := range ways.FindAllStringSubmatch(k.body, -1) {
		before = before || w[1] == "generic"
		after = after || w[1] == "exit" || w[1] == "indirect"
	}
	var s []string
	if before {
		s = append(s, "leavesBefore")
	}
	if after {
		s = append(s, "leavesAfter")
	}
	return strings.Join(s, " | ")
}
