package meter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// The caller's side: what is to be run, and the runner that does it. The runner itself is in runner_linux.go.

// Verb is the hidden verb of the runner.
const Verb = "__meter"

// Command is what is to be run.
type Command struct {
	Args   []string
	Dir    string
	Env    []string // nil: the caller's own
	Stdin  *os.File // nil: none
	Stdout *os.File // nil: /dev/null
	Stderr *os.File // nil: /dev/null
	Pinned bool     // to one CPU
}

// Usage is what a command has cost.
type Usage struct {
	User, System time.Duration
	Wall         time.Duration // until the command itself ended
	Code         int           // its exit code, 128 and the signal where one has killed it
}

// CPU returns user and system time.
func (u Usage) CPU() time.Duration { return u.User + u.System }

// Tree is a command that runs, below its runner.
type Tree struct {
	cmd    *exec.Cmd
	life   *os.File // the runner kills the tree when this is closed
	report *os.File
}

// descriptors of the runner.
const (
	fdLife   = 3
	fdReport = 4
)

// Start starts a command below a runner.
func Start(c Command) (*Tree, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	lifeRead, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeRead.Close() //nolint:errcheck // only read
	report, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, life.Close())
	}
	defer reportWrite.Close() //nolint:errcheck // the runner has its own
	how := "free"
	if c.Pinned {
		how = "pinned"
	}
	cmd := exec.Command(self, append([]string{Verb, how}, c.Args...)...)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	cmd.ExtraFiles = []*os.File{lifeRead, reportWrite}
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, life.Close(), report.Close())
	}
	return &Tree{cmd: cmd, life: life, report: report}, nil
}

// PID is the runner's: the tree is what is below it.
func (t *Tree) PID() int { return t.cmd.Process.Pid }

// Kill ends the whole tree. Wait is still to be called.
func (t *Tree) Kill() { _ = t.life.Close() } // once more does no harm

// Wait waits for the end of the whole tree.
func (t *Tree) Wait() (Usage, error) {
	said, err := io.ReadAll(t.report)
	err = errors.Join(err, t.cmd.Wait(), t.report.Close())
	t.Kill()
	var a answer
	if err == nil {
		err = json.Unmarshal(said, &a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		return Usage{}, fmt.Errorf("%s: %w", strings.Join(t.cmd.Args[3:], " "), err)
	}
	return a.Usage, nil
}

// Terminate is the signal that ends most servers in order.
const Terminate = syscall.SIGTERM

// Signal sends the process a signal.
func (p Process) Signal(sig os.Signal) error {
	proc, err := os.FindProcess(p.PID)
	if err != nil {
		return err
	}
	return errors.Join(proc.Signal(sig), proc.Release())
}

// answer is what the runner says.
type answer struct {
	Usage
	Error string
}

// Run runs a command to its end, or until stop is closed.
func Run(stop <-chan struct{}, c Command) (Usage, error) {
	t, err := Start(c)
	if err != nil {
		return Usage{}, err
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-stop:
			t.Kill()
		case <-ended:
		}
	}()
	defer close(ended)
	return t.Wait()
}
