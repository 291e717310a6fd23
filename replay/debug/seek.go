package debug

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/debug/api"
)

// The monitor commands that move to a place that the user names, and those that
// remember places (checkpoint, restart). Movements that a debugger asks for by a resume
// are in move.go.

func init() {
	maps.Copy(monitorCommands, map[string]monitorCommand{
		"seek":              {usage: "seek WHERE", help: "move: POSITION, begin, end, crash, PERCENT%, a fraction 0.0 to 1.0, event N, interval N, interval +N", gdb: "; then tell gdb: maintenance flush register-cache", run: monitorSeek},
		"resume-at":         {usage: "resume-at WHERE", gdbOnly: true, help: "like seek, but move at the next step or continue, whatever it is, so that the debugger sees a stop", run: monitorResumeAt},
		"checkpoint":        {usage: "checkpoint", help: "remember the present position", run: monitorCheckpoint},
		"checkpoints":       {usage: "checkpoints", help: "the positions remembered", run: monitorCheckpoints},
		"restart":           {usage: "restart N", help: "seek to what checkpoint N remembers", run: monitorRestart},
		"delete-checkpoint": {usage: "delete-checkpoint N", help: "forget it", run: monitorDeleteCheckpoint},
	})
}

// where is a place to move to.
type where struct {
	kind     whereKind
	pos      checkpoint.Position
	fraction float64
	n        int  // event or interval
	relative bool // interval: from the present one
}

type whereKind uint8

const (
	wherePosition whereKind = iota
	whereBegin
	whereEnd
	whereFraction
	whereEvent
	whereInterval
)

var errWhere = errors.New("say where: a position I:N.S, begin, end, crash, 50%, 0.5, event N, interval N or interval +N")

// parseWhere reads the arguments of seek.
func parseWhere(args []string) (where, error) {
	switch {
	case len(args) == 1 && args[0] == "begin":
		return where{kind: whereBegin}, nil
	case len(args) == 1 && (args[0] == "end" || args[0] == "crash"):
		return where{kind: whereEnd}, nil
	case len(args) == 1 && (strings.HasSuffix(args[0], "%") || strings.Contains(args[0], ".") && !strings.Contains(args[0], ":")):
		text, percent := strings.CutSuffix(args[0], "%")
		f, err := strconv.ParseFloat(text, 64)
		if percent {
			f /= 100
		}
		if err != nil || !(f >= 0 && f <= 1) {
			return where{}, fmt.Errorf("bad share %q: 0%% to 100%%, or 0.0 to 1.0", args[0])
		}
		return where{kind: whereFraction, fraction: f}, nil
	case len(args) == 1:
		p, err := ParsePosition(args[0])
		return where{pos: p}, err
	case len(args) == 2 && (args[0] == "event" || args[0] == "interval"):
		n, err := strconv.ParseInt(strings.TrimPrefix(args[1], "#"), 10, 32)
		w := where{kind: whereEvent, n: int(n)}
		if args[0] == "interval" {
			w.kind, w.relative = whereInterval, args[1][0] == '+' || args[1][0] == '-'
		}
		if err != nil {
			return where{}, fmt.Errorf("bad number %q", args[1])
		}
		return w, nil
	}
	return where{}, errWhere
}

// CheckPlace reports what is wrong with a place, as "monitor seek" takes it.
func CheckPlace(place string) error {
	_, err := parseWhere(strings.Fields(place))
	return err
}

// Seek moves to a place, as "monitor seek" takes it, in whatever program of the process it
// is. It is for a front end that nobody uses yet. The other processes are moved along.
func (v *Inferiors) Seek(ctx context.Context, place string) error {
	w, err := parseWhere(strings.Fields(place))
	if err == nil {
		err = v.Cursor.seek(ctx, w, true)
	}
	v.moved = false // there is no debugger yet that could have missed it
	return v.note(true, err)
}

// seek moves the cursor, with anyImage also to another program that the process was.
// When that fails or is interrupted, it stays. Where replay does not come to the final image, what lies
// before the divergence can be gone to all the same.
func (g *Cursor) seek(ctx context.Context, w where, anyImage bool) error {
	g.Undivert()
	if err := g.leaveFinal(ctx); err != nil && !replay.Unmatched(err) {
		return err
	}
	final := g.final // nil unless replay diverges on the way there
	g.final = nil
	from, was := g.cur.Position(), g.image
	if w.kind == whereInterval {
		if w.relative {
			w.n += int(from.Interval)
		}
		w = where{pos: checkpoint.Position{Interval: uint32(w.n)}}
	}
	err := g.seekImage(ctx, w, anyImage)
	if err == nil {
		err = g.seekHere(ctx, w)
	}
	g.moved = true
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		ctx := context.WithoutCancel(ctx)
		if g.image != was {
			err = errors.Join(err, g.enter(ctx, was, false))
		}
		if g.final = final; final != nil {
			return err
		}
		return errors.Join(err, g.cur.Seek(ctx, from))
	}
	if final != nil {
		final.Mem.Close()
	}
	g.reported = nowhere
	g.stop = api.Stop{Kind: api.StopStep, TID: g.tid()}
	if g.cur.AtEnd() {
		g.reported, g.stop = g.cur.Position(), g.endStop()
	}
	return nil
}

// seekImage enters the image that has a place.
func (g *Cursor) seekImage(ctx context.Context, w where, anyImage bool) error {
	to := g.image
	switch w.kind {
	case wherePosition:
		to = g.imageOf(w.pos.Interval)
	case whereEnd:
		to = g.session.last()
	default: // The others are of the present image.
	}
	switch {
	case to == g.image:
		return nil
	case !anyImage:
		return errors.New("the process executes another program on the way there: use vplay seek, or resume-at and a step, in a debugger that follows execve")
	}
	return g.enter(ctx, to, false)
}

// seekHere moves the cursor within the present image.
func (g *Cursor) seekHere(ctx context.Context, w where) error {
	switch w.kind {
	case whereBegin:
		return g.cur.Seek(ctx, g.t.Begin())
	case whereEnd:
		_, err := g.cur.ToEnd(ctx)
		return err
	case whereFraction:
		return g.cur.SeekFraction(ctx, w.fraction)
	case whereEvent:
		return g.cur.SeekEvent(ctx, w.n)
	default:
		return g.cur.Seek(ctx, w.pos)
	}
}

func monitorSeek(ctx context.Context, g *Cursor, args []string, out io.Writer) error {
	w, err := parseWhere(args)
	if err == nil {
		err = g.seek(ctx, w, false)
	}
	if err != nil {
		return interrupted(ctx, err, out)
	}
	fmt.Fprintln(out, g.cur.Position())
	return nil
}

// monitorResumeAt makes the next resume a move. The debugger asks for a step, is
// told of a stop, and so looks at everything anew and tells its front-end.
func monitorResumeAt(_ context.Context, g *Cursor, args []string, _ io.Writer) error {
	w, err := parseWhere(args)
	if err != nil {
		return err
	}
	g.goal = &w
	return nil
}

// jump makes the move that resume-at has asked for.
func (g *Cursor) jump(ctx context.Context, r *api.Resume) (api.Stop, error) {
	w := *g.goal
	g.goal = nil
	was := g.image
	if err := g.seek(ctx, w, r.ExecEvents); err != nil {
		return g.failed(err)
	}
	if g.image != was {
		return g.execStop(), nil
	}
	if st := g.stop; !r.Alone && st.Kind == api.StopSignal && st.Signo != int(abi.SIGTRAP) && !passes(r.PassSignals, int32(st.Signo)) {
		return st, nil // stops gdb in any thread, and it would say that the stepped one has crashed
	}
	return g.forThread(g.stop, r.TID), nil
}

// forThread makes a stop one of the thread that was to be stepped, where there is that
// thread: gdb takes no notice of another one's, and goes on.
func (g *Cursor) forThread(stop api.Stop, tid int) api.Stop {
	if slices.ContainsFunc(g.threads(), func(t replay.Thread) bool { return int(t.TID) == tid }) {
		stop.TID = tid
	}
	return stop
}

// remembered is a checkpoint of the user's.
type remembered struct {
	n    int
	pos  checkpoint.Position
	text string // where the program is
}

func monitorCheckpoint(ctx context.Context, g *Cursor, _ []string, out io.Writer) error {
	if err := g.leaveFinal(ctx); err != nil {
		return err
	}
	g.lastCheckpoint++
	c := remembered{g.lastCheckpoint, g.cur.Position(), placeText(g.names().At(g.state().RIP))}
	g.checkpoints = append(g.checkpoints, c)
	fmt.Fprintf(out, "Checkpoint %d at %s  %s\n", c.n, c.pos, c.text)
	return nil
}

func monitorCheckpoints(_ context.Context, g *Cursor, _ []string, out io.Writer) error {
	for _, c := range g.checkpoints {
		fmt.Fprintf(out, "%d  %s  %s\n", c.n, c.pos, c.text)
	}
	if len(g.checkpoints) == 0 {
		fmt.Fprintln(out, "No checkpoints.")
	}
	return nil
}

// remembered finds a checkpoint by its number.
func (g *Cursor) remembered(args []string) (i int, err error) {
	if len(args) != 1 {
		return 0, errors.New("say which checkpoint")
	}
	for i := range g.checkpoints {
		if strconv.Itoa(g.checkpoints[i].n) == args[0] {
			return i, nil
		}
	}
	return 0, fmt.Errorf("there is no checkpoint %s", args[0])
}

func monitorRestart(ctx context.Context, g *Cursor, args []string, out io.Writer) error {
	i, err := g.remembered(args)
	if err != nil {
		return err
	}
	return monitorSeek(ctx, g, []string{g.checkpoints[i].pos.String()}, out)
}

func monitorDeleteCheckpoint(_ context.Context, g *Cursor, args []string, _ io.Writer) error {
	i, err := g.remembered(args)
	if err != nil {
		return err
	}
	g.checkpoints = append(g.checkpoints[:i], g.checkpoints[i+1:]...)
	return nil
}
