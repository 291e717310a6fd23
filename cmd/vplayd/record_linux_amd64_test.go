package main

import (
	"os"
	"strings"
	"testing"
)

// TestFailure: an exit code that a language gives a program that has failed is told, for then
// nothing is kept. This test is a Go program, /bin/sh is none.
func TestFailure(t *testing.T) {
	for _, c := range []struct {
		code          int
		program, want string
	}{
		{2, os.Args[0], "GOTRACEBACK=crash"}, {2, "/bin/sh", ""}, {2, "", ""}, {1, os.Args[0], ""}, {101, "/bin/sh", "Rust"}, {139, "/bin/sh", "SIGSEGV"}, {143, "/bin/sh", ""},
	} {
		if got := failure(c.code, c.program); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%d of %s: %q, want %q", c.code, c.program, got, c.want)
		}
	}
}
