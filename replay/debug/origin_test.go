package debug

import (
	"testing"

	"vplay/replay/mem"
	"vplay/replay/x86"
)

// TestNotCanonical: an address made of text is named with its registers, one
// that memory could have is not.
func TestNotCanonical(t *testing.T) {
	const text, table = 0x6c69626973656874, 0x7fff00001000
	space := mem.NewSpace(mem.NewPool(), zeros{})
	space.Map(mem.Region{Start: table, End: table + 0x1000, Prot: mem.ProtRead | mem.ProtWrite})
	space.Write(table+0x10, []byte("thesibil"))
	for _, c := range []struct {
		code []byte
		want string
	}{
		{[]byte{0x4c, 0x8b, 0x6d, 0x10}, "0x6c69626973656884 is no canonical address: %rbp=0x6c69626973656874 (the text \"thesibil\")"},                   // mov 0x10(%rbp),%r13
		{[]byte{0x48, 0x8b, 0x44, 0xc5, 0x00}, "0x6c69626973656884 is no canonical address: %rbp=0x6c69626973656874 (the text \"thesibil\"), %rax=0x2"},   // mov 0x0(%rbp,%rax,8),%rax
		{[]byte{0x48, 0x8b, 0x85, 0xf0, 0xfd, 0xff, 0xff}, "0x6c69626973656664 is no canonical address: %rbp=0x6c69626973656874 (the text \"thesibil\")"}, // mov -0x210(%rbp),%rax
		{[]byte{0xff, 0xd5}, "0x6c69626973656874 is no canonical address: %rbp=0x6c69626973656874 (the text \"thesibil\")"},                               // call *%rbp
		{[]byte{0xff, 0x65, 0x10}, "0x6c69626973656884 is no canonical address: %rbp=0x6c69626973656874 (the text \"thesibil\")"},                         // jmp *0x10(%rbp)
		{[]byte{0xff, 0x51, 0x10}, "0x6c69626973656874 (the text \"thesibil\") is no canonical address, from 0x7fff00001010"},                             // call *0x10(%rcx)
		{[]byte{0xff, 0x51, 0x18}, ""}, // call *0x18(%rcx)
		{[]byte{0xff, 0xd3}, ""},       // call *%rbx
		{[]byte{0x48, 0x8b, 0x03}, ""}, // mov (%rbx),%rax
		{[]byte{0xc3}, ""},             // ret
		{[]byte{0x0f}, ""},             // cut off
	} {
		st := x86.State{}
		st.R[x86.RBP], st.R[x86.RAX], st.R[x86.RBX] = text, 2, 0x7fff00000000
		st.R[x86.RCX] = table
		if got := NotCanonical(&st, Memory{Space: space}, c.code); got != c.want {
			t.Errorf("% x: %q, want %q", c.code, got, c.want)
		}
	}
}
