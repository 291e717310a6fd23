package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vplay/tests/need"
)

// What asks for recordings while a program is recorded.

// recorder is a vplayd that records, in a folder of its own.
type recorder struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
	err bytes.Buffer
}

// startRecorder starts vplayd in dir.
func startRecorder(t *testing.T, dir string, args ...string) *recorder {
	t.Helper()
	need.Recorder(t)
	r := &recorder{t: t, dir: dir, cmd: exec.CommandContext(limited(t, 2*time.Minute), vplayd, args...)}
	r.cmd.Dir, r.cmd.Stderr = dir, &r.err
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
	return r
}

// end waits for its end, and returns its exit code, or 128 and the signal.
func (r *recorder) end() int {
	r.t.Helper()
	_ = r.cmd.Wait() // the state says how
	ws := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// until waits for something to be so.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}

// recordings lists those in a folder whose names are as triggers and services give them.
func recordings(t *testing.T, dir string) (list []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.vplay"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^\w+-\d+-\d{8}T\d{6}\.\d{3}Z\.vplay$`)
	for _, path := range found {
		if name.MatchString(filepath.Base(path)) {
			list = append(list, path)
		}
	}
	return list
}

// verified has vplayd verify recordings.
func verified(t *testing.T, list ...string) {
	t.Helper()
	for _, path := range list {
		if out, err := exec.CommandContext(limited(t, patience), vplayd, "verify", path).CombinedOutput(); err != nil {
			t.Errorf("verify %s: %v\n%s", path, err, out)
		}
	}
}

// touch makes a file.
func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// isGone reports whether the process whose number stands in a file has ended.
func isGone(t *testing.T, dir, name string) bool {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// waits is a program that waits for a file, and then does something.
func waits(then string) []string {
	return []string{"--", "sh", "-c", "echo $$ >pid; while ! test -e go; do sleep 0.01; done; " + then}
}

// TestTriggerCommand has a command tell of a fault, twice: each gives one recording, however often the command
// tells it. The command gets nothing of the program's but its number, and all that it has started ends with it.
func TestTriggerCommand(t *testing.T) {
	dir := t.TempDir()
	command := `echo x >>runs; sleep 1000 &
		test -e left || { echo $VPLAY_PID >asked; ls /proc/self/fd >fds; echo $! >new; mv new left; }
		test -e fault`
	r := startRecorder(t, dir, append([]string{"record", "--no-slim", "--trigger", command, "--trigger-every", "10ms"}, waits("kill -SEGV $$")...)...)
	runs := func() int {
		b, _ := os.ReadFile(filepath.Join(dir, "runs")) // none: it has not run
		return len(b) / 2
	}
	more := func() {
		t.Helper()
		n := runs()
		until(t, "3 runs of the command", func() bool { return runs() >= n+3 })
	}
	more()
	for n := range 2 {
		if got := recordings(t, dir); len(got) != n {
			t.Fatalf("without a fault: %q, and %d faults before", got, n)
		}
		touch(t, dir, "fault")
		until(t, "a recording", func() bool { return len(recordings(t, dir)) == n+1 })
		more()
		if err := os.Remove(filepath.Join(dir, "fault")); err != nil {
			t.Fatal(err)
		}
		more()
	}
	touch(t, dir, "go")
	if code := r.end(); code != 128+int(syscall.SIGSEGV) {
		t.Errorf("the end is %d\n%s", code, &r.err)
	}
	list := recordings(t, dir)
	if len(list) != 2 || strings.Count(r.err.String(), "asked for by --trigger\n") != 2 {
		t.Errorf("recordings %q\n%s", list, &r.err)
	}
	verified(t, append(list, filepath.Join(dir, "sh-1.vplay"))...)
	asked, _ := os.ReadFile(filepath.Join(dir, "asked")) // it was there above
	pid, _ := os.ReadFile(filepath.Join(dir, "pid"))     // likewise
	if !bytes.Equal(asked, pid) {
		t.Errorf("VPLAY_PID is %q, the program is %q", asked, pid)
	}
	if fds, _ := os.ReadFile(filepath.Join(dir, "fds")); string(fds) != "0\n1\n2\n3\n" { // 3 is the folder that ls reads
		t.Errorf("the command's descriptors are %q", fds)
	}
	until(t, "the end of what the command has started", func() bool { return isGone(t, dir, "left") })
}

// TestTriggerCommandHangs: a command that does not end is killed when the program ends, also by Ctrl-C.
func TestTriggerCommandHangs(t *testing.T) {
	dir := t.TempDir()
	command := `echo $$ >self; sleep 1000 & echo $! >child; touch hangs; wait`
	r := startRecorder(t, dir, append([]string{"record", "--no-slim", "--trigger-http", "s", "--trigger", command}, waits("")...)...)
	until(t, "the command runs", func() bool { _, err := os.Stat(filepath.Join(dir, "hangs")); return err == nil })
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := r.end(); code != 128+int(syscall.SIGINT) {
		t.Errorf("the end is %d\n%s", code, &r.err)
	}
	for _, name := range []string{"self", "child"} {
		until(t, "the end of the command", func() bool { return isGone(t, dir, name) })
	}
	if _, err := os.Lstat(filepath.Join(dir, "s")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if list, err := filepath.Glob(filepath.Join(dir, "*vplay*")); err != nil || len(list) != 1 || filepath.Base(list[0]) != "sh-1.vplay" {
		t.Errorf("left: %q, %v", list, err) // a signal has killed the program, which gives a recording
	}
}

// TestTriggerStderr has lines ask for recordings, of which the newest are kept, with no pause between; standard
// error has what it has without a recorder.
func TestTriggerStderr(t *testing.T) {
	dir := t.TempDir()
	lines := `for i in 1 2 3 4; do echo fault $i >&2; echo other >&2; done; exit 3`
	r := startRecorder(t, dir, append([]string{"record", "-q", "--trigger-stderr", "^fault [0-9]$", "--trigger-pause", "0", "--keep-files", "2"}, "--", "sh", "-c", lines)...)
	if code := r.end(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	want, _ := exec.Command("sh", "-c", lines).CombinedOutput() // its exit code is 3
	if r.err.String() != string(want) {
		t.Errorf("standard error:\n%s\nwant:\n%s", &r.err, want)
	}
	list := recordings(t, dir)
	if len(list) != 2 {
		t.Errorf("kept: %q", list)
	}
	verified(t, list...)
}

// TestTriggerStderrPause: within the pause one line counts.
func TestTriggerStderrPause(t *testing.T) {
	dir := t.TempDir()
	r := startRecorder(t, dir, "record", "--trigger-stderr", "fault", "--trigger-pause", "1h", "--", "sh", "-c", "for i in 1 2 3; do echo fault $i >&2; done")
	if code := r.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if list := recordings(t, dir); len(list) != 1 || !strings.Contains(r.err.String(), "asked for by --trigger-stderr: fault 1\n") {
		t.Errorf("%q\n%s", list, &r.err)
	}
}

// client asks at a socket.
func client(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Dial: func(string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
}

// ask makes a request, and returns the code and the answer, which is JSON if it is 200.
func ask(t *testing.T, path, method, url string) (code int, answer map[string]any) {
	t.Helper()
	q, err := http.NewRequest(method, "http://vplayd"+url, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := client(path).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if a.StatusCode == http.StatusOK {
		if err := json.NewDecoder(a.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
	}
	return a.StatusCode, answer
}

// recording waits until GET /status says that the program is recorded.
func recording(t *testing.T, path string) map[string]any {
	t.Helper()
	var status map[string]any
	until(t, "the socket", func() bool { _, err := os.Stat(path); return err == nil })
	until(t, "the program is recorded", func() bool {
		_, status = ask(t, path, "GET", "/status")
		return status["state"] == "recording"
	})
	return status
}

// TestTriggerHTTP has a socket ask for recordings, of a program that is started and of one that runs already;
// many at a time, and between requests that no client makes.
func TestTriggerHTTP(t *testing.T) {
	for _, c := range []string{"record", "attach"} {
		t.Run(c, func(t *testing.T) {
			need.Recorder(t)
			dir := t.TempDir()
			socket := filepath.Join(dir, "s")
			args := append([]string{"record", "-q", "--trigger-http", "s"}, waits("exit 3")...)
			if c == "attach" {
				program := exec.CommandContext(limited(t, 2*time.Minute), "sh", waits("exit 3")[2:]...)
				program.Dir = dir
				if err := program.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = program.Process.Kill(); _ = program.Wait() })
				args = []string{"attach", "-q", "--until-crash", "--trigger-http", "s", strconv.Itoa(program.Process.Pid)}
			}
			r := startRecorder(t, dir, args...)
			status := recording(t, socket)
			if st, err := os.Stat(socket); err != nil || st.Mode().Perm() != 0o600 {
				t.Errorf("the socket: %v, %v", st, err)
			}
			if pid, _ := os.ReadFile(filepath.Join(dir, "pid")); c == "attach" && strings.TrimSpace(string(pid)) != strconv.Itoa(int(status["pid"].(float64))) {
				t.Errorf("status %v, the program is %s", status, pid)
			}
			code, answer := ask(t, socket, "POST", "/snapshot")
			path, _ := answer["path"].(string)
			if code != http.StatusOK || path == "" {
				t.Fatalf("POST /snapshot: %d, %v", code, answer)
			}
			if filepath.Dir(path) != dir {
				t.Errorf("the answer is %q, in %s", path, dir)
			}
			verified(t, path)
			hostile(t, socket)
			many(t, socket)
			if _, status := ask(t, socket, "GET", "/status"); status["last"].(map[string]any)["trigger"] != "trigger-http" {
				t.Errorf("status %v", status)
			}
			verified(t, recordings(t, dir)...)
			touch(t, dir, "go")
			if code := r.end(); code != 3 && c == "record" {
				t.Errorf("the end is %d\n%s", code, &r.err)
			}
			if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket is left: %v", err)
			}
		})
	}
}

// TestTriggerLetGo asks for a recording of a program that was let go, for it has become one that gets other
// privileges: who asks is told at once, while the program runs on.
func TestTriggerLetGo(t *testing.T) {
	need.Machine(t, "root, to make a setuid program", os.Geteuid() == 0)
	dir := t.TempDir()
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "sh")
	if err := errors.Join(os.WriteFile(name, shell, 0o755), os.Chown(name, 65534, 65534), os.Chmod(name, 0o755|os.ModeSetuid), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	r := startRecorder(t, dir, "record", "--trigger-http", "s", "--", "/bin/sh", "-c", `exec ./sh -c "echo >runs; while ! test -e go; do sleep 0.01; done; exit 3"`)
	until(t, "the program runs", func() bool { _, err := os.Stat(filepath.Join(dir, "runs")); return err == nil })
	if code, answer := ask(t, filepath.Join(dir, "s"), "POST", "/snapshot"); code != http.StatusServiceUnavailable {
		t.Errorf("POST /snapshot: %d, %v", code, answer)
	}
	touch(t, dir, "go")
	if code := r.end(); code != 3 {
		t.Errorf("the end is %d\n%s", code, &r.err)
	}
}

// hostile sends what is refused.
func hostile(t *testing.T, socket string) {
	t.Helper()
	for _, c := range []struct {
		method, url string
		want        int
	}{{"GET", "/snapshot", 405}, {"POST", "/status", 405}, {"POST", "/", 404}, {"DELETE", "/snapshot/../snapshot", 405}} {
		if code, _ := ask(t, socket, c.method, c.url); code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.url, code, c.want)
		}
	}
	for _, text := range []string{"\x00\xff\n\n", "POST /snapshot HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("b", 1<<20), "POST /snapshot HTTP/9.9\r\n\r\n"} {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, text) // it may be closed in the middle
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		b, _ := io.ReadAll(conn) // likewise
		if bytes.Contains(b, []byte("200 OK")) || bytes.Contains(b, []byte("path")) {
			t.Errorf("%.20q is answered by %s", text, b)
		}
		conn.Close()
	}
	for range 40 { // more than are served at a time, and they say nothing
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
}

// many asks for several recordings at a time: each is written, or refused because another is being written.
func many(t *testing.T, socket string) {
	t.Helper()
	var wait sync.WaitGroup
	codes := make(chan int, 8)
	for range cap(codes) {
		wait.Go(func() {
			a, err := client(socket).Post("http://vplayd/snapshot", "", nil)
			if err != nil {
				t.Error(err)
				return
			}
			a.Body.Close()
			codes <- a.StatusCode
		})
	}
	wait.Wait()
	close(codes)
	ok := 0
	for code := range codes {
		switch code {
		case http.StatusOK:
			ok++
		case http.StatusServiceUnavailable:
		default:
			t.Errorf("code %d", code)
		}
	}
	if ok == 0 {
		t.Error("none was written")
	}
}

// TestTriggerRefused: flags that do not fit are errors with hints, before the program runs.
func TestTriggerRefused(t *testing.T) {
	need.Recorder(t)
	dir := t.TempDir()
	touch(t, dir, "taken")
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "--trigger-every 0s", []string{"--trigger", "true", "--trigger-every", "0"}},
		{2, "--trigger-pause", []string{"--trigger-stderr", "x", "--trigger-pause", "-1s"}},
		{2, "--trigger-stderr: ", []string{"--trigger-stderr", "("}},
		{2, "--keep-files 0", []string{"--keep-files", "0"}},
		{2, "--max-use", []string{"--max-use", "much"}},
		{2, "with --keep always", []string{"--trigger", "true", "--keep", "always"}},
		{2, "with --tries", []string{"--trigger", "true", "--tries", "2"}},
		{125, "file already exists", []string{"--trigger-http", "taken"}},
		{125, "no such file", []string{"--trigger-http", "none/s"}},
		{2, "--service without .STATE_DIRECTORY", []string{"--service"}},
		{125, "taken", []string{"--service", "-o", "taken"}},
	} {
		r := startRecorder(t, dir, append(append([]string{"record"}, c.args...), "--", "touch", "ran")...)
		code := r.end()
		if lines := strings.Split(r.err.String(), "\n"); code != c.code || len(lines) != 3 || !regexp.MustCompile(c.want).MatchString(lines[0]) || !strings.HasPrefix(lines[1], "vplayd: hint: ") {
			t.Errorf("%q: exit code %d\n%s", c.args, code, &r.err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the program has run: %v", err)
	}
}
