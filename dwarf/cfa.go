package dwarf

import (
	"errors"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

// Call frame instructions (DWARF 5, 7.24), executed for one address: what
// comes out is how to find the caller's registers.

// ruleKind says where the caller's value of a register is.
type ruleKind uint8

const (
	ruleSame          ruleKind = iota // unspecified counts as this for all but the return address
	ruleUndefined                     // lost
	ruleOffset                        // in memory at CFA + n
	ruleValOffset                     // CFA + n itself
	ruleRegister                      // in register n
	ruleExpression                    // in memory at the expression's value
	ruleValExpression                 // the expression's value
)

type rule struct {
	kind ruleKind
	n    int64
	expr []byte
}

// row is one row of the call frame table.
type row struct {
	cfaReg  uint64
	cfaOff  int64
	cfaExpr []byte // instead of register and offset
	rules   [numRegs]rule
}

var errProgram = errors.New("dwarf: bad call frame instructions")

// lowBits of an instruction are an operand in those that have bits above them set.
const lowBits = 0x3f

// GNU's instructions (binutils, include/dwarf2.def).
const (
	cfaGNUWindowSave     = 0x2d
	cfaGNUArgsSize       = 0x2e
	cfaGNUNegativeOffset = 0x2f // DW_CFA_GNU_negative_offset_extended
)

// maxSaved bounds DW_CFA_remember_state.
const maxSaved = 64

// maxInstructions bounds the instructions that are executed for an address.
const maxInstructions = 1 << 18

// frameProgram is the machine that executes call frame instructions.
type frameProgram struct {
	cie     *cie
	row     row
	initial row // after the CIE's instructions
	saved   []row
	loc, pc uint64
	steps   int
}

// rowAt returns the row for pc.
func (f *fde) rowAt(pc uint64) (*row, error) {
	p := &frameProgram{cie: f.cie, loc: f.low, pc: pc}
	p.row.cfaReg = numRegs
	if err := p.run(f.cie.program); err != nil {
		return nil, err
	}
	p.initial, p.loc, p.saved = p.row, f.low, nil
	if err := p.run(f.program); err != nil {
		return nil, err
	}
	return &p.row, nil
}

// run executes instructions until they go beyond pc.
func (p *frameProgram) run(program []byte) error {
	c := &cursor{b: program}
	for c.left() > 0 && p.loc <= p.pc {
		if p.steps++; p.steps > maxInstructions {
			return errProgram
		}
		op := c.u8()
		low := uint64(op & lowBits)
		switch op &^ lowBits {
		case frame.DW_CFA_advance_loc:
			p.loc += low * p.cie.code
		case frame.DW_CFA_offset:
			p.set(low, rule{kind: ruleOffset, n: int64(c.uleb()) * p.cie.data})
		case frame.DW_CFA_restore:
			p.restore(low)
		default:
			if !p.extended(op, c) {
				return errProgram
			}
		}
		if c.bad {
			return errProgram
		}
	}
	return nil
}

func (p *frameProgram) set(reg uint64, r rule) {
	if reg < numRegs {
		p.row.rules[reg] = r
	}
}

func (p *frameProgram) restore(reg uint64) {
	if reg < numRegs {
		p.row.rules[reg] = p.initial.rules[reg]
	}
}

// extended executes the instructions whose opcode is a whole byte.
func (p *frameProgram) extended(op byte, c *cursor) bool {
	switch op {
	case frame.DW_CFA_nop:
	case frame.DW_CFA_set_loc: // absolute in what compilers emit
		p.loc = c.uint(8)
	case frame.DW_CFA_advance_loc1:
		p.loc += c.uint(1) * p.cie.code
	case frame.DW_CFA_advance_loc2:
		p.loc += c.uint(2) * p.cie.code
	case frame.DW_CFA_advance_loc4:
		p.loc += c.uint(4) * p.cie.code
	case frame.DW_CFA_remember_state:
		if len(p.saved) == maxSaved {
			return false
		}
		p.saved = append(p.saved, p.row)
	case frame.DW_CFA_restore_state:
		if len(p.saved) == 0 {
			return false
		}
		p.row, p.saved = p.saved[len(p.saved)-1], p.saved[:len(p.saved)-1]
	case frame.DW_CFA_def_cfa, frame.DW_CFA_def_cfa_register, frame.DW_CFA_def_cfa_offset,
		frame.DW_CFA_def_cfa_expression, frame.DW_CFA_def_cfa_sf, frame.DW_CFA_def_cfa_offset_sf:
		p.defCFA(op, c)
	case cfaGNUWindowSave: // not on this machine
		return false
	case cfaGNUArgsSize:
		c.uleb()
	default:
		return p.registerRule(op, c)
	}
	return true
}

// defCFA executes the DW_CFA_def_cfa instructions.
func (p *frameProgram) defCFA(op byte, c *cursor) {
	r := &p.row
	switch op {
	case frame.DW_CFA_def_cfa:
		r.cfaReg, r.cfaOff, r.cfaExpr = c.uleb(), int64(c.uleb()), nil
	case frame.DW_CFA_def_cfa_register:
		r.cfaReg, r.cfaExpr = c.uleb(), nil
	case frame.DW_CFA_def_cfa_offset:
		r.cfaOff = int64(c.uleb())
	case frame.DW_CFA_def_cfa_expression:
		r.cfaExpr = c.bytes(c.uleb())
	case frame.DW_CFA_def_cfa_sf:
		r.cfaReg, r.cfaOff, r.cfaExpr = c.uleb(), c.sleb()*p.cie.data, nil
	case frame.DW_CFA_def_cfa_offset_sf:
		r.cfaOff = c.sleb() * p.cie.data
	}
}

// registerRule executes the instructions that give a register its rule.
func (p *frameProgram) registerRule(op byte, c *cursor) bool {
	reg := c.uleb()
	switch op {
	case frame.DW_CFA_offset_extended:
		p.set(reg, rule{kind: ruleOffset, n: int64(c.uleb()) * p.cie.data})
	case frame.DW_CFA_restore_extended:
		p.restore(reg)
	case frame.DW_CFA_undefined:
		p.set(reg, rule{kind: ruleUndefined})
	case frame.DW_CFA_same_value:
		p.set(reg, rule{kind: ruleSame})
	case frame.DW_CFA_register:
		p.set(reg, rule{kind: ruleRegister, n: int64(c.uleb())})
	case frame.DW_CFA_expression:
		p.set(reg, rule{kind: ruleExpression, expr: c.bytes(c.uleb())})
	case frame.DW_CFA_offset_extended_sf:
		p.set(reg, rule{kind: ruleOffset, n: c.sleb() * p.cie.data})
	case frame.DW_CFA_val_offset:
		p.set(reg, rule{kind: ruleValOffset, n: int64(c.uleb()) * p.cie.data})
	case frame.DW_CFA_val_offset_sf:
		p.set(reg, rule{kind: ruleValOffset, n: c.sleb() * p.cie.data})
	case frame.DW_CFA_val_expression:
		p.set(reg, rule{kind: ruleValExpression, expr: c.bytes(c.uleb())})
	case cfaGNUNegativeOffset:
		p.set(reg, rule{kind: ruleOffset, n: -int64(c.uleb()) * p.cie.data})
	default:
		return false
	}
	return true
}
