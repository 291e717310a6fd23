package vscode

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// vplayd is the path of the command under test, in a folder that holds nothing else.
var vplayd string

func TestMain(m *testing.M) { tool.Main(m, &vplayd) }

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
