//go:build linux && amd64

package record

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
	"vplay/replay"
	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// outcome is how a program's run looked from outside.
type outcome struct {
	out  string // standard output and error
	code int    // exit code, 128+sig when killed
	sig  int
}

// installed returns a command whose program this machine has: python3 is the
// interpreter, not a script that finds it.
func installed(t *testing.T, args []string) []string {
	t.Helper()
	if args[0] == "python3" {
		return append([]string{need.Python(t)}, args[1:]...)
	}
	need.Program(t, args[0])
	return args
}

// compile builds a guest of tests/guest/record.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	gcc := need.Program(t, "gcc")
	out := filepath.Join(t.TempDir(), filepath.Base(name))
	args := append([]string{"-g", "-O1", "-w", "-o", out, filepath.Join("..", "guest", "record", name+".c"), "-lpthread"}, flags...)
	if b, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, b)
	}
	return out
}

// run is one program to run natively and recorded.
type run struct {
	args  []string
	dir   string
	stdin string // a file, or "" for nothing
	// kick is called with the program's process once it runs.
	kick    func(pid int)
	opt     recorder.Options
	noAgent bool // also where all recordings are made with it
}

func (r *run) open(t *testing.T) (stdin *os.File) {
	t.Helper()
	name := r.stdin
	if name == "" {
		name = os.DevNull
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// collect reads a pipe to its end, which comes when the last child is gone.
func collect(t *testing.T, f func(w *os.File)) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, r)
		done <- b.String()
	}()
	f(w)
	w.Close()
	return <-done
}

var underAgent = flag.Bool("agent", false, "have the agent make frequent calls in all recordings")

var tscAfter = flag.Int("tsc-after", 0, "after how many switches to its threads a process's code is looked through for RDTSC, where a test does not say")

var agentAfter = flag.Int("agent-after", 0, "after how many calls a process gets the agent, where a test does not say")

var forceEvery = flag.Duration("force-every", 0, "end an interval by force so often, where a test does not say")

var untrapped = flag.Bool("untrapped", false, "let programs execute CPUID, as on a CPU that cannot make it fault")

// limit bounds one run of a program.
var limit = 300 * time.Second

// native runs the program by itself.
func (r *run) native(t *testing.T) outcome {
	t.Helper()
	var o outcome
	o.out = collect(t, func(w *os.File) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		cmd := exec.CommandContext(ctx, r.args[0], r.args[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = r.open(t), w, w, r.dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var kick sync.WaitGroup
		if r.kick != nil {
			kick.Go(func() { r.kick(cmd.Process.Pid) })
		}
		_ = cmd.Wait()
		kick.Wait()
		ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
		o.code = ws.ExitStatus()
		if ws.Signaled() {
			o.sig = int(ws.Signal())
			o.code = 128 + o.sig
		}
	})
	return o
}

// recorded runs the program under the recorder.
func (r *run) recorded(t *testing.T) (outcome, recorder.Result) {
	t.Helper()
	need.Recorder(t)
	var res recorder.Result
	var err error
	o := r.opt
	o.Args, o.Dir, o.Guardian = r.args, r.dir, guardian()
	o.NoTrapCPUID = o.NoTrapCPUID || *untrapped
	o.Agent, o.AgentAfter = o.Agent || *underAgent && !r.noAgent, cmp.Or(o.AgentAfter, *agentAfter)
	o.TSCAfter = cmp.Or(o.TSCAfter, *tscAfter)
	if o.ForceEvery == 0 {
		o.ForceEvery = *forceEvery
	}
	if o.Keep == "" {
		o.Keep = recorder.KeepAlways
	}
	o.Path = filepath.Join(t.TempDir(), "out.vplay")
	o.Logger = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
	var kick sync.WaitGroup // it may fail the test, which must not be over then
	if r.kick != nil {
		o.Started = func(pid int) { kick.Go(func() { r.kick(pid) }) }
	}
	out := collect(t, func(w *os.File) {
		o.Files = []*os.File{r.open(t), w, w}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		res, err = recorder.Run(ctx, o)
		kick.Wait()
	})
	if err != nil {
		t.Fatalf("recorder: %v", err)
	}
	if res.Stats.MapDrift != 0 {
		t.Errorf("the map model drifted %d times: %s", res.Stats.MapDrift, res.Stats.MapDriftNote)
	}
	return outcome{out, res.ExitCode, res.Signal}, res
}

// verified is what verifying a recording gave.
type verified struct {
	intervals int
	insns     uint64
	took      time.Duration
}

func (v verified) String() string {
	return fmt.Sprintf("%d intervals, %.1f M instructions, verified in %.2f s", v.intervals, float64(v.insns)/1e6, v.took.Seconds())
}

// verify replays a recording and reports every divergence.
func verify(t *testing.T, path string) verified {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	began := time.Now()
	results, err := tool.Verify(ctx, rec, replay.VerifyOptions{})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	v := verified{intervals: len(results), took: time.Since(began)}
	exact := map[uint32]bool{}
	for _, r := range results {
		v.insns += r.Instructions
		exact[r.Interval] = r.Err == nil
		if r.Err != nil {
			t.Errorf("interval %d: %v", r.Interval, r.Err)
		}
	}
	rows.add(rec, exact)
	return v
}

// same compares what a program did natively and recorded.
func same(t *testing.T, got, want outcome) {
	t.Helper()
	if got.code != want.code || got.sig != want.sig {
		t.Errorf("recorded: code %d signal %d, native: code %d signal %d", got.code, got.sig, want.code, want.sig)
	}
	if got.out != want.out {
		t.Errorf("output differs\nrecorded:\n%s\nnative:\n%s", tail(got.out), tail(want.out))
	}
}

// tail returns the end of a long text.
func tail(s string) string {
	const most = 2000
	if len(s) > most {
		s = "..." + s[len(s)-most:]
	}
	return strings.ToValidUTF8(s, "?")
}

// output returns what a command prints.
func output(args ...string) (string, error) {
	b, err := exec.Command(args[0], args[1:]...).Output()
	return string(b), err
}
