package dap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// Requests of our own, which the extension for VS Code sends (folder vscode) and any other
// client may. The protocol lets a server have such; their names begin with "vplay/".
//
//	vplay/position                            where the program stands
//	vplay/history   from, to, most            what happened when, for a timeline
//	vplay/seek      to                        go there; a stopped event follows
//	vplay/accesses  WHAT, kind, count         the newest writes of WHAT (kind "reads": reads) before here, the newest first
//	vplay/watch     WHAT, remove              stop when WHAT changes, until the end of the session
//	vplay/calls     function, count           the newest calls of a function before here, the newest first
//
// WHAT is one of: expression and frameId; variablesReference and name, as in
// dataBreakpointInfo; address and size. Answers are [api.Moment], [api.History], and the
// types below. "cut": true says that the newest ones are there and others did not fit.

// addVplay adds the requests to those of the protocol.
func addVplay() {
	requests["vplay/position"] = request{run: vplayPosition}
	requests["vplay/history"] = request{run: vplayHistory}
	requests["vplay/seek"] = request{run: vplaySeek}
	requests["vplay/accesses"] = request{run: vplayAccesses}
	requests["vplay/watch"] = request{run: vplayWatch}
	requests["vplay/calls"] = request{run: vplayCalls}
}

// errNoHistory is the answer of a target that knows no history.
var errNoHistory = errors.New("this target has no history to show")

func vplayPosition(s *session, _ *godap.Request, _ []byte) (any, error) {
	t, ok := s.target.(api.HistoryTarget)
	if !ok {
		return nil, errNoHistory
	}
	return t.Moment(), nil
}

// maxMarks bounds the marks of a kind and a thread in one answer.
const maxMarks = 20_000

func vplayHistory(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[struct {
		From, To float64
		Most     int
	}](raw)
	if err != nil {
		return nil, err
	}
	t, ok := s.target.(api.HistoryTarget)
	if !ok {
		return nil, errNoHistory
	}
	return t.History(s.ctx, a.From, a.To, min(a.Most, maxMarks))
}

func vplaySeek(s *session, req *godap.Request, raw []byte) (any, error) {
	a, err := arguments[struct{ To string }](raw)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(a.To) == "" {
		return nil, errors.New("vplay/seek wants to know where to")
	}
	return s.monitor(req, "seek "+a.To)
}

// whatArguments say which memory a request is about.
type whatArguments struct {
	Expression         string
	FrameID            int
	VariablesReference int
	Name               string
	Address            string
	Size               uint64
}

// name is what the client calls it.
func (a *whatArguments) name() string {
	switch {
	case a.Address != "":
		return a.Address
	case a.VariablesReference != 0:
		return a.Name
	}
	return a.Expression
}

// where finds the memory. The error says why there is none.
func (a *whatArguments) where(s *session) (v api.Value, err error) {
	switch {
	case a.Address != "":
		v.Size = int64(a.Size)
		v.Addr, err = parseAddress(a.Address)
	case a.VariablesReference != 0:
		v, err = s.valueOf(a.VariablesReference, a.Name, 0)
	default:
		v, err = s.valueOf(0, a.Expression, a.FrameID)
	}
	if err == nil && (v.Size <= 0 || v.Size > api.MaxWatchLen) {
		err = fmt.Errorf("%s is not in memory here, or has more than %d bytes", clip(a.name()), api.MaxWatchLen)
	}
	return v, err
}

// accessesBody is the answer to vplay/accesses.
type accessesBody struct {
	Address  string       `json:"address"`
	Size     int64        `json:"size"`
	Accesses []accessBody `json:"accesses"`
	IsCut    bool         `json:"cut,omitempty"`
}

// accessBody is a write or a read.
type accessBody struct {
	placeBody
	Instruction string `json:"instruction"`
	Before      string `json:"before,omitempty"` // of a write
	After       string `json:"after"`            // or what was read
	IsChanged   bool   `json:"changed"`
}

// placeBody is a moment of the past and where the program was.
type placeBody struct {
	Position string        `json:"position"` // before the instruction
	Address  string        `json:"instructionPointer"`
	Function string        `json:"function,omitempty"`
	Source   *godap.Source `json:"source,omitempty"`
	Line     int           `json:"line,omitempty"`
}

// location is where the answers of monitor commands say that the program was.
type location struct {
	Addr     uint64
	Function string
	File     string
	Line     int
}

func (s *session) placeOf(position string, l *location) placeBody {
	if l == nil {
		return placeBody{Position: position}
	}
	b := placeBody{Position: position, Address: hex(l.Addr), Function: l.Function}
	if l.File != "" {
		b.Source, b.Line = s.source(l.File), l.Line-1+s.lineBase
	}
	return b
}

// defaultCount is how many accesses or calls are listed unless the client says.
const defaultCount = 10

func vplayAccesses(s *session, req *godap.Request, raw []byte) (any, error) {
	a, err := arguments[struct {
		whatArguments
		Kind  string
		Count int
	}](raw)
	if err != nil {
		return nil, err
	}
	v, err := a.where(s)
	if err != nil {
		return nil, err
	}
	command := "writes"
	if a.Kind == "reads" {
		command = "reads"
	}
	if a.Count <= 0 {
		a.Count = defaultCount
	}
	body := accessesBody{Address: hex(v.Addr), Size: v.Size, Accesses: []accessBody{}}
	line := fmt.Sprintf("%s --json %#x %d %d", command, v.Addr, v.Size, a.Count)
	return s.ask(req, "Looking for "+command+" of "+clip(a.name()), line, func(answer []byte) error {
		var x struct {
			Position, Instruction, Old, New string
			At                              location
			Changed                         bool
		}
		if err := json.Unmarshal(answer, &x); err != nil {
			return err
		}
		body.Accesses = append(body.Accesses, accessBody{
			placeBody: s.placeOf(x.Position, &x.At), Instruction: x.Instruction, IsChanged: x.Changed,
			Before: shown(x.Old, &v), After: shown(x.New, &v),
		})
		return nil
	}, func(isCut bool) any {
		slices.Reverse(body.Accesses)
		body.IsCut = isCut
		return body
	})
}

func vplayCalls(s *session, req *godap.Request, raw []byte) (any, error) {
	a, err := arguments[struct {
		Function string
		Count    int
	}](raw)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(strings.TrimSpace(a.Function), "()")
	if name == "" || strings.ContainsAny(name, " \t\n") {
		return nil, errors.New("vplay/calls wants the name of a function")
	}
	if a.Count <= 0 {
		a.Count = defaultCount
	}
	type call struct {
		placeBody
		Arguments []string `json:"arguments"`
	}
	body := struct {
		Calls []call `json:"calls"`
		IsCut bool   `json:"cut,omitempty"`
	}{Calls: []call{}}
	line := fmt.Sprintf("calls --json %s %d", name, a.Count)
	return s.ask(req, "Looking for calls of "+clip(name), line, func(answer []byte) error {
		var x struct {
			Position  string
			Arguments []string
			From      *location
		}
		if err := json.Unmarshal(answer, &x); err != nil {
			return err
		}
		body.Calls = append(body.Calls, call{s.placeOf(x.Position, x.From), x.Arguments})
		return nil
	}, func(isCut bool) any {
		slices.Reverse(body.Calls)
		body.IsCut = isCut
		return body
	})
}

// ask runs a monitor command that answers in JSON, one object a line and the newest last, as a
// question, and responds with body when each answer has been taken. isCut says that older ones
// did not fit. The title is for who waits for it.
func (s *session) ask(req *godap.Request, title, line string, take func(answer []byte) error, body func(isCut bool) any) (any, error) {
	if len(line) > maxCommand {
		return nil, errTooLong
	}
	out := &tail{}
	run := func(ctx context.Context, _ *movement) (api.Stop, error) {
		err := s.target.Monitor(ctx, line, out)
		if ctx.Err() != nil {
			err = errCancelled
		}
		return api.Stop{}, err
	}
	s.begin(run, func(_ api.Stop, err error) {
		for answer := range strings.Lines(string(out.b)) {
			if err == nil {
				err = take([]byte(answer))
			}
		}
		if err != nil {
			s.fail(req, errors.New(s.ours(err.Error())))
			return
		}
		s.respond(req, body(out.isCut))
	})
	s.question(req, title)
	s.move.told = out.progress
	return nil, errAnswered
}

// shown writes bytes, given in hexadecimal in the order of memory, as the value that
// occupies them is written: a number in decimal or hexadecimal, the rest as bytes.
func shown(bytes string, v *api.Value) string {
	if len(bytes) != 2*int(v.Size) || v.Size > 8 {
		if len(bytes) == 0 {
			return "?"
		}
		return bytes
	}
	var n uint64
	for i := len(bytes) - 2; i >= 0; i -= 2 {
		b, err := strconv.ParseUint(bytes[i:i+2], 16, 8)
		if err != nil {
			return bytes
		}
		n = n<<8 | b
	}
	if v.IsNumber && v.Pointer == 0 && !strings.HasPrefix(v.Text, "0x") && v.Text != "" {
		shift := 64 - 8*uint(v.Size)
		if strings.HasPrefix(v.Type, "unsigned") {
			return strconv.FormatUint(n, 10)
		}
		return strconv.FormatInt(int64(n<<shift)>>shift, 10)
	}
	return hex(n)
}

// groupWatch is the group of the breakpoints that vplay/watch sets.
const groupWatch = "vplay/watch"

// vplayWatch sets a data breakpoint that the client does not know, or takes it away.
func vplayWatch(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[struct {
		whatArguments
		Remove bool
	}](raw)
	if err != nil {
		return nil, err
	}
	v, err := a.where(s)
	if err != nil {
		return nil, err
	}
	var list []*breakpoint
	for _, b := range s.breaks.groups[groupWatch] {
		if b.program != s.program || b.data.Addr != v.Addr || b.data.Len != uint64(v.Size) {
			list = append(list, b)
		}
	}
	if !a.Remove {
		list = append(list, &breakpoint{
			id: s.breaks.id(), kind: "data breakpoint", program: s.program, data: api.Breakpoint{Kind: api.WatchWrite, Addr: v.Addr, Len: uint64(v.Size)},
		})
	}
	if err := s.replace(groupWatch, list); err != nil {
		return nil, err
	}
	return map[string]any{"address": hex(v.Addr), "size": v.Size}, nil
}
