package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"vplay/checkpoint"
	"vplay/replay/analysis/windows"
	"vplay/tests/bench/command"
)

// The command's flags, the measuring, and the tables. The programs are in programs.go.

func main() { command.Main("traced", run) }

const usage = `traced measures what must be traced of programs so that replay of any moment is short.

  just traced                         all ten programs
  just traced --only gzip,bc          some of them
  just traced --json                  for a program

`

// bench is a run of the command.
type bench struct {
	ctx         context.Context
	dir, vplayd string
	length      string // the bounds, as vplayd windows takes them
	progress    io.Writer
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	b := &bench{ctx: ctx, progress: progress}
	f := flag.NewFlagSet("traced", flag.ContinueOnError)
	f.SetOutput(progress)
	f.Usage = func() {
		fmt.Fprint(progress, usage)
		f.PrintDefaults()
	}
	asJSON := f.Bool("json", false, "print JSON")
	only := f.String("only", "", "`NAMES` of programs, with commas between them")
	f.StringVar(&b.length, "length", "10k,100k,1M,10M", "the bounds T, in instructions")
	f.StringVar(&b.vplayd, "vplayd", "", "`FILE` to measure with instead of vplayd built from this tree")
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "vplay-traced"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.vplayd, err = command.Vplayd(b.vplayd, b.dir); err != nil {
		return err
	}
	rep := &report{Machine: command.ThisMachine()}
	for i := range chosen {
		r, err := b.measure(&chosen[i])
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", chosen[i].name, err), ctx.Err())
		}
		rep.Results = append(rep.Results, r)
	}
	return command.Write(out, rep, *asJSON)
}

// choose returns the programs of these names, all for none.
func choose(names string) ([]program, error) {
	if names == "" {
		return programs, nil
	}
	var out []program
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no program %q", name)
		}
		out = append(out, programs[i])
	}
	return out, nil
}

// result is what was measured of a program.
type result struct {
	Name    string             `json:"name"`
	Windows windows.Report     `json:"windows"`
	Loads   windows.FirstLoads `json:"first_loads"`
	Fat     checkpoint.Sizes   `json:"fat"`
	Slim    checkpoint.Sizes   `json:"slim"`
}

// measure records a program and measures the recording.
func (b *bench) measure(p *program) (*result, error) {
	dir := filepath.Join(b.dir, p.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	args, input, err := p.make(dir)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(b.progress, "traced: %s\n", p.name)
	fat, slim := filepath.Join(dir, "fat.vplay"), filepath.Join(dir, "slim.vplay")
	if _, err := b.vplay(input, append([]string{"record", "-q", "--keep", "always", "--no-slim", "-o", fat, "--"}, args...)...); err != nil {
		return nil, err
	}
	whole, err := os.ReadFile(fat)
	if err == nil {
		err = os.WriteFile(slim, whole, 0o600)
	}
	if err == nil {
		_, err = b.vplay("", "slim", slim)
	}
	if err != nil {
		return nil, err
	}
	r := &result{Name: p.name}
	var ofFat, ofSlim struct{ Sizes checkpoint.Sizes }
	for _, q := range []struct {
		args []string
		into any
	}{
		{[]string{"windows", "--json", "--length", b.length, fat}, &r.Windows},
		{[]string{"windows", "--json", "--first-loads", fat}, &r.Loads},
		{[]string{"info", "--json", fat}, &ofFat},
		{[]string{"info", "--json", slim}, &ofSlim},
	} {
		out, err := b.vplay("", q.args...)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(out, q.into); err != nil {
			return nil, err
		}
	}
	r.Fat, r.Slim = ofFat.Sizes, ofSlim.Sizes
	return r, os.RemoveAll(dir)
}

// vplay runs vplayd, and returns what it printed.
func (b *bench) vplay(input string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(b.ctx, b.vplayd, args...)
	cmd.Dir = b.dir
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("vplayd %s: %w\n%s", args[0], err, errs.Bytes())
	}
	return out.Bytes(), nil
}

// report is what --json prints.
type report struct {
	command.Machine
	Results []*result `json:"results"`
}

// Print writes the tables.
func (rep *report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s, load %s; sizes in kB\n\n", rep.CPU, rep.Date, rep.Load)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "program\tM insn\tT\twindows\tM = 0\tM = T/10\tM = T\toptimum\twrites\tpages read\tpages written\t\n")
	for _, r := range rep.Results {
		for i := range r.Windows.Bounds {
			c := &r.Windows.Bounds[i]
			fmt.Fprintf(w, "%s\t%.1f\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, float64(r.Windows.Instructions)/1e6, c.Bound, c.Fixed.Windows, kB(c.Fixed.Bytes), kB(c.Scanned.Bytes),
				kB(c.Unbounded.Bytes), kB(c.Optimal.Bytes), kB(c.UniqueWrites), kB(c.PagesRead*checkpoint.PageSize), kB(c.PagesWritten*checkpoint.PageSize))
		}
	}
	fmt.Fprint(w, "\nprogram\tintervals\tfirst loads\tin dictionary\tBugNet's bits\tcompressed\tno dictionary, compressed\tcode, compressed\tpages for replay, compressed\tpages of the fat file\tof the slim file\tslim file, other parts\t\n")
	for _, r := range rep.Results {
		l := &r.Loads.Each
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f%%\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, r.Loads.Intervals, l.Loads, 100*float64(l.InDictionary)/float64(max(l.Values, 1)), kB(l.BugNet), kB(l.BugNetStored),
			kB(l.PlainStored), kB(r.Loads.CodeStored), kB(r.Loads.PagesStored), kB(pages(&r.Fat)), kB(pages(&r.Slim)), kB(r.Slim.File-pages(&r.Slim)))
	}
	return w.Flush()
}

// pages is what a file's pages take, with their indexes.
func pages(z *checkpoint.Sizes) int64 { return z.Pages + z.Index + z.Objects }

func kB[N int64 | uint64](n N) string { return fmt.Sprintf("%.1f", float64(n)/1e3) }
