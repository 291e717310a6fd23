// Package browser finds Debian's chromium and the playwright that tests/vscode/fetch.sh installs,
// for tests of what is shown in a browser.
package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"vplay/tests/need"
)

// Installed returns the folder of fetch.sh, whose node_modules have playwright-core and
// code-server. A test of a machine that does not have all of it is skipped.
func Installed(t *testing.T) string {
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
