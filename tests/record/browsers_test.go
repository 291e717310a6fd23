//go:build linux && amd64

package record

import (
	"flag"
	"testing"
)

// Browsers: many processes with many threads, which share memory, make code as they run, and confine themselves
// by seccomp filters and namespaces. `just browsers` installs and records them.

var browsers = flag.Bool("browsers", false, "record browsers, too")

// Pages that compute something.
const (
	domPage     = `<script>let s = 0; for (let i = 0; i < 300000; i++) s += i * i % 7; document.write(s, " ", [3, 1, 2].sort().map(String))</script>`
	picturePage = `<body style="font: 40px serif"><script>for (let i = 0; i < 20; i++) document.write(i * i, " ")</script><svg><circle cx=50 cy=50 r=40 /></svg>`
)

// TestBrowsers records browsers that load a page and end: what they make of it is what they make natively.
func TestBrowsers(t *testing.T) {
	if !*browsers {
		return
	}
	for _, c := range []programCase{
		{name: "chromium", needs: []string{"chromium"}, processes: 8, args: []string{
			"sh", "-c", `HOME=$PWD chromium --headless --no-sandbox --disable-gpu --dump-dom 'data:text/html,` + domPage + `' 2>/dev/null`,
		}},
		{name: "firefox", needs: []string{"firefox-esr"}, processes: 8, args: []string{
			"sh", "-c", `HOME=$PWD firefox-esr --headless --screenshot page.png 'data:text/html,` + picturePage + `' >/dev/null 2>&1; sha256sum page.png`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, t.TempDir()) })
	}
}
