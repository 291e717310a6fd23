package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The input of programs that are measured.

// Text writes a file of about n bytes of words into dir, the same each time, and returns its path.
func Text(dir string, n int) (string, error) {
	words := strings.Fields("the quick brown fox jumps over a lazy dog while seven wizards quietly mix potions of basalt and rye")
	var b bytes.Buffer
	for x := uint32(1); b.Len() < n; {
		x = x*1664525 + 1013904223
		b.WriteString(words[x>>16%uint32(len(words))])
		if x>>28 == 3 {
			fmt.Fprintf(&b, " %d", x)
		}
		b.WriteByte(" \n"[x>>27&1])
	}
	file := filepath.Join(dir, "text")
	return file, os.WriteFile(file, b.Bytes(), 0o600)
}
