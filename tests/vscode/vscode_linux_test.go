package vscode

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vplay/tests/internal/browser"
	"vplay/tests/need"
)

var (
	shots   = flag.String("shots", "", "keep a picture of each scene's end in this `FOLDER`")
	long    = flag.Bool("long", false, "play the scenes that take long, too")
	latency = flag.Int("latency", 0, "how often TestLatency steps back, and then wants each of the bounds")
)

// story is a folder that is opened in the editor.
type story struct {
	Folder string         `json:"folder"`
	Lines  map[string]int `json:"lines"` // of the source, by the mark on them
}

// tell makes a folder with a program of tests/guest, its source and its recording. It is
// called NAME, and so are program and recording.
func tell(t *testing.T, source string, flags ...string) story {
	t.Helper()
	compiler := "gcc"
	if strings.HasSuffix(source, ".cc") {
		compiler = "g++"
	}
	need.Program(t, compiler)
	name := strings.TrimSuffix(source, filepath.Ext(source))
	s := story{Folder: filepath.Join(t.TempDir(), name), Lines: map[string]int{}}
	text, err := os.ReadFile(filepath.Join("..", "guest", source))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if _, mark, ok := strings.Cut(line, "// "); ok {
			s.Lines[strings.TrimSpace(mark)] = i + 1
		}
	}
	if err := os.MkdirAll(s.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(t, source, text)
	build := exec.Command(compiler, append([]string{"-g", "-w", "-O0", "-o", name}, append(flags, source)...)...)
	build.Dir = s.Folder
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	record := exec.Command(vplayd, "record", "-q", "--slim", "now", "-o", name+".vplay", "--", "./"+name)
	record.Dir = s.Folder
	out, _ := record.CombinedOutput() // it ends as the program does
	if _, err := os.Stat(filepath.Join(s.Folder, name+".vplay")); err != nil {
		t.Fatalf("nothing was recorded: %v\n%s", err, out)
	}
	return s
}

func (s *story) write(t *testing.T, name string, content []byte) {
	t.Helper()
	p := filepath.Join(s.Folder, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// beside makes a folder with a file of another story's recording in it, and nothing else.
func (s *story) beside(t *testing.T, change func([]byte) []byte) story {
	t.Helper()
	name := filepath.Base(s.Folder) + ".vplay"
	b, err := os.ReadFile(filepath.Join(s.Folder, name))
	if err != nil {
		t.Fatal(err)
	}
	out := story{Folder: t.TempDir()}
	out.write(t, name, change(b))
	return out
}

// stripped makes a story without symbols: neither program nor source is on this machine any more.
func stripped(t *testing.T) story {
	t.Helper()
	s := tell(t, "ledger.c", "-s")
	out := s.beside(t, func(b []byte) []byte { return b })
	if err := os.RemoveAll(s.Folder); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestVSCode plays each scene in the real editor.
func TestVSCode(t *testing.T) {
	browser.Installed(t)
	ledger := tell(t, "ledger.c")
	stories := map[string]story{
		"ledger":   ledger,
		"ample":    tell(t, "ample.cc"),
		"busy":     tell(t, "busy.c"),
		"family":   tell(t, "family.c"),
		"stripped": stripped(t),
		"damaged":  ledger.beside(t, func(b []byte) []byte { return b[:len(b)/2] }),
		"missing":  ledger.beside(t, func(b []byte) []byte { return b }),
	}
	missing := stories["missing"]
	missing.write(t, ".vscode/settings.json", []byte(`{"vplay.vplayd": "no-such-vplayd"}`))
	e := start(t, stories, pack)
	scenes := "page crash back damaged missing" // the others take minutes, and a machine with nothing else to do
	if *long {
		scenes += " culprit conditions whowrote timeline call disassembly map stripped frames ample processes hover two moving completion"
	}
	for _, scene := range strings.Fields(scenes) {
		t.Run(scene, func(t *testing.T) { e.play(t, scene, 0) })
	}
}

// TestLate plays what no scene can: answers of the server that come late. Any node has what it takes.
func TestLate(t *testing.T) {
	need.Program(t, "node")
	if out, err := exec.Command("node", "--test", "late.test.js").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLatency measures how long a step back takes, from the key to the painted line. Beside
// other tests the figure says nothing: it is taken by the recipe "just vscode".
func TestLatency(t *testing.T) {
	need.Machine(t, "to be asked for by -latency", *latency > 0)
	browser.Installed(t)
	ledger := tell(t, "ledger.c")
	nothing := story{Folder: t.TempDir()}
	text, err := os.ReadFile(filepath.Join(ledger.Folder, "ledger.c"))
	if err != nil {
		t.Fatal(err)
	}
	nothing.write(t, "ledger.c", text)
	nothing.write(t, ".vscode/launch.json", []byte(`{"configurations": [{"type": "null", "request": "launch", "name": "null", "program": "${workspaceFolder}/ledger.c", "internalConsoleOptions": "neverOpen"}]}`))
	e := start(t, map[string]story{"ledger": ledger, "nothing": nothing}, pack, packNull)
	for _, scene := range []string{"startingNothing", "starting", "startingNothing", "starting", "nothing", "latency"} {
		t.Run(scene, func(t *testing.T) { e.play(t, scene, *latency) })
	}
}
