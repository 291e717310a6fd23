package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"vplay/tests/bench/command"
	"vplay/tests/bench/meter"
)

// The figures of a row, and the table or JSON that holds them.

// report is what --json prints.
type report struct {
	command.Machine
	Rounds  int       `json:"rounds"`
	Counted string    `json:"counted"`
	Results []*result `json:"results"`
}

// result is what the rounds gave.
type result struct {
	Name    string          `json:"name"`
	Unit    string          `json:"unit"` // what the times are of: a run, or a request
	Ways    map[string]*way `json:"ways"`
	Bound   float64         `json:"wanted_agent_x_native,omitempty"`
	Met     *bool           `json:"met,omitempty"`
	Quoted  float64         `json:"rr_soft_x_native_quoted,omitempty"`
	Threads int             `json:"threads,omitempty"`
	Did     *did            `json:"agent_run,omitempty"`
	rounds  []map[string]sample
}

// way is one way of running. Times are of one unit, in microseconds.
type way struct {
	CPU       float64 `json:"cpu_us"` // median
	CPULeast  float64 `json:"cpu_least_us"`
	Wall      float64 `json:"wall_us"` // median; of a server's load, for one request
	WallLeast float64 `json:"wall_least_us"`
	Ratio     float64 `json:"cpu_x_native"` // median of the rounds
	Least     float64 `json:"cpu_least_x_native"`
	WallRatio float64 `json:"wall_x_native"`
	P50       float64 `json:"p50_us,omitempty"` // of the client's requests
	P99       float64 `json:"p99_us,omitempty"`
}

func newResult(r row) *result {
	res := &result{Name: r.name, Unit: "run", Bound: r.bound, Quoted: r.quoted, Threads: r.threads, Ways: map[string]*way{}}
	if r.server != nil {
		res.Unit = "request"
	}
	return res
}

// add takes the samples of a round, by way.
func (r *result) add(round map[string]sample) { r.rounds = append(r.rounds, round) }

// conclude computes the figures from the rounds.
func (r *result) conclude(modes []string) {
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	all := func(mode string, of func(sample) time.Duration) (v []float64) {
		for _, round := range r.rounds {
			v = append(v, us(of(round[mode])))
		}
		return v
	}
	cpu := func(s sample) time.Duration { return s.cpu }
	wall := func(s sample) time.Duration { return s.wall }
	for _, mode := range modes {
		c, w := all(mode, cpu), all(mode, wall)
		f := &way{CPU: meter.Median(c), CPULeast: slices.Min(c), Wall: meter.Median(w), WallLeast: slices.Min(w)}
		f.Ratio = meter.Median(beside(c, all(native, cpu)))
		f.WallRatio = meter.Median(beside(w, all(native, wall)))
		f.Least = f.CPULeast / slices.Min(all(native, cpu))
		f.P50 = meter.Median(all(mode, func(s sample) time.Duration { return s.p50 }))
		f.P99 = meter.Median(all(mode, func(s sample) time.Duration { return s.p99 }))
		r.Ways[mode] = f
	}
	if f := r.Ways[agent]; f != nil && r.Bound > 0 {
		met := f.Ratio <= r.Bound
		r.Met = &met
	}
}

// beside returns a/b of each round.
func beside(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// Print writes the tables: processor time, then wall time and latencies.
func (rep *report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s, load %s, median of %d rounds\nprocessor time: %s\n\n", rep.CPU, rep.Date, rep.Load, rep.Rounds, rep.Counted)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "processor time\tof a\tnative ms\tpinned\tagent\tleast\tagent/pinned\twanted\tmet\tstops\tstrace\trr.soft, quoted\tcalls by the agent\t\n")
	for _, r := range rep.Results {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, r.Unit, milliseconds(r.Ways[native].CPU),
			r.ratio(pinned), r.ratio(agent), r.least(), r.besidePinned(), times(r.Bound), r.met(), r.ratio(stops), r.ratio(strace), times(r.Quoted), r.Did.share())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, "\n")
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "wall time\tof a\tnative ms\tpinned\tagent\tstops\tstrace\tp50, p99: native ms\tagent\tstops\t\n")
	for _, r := range rep.Results {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, r.Unit, milliseconds(r.Ways[native].Wall),
			r.wall(pinned), r.wall(agent), r.wall(stops), r.wall(strace), r.latency(native), r.latency(agent), r.latency(stops))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range rep.Results {
		if r.Threads > 0 {
			fmt.Fprintf(out, "%s: %d threads compute at the same time natively, and one after the other recorded: up to %dx in wall time\n", r.Name, r.Threads, r.Threads)
		}
	}
	return nil
}

func milliseconds(us float64) string { return fmt.Sprintf("%.4g", us/1000) }

// times writes a ratio, nothing for 0.
func times(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2fx", x)
}

func (r *result) ratio(mode string) string {
	if f := r.Ways[mode]; f != nil {
		return times(f.Ratio)
	}
	return "-"
}

func (r *result) wall(mode string) string {
	if f := r.Ways[mode]; f != nil {
		return times(f.WallRatio)
	}
	return "-"
}

func (r *result) least() string {
	if f := r.Ways[agent]; f != nil {
		return times(f.Least)
	}
	return "-"
}

// besidePinned is the ratio to native runs on one CPU, of medians.
func (r *result) besidePinned() string {
	a, p := r.Ways[agent], r.Ways[pinned]
	if a == nil || p == nil {
		return "-"
	}
	return times(a.CPU / p.CPU)
}

func (r *result) latency(mode string) string {
	f := r.Ways[mode]
	if f == nil || f.P99 == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g, %.3g", f.P50/1000, f.P99/1000)
}

func (r *result) met() string {
	switch {
	case r.Met == nil:
		return "-"
	case *r.Met:
		return "yes"
	}
	return "no"
}

// share says how many of the calls the agent has made.
func (d *did) share() string {
	if d == nil || d.Calls == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", d.AgentCalls, d.Calls)
}

// printRows writes what rows there are.
func printRows(out io.Writer, rows []row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "row\twanted\trr.soft, quoted\twhat\n")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.name, times(r.bound), times(r.quoted), r.what)
	}
	return w.Flush()
}
