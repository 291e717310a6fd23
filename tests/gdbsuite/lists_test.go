package gdbsuite

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vplay/tests/need"
)

// whole are the folders of which every file is accounted for.
var whole = []string{"gdb.multi", "gdb.threads"}

// source returns the folder of GDB's own tests, which tests/run.sh fetches.
func source(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(cache, "vplay-tests", "gdb")
	_, err = os.Stat(filepath.Join(src, "gdb", "testsuite", "lib", "gdb.exp"))
	need.Machine(t, "GDB's own tests, which tests/run.sh fetches where Debian's archive is", err == nil)
	return src
}

// listed returns the names in a list, and those of a block that no comment begins.
func listed(t *testing.T, file string) (names, bare []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	hasReason := false
	for line := range strings.Lines(string(b)) {
		switch line = strings.TrimSpace(line); {
		case line == "":
			hasReason = false
		case line[0] == '#':
			hasReason = true
		default:
			names = append(names, line)
			if !hasReason {
				bare = append(bare, line)
			}
		}
	}
	return names, bare
}

// TestListed wants each file of the folders that are run whole in one of the two lists, and
// a reason for each that is left out.
func TestListed(t *testing.T) {
	named, _ := listed(t, "named.txt")
	out, bare := listed(t, "left-out.txt")
	for _, name := range bare {
		t.Errorf("left-out.txt: %s stands there without a reason", name)
	}
	all := slices.Concat(named, out)
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			t.Errorf("%s is listed twice", all[i])
		}
	}
	suite := filepath.Join(source(t), "gdb", "testsuite")
	for _, name := range all {
		if _, err := os.Stat(filepath.Join(suite, name+".exp")); err != nil {
			t.Errorf("%s is listed and no file of the suite", name)
		}
	}
	for _, folder := range whole {
		files, err := filepath.Glob(filepath.Join(suite, folder, "*.exp"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s: %v", folder, err)
		}
		for _, file := range files {
			if name := folder + "/" + strings.TrimSuffix(filepath.Base(file), ".exp"); !slices.Contains(all, name) {
				t.Errorf("%s is neither in named.txt nor in left-out.txt", name)
			}
		}
	}
}
