package main

import (
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vplay/tests/processes"
)

// The page of report, for recordings that no program of this machine has made; those of real
// programs are tested in tests/e2e and tests/report.

// reportOf runs report, and returns the page and the exit code.
func reportOf(t *testing.T, args ...string) (page string, code int) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "page.html")
	_, code, err := vplayd(t, append([]string{"report", "-o", out}, args...)...)
	b, readErr := os.ReadFile(out)
	if readErr != nil {
		t.Fatal(err, readErr)
	}
	return html.UnescapeString(string(b)), code
}

// TestReportOfProcesses: the page is about one process, and names the others.
func TestReportOfProcesses(t *testing.T) {
	path := processes.Write(t, processes.Options{})
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"<title>cc1: SIGSEGV", "killed by SIGSEGV", `<section id="processes">`, ">10<", "/bin/sh -c cc1 weather.c; true", ">20<", "(this page)", ">30<", "exited with code 3", "vplayd replay "}},
		{[]string{"--process", "30"}, []string{"<title>true: the end of the recording", "did not crash", `<section id="processes">`, ">20<", "killed by SIGSEGV", ">30<", "(this page)", "vplayd replay --process 30 "}},
	} {
		page, code := reportOf(t, append(c.args, path)...)
		if code != exitOK {
			t.Errorf("%v: exit code %d", c.args, code)
		}
		expect(t, strings.Join(c.args, " "), page, c.want...)
	}
}

// TestReportDiverges: where replay and recording differ the page is written, says so, and holds what
// needs no replay.
func TestReportDiverges(t *testing.T) {
	path := processes.Write(t, processes.Options{Diverges: processes.Exited})
	page, code := reportOf(t, "--process", "30", path)
	if code != exitDiverged {
		t.Errorf("exit code %d", code)
	}
	expect(t, "the page", page, `<p class="warning">Replay and recording differ: `, `<section id="calls">`, "#0", `<section id="slice">`, `class="note"`, `<section id="registers">`, "rip")
}
