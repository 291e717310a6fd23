package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"text/tabwriter"

	"vplay/tests/bench/command"
)

// The command's flags, and the table or JSON that it prints. What is run is in work.go,
// and how it is timed in measure.go.

func main() { command.Main("sidebyside", run) }

// report is what --json prints.
type report struct {
	command.Machine
	Qemu    string             `json:"qemu,omitempty"`
	Rounds  int                `json:"rounds"`
	Results []*result          `json:"results"`
	Means   map[string]float64 `json:"vplay_x_native_geomean"`
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	f := flag.NewFlagSet("sidebyside", flag.ContinueOnError)
	f.SetOutput(progress)
	asJSON := f.Bool("json", false, "print JSON")
	rounds := f.Int("rounds", 3, "`N` runs of each, in alternation; the median counts")
	only := f.String("only", "", "`REGEXP` of names to run")
	others := f.Bool("more", false, "other programs: a compiler, languages, tools, cryptography")
	noQemu := f.Bool("no-qemu", false, "leave qemu out")
	tiny := f.Bool("tiny", false, "work for milliseconds only: a test of this command")
	vplayd := f.String("vplayd", "", "`FILE` to measure instead of vplayd built from this tree")
	if err := f.Parse(args); err != nil {
		return err
	}
	names, err := regexp.Compile("^(" + *only + ")")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vplay-side")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, rounds: max(*rounds, 1), tiny: *tiny}
	if b.vplayd, err = command.Vplayd(*vplayd, dir); err != nil {
		return err
	}
	rep := &report{Machine: command.ThisMachine(), Rounds: b.rounds}
	if !*noQemu {
		if b.qemu, err = exec.LookPath("qemu-x86_64"); err != nil {
			fmt.Fprintln(progress, "sidebyside: without qemu-x86_64 (Debian package qemu-user)")
		} else {
			rep.Qemu = qemuVersion(b.qemu)
		}
	}
	list := all
	if *others {
		list = more
	}
	for _, w := range list {
		if !names.MatchString(w.name) {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r, err := b.measure(w)
		if err != nil {
			return err
		}
		rep.Results = append(rep.Results, r)
	}
	rep.Means = means(rep.Results, func(r *result) float64 { return r.VplayRatio })
	return command.Write(out, rep, *asJSON)
}

// means returns the geometric mean of a ratio for each group.
func means(rs []*result, ratio func(*result) float64) map[string]float64 {
	sum, n := map[string]float64{}, map[string]float64{}
	for _, r := range rs {
		sum[r.Group] += math.Log(ratio(r))
		n[r.Group]++
	}
	for g := range sum {
		sum[g] = math.Exp(sum[g] / n[g])
	}
	return sum
}

// Print writes the table.
func (rep *report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s, load %s, median of %d\n%s\n\n", rep.CPU, rep.Date, rep.Load, rep.Rounds, rep.Qemu)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\tM insn\tnative s\tqemu s\tvplay s\tqemu\tvplay\tM insn/s of vplay\t\n")
	for _, r := range rep.Results {
		fmt.Fprintf(w, "%s\t%.0f\t%.3f\t%.2f\t%.2f\t%.1fx\t%.1fx\t%.0f\t\n", r.Name, float64(r.Instructions)/1e6,
			r.Native, r.Qemu, r.Vplay, r.QemuRatio, r.VplayRatio, r.Rate)
	}
	rate := means(rep.Results, func(r *result) float64 { return r.Rate })
	qemu := means(rep.Results, func(r *result) float64 { return r.QemuRatio })
	for _, g := range []string{groupInteger, groupSIMD, groupPacked, groupProgram, groupMore} {
		if _, ok := rep.Means[g]; ok {
			fmt.Fprintf(w, "%s, geometric mean\t\t\t\t\t%.1fx\t%.1fx\t%.0f\t\n", g, qemu[g], rep.Means[g], rate[g])
		}
	}
	return w.Flush()
}

// qemuVersion returns the first line of its --version.
func qemuVersion(qemu string) string {
	b, err := exec.Command(qemu, "--version").Output()
	if err != nil {
		return err.Error()
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}
