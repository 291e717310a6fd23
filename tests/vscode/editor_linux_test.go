package vscode

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vplay/tests/internal/browser"
)

// The editor's server and the browser, for the length of a test.

// settings are the user's: nothing is looked for on the network, and the page is calm.
const settings = `{
	"debug.internalConsoleOptions": "neverOpen",
	"extensions.autoCheckUpdates": false,
	"extensions.autoUpdate": false,
	"extensions.ignoreRecommendations": true,
	"files.simpleDialog.enable": true,
	"git.enabled": false,
	"remote.autoForwardPorts": false,
	"telemetry.telemetryLevel": "off",
	"update.mode": "none",
	"workbench.enableExperiments": false,
	"workbench.startupEditor": "none",
	"workbench.tips.enabled": false
}`

// editor is a running VS Code and the process that plays scenes in it.
type editor struct {
	t     *testing.T
	in    io.WriteCloser
	out   *bufio.Scanner
	shots string // folder of pictures
}

// pack packs the extension by vsce, from a copy with the licence, and returns the file.
func pack(t *testing.T, npm string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "vplay.vsix")
	dir, err := filepath.Abs(filepath.Join("..", "..", "gdbstub", "dap", "vscode"))
	if err != nil {
		t.Fatal(err)
	}
	vsce, err := filepath.Rel(dir, filepath.Join(npm, "node_modules", ".bin", "vsce")) // as the recipe names it
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("./pack.sh", vsce, file)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pack.sh: %v\n%s", err, out)
	}
	return file
}

// packNull packs the debugger that does nothing.
func packNull(t *testing.T, npm string) string {
	t.Helper()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "null.vsix")
	for _, name := range []string{"package.json", "extension.js"} {
		b, err := os.ReadFile(filepath.Join("null", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(npm, "node_modules", ".bin", "vsce"), "package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", file)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("vsce: %v\n%s", err, out)
	}
	return file
}

// start starts a fresh editor with extensions, and a browser. stories go to the scenes.
func start(t *testing.T, stories map[string]story, packs ...func(t *testing.T, npm string) string) *editor {
	t.Helper()
	npm := browser.Installed(t)
	dir := t.TempDir()
	port := freePort(t)
	user, extensions, home := filepath.Join(dir, "user"), filepath.Join(dir, "extensions"), filepath.Join(dir, "home")
	for _, d := range []string{filepath.Join(user, "User"), extensions, home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(user, "User", "settings.json"), []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "EXTENSIONS_GALLERY={}",
		"VSCODE_CLI=1", // else it asks a login shell for the PATH
		"PATH="+filepath.Dir(vplayd)+":"+os.Getenv("PATH"))
	proxy := deafProxy(t)
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		env = append(env, name+"="+proxy)
	}
	entry := filepath.Join(npm, "node_modules", "code-server", "out", "node", "entry.js")
	common := []string{entry, "--user-data-dir", user, "--extensions-dir", extensions}
	for _, pack := range packs {
		install := exec.Command("node", append(common, "--install-extension", pack(t, npm))...)
		install.Env = env
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("install the extension: %v\n%s", err, out)
		}
	}
	serve := exec.Command("node", append(common, "--auth", "none", "--bind-addr", fmt.Sprintf("127.0.0.1:%d", port),
		"--disable-telemetry", "--disable-update-check", "--disable-workspace-trust")...)
	serve.Env = env
	run(t, serve)
	awaitServer(t, port)
	e := &editor{t: t, shots: *shots}
	if e.shots == "" {
		e.shots = filepath.Join(os.TempDir(), "vplay-shots")
	}
	e.drive(npm, map[string]any{
		"url": fmt.Sprintf("http://127.0.0.1:%d", port), "playwright": filepath.Join(npm, "node_modules", "playwright-core"),
		"stories": stories, "shots": e.shots, "all": *shots != "", "vplayd": vplayd,
	}, env)
	return e
}

// drive starts the process that plays scenes.
func (e *editor) drive(npm string, config map[string]any, env []string) {
	t := e.t
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(e.shots, 0o755); err != nil {
		t.Fatal(err)
	}
	driver := exec.Command("node", "driver.js", string(text))
	driver.Env = env
	if e.in, err = driver.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e.out = bufio.NewScanner(out)
	e.out.Buffer(nil, 1<<20)
	run(t, driver)
}

// result is what the driver says of a scene.
type result struct {
	Error   string
	Picture string
	Notes   []string
}

// play plays a scene and fails the test when it fails.
func (e *editor) play(t *testing.T, scene string, argument int) {
	t.Helper()
	began := time.Now()
	if _, err := fmt.Fprintf(e.in, "%s %d\n", scene, argument); err != nil {
		t.Fatal(err)
	}
	if !e.out.Scan() {
		t.Fatalf("the driver has ended: %v", e.out.Err())
	}
	var r result
	if err := json.Unmarshal(e.out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, e.out.Bytes())
	}
	for _, n := range r.Notes {
		t.Log(n)
	}
	t.Logf("played in %v", time.Since(began).Round(time.Millisecond))
	if r.Error != "" {
		t.Errorf("%s\npicture: %s", r.Error, r.Picture)
	}
}

// run starts a command in a process group of its own, which ends with the test.
func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var log strings.Builder
	if cmd.Stderr == nil {
		cmd.Stderr = &log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // it may have ended
		late := time.AfterFunc(5*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		_ = cmd.Wait() // ended by a signal
		late.Stop()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of the group
		if t.Failed() {
			said := log.String()
			t.Logf("%s said:\n%s", filepath.Base(cmd.Args[1]), said[max(0, len(said)-2000):])
		}
	})
}

// deafProxy returns the address of a proxy that nobody may use.
func deafProxy(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the editor asks the network: %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusForbidden)
	})}
	go s.Serve(l)                       // ends with the listener
	t.Cleanup(func() { _ = s.Close() }) // nothing was in it
	return "http://" + l.Addr().String()
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// awaitServer waits until the editor's server answers.
func awaitServer(t *testing.T, port int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		r, err := (&http.Client{Transport: &http.Transport{}}).Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", port))
		if err == nil {
			_ = r.Body.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the editor's server does not answer: %v", err)
		}
	}
}
