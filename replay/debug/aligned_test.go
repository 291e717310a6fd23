package debug

import (
	"testing"

	"vplay/replay/x86"
)

// TestMisaligned: an address is named that an instruction refuses because of its alignment,
// and none that it would take.
func TestMisaligned(t *testing.T) {
	for _, c := range []struct {
		what string
		code []byte
		want string
	}{
		{"movaps 0x44(%rbx),%xmm0", []byte{0x0f, 0x28, 0x43, 0x44}, "0x1044 is no multiple of 16, as this instruction wants it: %rbx=0x1000"},
		{"movaps 0x40(%rbx),%xmm0", []byte{0x0f, 0x28, 0x43, 0x40}, ""},
		{"movups 0x44(%rbx),%xmm0", []byte{0x0f, 0x10, 0x43, 0x44}, ""},
		{"movaps %xmm1,%xmm0", []byte{0x0f, 0x28, 0xc1}, ""},
		{"paddd (%rbx,%rcx,4),%xmm0", []byte{0x66, 0x0f, 0xfe, 0x04, 0x8b}, "0x1024 is no multiple of 16, as this instruction wants it: %rbx=0x1000, %rcx=0x9"},
		{"vpaddd (%rbx,%rcx,4),%xmm0,%xmm0", []byte{0xc5, 0xf9, 0xfe, 0x04, 0x8b}, ""},
		{"vmovaps 0x10(%rbx),%ymm0", []byte{0xc5, 0xfc, 0x28, 0x43, 0x10}, "0x1010 is no multiple of 32, as this instruction wants it: %rbx=0x1000"},
		{"vmovaps 0x10(%rbx),%xmm0", []byte{0xc5, 0xf8, 0x28, 0x43, 0x10}, ""},
		{"cmpxchg16b 0x8(%rbx)", []byte{0x48, 0x0f, 0xc7, 0x4b, 0x08}, "0x1008 is no multiple of 16, as this instruction wants it: %rbx=0x1000"},
		{"mov 0x1(%rbx),%rax", []byte{0x48, 0x8b, 0x43, 0x01}, ""},
		{"cut off", []byte{0x0f}, ""},
	} {
		st := x86.State{}
		st.R[x86.RBX], st.R[x86.RCX] = 0x1000, 9
		if got := Misaligned(&st, c.code); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
