package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"vplay/tests/bench/command"
)

// The table or JSON of all ways.

// report is what --json prints.
type report struct {
	command.Machine
	Size    int64     `json:"size_mib"`
	Seconds float64   `json:"seconds"`
	Wanted  float64   `json:"wanted_border_p99_ms"` // with 1 GiB
	Results []*result `json:"results"`
}

// Print writes the tables.
func (rep *report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s, load %s, redis with %d MiB, %d clients write for %.0f s\n\n", rep.CPU, rep.Date, rep.Load, rep.Size, clients, rep.Seconds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "clients\trequests/s\tserver's CPU us each\tp50 ms\tp99\tmax\t\n")
	for _, r := range rep.Results {
		fmt.Fprintf(w, "%s\t%.0f\t%.1f\t%.2f\t%.2f\t%.1f\t\n", r.Mode, r.PerS, r.CPU, r.P50, r.P99, r.Max)
	}
	fmt.Fprint(w, "\npauses\tborders\tp50 ms\tp99\tmax\twanted p99\tmet\tCPU p50\tscan\tclone\tpages\twritten p50\tof all time\t\n")
	for _, r := range rep.Results {
		if b := r.Borders; b != nil {
			met := "no"
			if b.P99 < rep.Wanted {
				met = "yes"
			}
			fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.0f\t%s\t%.2f\t%.2f\t%.2f\t%d\t%d\t%.1f%%\t\n", r.Mode, b.N, b.P50, b.P99, b.Max, rep.Wanted, met,
				b.CPU, b.Scan, b.Clone, b.Pages, b.Written, 100*b.Share)
		}
	}
	fmt.Fprint(w, "\nmemory, MiB of PSS\tserver\tshadows\tvplayd\tguardian\tsum\tnumber of shadows\tthe server's data\t\n")
	for _, r := range rep.Results {
		m := r.Memory
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t\n", r.Mode, mib(m.Server), mib(m.Shadows), mib(m.Recorder), mib(m.Guardian), mib(m.sum()), m.Number, mib(r.Data))
	}
	return w.Flush()
}

func mib(n int64) string { return fmt.Sprintf("%.0f", float64(n)/(1<<20)) }
