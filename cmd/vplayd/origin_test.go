package main

import (
	"testing"

	"vplay/replay/x86"
)

// TestNotCanonical: an address made of text is named with its registers, one
// that memory could have is not.
func TestNotCanonical(t *testing.T) {
	const text = 0x6c69626973656874
	for _, c := range []struct {
		code []byte
		want string
	}{
		{[]byte{0x4c, 0x8b, 0x6d, 0x10}, "0x6c69626973656884 is no canonical address: %rbp=0x6c69626973656874 (the text \"thesibil\")"},                 // mov 0x10(%rbp),%r13
		{[]byte{0x48, 0x8b, 0x44, 0xc5, 0x00}, "0x6c69626973656884 is no canonical address: %rbp=0x6c69626973656874 (the text \"thesibil\"), %rax=0x2"}, // mov 0x0(%rbp,%rax,8),%rax
		{[]byte{0x48, 0x8b, 0x03}, ""}, // mov (%rbx),%rax
		{[]byte{0xc3}, ""},             // ret
		{[]byte{0x0f}, ""},             // cut off
	} {
		st := x86.State{}
		st.R[x86.RBP], st.R[x86.RAX], st.R[x86.RBX] = text, 2, 0x7fff00000000
		if got := notCanonical(&st, c.code); got != c.want {
			t.Errorf("% x: %q, want %q", c.code, got, c.want)
		}
	}
}
