package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// "vplayd replay --debugger dlv": starts dlv replay with this program in the place of rr
// (rrcompat.go). What the system must be for that is in replaydelve_linux.go.

// rrFlagsVariable has what dlv gives to rr replay.
const rrFlagsVariable = "DELVE_RR_REPLAY_FLAGS"

// isDelve reports whether a debugger's name or path is that of Delve.
func isDelve(debugger string) bool {
	return strings.TrimSuffix(filepath.Base(debugger), ".exe") == "dlv"
}

// replayDelve starts dlv on a recording and ends as it does.
func replayDelve(args, dlvArgs []string, dlv string, f serveFlags) (err error) {
	path, err := exec.LookPath(dlv)
	if err != nil {
		return withHint(fmt.Errorf("cannot find %s", dlv), exitMachine, "go install github.com/go-delve/delve/cmd/dlv@latest, or name one with --debugger PATH")
	}
	rec, err := recordingPath(args)
	if err != nil {
		return err
	}
	if _, err := os.Stat(rec); err != nil { // dlv would say it less well
		return withHint(err, exitFailed, "ls *.vplay shows the recordings in this folder")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vplay-rr-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Symlink(self, filepath.Join(dir, rrName)); err != nil {
		return err
	}
	cmd := exec.Command(path, append([]string{"replay", rec}, dlvArgs...)...)
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		rrFlagsVariable+"="+strings.TrimSpace(os.Getenv(rrFlagsVariable)+" "+f.rrFlags()))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := allowRR(cmd, self, dir); err != nil {
		return err
	}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exitError{exit.ExitCode()}
	case err != nil:
		return withHint(fmt.Errorf("%s cannot be started: %w", dlv, err), exitMachine, "%s", hintRR)
	}
	return nil
}

// hintRR is what helps where dlv refuses to start rr.
const hintRR = "dlv wants /proc/sys/kernel/perf_event_paranoid to be 1 at most: sudo sysctl kernel.perf_event_paranoid=1"

// rrFlags writes the flags of replay for rr-compat, quoted as dlv reads them.
func (f *serveFlags) rrFlags() string {
	var out []string
	for _, dir := range f.symbols.dirs {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		out = append(out, "--symbols", rrQuote(dir))
	}
	if f.symbols.noLocal {
		out = append(out, "--"+noLocalFiles)
	}
	if f.memory > 0 {
		out = append(out, fmt.Sprintf("--memory %d", f.memory))
	}
	if f.index {
		out = append(out, "--index")
	}
	return strings.Join(out, " ")
}
