package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/gdbstub"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
)

// The verbs serve and replay, which open a recording for debuggers: one listens for
// them, the other starts gdb. Opening such a session is here too, for the other verbs
// that need one. The protocols are packages gdbstub and gdbstub/dap.

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
and only if their build-id is the recorded one; --no-local-files leaves them alone.
What was captured wins over any file. gdb, too, finds debug files by the build-ids
that it is given: in /usr/lib/debug, and with DEBUGINFOD_URLS at a debuginfod
server ("set debuginfod enabled on").

The debugger stands at the crash at once (--at begin: where the recording
begins). Of a recording of several processes it sees the one that the recording is
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
	c.Flags().StringVar(&f.at, "at", "end", "`WHERE` the debugger stands at first: the end (the crash), or the begin")
	c.Flags().BoolVar(&f.dap, "dap", false, "speak the Debug Adapter Protocol, for VS Code and other editors, on port 4711 unless --listen says otherwise")
	c.Flags().BoolVar(&f.once, "once", false, "end with the first session")
	return c
}

func serve(c *cobra.Command, args []string, f serveFlags) (err error) {
	if err := f.checkAt(); err != nil {
		return err
	}
	path, err := recordingPath(args)
	if err != nil {
		return err
	}
	var l net.Listener
	target, closeAll, err := openServed(c, path, f, func(_ *replay.Session, a sandbox.Access) (err error) {
		if !f.stdio {
			if l, err = listen(c, f); err != nil {
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
		fmt.Fprintf(c.ErrOrStderr(), "vplayd: with this machine's %s: the build-id is the recorded one (--%s: without)\n", text.Printable(names), noLocalFiles)
	}
	fmt.Fprintf(c.ErrOrStderr(), "vplayd: %s (process %d), serving on %s\n", p.Program, p.PID, l.Addr())
	fmt.Fprintf(c.ErrOrStderr(), "vplayd: gdb -ex 'target remote %s'\n", gdbAddress(l.Addr()))
	if n := len(target.PIDs()); n > 1 {
		fmt.Fprintf(c.ErrOrStderr(), "vplayd: this is one of %d processes; for all of them: gdb -ex 'target extended-remote %s', and attach PID or vplay inferiors\n", n, gdbAddress(l.Addr()))
	}
	return server.ServeListener(c.Context(), renewingListener{l, g.Recording().Budget()})
}

// checkAt refuses a place to stand at first that is none.
func (f *serveFlags) checkAt() error {
	if f.at != "begin" && f.at != "end" {
		return usageError{withHint(fmt.Errorf("--at %s", f.at), exitUsage, "--at takes begin or end")}
	}
	return nil
}

// openServed opens a recording for a server, which stands where --at says.
func openServed(c *cobra.Command, path string, f serveFlags, before prepare) (*debug.Inferiors, func(), error) {
	d, closeAll, err := openDebug(c, []string{path}, f, before)
	if err != nil {
		return nil, nil, err
	}
	target, err := d.NewInferiors()
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	learnt := learn(c, d, path, f.index)
	done := func() {
		learnt()
		target.Close()
		closeAll()
	}
	if f.at == "begin" {
		if err := target.Rewind(); err != nil {
			done()
			return nil, nil, err
		}
	}
	return target, done, nil
}

// isDone reports whether ctx has ended.
func isDone(ctx context.Context) bool { return ctx != nil && ctx.Err() != nil }

// ended turns the error of a server that was told to stop into none.
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

// listen opens the address that serve is told, with hints for what goes wrong.
func listen(c *cobra.Command, f serveFlags) (net.Listener, error) {
	addr := f.listen
	if f.dap && !c.Flags().Changed("listen") {
		addr = fmt.Sprintf("127.0.0.1:%d", dapPort)
	}
	l, err := gdbstub.Listen(addr, f.remote)
	switch {
	case err == nil:
		return l, nil
	case isInUse(err):
		return nil, withHint(err, exitFailed, "another program has that address, perhaps another vplayd serve: choose one with --listen 127.0.0.1:0")
	}
	hint := "--listen takes HOST:PORT or unix:PATH"
	if strings.Contains(err.Error(), "authentication") {
		hint = "use 127.0.0.1 and an ssh tunnel, or say --allow-remote on a network you trust"
	}
	return nil, withHint(err, exitFailed, "%s", hint)
}

func isInUse(err error) bool {
	return strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) || strings.Contains(err.Error(), "in use")
}

// gdbAddress writes an address the way gdb takes it.
func gdbAddress(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok && t.IP.IsLoopback() {
		return fmt.Sprintf(":%d", t.Port)
	}
	return a.String()
}

// prepare is what is done once a recording is open, and before it is worked with. It is
// told what symbol files need of a sandbox.
type prepare func(*replay.Session, sandbox.Access) error

// openDebug opens a recording for debuggers, at the process that --process names. The function before may be nil.
func openDebug(c *cobra.Command, args []string, f serveFlags, before prepare) (*debug.Session, func(), error) {
	symbols, err := f.symbols.open()
	if err != nil {
		return nil, nil, err
	}
	s, _, done, err := openSession(c, args)
	if err != nil {
		return nil, nil, err
	}
	pid, err := processOf(c, s.Rec)
	if err != nil {
		done()
		return nil, nil, err
	}
	memory := f.budget() // reads /proc
	if before != nil {
		if err := before(s, f.symbols.access(symbols, s.Rec)); err != nil {
			done()
			return nil, nil, err
		}
	}
	d, err := debug.OpenProcess(s, pid, memory, symbols.Within(s.Rec.Budget()))
	if err != nil {
		done()
		return nil, nil, err
	}
	return d, func() {
		d.Close()
		done()
	}, nil
}

// openTarget opens a recording for one front end, or a command that asks as one does.
func openTarget(c *cobra.Command, args []string, f serveFlags, before prepare) (*debug.Cursor, func(), error) {
	d, done, err := openDebug(c, args, f, before)
	if err != nil {
		return nil, nil, err
	}
	g, err := d.NewCursor()
	if err != nil {
		done()
		return nil, nil, err
	}
	return g, func() {
		g.Close()
		done()
	}, nil
}

// maxAttached is how many processes replay lets gdb attach to by itself: each takes gdb
// about as long as a connection.
const maxAttached = 8

// connectGDB returns the arguments with which gdb connects and loads the commands. gdb has
// several processes when it attaches to them, which the extended protocol is for.
func connectGDB(addr string, pids []int) []string {
	if len(pids) == 1 {
		return []string{"-ex", "target remote " + addr, "-ex", loadPython}
	}
	attach := "vplay inferiors"
	if len(pids) > maxAttached {
		attach += fmt.Sprint(" ", pids[0])
	}
	return []string{"-ex", "target extended-remote " + addr, "-ex", loadPython, "-ex", attach}
}

// stdio is standard input and output as a connection.
type stdio struct {
	io.ReadCloser
	io.Writer
}

// stubLog passes the protocol server's messages on.
func stubLog(c *cobra.Command) *slog.Logger {
	l := logger(c, "gdbstub")
	return slog.New(slogHandler{l})
}

func newReplay() *cobra.Command {
	var f serveFlags
	var gdb string
	c := &cobra.Command{
		Use:   "replay [flags] [RECORDING] [-- GDB-ARGUMENTS...]",
		Short: "start gdb on a recording, or dlv",
		Long: `Replay serves a recording on a port of its own and starts gdb on it. It ends
with gdb. What stands behind -- goes to gdb. $VPLAY_GDB names another gdb. The
commands of "vplayd help gdb-commands" are loaded. Of a recording of several processes
gdb has all as inferiors, up to 8: "info inferiors", "inferior N"; with more, "vplay
inferiors PID" attaches to another one. There is no sandbox here, as around
serve: gdb runs as your own program.

With --debugger dlv it starts Delve on the recording of a Go program, "dlv replay" with
vplayd in the place of rr: see vplayd help rr-compat. Where the kernel keeps performance
counters from users, which rr needs and dlv looks after, dlv gets a mount namespace that
says otherwise.`,
		Example: "  vplayd replay sort-1.vplay\n  vplayd replay sort-1.vplay -- -batch -ex bt\n  vplayd replay --process 4711 make-1.vplay\n  vplayd replay -d dlv server-1.vplay",
		RunE: func(c *cobra.Command, args []string) error {
			n := c.ArgsLenAtDash()
			if n < 0 {
				n = len(args)
			}
			if n > 1 {
				return usageError{withHint(fmt.Errorf("%d recordings named", n), exitUsage, "arguments for gdb stand behind --")}
			}
			if isDelve(gdb) {
				return replayDelve(args[:n], args[n:], gdb, f)
			}
			return replayGDB(c, args[:n], args[n:], gdb, f)
		},
	}
	f.add(c)
	c.Flags().StringVarP(&gdb, "debugger", "d", envOr("VPLAY_GDB", "gdb"), "the `GDB` to start")
	return c
}

func envOr(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

func replayGDB(c *cobra.Command, args, gdbArgs []string, gdb string, f serveFlags) error {
	path, err := exec.LookPath(gdb)
	if err != nil {
		return withHint(fmt.Errorf("cannot find %s", gdb), exitMachine, "apt-get install gdb, or name one with --debugger or $VPLAY_GDB")
	}
	rec, err := recordingPath(args)
	if err != nil {
		return err
	}
	d, closeAll, err := openDebug(c, []string{rec}, f, nil)
	if err != nil {
		return err
	}
	defer closeAll()
	g, err := d.NewInferiors()
	if err != nil {
		return err
	}
	defer g.Close()
	defer learn(c, d, rec, f.index)()
	server := gdbstub.New(g, gdbstub.Options{Log: stubLog(c)})
	l, err := listen(c, serveFlags{listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeListener(ctx, l) // gdb says what it sees of it
	}()
	cmd := exec.Command(path, slices.Concat([]string{"-q"}, connectGDB(l.Addr().String(), g.PIDs()), gdbArgs)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	cancel()
	<-done
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitError{exit.ExitCode()}
	}
	return err
}
