package agentexpr

import "encoding/binary"

// Builder makes an expression. Its zero value is empty.
type Builder struct{ Code []byte }

// Op appends an operator with its operand.
func (b *Builder) Op(op byte, operand ...byte) { b.Code = append(append(b.Code, op), operand...) }

// Number puts a number on the stack.
func (b *Builder) Number(v uint64) {
	switch {
	case v == uint64(uint8(v)):
		b.Op(Const8, byte(v))
	case v == uint64(uint16(v)):
		b.Op(Const16, byte(v>>8), byte(v))
	case v == uint64(uint32(v)):
		b.Op(Const32)
		b.Code = binary.BigEndian.AppendUint32(b.Code, uint32(v))
	default:
		b.Op(Const64)
		b.Code = binary.BigEndian.AppendUint64(b.Code, v)
	}
}

// Register puts a register on the stack, by its number.
func (b *Builder) Register(number int) { b.Op(Reg, byte(number>>8), byte(number)) }

// Load replaces an address by the size bytes there: 1, 2, 4 or 8.
func (b *Builder) Load(size int) {
	b.Op(map[int]byte{1: Ref8, 2: Ref16, 4: Ref32, 8: Ref64}[size])
}

// Extend extends the number on the stack from that many bits.
func (b *Builder) Extend(bits int, signed bool) {
	switch {
	case bits >= 64:
	case signed:
		b.Op(Ext, byte(bits))
	default:
		b.Op(ZeroExt, byte(bits))
	}
}

// Jump appends IfGoto or Goto. It leads to what is appended behind a call of lands.
func (b *Builder) Jump(op byte) (lands func()) {
	b.Op(op, 0, 0)
	at := len(b.Code) - 2
	return func() { binary.BigEndian.PutUint16(b.Code[at:], uint16(len(b.Code))) }
}
