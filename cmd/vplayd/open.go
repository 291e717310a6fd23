package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	rtdebug "runtime/debug"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/observe"
)

// How the verbs that read a recording open it: by name or the newest here, with the bounds of
// --limit, and in the sandbox; and how they look at one interval of it.

// openRecording opens the recording named by the arguments; without a name,
// the newest in the current folder. Reading it is bounded by --limit and ends with
// the command.
func openRecording(c *cobra.Command, args []string) (*checkpoint.Recording, string, error) {
	path, err := recordingPath(args)
	if err != nil {
		return nil, "", err
	}
	limit, err := budgetOf(c)
	if err != nil {
		return nil, path, err
	}
	if limit.IsScaled() {
		boundHeap(path)
	}
	rec, err := checkpoint.OpenWithin(path, limit)
	switch {
	case err == nil:
		return rec, path, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, path, withHint(err, exitFailed, "ls *.vplay shows the recordings in this folder")
	case errors.Is(err, checkpoint.ErrNotRecording):
		return nil, path, withHint(err, exitDamaged, "recordings are made by: vplayd record -- PROGRAM")
	}
	var limited *checkpoint.LimitError
	if errors.As(err, &limited) || isDone(c.Context()) {
		return nil, path, err // codeOf and printError know them
	}
	var v *checkpoint.VersionError
	if errors.As(err, &v) {
		return nil, path, withHint(err, exitDamaged, "it was made by a newer vplayd: use that one, or a newer one still")
	}
	var damage *checkpoint.FormatError
	if errors.As(err, &damage) {
		return nil, path, withHint(err, exitDamaged, damageHint)
	}
	return nil, path, withHint(err, exitFailed, "is it a file that you may read?")
}

// What the heap may grow to before the collector works harder: the greater of the least and
// of so many bytes for each byte of the file. Else it lets garbage grow to what is live, and
// decoders leave much of it.
const (
	leastHeap = 768 << 20
	heapShare = 8
)

// heapLimit is the bound that the heap had before (GOMEMLIMIT).
var heapLimit = rtdebug.SetMemoryLimit(-1)

// boundHeap bounds the garbage of reading the recording at path.
func boundHeap(path string) {
	if st, err := os.Stat(path); err == nil && st.Size() < math.MaxInt64/heapShare {
		rtdebug.SetMemoryLimit(min(heapLimit, max(leastHeap, heapShare*st.Size())))
	}
}

// freeHeap takes the bound of boundHeap back, for who keeps what --memory allows.
func freeHeap() { rtdebug.SetMemoryLimit(heapLimit) }

// openSession opens the recording named by the arguments for replay; done closes it.
func openSession(c *cobra.Command, args []string) (s *replay.Session, path string, done func(), err error) {
	rec, path, err := openRecording(c, args)
	if err != nil {
		return nil, path, nil, err
	}
	if s, err = replay.NewSession(rec); err != nil {
		rec.Close()
		return nil, path, nil, err
	}
	e, err := chooseEngine(c)
	if err != nil {
		s.Close()
		rec.Close()
		return nil, path, nil, err
	}
	e.use(s)
	return s, path, func() {
		s.Close()
		rec.Close()
	}, nil
}

// pastHint is the advice where a recording of a core file is asked for what happened.
const pastHint = "vplayd record makes a recording with a past"

// wantPast refuses a recording in which nothing runs that could be what is wanted.
func wantPast(rec *checkpoint.Recording, what string) error {
	if !rec.IsMoment() {
		return nil
	}
	return withHint(errors.New("the recording holds one moment: nothing runs in it that could "+what), exitFailed, pastHint)
}

// budgetOf returns what reading a recording may cost c.
func budgetOf(c *cobra.Command) (*checkpoint.Budget, error) {
	if f := c.Flags().Lookup("limit"); f != nil && f.Value.String() != "" {
		n, err := parseSize(f.Value.String())
		if err != nil {
			return nil, usageError{withHint(err, exitUsage, "--limit takes a number of bytes, or of units: 512M, 2G")}
		}
		return checkpoint.NewBudget(c.Context(), n), nil
	}
	return checkpoint.NewBudget(c.Context(), (&serveFlags{}).budget()).Scaled(), nil
}

// sizeUnits are the units of a size, and what they are in bits to shift.
var sizeUnits = map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}

// parseSize reads a size in bytes: a number, and K, M, G or T for the powers of
// 1024; iB may follow.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "KMGTiBkmgt")
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s[len(digits):]), "B"), "I")
	shift, ok := sizeUnits[unit]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n <= 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("bad size %q", s)
	}
	return n << shift, nil
}

func recordingPath(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	found, err := filepath.Glob("*.vplay")
	if err != nil || len(found) == 0 {
		return "", usageError{withHint(errors.New("no recording named, and none in this folder"), exitUsage,
			"name one, or make one: vplayd record -- PROGRAM")}
	}
	age := func(p string) int64 {
		st, err := os.Stat(p)
		if err != nil {
			return 0
		}
		return st.ModTime().UnixNano()
	}
	sort.Slice(found, func(i, j int) bool { return age(found[i]) > age(found[j]) })
	return found[0], nil
}

// observeInterval replays one interval.
func observeInterval(ctx context.Context, s *replay.Session, id uint32, o *observe.Observer) error {
	return observe.Run(ctx, s, observe.Options{
		Intervals: []uint32{id},
		Begin:     func(*observe.View) (*observe.Observer, error) { return o, nil },
	})
}
