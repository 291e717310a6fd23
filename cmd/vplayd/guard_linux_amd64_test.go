package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vplay/tests/need"
)

// TestGuardianAtFirst kills the recorder of a program with one thread while its guardian has not started Go's runtime: the
// program goes on, and ends as by itself.
func TestGuardianAtFirst(t *testing.T) {
	need.Recorder(t)
	perl := need.Program(t, "perl")
	bin := built(t)
	const script = `use Time::HiRes "time"; $| = 1; print "runs\n"; $end = time + 0.6; getppid while time < $end; print "done\n"`
	const wanted = 4
	met := 0
	for try := 0; met < wanted && try < 5*wanted; try++ {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		says := func(what string) func() bool {
			return func() bool {
				b, err := os.ReadFile(out.Name())
				return err == nil && strings.Contains(string(b), what)
			}
		}
		rec := exec.Command(bin, "record", "-q", "-o", out.Name()+".vplay", "--", perl, "-e", script)
		rec.Stdout = out
		if err := rec.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "the program's first line", says("runs"))
		time.Sleep(time.Duration(try%wanted) * 20 * time.Millisecond)
		guardian, threads := guardianOf(rec.Process.Pid)
		if err := rec.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = rec.Wait()
		if threads == 1 { // else the machine is slow, and this is the other guardian
			met++
		}
		await(t, "the program's last line", says("done"))
		await(t, "the guardian's end", func() bool {
			_, err := os.Readlink("/proc/" + strconv.Itoa(guardian) + "/exe") // whether or not init has waited for it
			return err != nil
		})
	}
	if met < wanted {
		t.Errorf("the guardian was met in front of Go's runtime %d times", met)
	}
}

// TestGuardianStarts: the guardian starts Go's runtime when there is another thread, and after a while.
func TestGuardianStarts(t *testing.T) {
	need.Recorder(t)
	perl := need.Program(t, "perl")
	bin := built(t)
	for name, script := range map[string]string{
		"process": "fork; sleep 9",
		"time":    "sleep 9",
	} {
		t.Run(name, func(t *testing.T) {
			rec := exec.Command(bin, "record", "-q", "-o", filepath.Join(t.TempDir(), "x.vplay"), "--", perl, "-e", script)
			if err := rec.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rec.Wait() }()
			defer func() { _ = rec.Process.Signal(syscall.SIGTERM) }()
			await(t, "the guardian's threads", func() bool {
				_, threads := guardianOf(rec.Process.Pid)
				return threads > 1
			})
		})
	}
}

// TestGuardianWatches: when the recorder is killed the program's processes are stopped though the guardian, once Go's runtime has
// started, cannot run; and they go on, and end as by themselves, when it can.
func TestGuardianWatches(t *testing.T) {
	need.Recorder(t)
	perl := need.Program(t, "perl")
	bin := built(t)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	written := func() []string {
		b, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(b))
	}
	const script = `$| = 1; $p = fork; print "$$\n"; $end = time + 3; getppid while time < $end; exit 0 unless $p; wait; print "done $?\n"`
	rec := exec.Command(bin, "record", "-q", "-o", out.Name()+".vplay", "--", perl, "-e", script)
	rec.Stdout = out
	if err := rec.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "both processes", func() bool { return len(written()) == 2 })
	guardian := 0
	await(t, "the guardian's threads", func() (started bool) {
		pid, threads := guardianOf(rec.Process.Pid)
		guardian = pid
		return threads > 1
	})
	time.Sleep(300 * time.Millisecond) // it waits in Go's code by now
	if err := syscall.Kill(guardian, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := rec.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = rec.Wait()
	for _, pid := range written() {
		await(t, "a stop of process "+pid, func() bool {
			b, _ := os.ReadFile("/proc/" + pid + "/stat")
			return strings.Contains(string(b), ") T ")
		})
	}
	if err := syscall.Kill(guardian, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, "the program's last line", func() bool { return strings.HasSuffix(strings.Join(written(), " "), "done 0") })
}

// guardianOf returns the guardian of a recorder, and how many threads that has: 0 where there is none.
func guardianOf(recorder int) (pid, threads int) {
	names, _ := filepath.Glob("/proc/" + strconv.Itoa(recorder) + "/task/*/children")
	for _, name := range names {
		list, _ := os.ReadFile(name)
		for _, child := range strings.Fields(string(list)) {
			if comm, _ := os.ReadFile("/proc/" + child + "/comm"); string(comm) != "vplay-guardian\n" {
				continue
			}
			tasks, _ := os.ReadDir("/proc/" + child + "/task")
			pid, _ := strconv.Atoi(child)
			return pid, len(tasks)
		}
	}
	return 0, 0
}

// await waits until f holds, and fails where it does not for long.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
