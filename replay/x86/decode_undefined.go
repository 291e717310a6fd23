package x86

// How much of an undefined instruction does the CPU fetch before it says so? It
// decides between #UD, #GP (longer than 15 bytes) and #PF (the end of a page).
//
// Intel's CPUs first find the length, which depends on map and opcode alone,
// whatever prefixes and VEX fields say. Measured on an Intel Xeon of family 6
// model 207, 2026-11-21, every opcode of every map (tests/differential,
// TestUndefinedLengths): map 1 has ModRM but for the opcodes below, map 2 has
// it always, map 3 with an immediate byte; VEX and EVEX map 5 is like 1, 6 like
// 2, 7 like 3. AMD's are not measured: there the opcode is the end.

// map1 tells opcodes of map 1 without ModRM and with an immediate, a bit each.
var (
	map1NoModRM = [8]uint32{0x0000dff0, 0xffff00f0, 0, 0x00800000, 0x0000ffff, 0x00000707, 0x0000ff00, 0}
	map1Imm8    = [8]uint32{0, 0, 0, 0x000f0000, 0, 0x04001010, 0x00000074, 0}
)

// undefined ends the decoding of what has no row.
func (d *decoder) undefined(in *Inst) {
	switch {
	case d.amd || d.status != decodeOK:
	case d.opmap == 0:
		d.undefinedTail0(in)
	default:
		d.undefinedTail(in)
	}
	d.fail(decodeUD)
}

// undefinedTail0 consumes what follows the opcode of the one-byte map, on Intel.
func (d *decoder) undefinedTail0(in *Inst) {
	if d.hasMod {
		d.modRM(in)
	}
	switch d.opcode {
	case 0x82, 0xc6, 0xd4, 0xd5:
		d.byte()
	case 0xc7:
		d.immediate(ImmZ, &Inst{Size: d.operandSize(0)})
	case 0x9a, 0xea: // a far pointer
		d.immediate(ImmZ, &Inst{Size: d.operandSize(0)})
		d.u16()
	}
}

// undefinedTail consumes what follows the opcode of the other maps.
func (d *decoder) undefinedTail(in *Inst) {
	if d.hasMod {
		d.n--
	}
	i, bit := d.opcode>>5, uint32(1)<<(d.opcode&31)
	m := d.opmap & 3
	if d.space == spaceLegacy && m == 1 && d.opcode&^7 == 0x38 { // as 0F 38 and 0F 3A are
		m = 2 + d.opcode>>1&1
		d.byte()
	}
	switch {
	case m > 1:
		d.modrm = d.byte()
	case d.opcode&^3 == 0x20: // MOV CR and DR: always a register
		d.byte()
		d.modrm = 0xc0
	case map1NoModRM[i]&bit != 0:
		if d.opcode&^15 == 0x80 {
			d.u32()
		}
		return
	default:
		d.modrm = d.byte()
	}
	d.modRM(in)
	if m == 3 || m == 1 && map1Imm8[i]&bit != 0 {
		d.byte()
	}
}
