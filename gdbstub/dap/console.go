package dap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// The client's console: the target's monitor commands without the word monitor, and help.
// Expressions, which the console takes too, are in variable.go.

// Command is one of the target's monitor commands.
type Command struct {
	Usage string // its name is the first word
	Help  string
}

func (c *Command) name() string {
	name, _, _ := strings.Cut(c.Usage, " ")
	return name
}

// consoleHelp is what stands before the list of commands.
const consoleHelp = `An expression is evaluated in the selected frame: a->name, items[2], *p, (long)p, sizeof(x), $rip.
Commands, which take names and expressions where memory is meant:
`

// help answers "help" and "help COMMAND".
func (s *session) help(topic string) string {
	var b strings.Builder
	for i := range s.srv.opt.Commands {
		c := &s.srv.opt.Commands[i]
		switch {
		case topic == "":
			fmt.Fprintf(&b, "  %-32s %s\n", c.Usage, c.Help)
		case topic == c.name():
			return s.ours(c.Usage + "\n  " + c.Help)
		}
	}
	return consoleHelp + strings.TrimRight(s.ours(b.String()), "\n")
}

// ours puts a text of the target's, which speaks to users of gdb, in the words of an
// editor's console.
func (s *session) ours(text string) string { return s.srv.words.Replace(text) }

// wordsOf returns what ours does.
func wordsOf(commands []Command) *strings.Replacer {
	var list []string
	for i := range commands {
		name := commands[i].name()
		list = append(list, "monitor "+name, name)
	}
	return strings.NewReplacer(list...)
}

// command returns the monitor command in a line of the console, if it is one: with or
// without the word monitor, or with the word vplay, as in gdb.
func (s *session) command(line string) (string, bool) {
	line = strings.TrimPrefix(line, "-exec ")
	for _, prefix := range []string{"monitor ", "vplay "} {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSpace(rest), true
		}
	}
	word, _, _ := strings.Cut(line, " ")
	return line, slices.ContainsFunc(s.srv.opt.Commands, func(c Command) bool { return c.name() == word })
}

// located puts an address in the place of the expression of a command about memory,
// with the number of bytes that the expression has unless the line says how many: so
// a variable is meant as a whole, and locals are found. Other lines, and expressions
// that are not in memory, stay as they are.
func (s *session) located(frame int, line string) string {
	word, expr, _ := strings.Cut(line, " ")
	expr = strings.TrimSpace(expr)
	if !slices.Contains(s.srv.opt.Accesses, word) || expr == "" {
		return line
	}
	f, err := s.frame(frame)
	if err != nil {
		var ref frameRef
		if ref, err = s.innermost(); err == nil {
			f, err = s.frameAt(ref)
		}
	}
	if err != nil {
		return line
	}
	numbers := ""
	for range 3 { // EXPR [LENGTH [N]]
		if v, err := s.symbols.Eval(f, expr); err == nil && v.Size > 0 {
			if numbers == "" {
				numbers = fmt.Sprintf(" %d", v.Size)
			}
			return fmt.Sprintf("%s %#x%s", word, v.Addr, numbers)
		}
		i := strings.LastIndexByte(expr, ' ')
		if i < 0 {
			break
		}
		expr, numbers = strings.TrimSpace(expr[:i]), expr[i:]+numbers
	}
	return line
}

// errAnswered says that a request has been, or will be, answered elsewhere.
var errAnswered = errors.New("answered elsewhere")

// maxCommand bounds a monitor command, in bytes.
const maxCommand = 4096

var errTooLong = errors.New("the command is too long")

// monitor runs a command as a movement: it may take long, and it may move the
// target, of which the client is told then.
func (s *session) monitor(req *godap.Request, line string) (any, error) {
	if len(line) > maxCommand {
		return nil, errTooLong
	}
	if _, ok := seekTarget(line); ok {
		s.undivert()
	}
	out := &writer{}
	run := func(ctx context.Context, m *movement) (api.Stop, error) {
		if where, ok := seekTarget(line); ok {
			return api.Stop{}, m.seek(where, out)
		}
		return api.Stop{}, s.target.Monitor(ctx, line, out)
	}
	s.begin(run, func(_ api.Stop, err error) {
		switch {
		case errors.Is(err, api.ErrExit):
			s.exit, s.over = true, true
		case err != nil:
			s.fail(req, errors.New(s.ours(err.Error())))
			return
		}
		s.respond(req, godap.EvaluateResponseBody{Result: s.ours(strings.TrimRight(string(out.b), "\n"))})
		if s.moved {
			s.stop = s.target.Stop()
			s.tellProgram()
			s.tellThreads()
			// A client that was not told that it runs goes on showing the stop before.
			s.event("continued", godap.ContinuedEventBody{ThreadId: s.stop.TID, AllThreadsContinued: true})
			body := godap.StoppedEventBody{Reason: "goto", Description: "Paused after a command", ThreadId: s.stop.TID, AllThreadsStopped: true}
			s.event("stopped", body)
		}
	})
	s.question(req, line)
	s.move.told = out.progress
	return nil, errAnswered
}

// where tells one position from another.
func (s *session) where() string {
	if t, ok := s.target.(api.PositionTarget); ok {
		return s.programKey() + t.Position()
	}
	tid, err := s.thread(0)
	if err != nil {
		return ""
	}
	r, err := s.target.Registers(tid)
	if err != nil || r == nil {
		return ""
	}
	return fmt.Sprint(*r)
}
