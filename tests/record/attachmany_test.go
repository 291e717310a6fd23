//go:build linux && amd64

package record

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
)

var attaches = flag.Int("attaches", 12, "how often TestAttachMany attaches")

// TestAttachMany attaches again and again to a program of fifty threads that do all there is to do, and lets it
// go: nothing of it is other than before, and it ends as by itself.
func TestAttachMany(t *testing.T) {
	prog := compile(t, "attachbusy")
	alone := startAlive(t, prog)
	time.Sleep(recordsFor) // until all of its threads have done something: it counts that
	want := alone.finish("go")
	p := startAlive(t, prog)
	time.Sleep(recordsFor) // until it has the stacks of all threads that it makes at the same time
	p.ask("pause")
	before := settings(t, p.pid())
	p.ask("on")
	dir := t.TempDir()
	intervals, began := 0, time.Now()
	for n := range *attaches {
		o := attachOptions{
			Path:  filepath.Join(dir, strconv.Itoa(n)+".vplay"),
			For:   time.Duration(1+n%50) * time.Millisecond, // whatever the program does in that time
			Agent: n%2 == 1,
		}
		if n%5 == 0 {
			o.Keep = recorder.KeepAlways
		}
		if n%7 == 0 {
			o.ForceEvery = 3 * time.Millisecond
		}
		a := attach(t, p.pid(), o)
		if r := a.result(); !r.Recorded || !r.Detached || r.Error != "" {
			t.Fatalf("attach %d: %+v", n, r)
		}
		if n%20 == 5 { // all of a thousand would take an hour
			intervals += verify(t, a.path).intervals
		}
		if t.Failed() {
			t.Fatalf("attach %d", n)
		}
		if err := os.Remove(a.path); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	p.ask("pause")
	stays(t, withoutPending(before), withoutPending(settings(t, p.pid())))
	pids, err := processesOf(prog)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if pid != p.pid() {
			t.Errorf("process %d is left", pid)
		}
	}
	p.ask("on")
	same(t, p.finish("go"), want)
	fmt.Printf("attached %d times in %v, %d intervals verified: %d lines of mappings, descriptors and settings as before\n",
		*attaches, took.Round(time.Second), intervals, strings.Count(before, "\n"))
}

// withoutPending leaves out which signals are queued: children end while the program pauses, too.
func withoutPending(settings string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(settings, "\n"), func(l string) bool { return strings.Contains(l, "Pnd:") }), "\n")
}

// ask sends the program a line, and waits until it has answered.
func (p *alive) ask(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.out.ReadString('\n'); err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
}

// processesOf returns the processes that execute a program.
func processesOf(prog string) (pids []int, err error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != prog { // it has ended, or is another user's
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// TestAttachPolls: what a poll(2) that waited at the attach gives comes into the program's memory when its thread has its turn, and not
// while another computes, whose interval ends by force just then.
func TestAttachPolls(t *testing.T) {
	const times = 5
	prog := compile(t, "attachpolls", "-pthread")
	for name, ms := range map[string]string{"for ever": "-1", "with a time-out": "100000"} {
		t.Run(name, func(t *testing.T) {
			p := startAlive(t, prog, ms)
			for range times {
				a := attach(t, p.pid(), attachOptions{For: time.Hour, ForceEvery: 5 * time.Millisecond})
				p.ask("x")
				a.end()
				t.Log(verify(t, a.path))
			}
			same(t, p.finish("go"), outcome{out: "got go\n", code: 3})
		})
	}
}
