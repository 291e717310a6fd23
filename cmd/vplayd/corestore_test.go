package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCoreNames: what a program calls itself cannot lead out of the folder, nor be taken for another field.
func TestCoreNames(t *testing.T) {
	s := &coreStore{dir: "store"}
	at := time.Unix(1_700_000_000, 0)
	for comm, want := range map[string]string{
		"nginx":         "nginx-7-20231114T221320Z.vplay",
		"../../x":       "_.._x-7-20231114T221320Z.vplay",
		"a-b c\n":       "a_b_c_-7-20231114T221320Z.vplay",
		"..":            "program-7-20231114T221320Z.vplay",
		"":              "program-7-20231114T221320Z.vplay",
		"\xff/\x00\x1b": "____-7-20231114T221320Z.vplay",
	} {
		if got := s.name(comm, 7, at); got != filepath.Join("store", want) {
			t.Errorf("%q is named %s, want %s", comm, got, want)
		}
	}
}

// TestTidy: the oldest recordings go, first those of the program with the most; the new one and files of
// other names stay.
func TestTidy(t *testing.T) {
	fill := func(t *testing.T) (*coreStore, func() string) {
		s := &coreStore{dir: t.TempDir(), keep: 100, maxUse: 1 << 40}
		for i, comm := range strings.Fields("a a b b b a c b b d") {
			if err := os.WriteFile(s.name(comm, i, time.Unix(int64(1000*i), 0)), make([]byte, 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"mine.vplay", "a-1-2.vplay", "x-y-z-20231114T221320Z.vplay", ".lock"} {
			if err := os.WriteFile(filepath.Join(s.dir, name), make([]byte, 5000), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return s, func() string {
			list, err := s.files()
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, f := range list {
				left = append(left, strings.Split(filepath.Base(f.path), "-")[1])
			}
			all, _ := os.ReadDir(s.dir)
			if len(all) != len(list)+4 {
				t.Errorf("files of other names were removed: %d are left", len(all)-len(list))
			}
			return strings.Join(left, " ")
		}
	}
	for _, c := range []struct {
		keep   int
		maxUse int64
		new    int
		left   string
	}{
		{100, 1 << 40, 9, "0 1 2 3 4 5 6 7 8 9"},
		{8, 1 << 40, 9, "0 1 4 5 6 7 8 9"},
		{3, 1 << 40, 9, "6 8 9"},
		{0, 1 << 40, 9, "9"},
		{100, 4500, 9, "5 6 8 9"},
		{100, 10, 9, "9"},
		{2, 1 << 40, 0, "0 9"},
	} {
		t.Run(fmt.Sprintf("keep %d, use %d, new %d", c.keep, c.maxUse, c.new), func(t *testing.T) {
			s, left := fill(t)
			list, _ := s.files()
			s.keep, s.maxUse = c.keep, c.maxUse
			removed, err := s.tidy(list[c.new].path)
			if got := left(); err != nil || got != c.left || len(removed) != 10-len(strings.Fields(got)) {
				t.Errorf("left %s (%v), want %s", got, err, c.left)
			}
		})
	}
}

// TestParseCrash: only what a kernel says is taken.
func TestParseCrash(t *testing.T) {
	k, err := parseCrash(strings.Fields("4711 1000 100 11 1700000000 1 web1"))
	if err != nil || k.pid != 4711 || k.uid != 1000 || k.gid != 100 || k.signal != 11 || k.at.Unix() != 1_700_000_000 || k.dumpable != 1 || k.host != "web1" {
		t.Errorf("%+v, %v", k, err)
	}
	for _, s := range []string{"", "1 2 3 4 5 6", "0 1 1 11 1 1 h", "-1 1 1 11 1 1 h", "x 1 1 11 1 1 h", "1 1 1 11 99999999999999999999 1 h", "99999999999 1 1 11 1 1 h", "1 2 3 4 5 6 7 8"} {
		if _, err := parseCrash(strings.Fields(s)); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

// TestCoreInstall: the setting is written, kept over a second installation, and put back.
func TestCoreInstall(t *testing.T) {
	s := &coreSetting{root: t.TempDir()}
	for name, text := range map[string]string{patternFile: "|/lib/systemd/systemd-coredump %P %u\n", limitFile: "4\n", sysctlFile: ""} {
		if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A write to a file of /proc/sys replaces all of it.
	truncate := func() {
		for _, name := range []string{patternFile, limitFile} {
			if err := os.Truncate(s.path(name), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := s.text("|/usr/bin/vplayd core-handler -- %P")
	for _, want := range []string{"\nkernel.core_pattern = |/usr/bin/vplayd core-handler -- %P\n", "\nkernel.core_pipe_limit = 16\n", "# before, kernel.core_pattern = |/lib/systemd/systemd-coredump %P %u\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the file lacks %q:\n%s", want, text)
		}
	}
	for _, p := range []string{"|/usr/bin/vplayd core-handler -- %P", "|/usr/local/bin/vplayd core-handler -- %P"} {
		if s.read(sysctlFile) == "" {
			if err := os.WriteFile(s.path(sysctlFile), []byte(s.text(p)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		truncate()
		if err := s.install(p); err != nil {
			t.Fatal(err)
		}
		if got := s.read(patternFile); got != p {
			t.Errorf("core_pattern is %q", got)
		}
	}
	truncate()
	if err := s.uninstall(); err != nil {
		t.Fatal(err)
	}
	if got, limit := s.read(patternFile), s.read(limitFile); got != "|/lib/systemd/systemd-coredump %P %u" || limit != "4" {
		t.Errorf("core_pattern is %q, the limit %q", got, limit)
	}
	if _, err := os.Stat(s.path(sysctlFile)); err == nil {
		t.Error("the file of sysctl.d is still there")
	}
	if err := s.uninstall(); err == nil {
		t.Error("a second uninstallation says nothing")
	}
}

// TestCorePattern: the pattern has the flags that were given, and is refused where Linux would cut it.
func TestCorePattern(t *testing.T) {
	for flags, want := range map[string]string{
		"":                                  "|/usr/bin/vplayd core-handler -- " + coreSpecifiers,
		"--keep=7 --dir=/srv/crash":         "|/usr/bin/vplayd core-handler --dir /srv/crash --keep 7 -- " + coreSpecifiers,
		"--dir=" + strings.Repeat("/x", 60): "",
		"--dir=relative":                    "",
		"--env=A%B":                         "",
	} {
		c := newCoreHandler()
		if err := c.ParseFlags(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		f := handlerFlags{dir: c.Flags().Lookup("dir").Value.String()}
		got, err := pattern("/usr/bin/vplayd", &f, c)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", flags, got, err)
		}
		if want != "" && slices.Contains(strings.Fields(got), "") {
			t.Errorf("%s: an empty word", flags)
		}
	}
}
