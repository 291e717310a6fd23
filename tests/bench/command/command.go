// Package command is what the commands that measure have in common: how they end, what they say of the machine, which vplayd they
// measure, and how they print. overhead, pauses and sidebyside use it.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// Main runs a command of that name with the arguments of the process, until SIGINT or SIGTERM cancels ctx, and ends the process:
// with 1 and a message where run fails, 2 behind its help, 130 where it was interrupted.
func Main(name string, run func(ctx context.Context, args []string, out, progress io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, name+": interrupted")
		os.Exit(130)
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// Machine says where and when figures were measured. Load is the load averages: what else the machine did.
type Machine struct {
	CPU  string `json:"cpu"`
	Date string `json:"date"`
	Load string `json:"load"`
}

// ThisMachine is the machine, now.
func ThisMachine() Machine {
	m := Machine{CPU: need.CPUName(), Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), Load: "unknown"}
	b, err := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(b)); err == nil && len(f) > 3 {
		m.Load = strings.Join(f[:3], " ")
	}
	return m
}

// Vplayd returns the absolute path of the vplayd to measure: file, or where that is empty one that it builds from this tree in dir.
func Vplayd(file, dir string) (string, error) {
	if file == "" {
		return tool.Build(dir)
	}
	return filepath.Abs(file)
}

// Modes returns the ways to run that names has, with commas between them; the error lists all that there are.
func Modes(all []string, names string) ([]string, error) {
	var out []string
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("there is no way to run %q; there are %s", name, strings.Join(all, ", "))
		}
		out = append(out, name)
	}
	return out, nil
}

// A Report is the result of a command: JSON as it is encoded, or the tables that Print writes.
type Report interface {
	Print(out io.Writer) error
}

// Write writes a report, as JSON or as tables.
func Write(out io.Writer, rep Report, asJSON bool) error {
	if !asJSON {
		return rep.Print(out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(rep)
}
