package x86

import "testing"

// TestGFNIGate: an AMD CPU before Zen 4 has no GFNI, and #UD comes before any
// fault of the operand.
func TestGFNIGate(t *testing.T) {
	for _, code := range []string{
		"\x66\x0f\x38\xcf\xc1", "\x66\x0f\x3a\xce\xc1\x05", "\x66\x0f\x3a\xcf\x00\x05",
		"\xc4\xe2\x71\xcf\xc2", "\xc4\xe3\xf1\xce\xc2\x05", "\xc4\xe3\xf1\xcf\x00\x05",
	} {
		for _, has := range []bool{false, true} {
			c, _ := program([]byte(code)...)
			leaf := CPUIDLeaf{Leaf: 7}
			if has {
				leaf.ECX = 1 << 8
			}
			c.ID = &CPUIdentity{Vendor: VendorAMD, Family: 0x19, Model: 1, XCR0: 7, Leaves: []CPUIDLeaf{leaf}}
			c.R[RAX] = testData
			if e := c.Step(); (e == ExitFault && c.Fault.Kind == FaultUD) == has {
				t.Errorf("% x, GFNI %v: exit %v, fault %v", code, has, e, c.Fault.Kind)
			}
		}
	}
}

// TestGates: instructions that the CPU does not have are #UD, before any fault of the operand; those of 128 bits that came
// with AVX need no AVX2.
func TestGates(t *testing.T) {
	for _, k := range []struct {
		name, code string
		leaves     []CPUIDLeaf
		undefined  bool
	}{
		{"sha256msg1 (%rax)", "\x0f\x38\xcc\x00", []CPUIDLeaf{{Leaf: 7}}, true},
		{"sha256msg1 xmm", "\x0f\x38\xcc\xc1", []CPUIDLeaf{{Leaf: 7, EBX: 1 << 29}}, false},
		{"vpaddd ymm without AVX2", "\xc5\xf5\xfe\xc2", []CPUIDLeaf{{Leaf: 1, ECX: 1 << 28}, {Leaf: 7}}, true},
		{"vpaddd xmm without AVX2", "\xc5\xf1\xfe\xc2", []CPUIDLeaf{{Leaf: 1, ECX: 1 << 28}, {Leaf: 7}}, false},
		{"vaesenc ymm without VAES", "\xc4\xe2\x75\xdc\xc2", []CPUIDLeaf{{Leaf: 1, ECX: 1 << 28}, {Leaf: 7}}, true},
		{"andn without BMI1", "\xc4\xe2\x70\xf2\xc2", []CPUIDLeaf{{Leaf: 7}}, true},
		{"tzcnt without BMI1", "\xf3\x0f\xbc\xc1", []CPUIDLeaf{{Leaf: 7}}, false},
		{"popcnt, answers unknown", "\xf3\x0f\xb8\xc1", nil, false},
	} {
		c, _ := program([]byte(k.code)...)
		c.ID = &CPUIdentity{Vendor: VendorIntel, Family: 6, Model: 85, XCR0: 7, Leaves: k.leaves}
		e := c.Step()
		if is := e == ExitFault && c.Fault.Kind == FaultUD; is != k.undefined {
			t.Errorf("%s: exit %v, fault %v, want #UD %v", k.name, e, c.Fault.Kind, k.undefined)
		}
	}
}

// TestLearnHidden: an instruction that the CPU has executed though CPUID lacks its bit is executed from then on, by other processors with
// the same identity, too. One that is #UD for another reason stays so.
func TestLearnHidden(t *testing.T) {
	id := &CPUIdentity{Vendor: VendorIntel, Family: 6, Model: 85, XCR0: 7, Leaves: []CPUIDLeaf{{Leaf: 1, ECX: 1 << 28}, {Leaf: 7}}, Learnt: new(Learnt)}
	run := func(code string) (*CPU, Exit) {
		c, _ := program([]byte(code)...)
		c.ID = id
		return c, c.Run(1)
	}
	const vpaddd, movbe, undefined, badPrefix = "\xc5\xf5\xfe\xc2\x90", "\x0f\x38\xf0\x00\x90", "\x0f\x0b\x90", "\x66\xc5\xf5\xfe\xc2\x90"
	c, e := run(vpaddd)
	if e != ExitFault || c.Fault.Kind != FaultUD {
		t.Fatalf("without AVX2: exit %v, fault %v", e, c.Fault.Kind)
	}
	if !c.LearnHidden() {
		t.Fatal("it is not for want of AVX2")
	}
	if e := c.Run(1); e != ExitLimit || c.Retired != 1 {
		t.Errorf("the same processor: exit %v, fault %v", e, c.Fault.Kind)
	}
	if c, e := run(vpaddd); e != ExitLimit {
		t.Errorf("another: exit %v, fault %v", e, c.Fault.Kind)
	}
	if c.LearnHidden() {
		t.Error("a second time there is something to learn")
	}
	for name, code := range map[string]string{"ud2": undefined, "a prefix that it must not have": badPrefix} {
		if c, e := run(code); e != ExitFault || c.Fault.Kind != FaultUD || c.LearnHidden() {
			t.Errorf("%s: exit %v, fault %v", name, e, c.Fault.Kind)
		}
	}
	if c, e := run(movbe); e != ExitFault || c.Fault.Kind != FaultUD {
		t.Errorf("another instruction: exit %v, fault %v", e, c.Fault.Kind)
	}
}
