//go:build linux && amd64

package record

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

var (
	kills     = flag.Int("kills", 0, "how often TestKilledOutright kills the recorder of each program")
	guardedBy = flag.String("guardian", "", "the guardian of TestKilledOutright: an executable vplayd, which has one in front of Go's runtime, or none")
)

// guardianVariable says in the environment of recordVerb which executable is the guardian, or that there is to be none.
const guardianVariable = "VPLAY_TEST_GUARDIAN"

// guardian is Options.Guardian of the tests, as vplayd has it.
func guardian() []string {
	switch by := os.Getenv(guardianVariable); by {
	case "":
		return []string{"/proc/self/exe", recorder.GuardVerb}
	case "none":
		return nil
	default:
		return []string{by, recorder.GuardVerb}
	}
}

// orphansVerb makes the test binary the reaper of all that a command leaves behind: MICROSECONDS FILE CLIENT
// COMMAND ARGS... follow. It starts the command, kills it after that time unless that is 0, runs CLIENT, for the shell,
// beside it unless that is empty, and waits for all. What they write goes to the file, with the status of those that end
// otherwise than by exit code 0 or by SIGKILL.
const orphansVerb = "__orphans"

func orphansMain(args []string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	after, err := strconv.Atoi(args[0])
	if err != nil {
		return fail(err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail(err)
	}
	out, err := os.OpenFile(args[1], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fail(err)
	}
	cmd := exec.Command(args[3], args[4:]...)
	cmd.Stdout, cmd.Stderr = out, out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	client := 0
	if args[2] != "" {
		c := exec.Command("/bin/sh", "-c", args[2])
		c.Stdout, c.Stderr = out, out
		if err := c.Start(); err != nil {
			return fail(err)
		}
		client = c.Process.Pid
	}
	if after > 0 {
		time.Sleep(time.Until(start.Add(time.Duration(after) * time.Microsecond)))
		_ = unix.Kill(cmd.Process.Pid, unix.SIGKILL) // not waited for yet
	}
	late := time.AfterFunc(orphansLimit, func() {
		fmt.Fprintln(out, "late")
		killBelow(os.Getpid())
	})
	defer late.Stop()
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case err == unix.EINTR || pid == client:
		case err != nil:
			return 0 // there is none left
		case ws == 0, ws.Signaled() && ws.Signal() == unix.SIGKILL: // the guardian; the recorder, and copies that it has made of the program
		default:
			fmt.Fprintf(out, "end %#x\n", uint32(ws))
		}
	}
}

// orphansLimit is how long the orphans may take.
const orphansLimit = 30 * time.Second

// killBelow kills all descendants of a process.
func killBelow(pid int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range tasks {
		list, _ := os.ReadFile(name)
		for _, f := range strings.Fields(string(list)) {
			child, _ := strconv.Atoi(f)
			killBelow(child)
			_ = unix.Kill(child, unix.SIGKILL)
		}
	}
}

// jobs is a script with jobs in the background.
const jobs = `for i in 1 2 3 4 5 6; do (seq 1 3000 | sort -rn | head -1; exit $i) & p="$p $!"; done
s=0; for j in $p; do wait $j; s=$((s+$?)); done; echo sum $s; ls /usr/bin | wc -l; exit 7`

// httpServer is a server and its clients, in one process.
const httpServer = `package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var served atomic.Int64
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%d", served.Add(1))
	}))
	var wg sync.WaitGroup
	var read atomic.Int64
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 150 {
				r, err := http.Get("http://" + l.Addr().String())
				if err != nil {
					panic(err)
				}
				b, err := io.ReadAll(r.Body)
				if err != nil || len(b) == 0 {
					panic(fmt.Sprint(b, err))
				}
				r.Body.Close()
				read.Add(1)
			}
		}()
	}
	wg.Wait()
	fmt.Println(served.Load(), read.Load())
	os.Exit(7)
}
`

// TestKilledWaiting kills the recorder while threads of the program wait in calls. They go on waiting, get what
// they wait for, and have their CPUs and instructions back, as have children.
func TestKilledWaiting(t *testing.T) {
	need.Recorder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	guest := compile(t, "orphan")
	once := func(t *testing.T, how string) string {
		cmd := exec.Command(guest, "waits")
		if how == "started" {
			cmd = exec.Command(self, recordVerb, filepath.Join(t.TempDir(), "x.vplay"), "50ms", guest, "waits")
		}
		out, errs := orphan(t, cmd, "abcd", func() {
			recording := cmd
			if how == "attached" {
				recording = attach(t, cmd.Process.Pid, attachOptions{Keep: recorder.KeepCrash, UntilCrash: true}).cmd
				time.Sleep(200 * time.Millisecond)
			}
			if how != "" {
				_ = recording.Process.Kill() // not waited for yet
			}
			time.Sleep(450 * time.Millisecond) // the guardian is done by then
		})
		if how != "started" && cmd.ProcessState.ExitCode() != 7 {
			t.Errorf("it ended otherwise: %v", cmd.ProcessState)
		}
		return out + errs
	}
	native := once(t, "")
	for _, how := range []string{"started", "attached"} {
		t.Run(how, func(t *testing.T) {
			want := native
			if how == "started" { // which has had no rseq from the beginning
				want = strings.ReplaceAll(native, "rseq 1", "rseq 0")
			}
			if got := once(t, how); got != want {
				t.Errorf("without its recorder:\n%s\nby itself:\n%s", got, native)
			}
		})
	}
}

// endLine is what the output of orphansVerb says of the program's end.
var endLine = regexp.MustCompile(`(?m)^end 0x.*\n?`)

// TestKilledOutright records programs with a guardian beside the recorder. With -kills it kills the recorder by SIGKILL
// at random moments, and counts the programs that do not go on and end as they do by themselves: that is a
// measurement, for what comes of it depends on time.
func TestKilledOutright(t *testing.T) {
	need.Recorder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	guest := compile(t, "orphan")
	source, server := filepath.Join(t.TempDir(), "server.go"), filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(source, []byte(httpServer), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command("go", "build", "-o", server, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	type kind struct {
		name   string
		args   []string
		client string
	}
	list := []kind{
		{"jobs", []string{need.Program(t, "bash"), "-c", jobs}, ""},
		{"server", []string{server}, ""},
		{"calls", []string{guest, "calls"}, ""},
		{"forks", []string{guest, "forks"}, ""},
		{"tsc", []string{guest, "tsc"}, ""},
		{"many tsc", []string{compile(t, "manytsc", "-pthread"), "20000", "2000"}, ""},
		{"tsc together", []string{compile(t, "manytsc", "-pthread"), "200000", "together"}, ""},
		{"broken", []string{guest, "broken"}, ""},
		{"masks", []string{compile(t, "masks")}, ""},
	}
	if *programs {
		redis, cli := need.Program(t, "redis-server"), need.Program(t, "redis-cli")+" -s SOCKET "
		list = append(list, kind{
			"redis", []string{redis, "--save", "", "--port", "0", "--unixsocket", "SOCKET", "--logfile", "/dev/null"},
			"until " + cli + "ping >/dev/null 2>&1; do sleep 0.01; done; " + cli + "-r 2000 incr x | tail -n 1; " + cli + "shutdown nosave",
		})
	}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			begun := false // the last program that was recorded
			once := func(after time.Duration, recorded bool) (string, time.Duration) {
				dir := t.TempDir()
				named := func(s string) string { return strings.ReplaceAll(s, "SOCKET", filepath.Join(dir, "s")) }
				out := filepath.Join(dir, "out")
				args := []string{orphansVerb, strconv.Itoa(int(after.Microseconds())), out, named(c.client)}
				if recorded {
					args = append(args, self, recordVerb, filepath.Join(dir, "x.vplay"), "50ms")
				}
				for _, a := range c.args {
					args = append(args, named(a))
				}
				cmd := exec.Command(self, args...)
				cmd.Stderr = os.Stderr
				cmd.Env = append(os.Environ(), keepVariable+"="+string(recorder.KeepCrash), begunVariable+"="+filepath.Join(dir, "begun"), guardianVariable+"="+*guardedBy)
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				start := time.Now()
				if err := cmd.Run(); err != nil {
					t.Fatal(err)
				}
				b, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				_, err = os.Stat(filepath.Join(dir, "begun"))
				begun = err == nil
				lines := strings.Split(strings.TrimSpace(string(b)), "\n")
				slices.Sort(lines)
				return strings.Join(lines, "\n"), time.Since(start)
			}
			native, _ := once(0, false)
			whole, took := once(0, true)
			if whole != native {
				t.Fatalf("recorded, and not killed:\n%s\nby itself:\n%s", whole, native)
			}
			bad := 0
			for n := 0; n < *kills; n++ {
				after := rand.N(took)
				got, _ := once(after, true)
				waited := got != native && got == strings.TrimSpace(endLine.ReplaceAllString(native, "")) // by the recorder, for the end
				if !begun || waited {
					n--
					continue
				}
				if got != native {
					bad++
					t.Logf("killed after %v:\n%s\nby itself:\n%s", after, got, native)
				}
			}
			if *kills == 0 {
				return
			}
			fmt.Printf("%s: %d of %d ended otherwise than by themselves (recorded it takes %v)\n", c.name, bad, *kills, took.Round(time.Millisecond))
			if bad > 0 {
				t.Fail()
			}
		})
	}
}
