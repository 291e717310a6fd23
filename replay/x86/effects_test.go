package x86

import "testing"

// TestEffects: what instructions of each kind of operand read and write. That the
// tables are right is for tests/differential, TestDirections.
func TestEffects(t *testing.T) {
	const mem = PartMemory
	for _, k := range []struct {
		name  string
		code  []byte
		read  Uses
		write Uses
	}{
		{"add ecx, edx", []byte{0x01, 0xd1}, Uses{R: 1<<RCX | 1<<RDX}, Uses{R: 1 << RCX, Flags: flagsArith}},
		{"add ah, bl", []byte{0x00, 0xdc}, Uses{R: 1<<RAX | 1<<RBX}, Uses{R: 1 << RAX, Flags: flagsArith}},
		{"mov [rsi+rdi*8], r9", []byte{0x4c, 0x89, 0x0c, 0xfe}, Uses{R: 1<<RSI | 1<<RDI | 1<<R9}, Uses{Parts: mem}},
		{"lea rax, [rbx+8]", []byte{0x48, 0x8d, 0x43, 0x08}, Uses{R: 1 << RBX}, Uses{R: 1 << RAX}},
		{"nop [rax]", []byte{0x0f, 0x1f, 0x00}, Uses{}, Uses{}},
		{"mov rax, fs:[0]", []byte{0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}, Uses{Parts: mem | PartFSBase}, Uses{R: 1 << RAX}},
		{"push rbx", []byte{0x53}, Uses{R: 1<<RBX | 1<<RSP}, Uses{R: 1 << RSP, Parts: mem}},
		{"mul rcx", []byte{0x48, 0xf7, 0xe1}, Uses{R: 1<<RAX | 1<<RCX}, Uses{R: 1<<RAX | 1<<RDX, Flags: flagsArith}},
		{"movsb", []byte{0xa4}, Uses{R: 1<<RSI | 1<<RDI, Flags: FlagDF, Parts: mem}, Uses{R: 1<<RSI | 1<<RDI, Parts: mem}},
		{"rep movsb", []byte{0xf3, 0xa4}, Uses{R: 1<<RSI | 1<<RDI | 1<<RCX, Flags: FlagDF, Parts: mem}, Uses{R: 1<<RSI | 1<<RDI | 1<<RCX, Parts: mem}},
		{"inc eax", []byte{0xff, 0xc0}, Uses{R: 1 << RAX}, Uses{R: 1 << RAX, Flags: flagsArith &^ FlagCF}},
		{"cmovc eax, ecx", []byte{0x0f, 0x42, 0xc1}, Uses{R: 1<<RAX | 1<<RCX, Flags: FlagCF}, Uses{R: 1 << RAX}},
		{"andn eax, ecx, edx", []byte{0xc4, 0xe2, 0x70, 0xf2, 0xc2}, Uses{R: 1<<RCX | 1<<RDX}, Uses{R: 1 << RAX, Flags: flagsArith}},
		{"bextr eax, edx, ecx", []byte{0xc4, 0xe2, 0x70, 0xf7, 0xc2}, Uses{R: 1<<RCX | 1<<RDX}, Uses{R: 1 << RAX, Flags: flagsArith}},
		{"blsr ecx, edx", []byte{0xc4, 0xe2, 0x70, 0xf3, 0xca}, Uses{R: 1 << RDX}, Uses{R: 1 << RCX, Flags: flagsArith}},
		{"pxor xmm1, xmm2", []byte{0x66, 0x0f, 0xef, 0xca}, Uses{V: 1<<1 | 1<<2}, Uses{V: 1 << 1}},
		{"paddb mm1, mm2", []byte{0x0f, 0xfc, 0xca}, Uses{X87: 1<<1 | 1<<2, Parts: PartX87}, Uses{X87: 1 << 1, Parts: PartX87}},
		{"vpslld xmm3, xmm2, 1", []byte{0xc5, 0xe1, 0x72, 0xf2, 0x01}, Uses{V: 1 << 2}, Uses{V: 1 << 3}},
		{"vblendvps xmm1, xmm2, xmm3, xmm4", []byte{0xc4, 0xe3, 0x69, 0x4a, 0xcb, 0x40}, Uses{V: 1<<2 | 1<<3 | 1<<4}, Uses{V: 1 << 1}},
		{"vmovss xmm3, xmm2, xmm1 (store form)", []byte{0xc5, 0xea, 0x11, 0xcb}, Uses{V: 1<<1 | 1<<2}, Uses{V: 1 << 3}},
		{"vmaskmovps [rax], xmm2, xmm1", []byte{0xc4, 0xe2, 0x69, 0x2e, 0x08}, Uses{R: 1 << RAX, V: 1<<1 | 1<<2}, Uses{Parts: mem}},
		{"vgatherdps xmm1, [rax+xmm2], xmm3", []byte{0xc4, 0xe2, 0x61, 0x92, 0x0c, 0x10}, Uses{R: 1 << RAX, V: 1<<1 | 1<<2 | 1<<3, Parts: mem}, Uses{V: 1<<1 | 1<<3}},
		{"rdfsbase rcx", []byte{0xf3, 0x48, 0x0f, 0xae, 0xc1}, Uses{Parts: PartFSBase}, Uses{R: 1 << RCX}},
	} {
		in, err := DecodeInst(k.code, testText, &CPUIdentity{Vendor: VendorAMD})
		if err != nil {
			t.Errorf("%s: %v", k.name, err)
			continue
		}
		if e := in.Effects(); e.Read != k.read || e.Write != k.write {
			t.Errorf("%s:\nreads  %+v\nwant   %+v\nwrites %+v\nwant   %+v", k.name, e.Read, k.read, e.Write, k.write)
		}
	}
}

// TestEveryOperandHasAPlace: an operand with a direction names a register field,
// a fixed register, memory, or what the stack of the x87 unit or a selector is.
func TestEveryOperandHasAPlace(t *testing.T) {
	all := Rows()
	for i := range all {
		r := &all[i]
		if r.Attr("refuse") || i == 0 {
			continue
		}
		for j, at := range operandFields(r) {
			o := r.Operands[j]
			_, fixed := fixedRegisters[o]
			if r.Dirs[j] != 0 && at == fieldNone && !fixed && o != "st0" && o != "sti" && o != "fs" && o != "gs" && o != "sreg" && o[:2] != "mo" {
				t.Errorf("%s %s: operand %s has no place", r.Mnemonic, r.Encoding.Text, o)
			}
		}
	}
}
