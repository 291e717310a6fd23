// Command compare has valgrind's memcheck and the script heap look at the same programs, and says how far they agree.
//
//	compare [-v] -vplayd FILE -folder FOLDER -scratch FOLDER PROGRAMS...
//
// Compared are the errors that both define: invalid reads and writes, system calls that are handed memory that must not
// be accessed, and invalid frees (double ones among them). An error's place is the innermost line of the program's own source in its
// stack, and errors are counted by kind and place. Leaks are compared as blocks and bytes that are
// lost, directly or by way of lost ones. What memcheck says of values that were never set, of overlapping copies, and of mismatched
// ways to free has no counterpart in the script.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// wanted is how many programs must agree.
const wanted = 20

// report is what one of the two says of a program.
type report struct {
	errors        map[string]int // by kind and place
	blocks, bytes int            // lost
	isKilled      bool           // the program ends by a signal
}

// limit bounds each run of a program.
const limit = 2 * time.Minute

func main() {
	verbose := flag.Bool("v", false, "print what they differ in")
	vplayd := flag.String("vplayd", "vplayd", "the program")
	folder := flag.String("folder", ".", "where the programs are")
	scratch := flag.String("scratch", os.TempDir(), "for recordings")
	flag.Parse()
	for _, dir := range []*string{folder, scratch, vplayd} { // the programs run in a folder of their own
		abs, err := filepath.Abs(*dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
			os.Exit(2)
		}
		*dir = abs
	}
	agree, all := 0, 0
	fmt.Printf("%-20s %8s %8s %8s  %s\n", "program", "both", "memcheck", "heap", "lost blocks, bytes")
	for _, name := range flag.Args() {
		if _, err := os.Stat(filepath.Join(*folder, name)); err != nil {
			fmt.Printf("%-20s does not compile\n", name)
			continue
		}
		all++
		theirs, err := memcheck(*folder, name, *scratch)
		var ours *report
		if err == nil {
			ours, err = heap(*vplayd, *folder, name, *scratch)
		}
		if err != nil {
			fmt.Printf("%-20s %v\n", name, err)
			continue
		}
		both, onlyTheirs, onlyOurs := split(theirs.errors, ours.errors)
		lost := fmt.Sprintf("%d, %d", theirs.blocks, theirs.bytes)
		isSame := len(onlyTheirs)+len(onlyOurs) == 0 && ours.blocks == theirs.blocks && ours.bytes == theirs.bytes
		if ours.blocks != theirs.blocks || ours.bytes != theirs.bytes {
			lost += fmt.Sprintf("; heap has %d, %d", ours.blocks, ours.bytes)
		}
		word := "agree"
		if isSame {
			agree++
		} else {
			word = "differ"
		}
		if ours.isKilled && !isSame {
			word += ": it is killed, where valgrind lets it go on"
		}
		fmt.Printf("%-20s %8d %8d %8d  %-30s %s\n", name, len(both), len(onlyTheirs), len(onlyOurs), lost, word)
		if *verbose {
			for _, e := range onlyTheirs {
				fmt.Println("    memcheck alone:", e)
			}
			for _, e := range onlyOurs {
				fmt.Println("    heap alone:", e)
			}
		}
	}
	fmt.Printf("%d of %d programs agree\n", agree, all)
	if agree < min(wanted, all) {
		os.Exit(1)
	}
}

// split says what is in both, and what in one alone.
func split(a, b map[string]int) (both, onlyA, onlyB []string) {
	for e := range a {
		if _, ok := b[e]; ok {
			both = append(both, e)
		} else {
			onlyA = append(onlyA, e)
		}
	}
	for e := range b {
		if _, ok := a[e]; !ok {
			onlyB = append(onlyB, e)
		}
	}
	slices.Sort(both)
	slices.Sort(onlyA)
	slices.Sort(onlyB)
	return both, onlyA, onlyB
}

// valgrindOutput is the part of valgrind's XML that is compared (docs/internals/xml-output-protocol4.txt in its source).
type valgrindOutput struct {
	Errors []struct {
		Kind  string `xml:"kind"`
		What  string `xml:"what"`
		XWhat struct {
			Bytes  int `xml:"leakedbytes"`
			Blocks int `xml:"leakedblocks"`
		} `xml:"xwhat"`
		Stacks []struct {
			Frames []struct {
				Object   string `xml:"obj"`
				Function string `xml:"fn"`
				File     string `xml:"file"`
				Line     int    `xml:"line"`
			} `xml:"frame"`
		} `xml:"stack"`
	} `xml:"error"`
}

// kinds are memcheck's names of the errors that both define.
var kinds = map[string]string{"InvalidRead": "read", "InvalidWrite": "write", "InvalidFree": "free"}

// memcheck runs a program under valgrind.
func memcheck(folder, name, scratch string) (*report, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	file := filepath.Join(scratch, name+".xml")
	cmd := exec.CommandContext(ctx, "valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite,indirect", "--xml=yes", "--xml-file="+file, "./"+name)
	cmd.Dir = folder
	_ = cmd.Run() // it ends as the program does
	text, err := os.ReadFile(file)
	if err != nil || ctx.Err() != nil {
		return nil, fmt.Errorf("valgrind: %w", err)
	}
	if i := bytes.LastIndex(text, []byte("</valgrindoutput>")); i < 0 {
		return nil, fmt.Errorf("valgrind did not end")
	}
	var out valgrindOutput
	if err := xml.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("valgrind: %w", err)
	}
	r := &report{errors: map[string]int{}}
	for _, e := range out.Errors {
		kind := kinds[e.Kind]
		switch {
		case e.Kind == "Leak_DefinitelyLost", e.Kind == "Leak_IndirectlyLost":
			r.blocks, r.bytes = r.blocks+e.XWhat.Blocks, r.bytes+e.XWhat.Bytes
			continue
		case e.Kind == "SyscallParam" && strings.Contains(e.What, "unaddressable"):
			kind = "system call"
		case kind == "" || len(e.Stacks) == 0:
			continue
		}
		place := ""
		for _, f := range e.Stacks[0].Frames {
			if filepath.Base(f.Object) == name && f.Line > 0 {
				place = fmt.Sprintf("%s:%d", f.File, f.Line)
				break
			}
		}
		r.errors[kind+" "+place]++
	}
	return r, nil
}

// row is what the script says of an error or a leak.
type row struct {
	Kind, Access  string
	Kernel        bool
	Stack         []string
	Blocks, Bytes int
}

// sourceLine is the end of a frame: the module, and the file and line.
var sourceLine = regexp.MustCompile(` in (\S+) (\S+):(\d+)$`)

// heap records a program and runs the script.
func heap(vplayd, folder, name, scratch string) (*report, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	rec := filepath.Join(scratch, name+".vplay")
	if err := os.RemoveAll(rec); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(rec) }()
	cmd := exec.CommandContext(ctx, vplayd, "record", "-q", "--slim", "now", "--keep", "always", "-o", rec, "--", "./"+name)
	cmd.Dir = folder
	_ = cmd.Run() // it ends as the program does
	out, err := exec.CommandContext(ctx, vplayd, "run", "--json", "heap", rec).Output()
	if err != nil {
		return nil, fmt.Errorf("vplayd run: %w", err)
	}
	r := &report{errors: map[string]int{}, isKilled: !cmd.ProcessState.Exited()}
	for line := range strings.Lines(string(out)) {
		var x row
		if json.Unmarshal([]byte(line), &x) != nil {
			continue
		}
		switch {
		case x.Kind == "leak":
			r.blocks, r.bytes = r.blocks+x.Blocks, r.bytes+x.Bytes
			continue
		case x.Access == "":
			continue
		case x.Kernel:
			x.Access = "system call"
		}
		place := ""
		for _, f := range x.Stack {
			if m := sourceLine.FindStringSubmatch(f); m != nil && m[1] == name {
				place = filepath.Base(m[2]) + ":" + m[3]
				break
			}
		}
		r.errors[x.Access+" "+place]++
	}
	return r, nil
}
