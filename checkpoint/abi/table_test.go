package abi

import (
	"bufio"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"vplay/tests/need"
)

// Every number that a kernel header knows has a row of the same name. The
// committed list makes this run everywhere; the machine's own header finds what
// the list does not have yet.
func TestEveryNumberHasARow(t *testing.T) {
	f, err := os.Open("testdata/numbers.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	listed := map[int64]string{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		number, name, _ := strings.Cut(sc.Text(), " ")
		if number == "#" {
			continue
		}
		nr, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		listed[nr] = name
		checkRow(t, nr, name)
	}
	for _, s := range Table() {
		if listed[s.NR] != s.Name {
			t.Errorf("row %d %s is not in testdata/numbers.txt", s.NR, s.Name)
		}
	}
	t.Run("header", func(t *testing.T) {
		need.LinuxAMD64(t)
		checkHeader(t, need.File(t, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"))
	})
}

// checkHeader compares the table with the numbers of the kernel's header.
func checkHeader(t *testing.T, path string) {
	t.Helper()
	header, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	define := regexp.MustCompile(`(?m)^#define __NR_(\w+)\s+(\d+)$`)
	for _, m := range define.FindAllStringSubmatch(string(header), -1) {
		nr, _ := strconv.ParseInt(m[2], 10, 64)
		checkRow(t, nr, m[1])
	}
}

func checkRow(t *testing.T, nr int64, name string) {
	t.Helper()
	s, ok := Lookup(nr)
	if !ok || s.Name != name || s.NR != nr {
		t.Errorf("system call %d is %q in the table, want %q", nr, s.Name, name)
	}
	if got, ok := Number(name); !ok || got != nr {
		t.Errorf("Number(%q) = %d, %v; want %d", name, got, ok, nr)
	}
}

func TestRowsAreConsistent(t *testing.T) {
	for _, s := range Table() {
		if s.Effect < EffectPlain || s.Effect > EffectFileWrite {
			t.Errorf("%s: effect %d", s.Name, s.Effect)
		}
		if s.Effect == EffectRefuse && (s.Why == "" || s.Deny == 0) {
			t.Errorf("%s: refused without a reason or an errno to answer", s.Name)
		}
		if s.Deny != 0 && s.Effect != EffectRefuse {
			t.Errorf("%s: denied but not refused", s.Name)
		}
		if s.Irregular != (irregular[s.NR] != nil) {
			t.Errorf("%s: irregular in the table %v, in Go %v", s.Name, s.Irregular, irregular[s.NR] != nil)
		}
		for i := range s.Args {
			checkArg(t, s, &s.Args[i])
		}
	}
	for nr := range irregular {
		if _, ok := Lookup(nr); !ok {
			t.Errorf("irregular[%d] has no row", nr)
		}
	}
}

func checkArg(t *testing.T, s *Syscall, a *Arg) {
	t.Helper()
	where := s.Name + " " + a.Name
	if (a.Kind == KindFlags || a.Kind == KindEnum) != (a.Set != "") {
		t.Errorf("%s: kind %d with set %q", where, a.Kind, a.Set)
	}
	if a.Set != "" && sets[a.Set] == nil {
		t.Errorf("%s: no set %q", where, a.Set)
	}
	if a.Len == LenArg || a.Len == LenRet {
		of := &s.Args[a.Of]
		switch {
		case a.Kind == KindSockOut:
			if of.Kind != KindLenPtr {
				t.Errorf("%s: the length %s is no lenptr", where, of.Name)
			}
		case of.Kind.IsAddr() || of.Kind == KindFlags || of.Kind == KindEnum || of.Kind == KindFD:
			t.Errorf("%s: %s is no length", where, of.Name)
		}
	}
	if a.Len == LenRet && a.Kind != KindOut {
		t.Errorf("%s: ret<= on an input", where)
	}
	if a.Len == LenRet && s.Ret != KindSize && s.Ret != KindInt {
		t.Errorf("%s: ret<= but the result is no count", where)
	}
	if a.Struct != "" && structSizes[a.Struct] != a.Size {
		t.Errorf("%s: struct %s has %d bytes, not %d", where, a.Struct, structSizes[a.Struct], a.Size)
	}
	if (a.Kind == KindIn || a.Kind == KindOut || a.Kind == KindInOut) && a.Size == 0 {
		t.Errorf("%s: no element size", where)
	}
}

// Formatters index into their structs without looking.
func TestStructFormatsTakeTheirSize(t *testing.T) {
	for name, show := range structFormats {
		size, ok := structSizes[name]
		if !ok {
			t.Errorf("no struct %q", name)
			continue
		}
		if show(make([]byte, size)) == "" {
			t.Errorf("%s: empty", name)
		}
	}
}

func TestEveryUsedSetIsNamedByARow(t *testing.T) {
	used := map[string]bool{"futexop": true, "sigaction": true} // used by code
	for _, s := range Table() {
		for _, a := range s.Args {
			used[a.Set] = true
		}
	}
	for name := range sets {
		if !used[name] {
			t.Errorf("set %q is used by no row", name)
		}
	}
}
