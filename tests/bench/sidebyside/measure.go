package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"vplay/tests/bench/meter"
)

// How one program is measured: recorded once, then run on the CPU, in qemu and in replay
// by turns, with the median of each.

// result is what the rounds gave; times are medians of processor seconds.
type result struct {
	Name         string  `json:"name"`
	Group        string  `json:"group"`
	Instructions uint64  `json:"instructions"`
	Native       float64 `json:"native_s"`
	Qemu         float64 `json:"qemu_s,omitempty"`
	Vplay        float64 `json:"vplay_s"`
	QemuRatio    float64 `json:"qemu_x_native,omitempty"`
	VplayRatio   float64 `json:"vplay_x_native"`
	Rate         float64 `json:"vplay_minsn_per_s"`
}

// bench is a run of the command.
type bench struct {
	dir, vplayd, qemu string // qemu is "" for none
	rounds            int
	tiny              bool
}

// timed runs a command and returns its output and its processor time in seconds.
func timed(args ...string) (out []byte, seconds float64, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

// slow is how many seconds a program may take in qemu to be run in every round
// there: packed doubles take a minute.
const slow = 5

// measure records w once and runs it in rounds.
func (b *bench) measure(w work) (r *result, err error) {
	n := w.n
	if b.tiny {
		n = w.tiny
	}
	args, err := w.prepare(b.dir, n)
	if err != nil {
		return nil, err
	}
	if args[0], err = exec.LookPath(args[0]); err != nil {
		return nil, err
	}
	rec := filepath.Join(b.dir, w.name+".vplay")
	// Everything in one recording, however long it is.
	if _, _, err := timed(append([]string{
		b.vplayd, "record", "-q", "--keep", "always", "--no-slim", "--keep-seconds", "1000",
		"-o", rec, "--",
	}, args...)...); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(rec)) }()
	r = &result{Name: w.name, Group: w.group}
	var native, qemu, vplay []float64
	for range b.rounds {
		want, s, err := timed(args...)
		if err != nil {
			return nil, err
		}
		native = append(native, s)
		if b.qemu != "" && (len(qemu) == 0 || qemu[0] < slow) {
			got, s, err := timed(append([]string{b.qemu, "-cpu", "max"}, args...)...)
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(got, want) {
				return nil, fmt.Errorf("%s: other output in qemu: %.100q, want %.100q", w.name, got, want)
			}
			qemu = append(qemu, s)
		}
		out, s, err := timed(b.vplayd, "verify", "-j", "1", "--json", rec)
		if err != nil {
			return nil, err
		}
		vplay = append(vplay, s)
		if r.Instructions, err = instructions(out); err != nil {
			return nil, err
		}
	}
	r.Native, r.Vplay = meter.Median(native), meter.Median(vplay)
	r.VplayRatio, r.Rate = r.Vplay/r.Native, float64(r.Instructions)/1e6/r.Vplay
	if b.qemu != "" {
		r.Qemu = meter.Median(qemu)
		r.QemuRatio = r.Qemu / r.Native
	}
	return r, nil
}

// instructions reads the summary, the last line of verify --json.
func instructions(out []byte) (uint64, error) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var sum struct{ Instructions, Divergences, Unreadable uint64 }
	if err := json.Unmarshal(lines[len(lines)-1], &sum); err != nil {
		return 0, fmt.Errorf("verify --json: %w", err)
	}
	if sum.Divergences+sum.Unreadable != 0 {
		return 0, errors.New("the recording does not replay exactly")
	}
	return sum.Instructions, nil
}
