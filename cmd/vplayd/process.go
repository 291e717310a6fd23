package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/replay/debug/text"
)

// Which process of a recording a verb is about, and how one is named and described. The
// verb that lists them is in processes.go.

// addProcessFlag gives c the flag that chooses a process; def says what c does without it.
func addProcessFlag(c *cobra.Command, def string) {
	c.Flags().StringP("process", "p", "", "the process `PID` of the recording, as vplayd processes lists them (default: "+def+")")
}

// chosenProcess returns the process that --process names; ok is false when c has no such
// flag, or it is not given. The error is of a process that the recording does not have.
func chosenProcess(c *cobra.Command, rec *checkpoint.Recording) (pid int32, ok bool, err error) {
	f := c.Flags().Lookup("process")
	if f == nil || !f.Changed {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(f.Value.String(), 10, 32)
	if err != nil {
		return 0, false, usageError{withHint(fmt.Errorf("--process %s", f.Value), exitUsage, "it takes a PID; vplayd processes lists those of a recording")}
	}
	if _, ok := rec.Process(int32(n)); !ok {
		return 0, false, usageError{withHint(fmt.Errorf("there is no process %d in %s", n, rec.File()), exitUsage, "%s", processHint(rec))}
	}
	return int32(n), true, nil
}

// processOf returns the process that c is about: that of --process, else that which the
// recording is about.
func processOf(c *cobra.Command, rec *checkpoint.Recording) (int32, error) {
	pid, ok, err := chosenProcess(c, rec)
	if err != nil || ok {
		return pid, err
	}
	list := rec.Processes()
	if len(list) == 0 {
		return 0, errors.New("the recording holds no interval")
	}
	return list[0].PID, nil
}

// processOption is what a command needs to be about a process, with a space before it:
// nothing for that which the recording is about.
func processOption(rec *checkpoint.Recording, pid int32) string {
	if pid == rec.Processes()[0].PID {
		return ""
	}
	return fmt.Sprintf(" --process %d", pid)
}

// shownProcesses is how many processes a line names.
const shownProcesses = 4

// processHint names the processes of a recording.
func processHint(rec *checkpoint.Recording) string {
	list := rec.Processes()
	if len(list) == 0 {
		return "it holds no interval"
	}
	var names []string
	for _, p := range list[:min(len(list), shownProcesses)] {
		names = append(names, processName(p.PID, p.Program))
	}
	return "it has " + andMore(names, len(list)) + "; vplayd processes lists them"
}

// andMore joins the first names of a list of n.
func andMore(names []string, n int) string {
	s := strings.Join(names, ", ")
	if n -= len(names); n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

// processName is a process's PID and the name of its program, without its folders: the
// recorded system has slashes.
func processName(pid int32, program string) string {
	s := strconv.Itoa(int(pid))
	if name := program[strings.LastIndexByte(program, '/')+1:]; name != "" {
		s += " " + text.Printable(shorten(name, maxName))
	}
	return s
}

// Bounds of texts that come from the recording, in characters.
const (
	maxName    = 40
	maxCommand = 72
)

// shorten cuts a text to n characters.
func shorten(s string, n int) string {
	if r := []rune(s[:min(len(s), 4*n+4)]); len(r) > n {
		return string(r[:n-3]) + "..."
	}
	return s
}

// intervalsOf returns the IDs of a process's intervals, in order.
func intervalsOf(rec *checkpoint.Recording, pid int32) (ids []uint32) {
	for _, image := range rec.ImagesOf(pid) {
		for _, in := range image {
			ids = append(ids, in.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// processRow returns what a recording says of a process; the manifest's row for one that
// has no interval.
func processRow(rec *checkpoint.Recording, pid int32) checkpoint.Process {
	if p, ok := rec.Process(pid); ok {
		return p
	}
	m := rec.Manifest()
	return checkpoint.Process{PID: m.PID, Parent: m.Parent, Program: m.Program, Args: m.Args, Env: m.Env, Cwd: m.Cwd}
}
