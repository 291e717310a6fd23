package main

import (
	"bytes"
	"go/format"
	"os"
	"strings"
	"testing"
)

func TestGeneratedFileIsCurrent(t *testing.T) {
	text, err := os.ReadFile("../../syscalls.txt")
	if err != nil {
		t.Fatal(err)
	}
	tab, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	want, err := format.Source(generate(tab))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../syscalls_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("syscalls_gen.go differs from what syscalls.txt makes: run go generate")
	}
}

func TestBadRows(t *testing.T) {
	const structs = "struct stat 144 asm/stat.h\n"
	tests := []struct{ name, text, want string }{
		{"no effect", "0 read () size", "no result or effect"},
		{"no parentheses", "0 read size plain", "want NUMBER"},
		{"bad number", "x read () size plain", "number"},
		{"huge number", "99999999 read () size plain", "number"},
		{"number twice", "0 a () int plain\n0 b () int plain", "3: bad or repeated number"},
		{"unknown kind", "0 a (x thing) int plain", "unknown kind"},
		{"argument without kind", "0 a (x) int plain", "want NAME KIND"},
		{"unknown result", "0 a () thing plain", "unknown result"},
		{"unknown effect", "0 a () int thing", "unknown effect"},
		{"unknown word", "0 a () int plain thing", "unknown word"},
		{"unknown restart", "0 a () int plain restart=thing", "unknown restart"},
		{"unknown struct", "0 a (x out:thing) int plain", "unknown struct"},
		{"length of nothing", "0 a (x out[n]) int plain", "names no argument"},
		{"bytes without length", "0 a (x out) int plain", "no size"},
		{"bracket open", "0 a (x out[4) int plain", "brackets"},
		{"seven arguments", "0 a (a int, b int, c int, d int, e int, f int, g int) int plain", "more than six"},
		{"struct twice", "struct stat 1 x", "twice"},
		{"struct size", "struct a 0 x", "bad size"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(structs + tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}
