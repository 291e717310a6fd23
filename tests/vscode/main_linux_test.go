package vscode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// vplayd is the path of the command under test, in a folder that holds nothing else.
var vplayd string

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "vplay-vscode")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if vplayd, err = tool.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// installed is the folder of fetch.sh.
func installed(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	dir := filepath.Join(cache, "vplay-tests", "vscode")
	if err == nil {
		var found []string
		if found, err = filepath.Glob(filepath.Join(dir, "installed-*")); err == nil && len(found) == 0 {
			err = os.ErrNotExist
		}
	}
	need.Machine(t, "VS Code, which tests/run.sh installs where npm is", err == nil)
	_, err = exec.LookPath("node")
	need.Machine(t, "node", err == nil)
	_, err = exec.LookPath("chromium")
	need.Machine(t, "chromium", err == nil)
	need.Recorder(t)
	return dir
}
