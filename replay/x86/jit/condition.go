//go:build linux && amd64

package jit

import (
	"bytes"
	"slices"

	"vplay/dwarf/agentexpr"
	"vplay/replay/x86"
)

// Conditions of breakpoints (x86.Conditions) in generated code, in front of the unit that begins at the breakpoint. A loop may come there a
// hundred million times, and to ask in Go costs as much as fifty instructions of its. What is not known here leaves: an operator
// that has no code, memory that is not in the translation cache, and where a condition holds.
//
// Cells of the expression's stack are where cell says: most are numbers, or in scratch, and are never stored. At
// jumps, and where they lead to, all are in their words.

// maxCells is how many cells an expression may have.
const maxCells = 8

// cell is where a cell of the stack is while its expression is translated.
type cell struct {
	place cellPlace
	n     uint64 // isNumber
}

type cellPlace uint8

const (
	inWord    cellPlace = iota // wordCell and its index
	inScratch                  // one at most
	isNumber
)

// label is a place that jumps lead to.
type label struct {
	jumps []int
	depth int // of the stack
}

// condition is an expression that is being translated.
type condition struct {
	*translator
	stack  []cell
	labels map[int]*label // by offset in the expression
	holds  []int          // the jumps where it is not 0
	checks []addressCheck
}

// passConditions emits the evaluation of conditions, and returns the jumps where all are 0; behind it one holds, or
// cannot be told. It reports false, and has emitted nothing, for what has no code.
func (t *translator) passConditions(codes [][]byte) (passes []int, ok bool) {
	start := t.n
	var holds []int
	var checks []addressCheck
	for _, code := range codes {
		c := condition{translator: t, labels: map[int]*label{}}
		if !c.translate(code) {
			t.n = start
			return nil, false
		}
		holds, checks = append(holds, c.holds...), append(checks, c.checks...)
	}
	passes = []int{t.jmp()}
	for i := range checks {
		t.lookPartial(&checks[i])
		holds = append(holds, t.jmp())
	}
	for _, j := range holds {
		t.patch(j, t.n)
	}
	return passes, true
}

// translate emits one expression. Behind it it was 0.
func (c *condition) translate(code []byte) bool {
	var ends []int
	isReached := true
	for pc := 0; pc < len(code); {
		op, arg, next, err := agentexpr.Next(code, pc)
		if err != nil {
			return false
		}
		if l := c.labels[pc]; l != nil {
			if isReached && len(c.stack) != l.depth {
				return false
			}
			if isReached {
				c.settle()
			}
			c.stack, isReached = make([]cell, l.depth), true
			c.patchAll(l.jumps)
		}
		depth := len(c.stack) - op.Takes
		switch o := code[pc]; {
		case !isReached:
		case depth < 0 || depth+op.Returns > maxCells:
			return false
		case o == agentexpr.End:
			if len(c.stack) > 0 {
				c.get(len(c.stack)-1, scratch)
				c.reg(opTest, scratch, scratch)
				c.holds = append(c.holds, c.jcc(ifNotEqual))
			}
			if next < len(code) {
				ends = append(ends, c.jmp())
			}
			isReached = false
		case o == agentexpr.Goto, o == agentexpr.IfGoto:
			if int(arg) <= pc || int(arg) >= len(code) || !c.jump(o, int(arg)) {
				return false
			}
			isReached = o == agentexpr.IfGoto
		case !c.operator(o, arg):
			return false
		}
		pc = next
	}
	c.patchAll(ends)
	return !isReached // else it runs off its end
}

func (c *condition) patchAll(jumps []int) {
	for _, j := range jumps {
		c.patch(j, c.n)
	}
}

// jump emits GOTO or IF_GOTO.
func (c *condition) jump(op byte, to int) bool {
	if op == agentexpr.IfGoto {
		c.pop(address)
	}
	c.settle()
	l := c.labels[to]
	if l == nil {
		l = &label{depth: len(c.stack)}
		c.labels[to] = l
	}
	if l.depth != len(c.stack) {
		return false
	}
	if op == agentexpr.Goto {
		l.jumps = append(l.jumps, c.jmp())
		return true
	}
	c.reg(opTest, address, address)
	l.jumps = append(l.jumps, c.jcc(ifNotEqual))
	return true
}

// cellAt returns the word of cell i.
func (c *condition) cellAt(i int) memory { return c.word(wordCell + i) }

// get loads cell i to a register.
func (c *condition) get(i int, to uint8) {
	switch x := c.stack[i]; x.place {
	case isNumber:
		c.load64(to, x.n)
	case inScratch:
		c.move(to, scratch)
	case inWord:
		c.mem(opMov, to, c.cellAt(i))
	}
}

// pop takes the top of the stack away to a register.
func (c *condition) pop(to uint8) {
	top := len(c.stack) - 1
	if to == scratch {
		c.free(top)
	}
	c.get(top, to)
	c.stack = c.stack[:top]
}

// free has scratch hold none of the first n cells.
func (c *condition) free(n int) {
	for i := range c.stack[:n] {
		if c.stack[i].place == inScratch {
			c.mem(opMovTo, scratch, c.cellAt(i))
			c.stack[i].place = inWord
		}
	}
}

// settle has all cells in their words. Flags stay.
func (c *condition) settle() {
	c.free(len(c.stack))
	for i := range c.stack {
		if c.stack[i].place == isNumber {
			c.get(i, scratch)
			c.mem(opMovTo, scratch, c.cellAt(i))
			c.stack[i].place = inWord
		}
	}
}

// push puts what is in scratch on the stack.
func (c *condition) push() { c.stack = append(c.stack, cell{place: inScratch}) }

// number puts a number on the stack.
func (c *condition) number(n uint64) {
	c.stack = append(c.stack, cell{place: isNumber, n: n})
}

// operator emits any operator but the jumps. The stack has what it takes.
func (c *condition) operator(op byte, arg uint64) bool {
	switch {
	case op >= agentexpr.Const8 && op <= agentexpr.Const64:
		c.number(arg)
	case op == agentexpr.Reg && arg == agentexpr.RIP:
		c.number(c.u.pc)
	case op == agentexpr.Reg && arg < agentexpr.RIP:
		c.free(len(c.stack))
		if n := agentexpr.GPR[arg]; hostOf[n] != none {
			c.move(scratch, hostOf[n])
		} else {
			c.mem(opMov, scratch, c.guest(n))
		}
		c.push()
	case op == agentexpr.Dup:
		c.pick(0)
	case op == agentexpr.Pick && int(arg) < len(c.stack):
		c.pick(int(arg))
	case op == agentexpr.Pop:
		c.stack = c.stack[:len(c.stack)-1]
	case op == agentexpr.LogNot, op == agentexpr.BitNot, op == agentexpr.Ext, op == agentexpr.ZeroExt:
		return c.unary(op, arg)
	case op >= agentexpr.Ref8 && op <= agentexpr.Ref64:
		c.ref(1 << (op - agentexpr.Ref8))
	default:
		return len(c.stack) >= 2 && c.binary(op)
	}
	return true
}

// pick copies the cell that is n below the top.
func (c *condition) pick(n int) {
	i := len(c.stack) - 1 - n
	if c.stack[i].place == isNumber {
		c.number(c.stack[i].n)
		return
	}
	c.free(len(c.stack))
	c.get(i, scratch)
	c.push()
}

// ref replaces an address by the size bytes that it leads to.
func (c *condition) ref(size uint8) {
	c.pop(address)
	c.free(len(c.stack))
	c.mem(opMovTo, address, c.word(wordTested))
	jump := c.checkRange(uint32(size), false)
	c.checks = append(c.checks, addressCheck{jump: jump, back: c.n, size: size})
	o := opMov
	switch size {
	case 1:
		o = opcode{op: 0xb6, opmap: 1} // MOVZX
	case 2:
		o = opcode{op: 0xb7, opmap: 1}
	case 4:
		o = opMov32
	}
	c.mem(o, scratch, at(address, 0))
	c.push()
}

// unary emits an operator of one cell.
func (c *condition) unary(op byte, arg uint64) bool {
	isExt := op == agentexpr.Ext || op == agentexpr.ZeroExt
	if isExt && (arg == 0 || arg > 64) {
		return false
	}
	c.pop(scratch)
	switch op {
	case agentexpr.LogNot:
		c.reg(opTest, scratch, scratch)
		c.truth(ifZero)
	case agentexpr.BitNot:
		c.reg(opcode{op: 0xf7, w: true}, 2, scratch)
	case agentexpr.Ext:
		c.shift(4, byte(64-arg))
		c.shift(7, byte(64-arg))
	default:
		c.shift(4, byte(64-arg))
		c.shift(5, byte(64-arg))
	}
	c.push()
	return true
}

// shift emits a shift of scratch by n bits: /4 SHL, /5 SHR, /7 SAR.
func (c *condition) shift(digit uint8, n byte) {
	c.reg(opcode{op: 0xc1, w: true}, digit, scratch)
	c.bytes(n)
}

// truth sets scratch to whether a condition of the host's flags holds.
func (c *condition) truth(cond byte) {
	c.bytes(0x0f, 0x90|cond, 0xc0) // setcc al
	c.bytes(0x0f, 0xb6, 0xc0)      // movzx eax, al
}

// comparisons are the host's conditions of operators that compare.
var comparisons = map[byte]byte{agentexpr.Equal: ifZero, agentexpr.LessSigned: ifLess, agentexpr.LessUnsigned: ifBelow}

// binary emits an operator of two cells. Division has no code, and shifts have if they are by a number.
func (c *condition) binary(op byte) bool {
	y := c.stack[len(c.stack)-1]
	isShift := op >= agentexpr.Lsh && op <= agentexpr.RshUnsigned
	if isShift && (y.place != isNumber || y.n > 63) {
		return false
	}
	c.pop(address)
	c.pop(scratch)
	switch op {
	case agentexpr.Add:
		c.reg(opAdd, scratch, address)
	case agentexpr.Sub:
		c.reg(opSub, scratch, address)
	case agentexpr.Mul:
		c.reg(opcode{op: 0xaf, opmap: 1, w: true}, scratch, address)
	case agentexpr.Lsh:
		c.shift(4, byte(y.n))
	case agentexpr.RshSigned:
		c.shift(7, byte(y.n))
	case agentexpr.RshUnsigned:
		c.shift(5, byte(y.n))
	case agentexpr.BitAnd:
		c.reg(opcode{op: 0x23, w: true}, scratch, address)
	case agentexpr.BitOr:
		c.reg(opcode{op: 0x0b, w: true}, scratch, address)
	case agentexpr.BitXor:
		c.reg(opcode{op: 0x33, w: true}, scratch, address)
	case agentexpr.Equal, agentexpr.LessSigned, agentexpr.LessUnsigned:
		c.reg(opCmp, scratch, address)
		c.truth(comparisons[op])
	default:
		return false
	}
	c.push()
	return true
}

// followConditions drops the units of breakpoints that have other conditions than when they were made.
func (e *Engine) followConditions(c *x86.CPU) {
	old, now := e.conditions, c.Conditions
	if old == now {
		return
	}
	e.conditions = now
	for _, s := range []*x86.Conditions{old, now} {
		if s == nil {
			continue
		}
		for pc := range s.At {
			if !slices.EqualFunc(old.Of(pc), now.Of(pc), bytes.Equal) {
				e.forgetAt(pc)
			}
		}
	}
}
