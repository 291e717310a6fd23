package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/analysis/report"
	"vplay/replay/debug"
)

// The verb report: an HTML page about a crash, or another moment, for a bug tracker. What info
// knows of the recording is gathered here; the page is made by package report.

// reportFlags are the flags of the verb.
type reportFlags struct {
	serveFlags
	out     string
	force   bool
	sources []string
	time    time.Duration
}

func newReport() *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report [flags] [RECORDING]",
		Short: "an HTML page about the crash, for a bug tracker",
		Long: `Report writes one HTML page about how the program ended: what info tells, the source
around the crash, or its instructions, the calls with their variables, the slice of the
crash (what the faulting value was made of), the memory concerned, with the block of the
heap and who stored there last, a picture of the threads over time, the last calls of
the program's functions, the last system calls and signals, threads, registers, modules.
Positions on the page are those that "vplay seek" takes. --at makes the page about
another moment. Of several processes it is about one, and has a table of the others.

The page is one file without scripts, and loads nothing from anywhere. It can be read in
dark mode, and printed.

The page holds arguments and memory of the program, and with them whatever secrets are
there: look through it before you give it away. The environment is not on it, as far
as it is not in the memory that is shown.

A recording holds no source text. It is taken from the current folder and from those of
--source, by the longest end of the recorded path that is there, and from files alone that
have the suffix of a source file: what a recording names is not trusted. With
--no-local-files the current folder is not looked at.

Each question to the past takes --time at most. What is not known then is said on the
page. Symbol files are looked for as serve does.

Once the file is open, report can read no files but these, write to no folder but that of
the page, and start no other program, where the kernel has Landlock and seccomp
(vplayd doctor tells).

Exit codes: 0 done, 1 failed, 2 wrong use, 3 replay and recording differ, 4 the recording
is damaged (where that is found in replay, the page is written all the same, as with 3),
130 Ctrl-C.`,
		Example: `  vplayd report -o crash.html server-1.vplay
  vplayd report --symbols build --source src server-1.vplay
  vplayd report --at 3:1200.0 -o before.html server-1.vplay
  vplayd report -o - server-1.vplay | gzip > crash.html.gz`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runReport(c, args, &f) },
	}
	fs := c.Flags()
	fs.StringVarP(&f.out, "output", "o", "", "`FILE` to write (default: the recording's name and .html, in this folder; -: standard output)")
	fs.BoolVarP(&f.force, "force", "f", false, "replace the file if it exists")
	fs.StringVar(&f.at, "at", "end", "the `MOMENT` that the page is about, as \"monitor seek\" takes it")
	fs.StringArrayVar(&f.sources, "source", nil, "`FOLDER` with source texts (may be repeated)")
	fs.DurationVar(&f.time, "time", 30*time.Second, "what each question to the past may take")
	fs.Int64Var(&f.memory, "memory", 0, "guest memory kept for going back quickly, in `MiB` (default: a quarter of this machine's)")
	f.symbols.add(c)
	addProcessFlag(c, "that which the recording is about")
	addSandboxFlag(c)
	return c
}

func runReport(c *cobra.Command, args []string, f *reportFlags) error {
	ended := make(chan error, 1)
	go func() { ended <- makeReport(c, args, f) }()
	select {
	case err := <-ended:
		return err
	case <-c.Context().Done():
	}
	// Most ends at once then. A step over debug information that was made to do harm takes up to a second; nothing
	// of it needs to be cleaned up.
	select {
	case err := <-ended:
		return err
	case <-time.After(reportGrace):
		return c.Context().Err()
	}
}

// reportGrace is how long an interrupted report may go on.
const reportGrace = 100 * time.Millisecond

// makeReport makes the page and writes it.
func makeReport(c *cobra.Command, args []string, f *reportFlags) error {
	path, err := recordingPath(args)
	if err != nil {
		return err
	}
	folders, err := f.check(path)
	if err != nil {
		return err
	}
	g, done, err := openMoment(c, path, f.at, f.serveFlags, func(_ *replay.Session, a sandbox.Access) error {
		a.Read = append(a.Read, folders...)
		if f.out != "-" {
			a.Write = []string{filepath.Dir(f.out)}
		}
		return enterSandbox(c, a)
	})
	if err != nil {
		return err
	}
	defer done()
	o, err := reportOptions(c, g, path, f)
	if err != nil {
		return err
	}
	if o.Sources, err = report.NewSources(folders); err != nil {
		return withHint(err, exitFailed, "--source names a folder that may be read")
	}
	defer o.Sources.Close()
	line := newProgress(f.out == "-")
	o.Progress = func(what string) { line.show("%s", what) }
	var page bytes.Buffer
	differs, err := report.Write(c.Context(), &page, g, o)
	line.done()
	if err != nil {
		return err
	}
	if f.out == "-" {
		_, err = raw(c.OutOrStdout()).Write(page.Bytes())
	} else if err = writeWhole(f.out, page.Bytes(), 0o600); err == nil {
		fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", f.out, size(int64(page.Len())))
	}
	return errors.Join(err, differs)
}

// check refuses flags that make no sense, chooses the name of the page, and returns the
// folders of source texts.
func (f *reportFlags) check(path string) (folders []string, err error) {
	if f.time <= 0 {
		return nil, usageError{withHint(fmt.Errorf("--time %v", f.time), exitUsage, "it takes a time, as 30s or 5m")}
	}
	for _, dir := range f.sources {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return nil, usageError{withHint(fmt.Errorf("--source %s is not a folder", dir), exitUsage, "it is searched for source files by the ends of their paths")}
		}
	}
	if f.out == "" {
		f.out = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + ".html"
	}
	if _, err := os.Lstat(f.out); err == nil && f.out != "-" && !f.force && !checkpoint.IsDevice(f.out) {
		return nil, withHint(&fs.PathError{Op: "write", Path: f.out, Err: fs.ErrExist}, exitFailed, "choose another name by -o FILE, or replace it with --force")
	}
	folders = f.sources
	if !f.symbols.noLocal {
		folders = append([]string{"."}, folders...)
	}
	return folders, nil
}

// reportOptions gathers what the page says of the recording.
func reportOptions(c *cobra.Command, g *debug.Cursor, path string, f *reportFlags) (*report.Options, error) {
	rec, pid := g.Recording(), g.Session().Process().PID
	symbols, err := f.symbols.open()
	if err != nil {
		return nil, err
	}
	e, err := chooseEngine(c)
	if err != nil {
		return nil, err
	}
	var files *loader.ModuleFiles
	isEnd := g.Position() == "end"
	if isEnd {
		files = g.ModuleFiles() // debug information is read once
	}
	boundHeap(path) // most of the debug information is read here
	in, err := gatherInfo(c.Context(), rec, pid, path, symbols, files, e)
	freeHeap()
	if err != nil {
		return nil, err
	}
	o := &report.Options{
		File: filepath.Base(path), Version: thisBuild().String(), Process: processOption(rec, pid), Time: f.time,
		IsCrash: rec.Ending(pid).Kind == checkpoint.EndCrash, IsEnd: isEnd, Notes: in.Notes, Overwrite: in.Overwrite,
	}
	facts := func(to *[]report.Fact) lineWriter {
		return func(name, format string, args ...any) {
			if s := fmt.Sprintf(format, args...); s != "" {
				*to = append(*to, report.Fact{Name: name, Text: s})
			}
		}
	}
	in.printEnd(facts(&o.End))
	in.printRecording(facts(&o.Recording))
	if len(in.Others) > 0 {
		for _, p := range processTree(rec) {
			o.Processes = append(o.Processes, report.Process{
				PID: p.PID, Parent: p.Parent, Program: p.command(), Ended: p.Ended, IsThis: p.PID == pid, IsCrashed: p.Crashed,
			})
		}
	}
	return o, nil
}
