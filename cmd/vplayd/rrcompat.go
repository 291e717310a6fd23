package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vplay/gdbstub"
	"vplay/replay/debug"
)

// The verb rr-compat: what programs that start rr expect of it, for vplay's recordings.
// Delve is such a program: "dlv replay" asks "rr --version", starts "rr replay
// --dbgport=0 TRACE", reads from standard error the command line for gdb that rr prints,
// with the port and the program's file in it, and connects; "dlv exec --backend=rr"
// starts "rr record --print-trace-dir=3 PROGRAM" before. What differs on the connection
// is in gdbstub/rr.go. Source: delve's pkg/proc/gdbserial/rr.go, v1.27.2.

// rrVersion is the rr whose command line and protocol these are.
const rrVersion = "5.8.0"

// rrName is the name by which other programs start rr.
const rrName = "rr"

const rrVerb = "rr-compat"

// commandLine returns the arguments of vplayd: of rr-compat where it was started by rr's
// name.
func commandLine(args []string) []string {
	if len(args) > 0 && strings.TrimSuffix(filepath.Base(args[0]), ".exe") == rrName {
		return append([]string{rrVerb}, args[1:]...)
	}
	return args[min(1, len(args)):]
}

func newRRCompat() *cobra.Command {
	c := &cobra.Command{
		Use:     rrVerb + " {replay|record} ARGUMENTS...",
		Short:   "stand in for rr, so that dlv replay works on recordings",
		Version: rrVersion,
		Long: `Rr-compat does what Delve, the debugger of Go programs, expects of rr. Make
vplayd known by rr's name in a folder of its own, and put that folder first in PATH:

  mkdir -p ~/.vplay/bin && ln -s "$(command -v vplayd)" ~/.vplay/bin/rr
  PATH=~/.vplay/bin:$PATH dlv replay server-1.vplay

dlv begins where the recording begins. continue, next, step, stepout, rewind, rev,
print, goroutines, stack, watch, checkpoint and restart work as they do with rr;
positions are those of "vplayd help serve". A Go program's panic stops where the
runtime begins to end it. DELVE_RR_REPLAY_FLAGS has flags for rr-compat replay, as --at
end or --symbols FOLDER.

dlv reads the debug information of the program, which is not in the recording: the
program's file is looked for as serve does, by its build-id, at its path and in the
--symbols folders. dlv is given that file with what was captured of it.

dlv itself refuses to start rr where /proc/sys/kernel/perf_event_paranoid is above
1, because rr needs performance counters. vplay needs none, but dlv has to be content:

  sudo sysctl kernel.perf_event_paranoid=1

"vplayd replay --debugger dlv RECORDING" does all of this by itself, without root.

dlv debug, exec and test with --backend=rr record by vplayd, too.`,
		Example: "  dlv replay server-1.vplay\n  DELVE_RR_REPLAY_FLAGS='--symbols build' dlv replay server-1.vplay\n  dlv exec --backend=rr ./server",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError{withHint(errors.New("say replay or record"), exitUsage, "vplayd help %s", rrVerb)}
		},
	}
	c.SetVersionTemplate("rr version {{.Version}}\n")
	c.AddCommand(newRRReplay(), newRRRecord())
	return c
}

func newRRReplay() *cobra.Command {
	var f serveFlags
	var port, pid int
	c := &cobra.Command{
		Use:   "replay [flags] RECORDING",
		Short: "serve a recording as rr replay does",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.checkAt(); err != nil {
				return err
			}
			f.listen = fmt.Sprintf("127.0.0.1:%d", port)
			path, err := rrTrace(args[0])
			if err != nil {
				return err
			}
			if pid != 0 {
				if err := c.Flags().Set("process", strconv.Itoa(pid)); err != nil {
					return err
				}
			}
			return rrReplay(c, path, f)
		},
	}
	f.add(c)
	addSandboxFlag(c)
	c.Flags().IntVarP(&port, "dbgport", "s", 0, "`PORT` to serve on; 0: any that is free")
	c.Flags().IntVar(&pid, "onprocess", 0, "the process `PID` to debug, the same as --process")
	c.Flags().StringVar(&f.at, "at", "begin", "`WHERE` the debugger stands at first: begin, end, or what monitor seek takes")
	return c
}

// rrTrace returns the recording that a path means: itself, or the only one in a folder,
// as newRRRecord makes them.
func rrTrace(path string) (string, error) {
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return path, nil // opening it says what is wrong
	}
	found, err := filepath.Glob(filepath.Join(path, "*.vplay"))
	if err != nil || len(found) != 1 {
		return "", usageError{withHint(fmt.Errorf("the folder %s has %d recordings", path, len(found)), exitUsage, "name the recording")}
	}
	return found[0], nil
}

// rrReplay serves a recording to one client, and says where as rr does.
func rrReplay(c *cobra.Command, path string, f serveFlags) (err error) {
	var program clientFile
	defer func() { err = errors.Join(err, program.remove()) }()
	makeFile := func() (err error) {
		program, err = newClientFile()
		return err
	}
	return withServed(c, path, f, makeFile, func(target *debug.Inferiors, l net.Listener) error {
		g := target.Cursor
		if err := writeProgram(g, program); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "Launch debugger with\n  'gdb' '-l' '10000' '-ex' 'set sysroot /' '-ex' 'target extended-remote %s' %s\n", l.Addr(), rrQuote(program.path))
		server := gdbstub.New(g, gdbstub.Options{Once: true, RR: true, Log: stubLog(c)})
		return serveOn(c.Context(), server, l, g.Recording().Budget())
	})
}

// writeProgram writes the program's file for the client to read.
func writeProgram(g *debug.Cursor, to clientFile) error {
	mod, image, err := buildModule(g, mainModule)
	if err != nil {
		return err
	}
	if !hasDebugInfo(image) {
		return withHint(fmt.Errorf("no file with debug information for %s was found", mod.Path), exitFailed,
			"dlv reads debug information: name the folder of the program, built without -ldflags=-w: --symbols FOLDER (DELVE_RR_REPLAY_FLAGS for dlv)")
	}
	_, err = to.file.Write(image)
	return err
}

// rrQuote quotes a word as rr does and its clients read it.
func rrQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func newRRRecord() *cobra.Command {
	// rr keeps all of a run; of this one what fits is kept.
	var f recordFlags
	f.add(pflag.NewFlagSet("record", pflag.ContinueOnError)) // for the defaults
	f.keep, f.slim, f.keepSeconds = "always", slimNever, 3600
	var fd int
	c := &cobra.Command{
		Use:   "record [flags] PROGRAM [ARGUMENTS...]",
		Short: "record a program as rr record does: always, into a folder of its own",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := os.MkdirTemp("", "vplay-"+filepath.Base(args[0])+"-")
			if err != nil {
				return withHint(err, exitRecorder, "the recording goes to the folder for temporary files: set TMPDIR to another")
			}
			f.out = filepath.Join(dir, filepath.Base(args[0])+".vplay")
			if fd >= 0 {
				out := os.NewFile(uintptr(fd), "print-trace-dir") // closed: the program shall not have it
				if _, err := io.WriteString(out, dir+"\n"); err != nil {
					return errors.Join(withHint(err, exitUsage, "--print-trace-dir takes the number of an open file"), os.Remove(dir))
				}
				_ = out.Close() // it has been written to
			}
			return record(c, args, f)
		},
	}
	fs := c.Flags()
	fs.SetInterspersed(false)
	fs.IntVar(&fd, "print-trace-dir", -1, "`FD` to write the folder's name to")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but errors")
	return c
}

// hasDebugInfo reports whether an ELF file has DWARF, compressed or not.
func hasDebugInfo(b []byte) bool {
	f, err := elf.NewFile(bytes.NewReader(b))
	return err == nil && (f.Section(".debug_info") != nil || f.Section(".zdebug_info") != nil)
}
