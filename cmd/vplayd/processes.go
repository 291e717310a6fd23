package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
)

// The verb processes: the processes of a recording, as a tree or as JSON. Choosing one of
// them for another verb is in process.go.

func newProcesses() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "processes [flags] [RECORDING]",
		Short: "list the processes of a recording",
		Long: `Processes lists the processes that a recording holds, each below its parent: its
PID, its parent's PID (- for one from outside), how many threads it had at most at
the start of an interval, its intervals, the processor time that was recorded, how it
ended, and its program with arguments. It replays nothing.

A * is before the process that the recording is about, which other verbs show: the
first that crashed, else the first program; --process PID shows another. The end of a
child by a signal that dumps no core (SIGTERM, SIGHUP) is no crash. Without a name
processes takes the newest recording in this folder.

Once the file is open, processes can open no other file and start no other program,
where the kernel has Landlock and seccomp (vplayd doctor tells).`,
		Example: "  vplayd processes make-1.vplay\n  vplayd processes --json make-1.vplay | jq 'select(.crashed).pid'\n  vplayd replay --process 4711 make-1.vplay",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			rec, _, err := openRecording(c, args)
			if err != nil {
				return err
			}
			defer rec.Close()
			if err := enterSandbox(c, sandbox.Access{}); err != nil {
				return err
			}
			list := processTree(rec)
			if asJSON {
				return printProcessesJSON(c.OutOrStdout(), list)
			}
			return printProcesses(c.OutOrStdout(), list)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per process")
	addSandboxFlag(c)
	return c
}

// process is what is known of a process without replaying it.
type process struct {
	PID        int32    `json:"pid"`
	Parent     int32    `json:"parent"` // 0 when it is not in the recording
	Program    string   `json:"program"`
	Args       []string `json:"args"`
	Cwd        string   `json:"cwd"`
	Threads    int      `json:"threads"` // the most at the start of an interval
	Intervals  int      `json:"intervals"`
	Images     int      `json:"images"` // programs that it was while it was recorded
	Events     int      `json:"events"`
	CPUSeconds float64  `json:"cpu_seconds"`
	Ended      string   `json:"ended"`
	End        string   `json:"end"` // of its last interval
	Signal     int32    `json:"signal,omitempty"`
	ExitCode   *int32   `json:"exit_code,omitempty"`
	Crashed    bool     `json:"crashed"` // not of a child ended by a signal that dumps no core
	Main       bool     `json:"main"`    // the recording is about it

	depth int // below the first of its ancestors in the recording
}

// describeProcess gathers what is known of a process.
func describeProcess(rec *checkpoint.Recording, p *checkpoint.Process) process {
	end := rec.Ending(p.PID)
	killed, isMain := end.Kind == checkpoint.EndCrash, p.PID == rec.Processes()[0].PID
	out := process{
		PID: p.PID, Parent: p.Parent, Program: p.Program, Args: p.Args, Cwd: p.Cwd, Ended: debug.EndText(end), End: end.Kind.String(),
		Crashed: killed && (isMain || abi.Signal(end.Signo).DumpsCore()), Main: isMain,
	}
	if out.Args == nil {
		out.Args = []string{}
	}
	if killed {
		out.Signal = end.Signo
	}
	if end.Kind == checkpoint.EndExit {
		out.ExitCode = &end.ExitCode
	}
	for _, image := range rec.ImagesOf(p.PID) {
		out.Images++
		for _, in := range image {
			out.Intervals++
			out.Events += in.Events
			out.CPUSeconds += in.CPUTime.Seconds()
			out.Threads = max(out.Threads, in.Threads)
		}
	}
	return out
}

// processTree lists the processes of a recording, each behind its parent, brothers by their
// first interval. What a file says of parents need not be a tree.
func processTree(rec *checkpoint.Recording) []process {
	list := slices.Clone(rec.Processes())
	first := map[int32]uint32{}
	for i := range list {
		first[list[i].PID] = rec.ImagesOf(list[i].PID)[0][0].ID
	}
	slices.SortFunc(list, func(a, b checkpoint.Process) int { return cmp.Compare(first[a.PID], first[b.PID]) })
	children := map[int32][]int{}
	for i := range list {
		children[list[i].Parent] = append(children[list[i].Parent], i)
	}
	seen := make([]bool, len(list))
	var out []process
	add := func(i int) {
		type place struct{ i, depth int }
		for todo := []place{{i, 0}}; len(todo) > 0; {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen[at.i] {
				continue
			}
			seen[at.i] = true
			p := describeProcess(rec, &list[at.i])
			p.depth = at.depth
			out = append(out, p)
			for _, child := range slices.Backward(children[p.PID]) {
				todo = append(todo, place{child, at.depth + 1})
			}
		}
	}
	for i := range list {
		if _, inside := rec.Process(list[i].Parent); !inside {
			add(i)
		}
	}
	for i := range list { // whose parents are in a circle
		add(i)
	}
	return out
}

// maxIndent is how deep the tree is drawn.
const maxIndent = 16

// printProcesses writes a table.
func printProcesses(out io.Writer, list []process) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  PID\tPARENT\tTHREADS\tINTERVALS\tCPU\tENDED\tPROGRAM")
	for i := range list {
		p := &list[i]
		mark, parent := " ", "-"
		if p.Main {
			mark = "*"
		}
		if p.Parent != 0 {
			parent = fmt.Sprint(p.Parent)
		}
		fmt.Fprintf(w, "%s %d\t%s\t%d\t%d\t%.3f s\t%s\t%s%s\n", mark, p.PID, parent, p.Threads, p.Intervals, p.CPUSeconds, p.Ended,
			strings.Repeat("  ", min(p.depth, maxIndent)), p.command())
	}
	return w.Flush()
}

// command is the program with its arguments, shortened.
func (p *process) command() string {
	if p.Program == "" && len(p.Args) == 0 {
		return "?"
	}
	s := p.Program
	for i, a := range p.Args {
		if i == 0 && s != "" {
			continue
		}
		if s += " " + a; len(s) > 4*maxCommand {
			break
		}
	}
	return text.Printable(shorten(strings.TrimSpace(s), maxCommand))
}

// printProcessesJSON writes one object a line.
func printProcessesJSON(out io.Writer, list []process) error {
	for i := range list {
		if err := encodeLine(out, &list[i]); err != nil {
			return err
		}
	}
	return nil
}
