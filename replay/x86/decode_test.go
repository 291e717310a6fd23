package x86

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"vplay/tests/need"
)

// disassembly calls f for every instruction that objdump finds in .text.
func disassembly(t *testing.T, file string, f func(b []byte, text string)) {
	t.Helper()
	cmd := exec.Command(need.Program(t, "objdump"), "-d", "-w", "-M", "intel", "-j", ".text", file)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		p := strings.Split(sc.Text(), "\t")
		if len(p) < 3 {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(p[1]), " ", ""))
		if err == nil {
			f(b, p[2])
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("objdump: %v: %s", err, errs.String())
	}
}

// TestDecodeLengths compares instruction lengths with objdump's over a whole
// system library. What the tables do not have yet (VEX forms) is counted, not
// failed; what they have must have the right length.
func TestDecodeLengths(t *testing.T) {
	for _, file := range []string{
		need.File(t, "/bin/bash", "/usr/bin/bash"),
		need.File(t, "/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib64/libc.so.6"),
	} {
		var n, unknown, bad int
		missing := map[string]int{}
		disassembly(t, file, func(b []byte, text string) {
			if strings.HasPrefix(text, "(bad)") || text == "" {
				return
			}
			n++
			var padded [maxInst]byte
			copy(padded[:], b)
			d, err := Decode(padded[:])
			switch {
			case err != nil:
				unknown++
				missing[strings.Fields(text)[0]]++
			case d.Len != len(b):
				// objdump joins FWAIT with the instruction behind it and
				// prints lone prefixes.
				if b[0] != 0x9b && bad < 20 {
					t.Errorf("%s: % x: length %d, objdump has %d: %s", file, b, d.Len, len(b), text)
				}
				bad++
			}
		})
		t.Logf("%s: %d instructions, %d unknown, %d of another length", file, n, unknown, bad)
		for m, k := range missing {
			if !strings.HasPrefix(m, "v") && !strings.HasPrefix(m, "k") && !strings.HasPrefix(m, "{") {
				t.Logf("  missing %s: %d", m, k)
			}
		}
	}
}

// FuzzDecode: no bytes make the decoder panic, and what it accepts has 1 to 15
// bytes and decodes the same from exactly these.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"90", "f30f1efa", "4801d8", "c4e2f8f2c0", "660f3a16c001", "64488b042528000000", "f0480fb10f", "62f17c48"} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Decode(b)
		if err != nil {
			return
		}
		if d.Len < 1 || d.Len > maxInst || d.Len > len(b) {
			t.Fatalf("% x: length %d", b, d.Len)
		}
		if e, err := Decode(b[:d.Len]); err != nil || e != d {
			t.Fatalf("% x: %+v alone is %+v, %v", b, d, e, err)
		}
	})
}
