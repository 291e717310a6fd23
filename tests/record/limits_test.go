//go:build linux && amd64

package record

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// Programs, and vplayd itself, at the limits of what they may have: the program ends as by itself, and vplayd says what it
// could not keep, and what helps.

var (
	limitThreads   = flag.Int("limit-threads", 200, "how many threads the program of TestLimits makes")
	limitProcesses = flag.Int("limit-processes", 60, "how many processes its user may have (ulimit -u)")
)

// vplaydFolder is where vplayd builds the command, until the tests end.
var vplaydFolder string

// removeVplayd removes it.
func removeVplayd() {
	if vplaydFolder != "" {
		_ = os.RemoveAll(vplaydFolder) // it is in the folder for temporary files
	}
}

// vplayd builds the command, which every user may execute.
var vplayd = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vplayd")
	if err != nil {
		return "", err
	}
	vplaydFolder = dir
	path, err := tool.BuildShipped(dir)
	if err != nil {
		return "", err
	}
	return path, os.Chmod(dir, 0o755) //nolint:gosec // another user executes what is in it
})

// limited is how a program ended under limits, and what came on standard error.
type limited struct {
	outcome
	stderr string
}

// underLimits runs a command in a folder, behind commands of a shell that set limits, as a user with the number uid, or as
// this one for 0.
func underLimits(t *testing.T, dir, limits string, uid int, args ...string) (l limited) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, need.Program(t, "bash"), append([]string{"-c", "ulimit -c 0; " + limits + ` exec "$@"`, "bash"}, args...)...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its status says how
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	l.out, l.stderr, l.code = out.String(), errs.String(), ws.ExitStatus()
	if ws.Signaled() {
		l.sig = int(ws.Signal())
		l.code = 128 + l.sig
	}
	return l
}

// TestLimits runs programs at limits by themselves and recorded.
func TestLimits(t *testing.T) {
	need.Recorder(t)
	command, err := vplayd()
	if err != nil {
		t.Fatal(err)
	}
	atlimits, threads := compile(t, "atlimits"), compile(t, "manythreads")
	openToAll(t, filepath.Dir(atlimits))
	nproc := fmt.Sprintf("ulimit -u %d;", *limitProcesses)
	const noFile = `"?error"?: .*nothing recorded: .*file too large\n.*hint: raise the limit on the size of files`
	for _, c := range []struct {
		name   string
		limits string   // commands of a shell
		flags  []string // of record
		args   []string
		other  bool   // as a user with no other processes
		says   string // on standard error, where there is no recording
	}{
		{"no limit", "", nil, []string{atlimits, "memory", "1"}, false, ""},
		{"the size of files", "ulimit -f 64;", nil, []string{atlimits, "memory", "1"}, false, noFile},
		{"the size of files, all kept", "ulimit -f 64;", []string{"--keep", "always"}, []string{atlimits, "memory", "1"}, false, noFile},
		{"no files at all", "ulimit -f 0;", nil, []string{atlimits, "memory", "1"}, false, noFile},
		{"the ring", "", []string{"--ring-bytes", "100000", "--interval", "10ms"}, []string{atlimits, "memory", "20"}, false, ""},
		{"threads", "", nil, []string{threads, strconv.Itoa(*limitThreads), "crash"}, false, ""},
		{"threads, no crash", "", []string{"--keep", "always"}, []string{threads, strconv.Itoa(*limitThreads)}, false, ""},
		{"processes", nproc, nil, []string{atlimits, "processes"}, true, ""},
		{"processes that make processes", nproc, nil, []string{atlimits, "bomb"}, true, ""},
		{"address space", "", nil, []string{atlimits, "space"}, false, ""},
		{"the recorder's address space", "ulimit -v 4000000;", nil, []string{atlimits, "memory", "1"}, false, ""},
		{"descriptors", "ulimit -n 40;", nil, []string{atlimits, "files"}, false, ""},
		{"processor time", "ulimit -St 1;", nil, []string{atlimits, "memory", "80"}, false, ""}, // the recorder takes more, the program less
	} {
		for _, agent := range []string{"off", "on"} {
			t.Run(c.name+", agent "+agent, func(t *testing.T) {
				if strings.HasPrefix(c.limits, "ulimit -St") {
					need.Machine(t, "page faults that cost less than 5 us: the program has one for each page in each interval", !need.DearPages())
				}
				uid := 0
				if c.other {
					need.Machine(t, "root, to run programs as another user", os.Getuid() == 0)
					uid = freeUser(t)
				}
				dir := t.TempDir()
				if uid != 0 {
					openToAll(t, dir)
					if err := os.Chown(dir, uid, -1); err != nil {
						t.Fatal(err)
					}
				}
				want := underLimits(t, dir, c.limits, uid, c.args...)
				args := slices.Concat([]string{command, "record", "--agent", agent, "--slim", "never", "-o", "x.vplay"}, c.flags, []string{"--"}, c.args)
				got := underLimits(t, dir, c.limits, uid, args...)
				same(t, got.outcome, want.outcome)
				if want.code == 0 || want.out == "" && c.name != "processor time" {
					t.Fatalf("by itself: %+v", want)
				}
				left, err := filepath.Glob(filepath.Join(dir, "*"))
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case c.says != "":
					if !regexp.MustCompile(c.says).MatchString(got.stderr) || len(left) != 0 {
						t.Errorf("vplayd left %q and said %s", left, got.stderr)
					}
				case len(left) == 1:
					t.Log(verify(t, left[0]))
				default:
					t.Errorf("vplayd left %q and said %s", left, got.stderr)
				}
				if t.Failed() {
					t.Log(tail(got.stderr))
				}
			})
		}
	}
}

// TestSmallRing asks for snapshots of a program whose ring holds next to nothing: each is whole, as is what is kept of its crash.
func TestSmallRing(t *testing.T) {
	need.Recorder(t)
	command, err := vplayd()
	if err != nil {
		t.Fatal(err)
	}
	prog := compile(t, "atlimits")
	for _, agent := range []string{"off", "on"} {
		t.Run("agent "+agent, func(t *testing.T) {
			dir := t.TempDir()
			want := underLimits(t, dir, "", 0, prog, "memory", "60")
			snapshots := make(chan int, 1)
			over := make(chan struct{})
			go func() {
				n := 0
				defer func() { snapshots <- n }()
				for {
					select {
					case <-over:
						return
					case <-time.After(time.Millisecond):
					}
					pids, err := processesOf(prog)
					if err != nil {
						t.Error(err)
						return
					}
					for _, pid := range pids {
						if exec.Command(command, "snapshot", "-q", "-o", filepath.Join(dir, fmt.Sprintf("s%d.vplay", n)), strconv.Itoa(pid)).Run() == nil {
							n++
						}
					}
				}
			}()
			got := underLimits(t, dir, "", 0, command, "record", "--agent", agent, "--ring-bytes", "20000", "--interval", "10ms", "--slim", "never", "-o", "x.vplay", "--", prog, "memory", "60")
			close(over)
			n := <-snapshots
			same(t, got.outcome, want.outcome)
			list, err := filepath.Glob(filepath.Join(dir, "*.vplay"))
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 || len(list) != n+1 {
				t.Errorf("%d snapshots, files %q; vplayd said %s", n, list, got.stderr)
			}
			for _, path := range list[max(0, len(list)-4):] { // of many more each takes a second
				t.Log(filepath.Base(path), verify(t, path))
			}
		})
	}
}

// openToAll lets every user into a temporary folder.
func openToAll(t *testing.T, dir string) {
	t.Helper()
	for ; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // that is what is wanted
			t.Fatal(err)
		}
	}
}

// freeUser returns a user without processes.
func freeUser(t *testing.T) int {
	t.Helper()
	const from, to = 54000, 54999
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, name := range statuses {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(b)) {
			if ids, is := strings.CutPrefix(line, "Uid:"); is {
				used[strings.Fields(ids)[0]] = true
			}
		}
	}
	for uid := from; uid < to; uid++ {
		if !used[strconv.Itoa(uid)] {
			return uid
		}
	}
	t.Fatal("no user without processes")
	return 0
}

// TestCopiesKilled: where memory gets low the kernel kills the copies of the program that the recorder keeps, which ask for that
// (oom_score_adj). The program does not notice, and what can be had is recorded. Intervals of a program that makes no call
// end in its code, where replay needs to know what memory was at their start.
func TestCopiesKilled(t *testing.T) {
	need.Recorder(t)
	command, err := vplayd()
	if err != nil {
		t.Fatal(err)
	}
	prog := compile(t, "atlimits")
	for _, agent := range []string{"off", "on"} {
		for _, c := range []struct{ keep, does string }{{"crash", "memory"}, {"always", "memory"}, {"always", "quiet"}} {
			keep := c.keep
			t.Run("agent "+agent+", keep "+keep+", "+c.does, func(t *testing.T) {
				dir := t.TempDir()
				want := underLimits(t, dir, "", 0, prog, c.does, "40")
				done := make(chan struct{})
				killed := 0
				go func() {
					defer close(done)
					for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
						pids, err := processesOf(prog)
						if err != nil {
							t.Error(err)
							return
						}
						for _, pid := range pids {
							score, _ := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
							if strings.TrimSpace(string(score)) == "1000" && syscall.Kill(pid, syscall.SIGKILL) == nil {
								killed++
							}
						}
						if _, err := os.Stat(filepath.Join(dir, "over")); err == nil {
							return
						}
					}
				}()
				got := underLimits(t, dir, "", 0, command, "record", "--agent", agent, "--keep", keep, "--interval", "10ms", "--slim", "never", "-o", "x.vplay", "--", prog, c.does, "40")
				if err := os.WriteFile(filepath.Join(dir, "over"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				<-done
				same(t, got.outcome, want.outcome)
				if killed == 0 {
					t.Error("no copy was killed")
				}
				t.Logf("%d killed; vplayd said: %s", killed, got.stderr)
				path := filepath.Join(dir, "x.vplay")
				switch _, err := os.Stat(path); {
				case err == nil:
					t.Log(verify(t, path))
				case keep == "always" || !strings.Contains(got.stderr, "nothing recorded: memory ran short") || !strings.Contains(got.stderr, "--keep always"):
					t.Error("it does not say what became of the recording")
				}
			})
		}
	}
}
