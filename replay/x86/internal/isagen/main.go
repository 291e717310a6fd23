// Command isagen turns the instruction tables isa/*.txt into Go.
//
// Every file isa/NAME.txt becomes isa_NAME_gen.go in the current directory: a
// slice of rows and the assignment of their handlers. The run loop becomes run_gen.go
// (its cases are in loop.go and vector.go), what the decoder knows of the cases
// kinds_gen.go, their names, for tests, kinds_gen_test.go. Run it by go generate in
// replay/x86.
//
// An instruction of a new handler, or with operands that its handler's instructions did
// not have, needs a claim in claims.go if the loop has a case for it, or else a line in
// generic.txt: without either nothing is generated.
//
// # Table syntax
//
// One encoding form per line, eight fields separated by |, comments from #:
//
//	mnemonic | encoding | operands | directions | implied | cpuid | handler | attributes
//
// The encoding is in the manual's notation:
//
//	NP 66 F3 F2     mandatory prefix (NP: none of them). Without one, 66, F2 and
//	                F3 have their ordinary meaning. F2 and F3 hide 66.
//	REX.W W0        REX.W must be set, or clear
//	0F 0F38 0F3A    are written as bytes: 0F 38 00
//	/r /0 .. /7     ModRM follows; then "m" or "r" restrict it to memory or register
//	D8 C0+i         fixed ModRM byte (x87); +i: the low three bits are st(i)
//	+r              the low three bits of the opcode are a register
//	ib iw id        immediate of 8, 16, 32 bits; cb, cd the same for branches
//	iz              16 bits with operand size 16, else 32
//	iv              as wide as the operand
//	iwib moffs is4  ENTER's pair; an address; a register in bits 7:4
//	VEX.128.66.0F.W0 58 /r
//	                VEX form: length 128, 256, LIG (any), LZ (0); prefix NP 66 F3 F2;
//	                map 0F 0F38 0F3A; W0 W1 WIG. With NDS after the length
//	                vvvv is an operand; without it must be 1111b.
//	EVEX.66.0F.W1 58 /r
//	                EVEX form, with MAP5 and MAP6 too. What the other fields of the prefix
//	                may be is in the attributes (evex_form.go), but for refused rows.
//	XOP.LZ.NDS.MAP8.W0 85 /r ib
//	                AMD's XOP form: like VEX, map MAP8 MAP9 MAPA.
//
// Operands, in Intel order, separated by commas; the first that has a size
// gives Inst.Size:
//
//	rm8 r8 imm8 m8 al cl  rm16 r16 m16 ax sreg  rm32 r32 m32 eax  rm64 r64 m64 rax
//	rmv rv m mv rax_v     16, 32 or 64 bits by prefix
//	rmy ry                32, or 64 with REX.W
//	imm8 imm16 immz immv rel8 rel32 one xmm xmmm32 xmmm64 xmmm128 xmmm8 xmmm16 mm mmm32 mmm64 ymm ymmm256
//	r32m8 r32m16 (a 32-bit register, or 8 or 16 bits of memory) vm (memory with a
//	vector of indexes); ymm in a row without VEX.L stands for xmm too; zmm zmmm (a vector of
//	the vector length, or memory of the size the attributes say) k km8 km16 km32 km64
//	m80 m128 m256 st0 sti moffs ...
//
// The directions say for each operand whether it is read (r), written (w), both
// (rw), or only its address is used (a); - is for immediates, for operands that
// the instruction does not look at, and for the nominal operands of string
// instructions. A destination that may keep its old value, or of which a part wider than the
// operand's name says is kept, is rw. A written register of 8 or 16 bits keeps its
// other bits, one of 32 bits clears them. The registers that address memory are
// read wherever the operand has a direction.
//
// Implied are what the encoding does not name, as NAME=DIRECTION: rax to rdi,
// r11, xmm0, vec (all vector registers), st (the eight x87 registers), x87 (control,
// status and tag words, stack top and pointers), mxcsr, flags (all of RFLAGS), df, nt,
// mem, seg (selectors), fsbase, gsbase. The arithmetic flags are attributes. Rows with
// the attribute refuse have neither.
//
// The handler is the name of a Go function of type x86.Handler, or an expression that makes one.
// Rows of EVEX and of opmask.txt never have a case of the loop. Attributes:
//
//	r=.. w=.. u=..  arithmetic flags (letters of OSZAPC) read, written, undefined
//	lock            LOCK is allowed with a memory destination
//	d64 f64         operand size is 64 unless 66 is there; always 64
//	amd16           on AMD a 66 prefix makes the operand size 16 in spite of f64
//	amdimm          there is an immediate on AMD alone
//	intelmodrm      there is a ModRM byte, which means nothing, on Intel alone
//	modreg          ModRM.mod is ignored, r/m is a register
//	end             the handler sets RIP and ends its block (branches)
//	stop            the block ends after it
//	vsib            the index register of the memory operand is a vector
//	others          are kept for tests: align16, align32, xmm0 (implicit operand), priv, rep, ...
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	rows, err := readRows()
	for _, f := range tables(rows) {
		if err == nil {
			err = writeTable(f)
		}
	}
	if err == nil {
		err = generateLoop(rows)
	}
	if err == nil {
		err = generateQuick()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "isagen:", err)
		os.Exit(1)
	}
}

// readRows reads isa/*.txt.
func readRows() ([]*row, error) {
	files, err := filepath.Glob("isa/*.txt")
	if err == nil && len(files) == 0 {
		err = errors.New("no isa/*.txt here")
	}
	if err != nil {
		return nil, err
	}
	var rows []*row
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(string(data), "\n") {
			if k := strings.IndexByte(line, '#'); k >= 0 {
				line = line[:k]
			}
			if strings.TrimSpace(line) == "" {
				continue
			}
			r, err := parseRow(line)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
			}
			r.file = strings.TrimSuffix(filepath.Base(file), ".txt")
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// tables returns the rows of each file.
func tables(rows []*row) [][]*row {
	var l [][]*row
	for i, r := range rows {
		if i == 0 || r.file != rows[i-1].file {
			l = append(l, nil)
		}
		l[len(l)-1] = append(l[len(l)-1], r)
	}
	return l
}

// writeTable turns the rows of one file into Go.
func writeTable(rows []*row) error {
	name := rows[0].file
	slice := strings.ToUpper(name[:1]) + name[1:]
	var out bytes.Buffer
	fmt.Fprintf(&out, "// Code generated by isagen from isa/%s.txt; DO NOT EDIT.\n\npackage x86\n\n", name)
	fmt.Fprintf(&out, "func init() { rowFiles = append(rowFiles, rows%s) }\n\n", slice)
	fmt.Fprintf(&out, "var rows%s = []Row{\n", slice)
	for _, r := range rows {
		r.write(&out)
	}
	fmt.Fprintf(&out, "}\n")
	return writeSource("isa_"+name+"_gen.go", out.Bytes())
}
