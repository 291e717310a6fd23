package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/gdbstub"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
)

// The verb serve: a recording behind a socket, for gdb, lldb and, with --dap, editors. What
// it opens is opened in opendebug.go; the protocols are packages gdbstub and gdbstub/dap.
// The verb that starts gdb itself is in replay.go.

// serveFlags are shared by serve and replay.
type serveFlags struct {
	listen  string
	symbols symbolFlags
	memory  int64
	remote  bool
	stdio   bool
	once    bool
	dap     bool
	index   bool
	at      string
}

func (f *serveFlags) add(c *cobra.Command) {
	f.symbols.add(c)
	c.Flags().BoolVar(&f.index, "index", false, "keep what is learnt of the recording in RECORDING.index (RECORDING.PID.index with --process), for the next session")
	addProcessFlag(c, "that which the recording is about")
	c.Flags().Int64Var(&f.memory, "memory", 0, "guest memory kept for going back quickly, in `MiB` (default: a quarter of this machine's)")
}

func newServe() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve [flags] [RECORDING]",
		Short: "serve a recording to gdb, lldb and VS Code",
		Long: `Serve loads a recording and speaks the GDB remote serial protocol, on
127.0.0.1:1234 unless told otherwise. It needs none of the program's files:
the debugger gets ELF images rebuilt from the recording, merged with symbol
files of the same build-id from the --symbols folders. Files of this machine that
lie where the program had them are used in the same way, and named at the start, if
and only if their build-id is the recorded one, or they have none and the recorded
content; --no-local-files leaves them alone.
What was captured wins over any file. Debug files in /usr/lib/debug give names and
lines to vplay's own answers. gdb, too, finds them by the build-ids that it is given,
and with DEBUGINFOD_URLS those of a debuginfod server ("set debuginfod enabled on").

The debugger stands at the crash at once (--at begin: where the recording of this
program begins; --at takes any place that "monitor seek" takes, also one before
an execve). Of a recording of several processes it sees the one that the recording is
about, the first that crashed, else the first program; --process PID names another
(vplayd processes lists them). gdb has several as inferiors when it attaches to them:
"target extended-remote :1234", then "attach PID" for each ("add-inferior" before
the next one), or "vplay inferiors". All of gdb's commands that go
forward and backward work: break, watch, rwatch, awatch, step, next, finish,
until, and reverse-continue, reverse-step, reverse-finish ...; "monitor help"
lists what vplay adds, and "vplayd help gdb-commands" tells how to have it as
gdb commands. A byte that was not captured is an error, never a zero:
"monitor why ADDRESS" tells the reason.

The first question about the past replays the recording once, in the background
from the start on, newest interval first. With --index what was learnt stays in
RECORDING.index, so that the next session need not wait. Delete it whenever you
like.

The debugger may call functions and change variables and registers: it does so
in a copy of the process, with a model that answers system calls, and the copy
is dropped when it moves on. Code to call that the recording lacks comes from
the files in --symbols.

With --dap it speaks the Debug Adapter Protocol instead: VS Code, nvim-dap and
others then go back with buttons of their own. vplayd vscode writes what VS Code
wants to know.

The end of a gdb session (detach, kill, quit) does not end serve: connect
again and it stands where you left it. Ctrl-C ends it.

Before it serves, serve gives up what it does not need, where the kernel has Landlock
and seccomp (vplayd doctor tells): it reads the recording and files with symbols, and
starts no program and opens no connection. With --index it writes to the recording's
folder.`,
		Example: `  vplayd serve sort-1.vplay
  gdb -ex 'target remote :1234'

  vplayd serve --listen unix:/tmp/v.sock sort-1.vplay
  gdb -ex 'target remote /tmp/v.sock'

  gdb -ex 'target remote | vplayd serve --stdio sort-1.vplay'

  vplayd serve --dap sort-1.vplay

  vplayd serve --process 4711 make-1.vplay`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return serve(c, args, f) },
	}
	f.add(c)
	addSandboxFlag(c)
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:1234", "`ADDRESS` to serve on: HOST:PORT, unix:PATH or /PATH")
	c.Flags().BoolVar(&f.remote, "allow-remote", false, "allow an address that other machines can reach (the protocol has no password)")
	c.Flags().BoolVar(&f.stdio, "stdio", false, "speak on standard input and output")
	c.Flags().StringVar(&f.at, "at", "end", "`WHERE` the debugger stands at first: the end (the crash), the begin, or what monitor seek takes")
	c.Flags().BoolVar(&f.dap, "dap", false, "speak the Debug Adapter Protocol, for VS Code and other editors, on port 4711 unless --listen says otherwise")
	c.Flags().BoolVar(&f.once, "once", false, "end with the first session")
	return c
}

func serve(c *cobra.Command, args []string, f serveFlags) error {
	if err := f.checkAt(); err != nil {
		return err
	}
	path, err := recordingPath(args)
	if err != nil {
		return err
	}
	return withServed(c, path, f, nil, func(target *debug.Inferiors, l net.Listener) error {
		g := target.Cursor
		if f.dap {
			return serveDAP(c, g, f, l)
		}
		server := gdbstub.New(target, gdbstub.Options{Once: f.once, AllowRemote: f.remote, Log: stubLog(c)})
		if f.stdio {
			return server.Serve(c.Context(), stdio{renewingReader{os.Stdin, g.Recording().Budget()}, raw(c.OutOrStdout())})
		}
		p := g.Session().Process()
		if names := g.LocalFiles(); names != "" {
			fmt.Fprintf(c.ErrOrStderr(), "vplayd: with this machine's %s: the build-id, or the content where there is none, is the recorded one (--%s: without)\n", text.Printable(names), noLocalFiles)
		}
		sayNoLines(c, g)
		fmt.Fprintf(c.ErrOrStderr(), "vplayd: %s (process %d), serving on %s\n", p.Program, p.PID, l.Addr())
		fmt.Fprintf(c.ErrOrStderr(), "vplayd: gdb -ex 'target remote %s'\n", gdbAddress(l.Addr()))
		if n := len(target.PIDs()); n > 1 {
			fmt.Fprintf(c.ErrOrStderr(), "vplayd: this is one of %d processes; for all of them: gdb -ex 'target extended-remote %s', and attach PID or vplay inferiors\n", n, gdbAddress(l.Addr()))
		}
		return serveOn(c.Context(), server, l, g.Recording().Budget())
	})
}

// sayNoLines says which source lines are missing, and what has them.
func sayNoLines(c *cobra.Command, g *debug.Cursor) {
	if why := g.NoLines(); why != "" {
		fmt.Fprintf(c.ErrOrStderr(), "vplayd: source lines: %s\n", text.Printable(why))
	}
}

// withServed opens a recording and, unless it is served on standard input and output, the
// address that f names, and calls run with them. Both are open before the sandbox is
// entered; so is what before opens, which may be nil. The listener is nil with --stdio. The
// error of a server that a signal ends is none.
func withServed(c *cobra.Command, path string, f serveFlags, before func() error, run func(*debug.Inferiors, net.Listener) error) (err error) {
	var l net.Listener
	target, closeAll, err := openServed(c, path, f, func(_ *replay.Session, a sandbox.Access) (err error) {
		if !f.stdio {
			if l, err = listen(c, f); err != nil {
				return err
			}
		}
		if before != nil {
			if err := before(); err != nil {
				return err
			}
		}
		return enterSandbox(c, f.access(a, path))
	})
	if l != nil {
		defer func() {
			_ = l.Close() // a second time it does nothing
			err = ended(c.Context(), err)
		}()
	}
	if err != nil {
		return err
	}
	defer closeAll()
	return run(target, l)
}

// atHint says what a place is.
const atHint = "--at takes begin, end, or what monitor seek takes: a position I:N.S, 50%%, \"event N\""

// checkAt refuses a place to stand at first that is none.
func (f *serveFlags) checkAt() error {
	if err := debug.CheckPlace(f.at); err != nil {
		return usageError{withHint(fmt.Errorf("--at %s: %w", f.at, err), exitUsage, atHint)}
	}
	return nil
}

// isDone reports whether ctx has ended.
func isDone(ctx context.Context) bool { return ctx != nil && ctx.Err() != nil }

// ended turns the error of a server that a signal ends into none.
func ended(ctx context.Context, err error) error {
	if isDone(ctx) {
		return nil
	}
	return err
}

// access adds to what a sandbox leaves to who looks for symbol files what serve
// itself needs.
func (f *serveFlags) access(a sandbox.Access, path string) sandbox.Access {
	if f.index {
		a.Write = append(a.Write, filepath.Dir(path))
	}
	if socket, ok := gdbstub.SocketPath(f.listen); ok && !f.stdio {
		a.Remove = append(a.Remove, filepath.Dir(socket))
	}
	return a
}

// stdio is standard input and output as a connection.
type stdio struct {
	io.ReadCloser
	io.Writer
}
