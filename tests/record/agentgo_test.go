//go:build linux && amd64

package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// goFiles is a Go program whose goroutines read files, while its other threads wait in calls that the same SYSCALL
// instruction makes.
const goFiles = `package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

func main() {
	names := make(chan string)
	var sum, files int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for name := range names {
				b, err := os.ReadFile(name)
				if err != nil {
					panic(err)
				}
				mu.Lock()
				files++
				for _, c := range b {
					sum += int64(c)
				}
				mu.Unlock()
			}
		})
	}
	for range 20 {
		_ = filepath.WalkDir(os.Args[1], func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				names <- name
			}
			return err
		})
	}
	close(names)
	wg.Wait()
	fmt.Println(files, sum)
}
`

// TestAgentGo records a Go program with the agent. Nearly all of its calls are made by one SYSCALL instruction, and some
// thread always stands behind that.
func TestAgentGo(t *testing.T) {
	dir := t.TempDir()
	tree, source, prog := treeOfFiles(t, dir), filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := os.WriteFile(source, []byte(goFiles), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command("go", "build", "-o", prog, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	for _, m := range agentModes {
		t.Run(m.name, func(t *testing.T) {
			r := run{args: []string{prog, tree}, opt: m.opt}
			r.opt.Agent = true
			want := r.native(t)
			got, res := r.recorded(t)
			same(t, got, want)
			st := &res.Stats
			t.Logf("%d of %d calls by the agent, %d stops for calls; %v", st.AgentCalls, st.Calls, st.Dispatches, verify(t, res.Path))
			if m.name == "plain" && (st.AgentCalls*10 < st.Calls*9 || st.Dispatches*4 > st.AgentCalls) {
				t.Errorf("the agent has made %d of %d calls, with %d stops", st.AgentCalls, st.Calls, st.Dispatches)
			}
		})
	}
}
