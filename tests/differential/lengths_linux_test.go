//go:build linux && amd64

package differential

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vplay/replay/x86"
	"vplay/tests/need"
)

// lengthPrograms are programs of a Debian system whose .text is decoded; a
// missing one skips its subtest. They are data here: nothing is started by these paths.
// (libcrypto has tables in .text, which objdump takes for code.)
var lengthPrograms = []string{
	"/usr/bin/bash", "/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", "/usr/bin/perl",
}

// lengthTally counts what became of the instructions of one program.
type lengthTally struct {
	all, vex, evex, x87, bad, refused int
	examples                          []string
}

// TestLengths compares the length of every instruction that objdump finds
// with the decoder's. VEX forms without a row and EVEX are counted only.
func TestLengths(t *testing.T) {
	objdump := need.Program(t, "objdump")
	programs := lengthPrograms
	if testing.Short() {
		programs = programs[:1]
	}
	for _, p := range programs {
		t.Run(filepath.Base(p), func(t *testing.T) {
			t.Parallel()
			path, err := filepath.EvalSymlinks(need.File(t, p))
			if err != nil {
				t.Fatal(err)
			}
			l := decodeText(t, objdump, path)
			t.Logf("%d instructions; VEX without a row %d, EVEX %d, x87 outside the set %d, refused %d", l.all, l.vex, l.evex, l.x87, l.refused)
			if l.bad > 0 {
				t.Errorf("%d differ, for example\n\t%s", l.bad, strings.Join(l.examples, "\n\t"))
			}
		})
	}
}

// decodeText runs objdump over .text and decodes each instruction it names.
func decodeText(t *testing.T, objdump, path string) (l lengthTally) {
	cmd := exec.Command(objdump, "-d", "-w", "--section=.text", "--insn-width=16", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(out)
	for s.Scan() {
		part := strings.SplitN(s.Text(), "\t", 3)
		if len(part) != 3 {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(part[1], " ", ""))
		if err != nil || len(b) == 0 {
			continue
		}
		l.add(b, part[2])
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lengthTally) add(b []byte, text string) {
	l.all++
	if b[0] == 0x9b && len(b) > 1 {
		b = b[1:] // objdump takes FWAIT and the next instruction for one
	}
	// Bytes behind the instruction tell a decoder that reads too much.
	padded := append(append(make([]byte, 0, 32), b...), 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc)
	in, err := x86.DecodeInst(padded, CodeBase, amd)
	switch {
	case strings.Contains(text, "(bad)"):
		l.all--
	case err == nil && int(in.Len) == len(b):
		return
	case b[0] == 0x62:
		l.evex++
	case errors.Is(err, x86.ErrUnsupported) && (b[0] == 0xc4 || b[0] == 0xc5):
		l.vex++
	case errors.Is(err, x86.ErrUnsupported) && b[0]&0xf8 == 0xd8:
		l.x87++
	case err == nil && x86.Rows()[in.Row].Attr("refuse"):
		l.refused++
	default:
		l.bad++
		if len(l.examples) < 20 {
			what := fmt.Sprintf("length %d", in.Len)
			if err != nil {
				what = err.Error()
			}
			l.examples = append(l.examples, hexBytes(b)+"  "+text+": "+what)
		}
	}
}
