package x86

import "encoding/binary"

// The decoder: prefixes, opcode, row of the table, operands (SDM vol. 2A, chapter 2;
// APM vol. 3, chapter 1; APM vol. 6 for XOP). It knows form, not meaning: the rows say
// what there is (isa/*.txt). What it does with bytes that are no instruction is in
// decode_undefined.go.

// maxInst is the architectural limit of an instruction's length in bytes.
const maxInst = 15

// decodeStatus is the outcome of decoding.
type decodeStatus uint8

const (
	decodeOK      decodeStatus = iota
	decodeShort                // more bytes are needed
	decodeTooLong              // more than 15 bytes: #GP
	decodeUD                   // not an instruction: #UD
)

// decoder holds the prefixes and fields of one instruction while its row is
// looked for.
type decoder struct {
	b       []byte
	n       int // bytes consumed
	status  decodeStatus
	rep     byte // last of F2, F3, or 0
	op16    bool
	addr32  bool
	lock    bool
	rex     byte
	seg     uint8
	space   uint8 // spaceLegacy, spaceVEX, ...
	vvvv    uint8
	l       bool
	opmap   uint8
	opcode  byte
	prefix  Prefix
	modrm   byte
	hasMod  bool
	amd     bool
	rexSeen bool
	bad     bool // fields of a VEX or EVEX prefix, or a prefix before it, are #UD
	id      *CPUIdentity
	evex    EVEX
	high    uint8  // bit 4 of ModRM.reg in bit 0, of vvvv in bit 1
	disp8   int64  // what a displacement of 8 bits is multiplied by
	hidden  string // the CPUID bit for want of which alone it is #UD
}

func (d *decoder) byte() byte {
	if d.n >= maxInst {
		d.fail(decodeTooLong)
		return 0
	}
	if d.n >= len(d.b) {
		d.fail(decodeShort)
		return 0
	}
	v := d.b[d.n]
	d.n++
	return v
}

func (d *decoder) fail(s decodeStatus) {
	if d.status == decodeOK {
		d.status = s
	}
}

// decodeInst decodes the instruction at the start of b, which stands at
// address pc, into in.
func decodeInst(b []byte, pc uint64, id *CPUIdentity, in *Inst) decodeStatus {
	d := newDecoder(b, id)
	return d.decode(pc, in)
}

func newDecoder(b []byte, id *CPUIdentity) decoder {
	return decoder{b: b, seg: NoSeg, disp8: 1, amd: id != nil && id.Vendor == VendorAMD, id: id}
}

// decode decodes the instruction, which stands at address pc, into in.
func (d *decoder) decode(pc uint64, in *Inst) decodeStatus {
	*in = Inst{Base: NoReg, Index: NoReg, Seg: NoSeg}
	d.prefixes()
	d.opcodeBytes()
	if d.status != decodeOK {
		return d.status
	}
	r := d.findRow()
	if r == nil || r.undefined && !d.amd {
		d.undefined(in)
		return d.status
	}
	if d.space == spaceEVEX {
		d.evexFields(r, in)
	}
	d.fill(r, pc, in)
	d.opmaskRegisters(r)
	if d.bad {
		d.fail(decodeUD)
	}
	d.present(r, in)
	return d.status
}

// prefixes consumes legacy prefixes and REX, and leaves the next byte in opcode.
func (d *decoder) prefixes() {
	for {
		v := d.byte()
		if d.status != decodeOK {
			return
		}
		switch v {
		case 0x66:
			d.op16 = true
		case 0x67:
			d.addr32 = true
		case 0xf0:
			d.lock = true
		case 0xf2, 0xf3:
			d.rep = v
		case 0x26, 0x2e, 0x36, 0x3e: // es, cs, ss, ds: ignored in 64-bit mode
		case 0x64:
			d.seg = FS
		case 0x65:
			d.seg = GS
		default:
			if v&0xf0 == 0x40 {
				d.rex, d.rexSeen = v, true
				continue
			}
			d.opcode = v
			return
		}
		d.rex, d.rexSeen = 0, false // a legacy prefix after REX voids it
	}
}

// opcodeBytes consumes the escape bytes, or the VEX, EVEX or XOP prefix, and the opcode.
func (d *decoder) opcodeBytes() {
	if d.status != decodeOK {
		return
	}
	switch d.opcode {
	case 0x0f:
		d.opmap = 1
		d.opcode = d.byte()
		switch d.opcode {
		case 0x38:
			d.opmap = 2
			d.opcode = d.byte()
		case 0x3a:
			d.opmap = 3
			d.opcode = d.byte()
		}
	case 0xc4, 0xc5:
		d.vexPrefix()
	case 0x62:
		d.evexPrefix()
	case 0x8f:
		d.xopPrefix()
	}
	if d.status != decodeOK || d.space != spaceLegacy {
		return
	}
	switch {
	case d.rep == 0xf3:
		d.prefix = PrefixF3
	case d.rep == 0xf2:
		d.prefix = PrefixF2
	case d.op16:
		d.prefix = Prefix66
	default:
		d.prefix = PrefixNP
	}
}

// vexPrefix consumes the rest of a two- or three-byte VEX prefix, and the opcode.
func (d *decoder) vexPrefix() {
	d.noPrefixes()
	d.space = spaceVEX
	p := d.byte()
	d.opmap = 1
	d.rex = ^p >> 5 & 4 // R
	if d.opcode == 0xc4 {
		d.rex = ^p >> 5 & 7
		d.opmap = p & 0x1f
		if !d.hasMap(p) {
			return
		}
		if d.bad = d.bad || d.opmap > 7; d.bad {
			d.opmap &= 7
		}
		p = d.byte()
		d.rex |= p >> 4 & 8
	}
	d.vexFields(p)
	d.opcode = d.byte()
}

// hasMap says whether the opcode map of a VEX or EVEX prefix is one of 1 to 3
// and 5 to 7. With others Intel's CPUs take the byte p that says so for ModRM, as
// in 32-bit mode, and fetch what it asks for. (Two more bits of VEX make the
// instruction undefined, but no shorter.)
func (d *decoder) hasMap(p byte) bool {
	if d.opmap&3 == 0 {
		if d.modrm = p; !d.amd {
			d.modRM(&Inst{})
		}
		d.fail(decodeUD)
		return false
	}
	return true
}

// noPrefixes: 66, F2, F3, LOCK and REX may not stand before VEX, EVEX and XOP.
func (d *decoder) noPrefixes() {
	d.bad = d.rep != 0 || d.op16 || d.lock || d.rexSeen
	d.lock = false
}

// vexFields takes vvvv, L and pp from the last byte of a VEX or XOP prefix, the
// last but one of EVEX.
func (d *decoder) vexFields(p byte) {
	d.vvvv = ^p >> 3 & 15
	d.l = p&4 != 0
	d.prefix = [4]Prefix{PrefixNP, Prefix66, PrefixF3, PrefixF2}[p&3]
}

// evexPrefix consumes the rest of an EVEX prefix, and the opcode (SDM vol. 2A,
// 2.7). What the row says of the fields is in evex_form.go.
func (d *decoder) evexPrefix() {
	if d.lacksEVEX() { // it is BOUND, whose operands are fetched though 64-bit mode does not have it
		d.modrm = d.byte()
		d.modRM(&Inst{})
		d.fail(decodeUD)
		return
	}
	d.noPrefixes()
	d.space = spaceEVEX
	p0 := d.byte()
	if d.opmap = p0 & 7; !d.hasMap(p0) {
		return
	}
	p1 := d.byte()
	p2 := d.byte()
	d.rex = ^p0>>5&7 | p1>>4&8
	d.vexFields(p1)
	d.l = false
	d.evex = EVEX(p2&7 | p2>>4&8 | p2&0x10 | p2&0x60)
	d.high = ^p0>>4&1 | ^p2>>2&2
	d.opcode = d.byte()
	if p0&8 != 0 || p1&4 == 0 {
		d.bad = true
	}
}

// xopPrefix consumes the rest of an XOP prefix, and the opcode, where 8F is one
// (APM vol. 6, 1.2): map 8 to 10, where POP would have ModRM.reg 1 to 3. Only
// CPUs that have XOP, and the display, take it for one.
func (d *decoder) xopPrefix() {
	if d.n >= len(d.b) || d.b[d.n]&0x1f < 8 || d.b[d.n]&0x1f > 10 {
		return
	}
	if d.id != nil {
		if has, known := d.id.Has("XOP"); !has && known {
			return
		}
	}
	d.noPrefixes()
	d.space = spaceXOP
	p0, p1 := d.byte(), d.byte()
	d.rex = ^p0>>5&7 | p1>>4&8
	d.opmap = p0&0x1f - 8
	d.vexFields(p1)
	d.opcode = d.byte()
}

// findRow returns the row of the instruction, or nil with the status set.
func (d *decoder) findRow() *Row {
	t := getTables()
	switch {
	case d.space == spaceVEX && d.opmap > 3:
		return nil
	case d.opcode == 0x0f && d.opmap == 1 && !d.amd && d.id != nil: // 3DNow!, of which ModRM is not fetched
		return nil
	}
	for _, i := range t.op[d.space+d.opmap][d.opcode] {
		r := &t.rows[i]
		e := &r.Encoding
		if e.ModRM && !d.hasMod {
			d.modrm = d.byte()
			d.hasMod = true
			if d.status != decodeOK {
				return nil
			}
		}
		if d.matches(e) {
			return r
		}
	}
	return nil
}

func (d *decoder) matches(e *Encoding) bool {
	if e.Prefix != PrefixAny && e.Prefix != d.prefix {
		return false
	}
	if e.W >= 0 && byte(e.W) != d.rex>>3&1 {
		return false
	}
	if e.VEX || e.XOP {
		if e.L >= 0 && (e.L == 1) != d.l {
			return false
		}
		if !e.VVVV && d.vvvv != 0 {
			return false
		}
	}
	if !e.ModRM {
		return true
	}
	if e.Second >= 0 {
		mask := byte(0xff)
		if e.PlusI {
			mask = 0xf8
		}
		return d.modrm&mask == byte(e.Second)&mask
	}
	if e.Digit >= 0 && d.modrm>>3&7 != byte(e.Digit) {
		return false
	}
	if isReg := d.modrm >= 0xc0; e.Mod == ModMem && isReg || e.Mod == ModReg && !isReg {
		return false
	}
	return true
}

// fill sets in from the row and consumes the operands' bytes.
func (d *decoder) fill(r *Row, pc uint64, in *Inst) {
	in.Row = r.index
	in.form = r.form
	in.Opc = d.opcode
	in.Flags |= r.flags | d.instFlags()
	in.Seg = d.seg
	in.VVVV = d.vvvv // of EVEX 0 to 15 here
	in.Size = r.size
	if r.size == 0 {
		in.Size = d.operandSize(in.Flags)
	}
	e := &r.Encoding
	if e.PlusR {
		in.Reg = d.opcode&7 | d.rex&1<<3
		in.RM = in.Reg
	}
	if e.ModRM {
		in.Reg = d.modrm>>3&7 | d.rex&4<<1
		if r.flags&instModReg != 0 && (d.amd || r.flags&instAMDImm == 0) {
			d.modrm |= 0xc0
		}
		d.modRM(in)
		if d.space == spaceEVEX {
			d.evexRegisters(r, in)
		}
	}
	if r.flags&instIntelModRM != 0 && !d.amd {
		d.modrm = d.byte()
		d.modRM(in)
	}
	if r.flags&instAMDImm == 0 || d.amd {
		d.immediate(e.Imm, in)
	}
	if r.flags&instVSIB != 0 && d.modrm&7 != 4 {
		d.fail(decodeUD)
	}
	if d.opmap == 0 && d.opcode&0xf8 == 0xd8 && d.space == spaceLegacy {
		in.Imm = uint64(d.opcode&7)<<8 | uint64(d.modrm) // as FOP has it
	}
	in.Len = uint8(d.n)
	if in.Base == RIPReg {
		in.Disp += int64(pc) + int64(d.n)
	}
	if d.lock && (r.flags&instLockable == 0 || in.Flags&InstMem == 0) && !d.lockAllowed(in) {
		d.fail(decodeUD)
	}
}

// lockAllowed lists what AMD takes with LOCK beyond read-modify-write: MOV CR,
// where it selects CR8 (APM vol. 3, MOV CRn), and, measured, VERW of memory from
// Zen 3 on. With some microcode Zen 4 takes VERR, and both of registers, too.
func (d *decoder) lockAllowed(in *Inst) bool {
	if !d.amd || d.opmap != 1 {
		return false
	}
	if d.opcode == 0x20 || d.opcode == 0x22 {
		return in.Reg == 0
	}
	return d.opcode == 0 && in.Reg&7 == 5 && in.Flags&InstMem != 0 && d.id.isZen3()
}

// instFlags returns the flags that come from prefixes.
func (d *decoder) instFlags() InstFlags {
	var f InstFlags
	if d.rexSeen {
		f |= InstREX
	}
	if d.rex&8 != 0 {
		f |= InstW
	}
	if d.op16 {
		f |= InstOp16
	}
	if d.addr32 {
		f |= InstAddr32
	}
	if d.lock {
		f |= InstLock
	}
	switch d.rep {
	case 0xf3:
		f |= InstRep
	case 0xf2:
		f |= InstRepne
	}
	if d.l {
		f |= InstL
	}
	switch d.space {
	case spaceLegacy:
	case spaceEVEX:
		f |= InstEVEX
	default:
		f |= InstVEX
	}
	return f
}

// operandSize returns the size of a "v" operand in bytes.
func (d *decoder) operandSize(f InstFlags) uint8 {
	switch {
	case f&instAMD16 != 0 && d.amd && d.op16 && d.rex&8 == 0:
		return 2
	case d.rex&8 != 0 || f&instForce64 != 0:
		return 8
	case f&instNo66 != 0:
		return 4
	case d.op16:
		return 2
	case f&instDefault64 != 0:
		return 8
	}
	return 4
}

// modRM consumes SIB and displacement.
func (d *decoder) modRM(in *Inst) {
	mod, rm := d.modrm>>6, d.modrm&7
	if mod == 3 {
		in.RM = rm | d.rex&1<<3
		return
	}
	in.Flags |= InstMem
	in.Base = rm | d.rex&1<<3
	if rm == 4 {
		sib := d.byte()
		in.Scale = sib >> 6
		in.Base = sib&7 | d.rex&1<<3
		if x := sib>>3&7 | d.rex&2<<2; x != 4 || in.Flags&instVSIB != 0 {
			in.Index = x
		}
		if sib&7 == 5 && mod == 0 {
			in.Base = NoReg
			in.Disp = int64(int32(d.u32()))
			return
		}
	} else if rm == 5 && mod == 0 {
		in.Base = RIPReg
		in.Disp = int64(int32(d.u32()))
		return
	}
	switch mod {
	case 1:
		in.Disp = int64(int8(d.byte())) * d.disp8
	case 2:
		in.Disp = int64(int32(d.u32()))
	}
}

func (d *decoder) u16() uint16 {
	lo := d.byte()
	return uint16(lo) | uint16(d.byte())<<8
}

func (d *decoder) u32() uint32 {
	lo := d.u16()
	return uint32(lo) | uint32(d.u16())<<16
}

func (d *decoder) u64() uint64 {
	lo := d.u32()
	return uint64(lo) | uint64(d.u32())<<32
}

// immediate consumes the immediate of kind k.
func (d *decoder) immediate(k Imm, in *Inst) {
	switch k {
	case ImmNone:
	case ImmB:
		in.Imm = uint64(int64(int8(d.byte())))
	case ImmIs4:
		in.Imm = uint64(d.byte())
	case ImmW:
		in.Imm = uint64(d.u16())
	case ImmD:
		in.Imm = uint64(int64(int32(d.u32())))
	case ImmZ:
		if in.Size == 2 {
			in.Imm = uint64(int64(int16(d.u16())))
		} else {
			in.Imm = uint64(int64(int32(d.u32())))
		}
	case ImmV:
		switch in.Size {
		case 2:
			in.Imm = uint64(int64(int16(d.u16())))
		case 4:
			in.Imm = uint64(int64(int32(d.u32())))
		default:
			in.Imm = d.u64()
		}
	case ImmWB:
		in.Imm = uint64(d.u16())
		in.Imm2 = d.byte()
	case ImmMoffs:
		in.Flags |= InstMem
		if d.addr32 {
			in.Disp = int64(uint64(d.u32()))
		} else {
			in.Disp = int64(d.u64())
		}
	}
}

var le = binary.LittleEndian
