package main

import (
	"bufio"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
	"vplay/replay/mem"
)

// The demonstration is a recording of demo/weather.c, which
// crashes millions of instructions after its mistake, with its symbol file and
// its source. Everything it shows is found by replaying, nothing is prepared. `just
// demo` makes the files again.

//go:embed demo
var demoFiles embed.FS

const (
	demoRecording = "weather.vplay"
	demoSource    = "weather.c"
)

func newDemo() *cobra.Command {
	var dir string
	var noGDB bool
	c := &cobra.Command{
		Use:   "demo [flags]",
		Short: "find the cause of a recorded crash, going backwards, on this machine",
		Long: `Demo replays a recording that is part of vplayd: a small program that crashed
far from its mistake. It verifies the replay, shows the crash, goes back to the
store that caused it, and says how to do the same in gdb. It needs neither gdb
nor the program nor Linux.`,
		Example: "  vplayd demo\n  vplayd demo --extract weather/     keep the files, to try out the other verbs",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return demo(c, dir, !noGDB)
		},
	}
	c.Flags().StringVar(&dir, "extract", "", "`FOLDER` to leave the recording, its symbols and its source in")
	c.Flags().BoolVar(&noGDB, "no-gdb", false, "do not offer to go on in gdb")
	return c
}

func demo(c *cobra.Command, dir string, offer bool) error {
	extracted := dir != ""
	if !extracted {
		temp, err := os.MkdirTemp("", "vplay-demo-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(temp) }() // what is left is in the temporary folder
		dir = temp
	}
	if err := extractDemo(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, demoRecording)
	e, err := chooseEngine(c)
	if err != nil {
		return err
	}
	d, err := openDemo(c.Context(), c.OutOrStdout(), path, dir)
	if err != nil {
		return err
	}
	e.use(d.s)
	err = d.show()
	d.close()
	if err != nil {
		return err
	}
	shown := dir
	if !extracted {
		shown = "weather"
	}
	d.sayGDB(shown, extracted)
	if offer && isTerminal(os.Stdin) && isTerminal(os.Stdout) {
		return offerGDB(c, path, dir)
	}
	return nil
}

// extractDemo writes the embedded files to a folder.
func extractDemo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	list, err := demoFiles.ReadDir("demo")
	if err != nil {
		return err
	}
	for _, e := range list {
		b, err := demoFiles.ReadFile("demo/" + e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// demonstration is one run of the demo.
type demonstration struct {
	ctx     context.Context
	w       io.Writer
	source  []string // lines of the program
	rec     *checkpoint.Recording
	s       *replay.Session
	t       *replay.Timeline
	cur     *replay.Cursor
	files   *loader.ModuleFiles
	counts  map[uint32]uint64 // instructions of each interval
	watched uint64            // address found to be overwritten
}

func openDemo(ctx context.Context, w io.Writer, path, dir string) (*demonstration, error) {
	src, err := demoFiles.ReadFile("demo/" + demoSource)
	if err != nil {
		return nil, err
	}
	d := &demonstration{
		ctx: ctx, w: w, source: strings.Split(string(src), "\n"), files: loader.NewModuleFiles(loader.NewSymbols([]string{dir}, false)), counts: map[uint32]uint64{},
	}
	if d.rec, err = checkpoint.Open(path); err != nil {
		return nil, err
	}
	if d.s, err = replay.NewSession(d.rec); err != nil {
		d.rec.Close()
		return nil, err
	}
	if d.t, err = replay.NewTimeline(d.s, 256<<20); err == nil {
		if d.cur, err = d.t.NewCursor(); err != nil {
			d.t.Close()
		}
	}
	if err != nil {
		d.s.Close()
		d.rec.Close()
		return nil, err
	}
	return d, nil
}

func (d *demonstration) close() {
	d.cur.Close()
	d.t.Close()
	d.s.Close()
	d.rec.Close()
}

func (d *demonstration) say(format string, args ...any) { fmt.Fprintf(d.w, format, args...) }

// show goes through all of it but gdb.
func (d *demonstration) show() error {
	m := d.rec.Manifest()
	d.say("A program called %s was %s. This is its recording: %s, and none of\nits files are needed.\n\n",
		filepath.Base(m.Program), debug.EndText(d.rec.Ending(m.PID)), size(d.rec.Sizes().File))
	for _, step := range []func() error{d.verify, d.crash, d.cause} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// verify replays everything and compares it with what was recorded.
func (d *demonstration) verify() error {
	began := time.Now()
	results, err := replay.Verify(d.ctx, d.s, replay.VerifyOptions{})
	if err != nil {
		return err
	}
	total := uint64(0)
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
		total += r.Instructions
		d.counts[r.Interval] = r.Instructions
	}
	took := time.Since(began)
	d.say("1. Replay all of it, and compare it with what was recorded:\n\n   %s, %s instructions, %.0f M instructions/s, %.2f s, exact\n\n",
		text.Plural(len(results), "interval"), text.Count(total), float64(total)/1e6/max(took.Seconds(), 1e-9), took.Seconds())
	return nil
}

// resolver names addresses where the timeline stands.
func (d *demonstration) resolver() (*loader.Resolver, debug.Memory) {
	g := debug.Memory{Space: d.cur.Machine().Mem}
	return loader.NewResolver(debug.Regions(d.rec, d.cur.Machine().Mem), g, d.files), g
}

// crash shows the end of the recording.
func (d *demonstration) crash() error {
	stop, err := d.cur.ToEnd(d.ctx)
	if err != nil {
		return err
	}
	st := &d.cur.Machine().CPU.State
	r, g := d.resolver()
	what := "the end"
	if stop.Event != nil {
		what = abi.Siginfo(stop.Event.Siginfo).String()
	}
	d.say("2. The crash, at position %s:\n\n   %s\n   %s\n\n", d.cur.Position(), what, debug.Disassemble(g, st.RIP))
	regs := loader.Regs(st)
	for i, l := range debug.Backtrace(r, &regs) {
		d.say("%s\n", strings.TrimRight(fmt.Sprintf("   #%d %s %s", i, l, l.Source()), " "))
	}
	d.say("\n")
	d.excerpt(r.At(st.RIP).Line)
	return nil
}

// excerpt prints the source around a line.
func (d *demonstration) excerpt(line int) {
	for n := max(line-3, 1); n <= min(line+2, len(d.source)); n++ {
		arrow := "  "
		if n == line {
			arrow = "->"
		}
		d.say("%s\n", strings.TrimRight(fmt.Sprintf("   %s %3d  %s", arrow, n, strings.ReplaceAll(d.source[n-1], "\t", "    ")), " "))
	}
	d.say("\n")
}

// cause finds where the bad pointer was loaded from, and who stored it there.
func (d *demonstration) cause() error {
	end := d.cur.Position()
	p, err := debug.FindOrigin(d.ctx, d.cur)
	if err != nil {
		return err
	}
	d.watched = p.Addr
	d.say("3. %%%s = %#x is no pointer. Stepping back: it was loaded from %#x by\n   \"%s\". Who has written that? Going back from the crash with a\n   watchpoint on it:\n\n",
		p.Reg, p.Value, p.Addr, p.Load)
	began := time.Now()
	d.cur.SetWatches([]mem.Watch{{Addr: p.Addr, Len: 8, Kind: mem.WatchWrite}})
	stop, err := d.cur.ReverseContinue(d.ctx)
	if err != nil {
		return err
	}
	if stop.Reason != replay.StopWatch {
		return fmt.Errorf("the demonstration found no store to %#x", p.Addr)
	}
	st := &d.cur.Machine().CPU.State
	r, g := d.resolver()
	at := r.Stack(st.RIP)
	d.say("   %s instructions before the crash, found in %.2f s, at position %s:\n   %s %s: %s\n",
		text.Count(d.distance(d.cur.Position(), end)), time.Since(began).Seconds(), d.cur.Position(), at[0], at[0].Source(), debug.Disassemble(g, st.RIP))
	for _, h := range stop.Hits {
		d.say("   the 8 bytes at %#x became %#x\n", h.Watch.Addr, p.Value)
		break
	}
	d.say("\n")
	d.excerpt(at[0].Line)
	d.say("   That store is meant for readings[], which has 16 elements, and this is the\n   17th: the test below it lets s->at reach WINDOW. Behind readings[] lies next.\n\n")
	return nil
}

// distance returns the instructions between two positions.
func (d *demonstration) distance(from, to checkpoint.Position) uint64 {
	n := to.Instr - from.Instr
	for id := from.Interval; id < to.Interval; id++ {
		n += d.counts[id]
	}
	return n
}

// sayGDB says what to type to see the same in gdb.
func (d *demonstration) sayGDB(dir string, extracted bool) {
	d.say("4. The same in gdb, on any machine:\n\n")
	if !extracted {
		d.say("   vplayd demo --extract %s\n", dir)
	}
	d.say(`   vplayd serve --symbols %s %s
   gdb -ex 'directory %s' -ex 'target remote :1234'

   (gdb) backtrace
   (gdb) print *s                     an error: that memory does not exist
   (gdb) watch *(long *) %#x
   (gdb) reverse-continue             to the store
   (gdb) backtrace
   (gdb) print *s
`, dir, filepath.Join(dir, demoRecording), dir, d.watched)
}

// offerGDB goes on in gdb when there is one and the user wants it.
func offerGDB(c *cobra.Command, path, dir string) error {
	gdb := envOr("VPLAY_GDB", "gdb")
	if !isInstalled(gdb) {
		return nil
	}
	fmt.Fprintf(c.OutOrStdout(), "\nPress Enter to go on in gdb now, or q and Enter to leave it: ")
	if !pressedEnter() {
		return nil
	}
	return replayGDB(c, []string{path}, []string{"-iex", "directory " + dir}, gdb, serveFlags{symbols: symbolFlags{dirs: []string{dir}, noLocal: true}, memory: 1 << 10})
}

// isInstalled reports whether a command is there.
func isInstalled(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// pressedEnter reads a line and reports whether it is blank. The end of the
// input is not a line.
func pressedEnter() bool {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err == nil && strings.TrimSpace(line) == ""
}
