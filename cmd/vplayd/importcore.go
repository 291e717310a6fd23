package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/corefile"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/replay/debug/text"
)

// The verb import-core: its flags, its help, and what it says. Core files are read by package
// checkpoint/corefile.

// importFlags are the flags of import-core.
type importFlags struct {
	out, exe, sysroot string
	force, quiet      bool
	json              bool
	env               string
	symbols           symbolFlags
}

func newImportCore() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import-core [flags] CORE",
		Short: "make a recording of a core file",
		Long: `Import-core makes a recording of the core file of an x86-64 Linux program: of
the kernel, of gcore, of gdb's generate-core-file, or of systemd-coredump, also
compressed by zstd or gzip.

The recording holds one moment, the crash: all threads with their registers and
all memory that the core file has. It has no past and no future, so that continue,
step and their reverse end at once, and verify and slim have nothing to do. Each
question about the moment is answered as of any recording: gdb's backtrace, threads,
variables, libraries, on a machine that has none of the program's files, too.

A core file lacks the program's code and what else was read from files. It is
taken from the files on this machine: at the paths that the core file names, below
--sysroot, in the folders of --symbols, or from --exe for the program itself. A
file is used if its build-id is that of the file that ran, and what the core file
has of it is what it has. Of the others the recording says by name what it lacks.
Files with symbols or debugging information are kept whole, up to 256 MiB in all,
so that source lines come from the recording itself.

Once the core file is open, import-core can open no files but these, write in no
other folder and start no other program, where the kernel has Landlock and seccomp
(vplayd doctor tells).

Like a core file, the recording holds memory of the program, with whatever secrets
were there: it is readable by its owner alone. Values of environment variables that
look like secrets are masked in the manifest, not in memory.`,
		Example: `  vplayd import-core core.4711
  vplayd import-core -o crash.vplay --exe build/server core.4711
  vplayd import-core --sysroot /srv/images/web1 core.web1.zst
  coredumpctl dump -o core server && vplayd import-core core`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return importCore(c, args[0], f) },
	}
	fs := c.Flags()
	fs.StringVarP(&f.out, "output", "o", "", "`FILE` to write (default: CORE.vplay in this folder)")
	fs.BoolVarP(&f.force, "force", "f", false, "replace the recording if it exists")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but errors")
	fs.BoolVar(&f.json, "json", false, "one JSON object about the recording")
	fs.StringVar(&f.exe, "exe", "", "the program's `FILE`")
	fs.StringVar(&f.sysroot, "sysroot", "", "`FOLDER` below which the program's files lie at their paths")
	fs.StringVar(&f.env, "env", "", "environment in the manifest: `POLICY` keep, drop, or names to keep (default: all, secrets masked)")
	f.symbols.add(c)
	addSandboxFlag(c)
	return c
}

// importedLine is the JSON object of import-core.
type importedLine struct {
	File    string   `json:"file"`
	Program string   `json:"program"`
	PID     int32    `json:"pid"`
	Signal  int32    `json:"signal,omitempty"`
	Threads int      `json:"threads"`
	Memory  int64    `json:"memory_bytes"` // that the core file holds
	Missing []string `json:"missing"`
}

func importCore(c *cobra.Command, path string, f importFlags) error {
	if f.out == "" {
		f.out = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if packed := filepath.Ext(path); packed != ".zst" && packed != ".gz" {
			f.out = filepath.Base(path)
		}
		f.out += ".vplay"
	}
	for _, name := range []string{f.exe, f.sysroot} {
		if _, err := os.Stat(name); name != "" && err != nil {
			return usageError{withHint(err, exitUsage, "--exe names a file, --sysroot a folder")}
		}
	}
	symbols, err := f.symbols.open()
	if err != nil {
		return err
	}
	budget, err := budgetOf(c)
	if err != nil {
		return err
	}
	line := newProgress(f.quiet)
	defer line.done()
	o := corefile.Options{
		Path: f.out, Overwrite: f.force, Exe: f.exe, Sysroot: f.sysroot, Symbols: symbols.Within(budget), KeepEnv: f.env,
		Progress: func(done, total int64) {
			line.show("importing [%s] %s of %s", bar(float64(done)/float64(max(total, 1))), size(done), size(total))
		},
	}
	res, err := importFile(c.Context(), path, budget, o, line, func(core *corefile.Core) error {
		read := append(symbols.Files(core.Files()), f.symbols.dirs...)
		for _, name := range []string{f.exe, f.sysroot} {
			if name != "" {
				read = append(read, name)
			}
		}
		return enterSandbox(c, sandbox.Access{Read: read, Write: []string{filepath.Dir(f.out)}})
	})
	if err != nil {
		return importError(err)
	}
	line.done()
	if f.json {
		return encodeLine(c.OutOrStdout(), importedLine{f.out, res.Program, res.PID, res.Signo, res.Threads, res.Memory, append([]string{}, res.Missing...)})
	}
	if !f.quiet {
		sayImported(stderr, f.out, res)
	}
	return nil
}

// importFile imports the core file at path, which may be compressed. before is called when it is open.
func importFile(ctx context.Context, path string, budget *checkpoint.Budget, o corefile.Options, line *progress,
	before func(*corefile.Core) error) (*corefile.Result, error) {
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, corefile.ErrNotCore) // a FIFO might never end
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // only read
	o.Start = st.ModTime()
	r, n, done, err := corefile.Unpack(ctx, in, budget, func(n int64) { line.show("unpacking, %s", size(n)) })
	if err != nil {
		return nil, err
	}
	defer done()
	core, err := corefile.Open(r, n, path, budget)
	if err != nil {
		return nil, err
	}
	if err := before(core); err != nil {
		return nil, err
	}
	return corefile.Import(ctx, core, o)
}

// importError gives the errors of a core file their hints and codes.
func importError(err error) error {
	var bad *corefile.FormatError
	switch {
	case errors.Is(err, corefile.ErrPacked):
		return withHint(err, exitDamaged, "unpack it: lz4 -d, xz -d or bzip2 -d")
	case errors.Is(err, corefile.ErrNotCore):
		return withHint(err, exitDamaged, "gcore PID makes one of a program that runs; vplayd info shows what a recording holds")
	case errors.As(err, &bad):
		return withHint(err, exitDamaged, "copy it again from where it was made; gdb EXE CORE may show a part of it")
	case errors.Is(err, fs.ErrExist):
		return withHint(err, exitFailed, "choose another name by -o FILE, or replace it with --force")
	case errors.Is(err, fs.ErrNotExist):
		return withHint(err, exitFailed, "coredumpctl list, or /proc/sys/kernel/core_pattern, tells where core files are")
	}
	return err
}

// sayImported says what was imported.
func sayImported(w io.Writer, path string, res *corefile.Result) {
	ended := "not ended by a signal"
	if res.Signo != 0 {
		ended = "killed by " + abi.Signal(res.Signo).String()
	}
	bytes := int64(0)
	if st, err := os.Stat(path); err == nil {
		bytes = st.Size()
	}
	fmt.Fprintf(w, "vplayd: %s: %s, %s, %s, %s of memory in %s; look at it: vplayd serve %s\n",
		path, res.Program, ended, text.Plural(res.Threads, "thread"), size(res.Memory), size(bytes), path)
	for _, s := range res.Missing {
		fmt.Fprintf(w, "vplayd: %s\n", s)
	}
}
