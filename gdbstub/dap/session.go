package dap

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// A client's conversation: its state, the table of requests, and the order in which they may
// come. The requests themselves are in files by topic (breakpoint.go, stack.go, variable.go and
// so on).

// session is one client's conversation. One goroutine runs it; while the target
// moves, another uses target and symbols, and this one does not.
type session struct {
	srv     *Server
	target  api.Target
	symbols api.Symbols
	conn    io.ReadWriteCloser
	ctx     context.Context
	seq     int
	heard   bool // a message of the protocol came in

	in      chan message
	pending []*godap.Request // with raw, wait for the target to stand
	raw     map[*godap.Request][]byte
	move    *movement // nil while the target stands
	done    chan struct{}
	over    bool // the conversation is
	exit    bool

	started                    bool // configurationDone, or the stop has been reported to a client that does without
	launched                   bool
	clientID                   string
	lineBase, columnBase       int // of the client's numbers
	pathURI                    bool
	canProgress, canInvalidate bool // what the client understands
	pass                       []int
	mappings                   []Mapping
	threads                    []api.Thread
	told                       map[int]bool // the threads that the client knows of; nil before the first stop
	stop                       api.Stop
	moved                      bool                    // by the movement that has just ended
	frames                     map[int][]api.Frame     // by thread
	named                      map[nameKey][]api.Value // what completions propose
	handles                    []handle
	base                       int // number of handles[0]; each movement begins others
	breaks                     breakpoints
	program                    string                   // key of the present program
	diverted                   bool                     // there is a copy that has been changed
	changes                    int                      // how often it was
	entered                    bool                     // the client has not been told of the program
	changed                    map[int]godap.Breakpoint // nor of these breakpoints, by id
}

// message is what the reader passes on: a request as it came, or its end.
type message struct {
	data []byte
	err  error
}

func newSession(v *Server, conn io.ReadWriteCloser, ctx context.Context) *session {
	return &session{
		srv: v, target: v.target, symbols: v.symbols, conn: conn, ctx: ctx, in: make(chan message), done: make(chan struct{}),
		raw: map[*godap.Request][]byte{}, frames: map[int][]api.Frame{}, named: map[nameKey][]api.Value{}, lineBase: 1, columnBase: 1, mappings: v.opt.Mappings, base: firstHandle, breaks: newBreakpoints(), changed: map[int]godap.Breakpoint{},
	}
}

// read passes messages on until the connection ends.
func (s *session) read() {
	r := bufio.NewReader(s.conn)
	next := func() ([]byte, error) { return first(s.conn, r, firstTimeout) }
	for {
		b, err := next()
		next = func() ([]byte, error) { return readContent(r) }
		select {
		case s.in <- message{b, err}:
		case <-s.done:
			return
		}
		if err != nil {
			return
		}
	}
}

// run converses until the connection ends or the client says goodbye.
func (s *session) run() error {
	defer func() { _ = s.conn.Close() }() // what is lost with it is the client's
	defer context.AfterFunc(s.ctx, func() { _ = s.conn.Close() })()
	defer close(s.done)
	defer s.letGo()
	s.threads, s.stop = s.target.Threads(), s.target.Stop()
	s.program = s.programKey()
	go s.read()
	for !s.over {
		var ended, parked <-chan struct{}
		var said <-chan string
		var tick <-chan time.Time
		if s.move != nil {
			ended, parked, said, tick = s.move.ended, s.move.parked, s.move.said, s.move.shown.tick.C
		}
		select {
		case m := <-s.in:
			if m.err != nil {
				return m.err
			}
			s.message(m.data)
		case <-ended:
			s.arrived()
		case <-parked:
			s.catchUp(true)
			s.move.on <- struct{}{}
		case text := <-said:
			s.output(text + "\n")
		case <-tick:
			s.showProgress(s.move)
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	if s.exit {
		return api.ErrExit
	}
	return nil
}

// letGo ends what the client began.
func (s *session) letGo() {
	if m := s.move; m != nil {
		m.cancel()
		for m.began {
			select {
			case <-m.parked:
				m.on <- struct{}{}
				continue
			case <-m.ended:
			}
			break
		}
		s.move = nil
	}
	s.guard("clear breakpoints", s.removeAll)
	s.guard("detached", s.target.Detached)
}

// guard calls f and survives its panic.
func (s *session) guard(what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(what, p)
		}
	}()
	f()
}

func (s *session) panicked(what string, p any) {
	s.srv.log.Error("panic", "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

func (s *session) send(m any) {
	if err := writeMessage(s.conn, m); err != nil {
		s.over = true // the reader sees it, too, but perhaps late
	}
}

func (s *session) nextSeq() int {
	s.seq++
	return s.seq
}

func (s *session) event(name string, body any) {
	s.send(&event{Seq: s.nextSeq(), Type: "event", Event: name, Body: body})
}

func (s *session) respond(req *godap.Request, body any) {
	s.send(&response{Seq: s.nextSeq(), Type: "response", RequestSeq: req.Seq, Command: req.Command, Success: true, Body: body})
}

func (s *session) fail(req *godap.Request, err error) {
	s.send(failure(s.nextSeq(), req, err, requests[req.Command].shown))
}

// output shows a text in the client's console.
func (s *session) output(text string) {
	s.event("output", godap.OutputEventBody{Category: "console", Output: text})
}

// request is one kind of request. raw is the whole message.
type request struct {
	run func(s *session, req *godap.Request, raw []byte) (any, error)
	// free says that it needs neither target nor symbols, and may be answered while
	// the target moves; breaks that it sets breakpoints, for which a movement is
	// interrupted and goes on.
	free, breaks bool
	// shown says that a user asked for it, and that VS Code shows nowhere else why it
	// failed.
	shown bool
	after func(s *session) // behind the response
}

// requests are those that are known, by command.
var requests map[string]request

func init() { // not a literal: handlers refer to the table
	requests = map[string]request{
		"initialize":                {run: initialize, free: true},
		"launch":                    {run: launch, shown: true, after: (*session).launchedNow},
		"attach":                    {run: launch, shown: true, after: (*session).launchedNow},
		"configurationDone":         {run: configurationDone, after: (*session).tellStart},
		"disconnect":                {run: goodbye, free: true, after: (*session).leave},
		"terminate":                 {run: goodbye, free: true, after: (*session).leave},
		"restart":                   {run: restart, shown: true, after: (*session).tellStop},
		"threads":                   {run: threads, free: true},
		"pause":                     {run: pause, free: true},
		"setBreakpoints":            {run: setBreakpoints, breaks: true, shown: true},
		"setFunctionBreakpoints":    {run: setFunctionBreakpoints, breaks: true, shown: true},
		"setInstructionBreakpoints": {run: setInstructionBreakpoints, breaks: true, shown: true},
		"setDataBreakpoints":        {run: setDataBreakpoints, breaks: true, shown: true},
		"setExceptionBreakpoints":   {run: setExceptionBreakpoints, breaks: true, shown: true},
		"dataBreakpointInfo":        {run: dataBreakpointInfo},
		"exceptionInfo":             {run: exceptionInfo},
		"stackTrace":                {run: stackTrace},
		"scopes":                    {run: scopes},
		"variables":                 {run: variables},
		"evaluate":                  {run: evaluate},
		"readMemory":                {run: readMemory},
		"setVariable":               {run: setVariable},
		"setExpression":             {run: setExpression},
		"writeMemory":               {run: writeMemory, shown: true},
		"cancel":                    {run: cancel, free: true},
		"disassemble":               {run: disassemble},
		"source":                    {run: source, free: true},
		"loadedSources":             {run: loadedSources},
		"modules":                   {run: modules},
		"completions":               {run: completions},
		"continue":                  {run: resume(api.Forward), shown: true},
		"reverseContinue":           {run: resume(api.Backward), shown: true},
		"next":                      {run: step(api.Forward, over), shown: true},
		"stepIn":                    {run: step(api.Forward, into), shown: true},
		"stepOut":                   {run: step(api.Forward, out), shown: true},
		"stepBack":                  {run: step(api.Backward, over), shown: true},
	}
	addVplay()
}

// maxPending bounds the requests that wait for the target.
const maxPending = 256

// message handles one message that came in.
func (s *session) message(data []byte) {
	var req godap.Request
	if err := json.Unmarshal(data, &req); err != nil || req.Type != "request" {
		if req.Type == "" {
			req.Command = "unknown"
		}
		if req.Type != "response" && req.Type != "event" {
			s.fail(&req, errors.New("this is no request"))
		}
		return
	}
	s.heard = true
	r, ok := requests[req.Command]
	switch {
	case !ok:
		s.fail(&req, fmt.Errorf("%q is not known here", req.Command))
	case s.move == nil || r.free:
		s.answer(&req, data)
	case len(s.pending) >= maxPending:
		s.fail(&req, errors.New("too many requests while the program runs"))
	default:
		s.pending = append(s.pending, &req)
		s.raw[&req] = data
		if r.breaks {
			s.move.interrupt()
		}
	}
}

// answer runs a request and responds.
func (s *session) answer(req *godap.Request, data []byte) {
	r := requests[req.Command]
	body, err := s.safely(req.Command, func() (any, error) { return r.run(s, req, data) })
	switch {
	case errors.Is(err, errAnswered):
	case err != nil:
		s.fail(req, err)
		return
	default:
		s.respond(req, body)
	}
	if r.after != nil {
		_, err = s.safely(req.Command, func() (any, error) { r.after(s); return nil, nil })
		if err != nil {
			s.output(err.Error() + "\n")
		}
	}
	if s.move != nil {
		s.move.start()
	}
}

// errInternal is what a client is told of a panic.
var errInternal = errors.New("internal error, see the log of the server")

func (s *session) safely(what string, f func() (any, error)) (body any, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(what, p)
			body, err = nil, errInternal
		}
	}()
	return f()
}

// arguments decodes what a request comes with.
func arguments[T any](raw []byte) (T, error) {
	var m struct {
		Arguments T `json:"arguments"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m.Arguments, fmt.Errorf("bad arguments: %w", err)
	}
	return m.Arguments, nil
}

func initialize(s *session, _ *godap.Request, raw []byte) (any, error) {
	var m struct {
		Arguments struct {
			ClientID                  string
			LinesStartAt1             *bool
			ColumnsStartAt1           *bool
			PathFormat                string
			SupportsProgressReporting bool
			SupportsInvalidatedEvent  bool
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("bad arguments: %w", err)
	}
	if m.Arguments.LinesStartAt1 != nil && !*m.Arguments.LinesStartAt1 {
		s.lineBase = 0
	}
	if m.Arguments.ColumnsStartAt1 != nil && !*m.Arguments.ColumnsStartAt1 {
		s.columnBase = 0
	}
	s.clientID = m.Arguments.ClientID
	s.pathURI = m.Arguments.PathFormat == "uri"
	// With it VS Code asks for the innermost frame, draws the call stack, and asks for the rest, some of it before it draws the line.
	// All of what it asks for takes us less than a millisecond.
	canDelay := s.clientID != "vscode"
	s.canProgress, s.canInvalidate = m.Arguments.SupportsProgressReporting, m.Arguments.SupportsInvalidatedEvent
	return godap.Capabilities{
		SupportsConfigurationDoneRequest: true, SupportsFunctionBreakpoints: true, SupportsConditionalBreakpoints: true,
		SupportsHitConditionalBreakpoints: true, SupportsEvaluateForHovers: true, SupportsStepBack: true, SupportsRestartRequest: true,
		SupportsExceptionInfoRequest: true, SupportsDelayedStackTraceLoading: canDelay, SupportsLogPoints: true, SupportsTerminateRequest: true,
		SupportsDataBreakpoints: true, SupportsReadMemoryRequest: true, SupportsDisassembleRequest: true, SupportsSteppingGranularity: true,
		SupportsInstructionBreakpoints: true, SupportsSetVariable: true, SupportsSetExpression: true, SupportsWriteMemoryRequest: true,
		SupportsCancelRequest: true, SupportsModulesRequest: true, SupportsLoadedSourcesRequest: true, SupportsValueFormattingOptions: true,
		SupportsCompletionsRequest: true, CompletionTriggerCharacters: []string{".", ">", "$"},
		ExceptionBreakpointFilters: []godap.ExceptionBreakpointsFilter{
			{Filter: filterSignals, Label: "Signals", Description: "Stop where the recorded program received a signal", Default: true},
		},
	}, nil
}

// launchArguments are ours and those of VS Code's C++ extension that mean something
// here.
type launchArguments struct {
	SourceFileMap  map[string]any // from recorded to local paths, as the C++ extension has it
	SourceMap      map[string]any // likewise, as vplay's own has it
	SubstitutePath []Mapping
	At             string // where to stand at first: begin, end, or a position
	StopOnEntry    bool
}

// launch answers launch and attach: the program is there already.
func launch(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[launchArguments](raw)
	if err != nil {
		return nil, err
	}
	var given []Mapping
	for _, m := range []map[string]any{a.SourceMap, a.SourceFileMap} {
		given = append(given, mappingsOf(m)...)
	}
	s.mappings = append(append(given, a.SubstitutePath...), s.srv.opt.Mappings...)
	if len(s.mappings) > 100 {
		s.mappings = s.mappings[:100]
	}
	if a.At != "" {
		var out writer
		if err := s.target.Monitor(s.ctx, "seek "+a.At, &out); err != nil {
			return nil, err
		}
		s.stop = s.target.Stop()
	}
	s.refresh()
	return nil, nil
}

// mappingsOf reads a map of paths. The longer path comes first: it says more.
func mappingsOf(m map[string]any) (list []Mapping) {
	for from, to := range m {
		switch to := to.(type) {
		case string:
			list = append(list, Mapping{from, to})
		case map[string]any: // the C++ extension's longer form
			if p, ok := to["editorPath"].(string); ok {
				list = append(list, Mapping{from, p})
			}
		}
	}
	slices.SortFunc(list, func(a, b Mapping) int { return cmp.Or(len(b.From)-len(a.From), strings.Compare(a.From, b.From)) })
	return list
}

// launchedNow asks the client for its breakpoints, not earlier: what source paths
// mean comes with the launch. It is told where the program stands when it has set
// them.
func (s *session) launchedNow() {
	s.launched = true
	s.event("initialized", nil)
	s.tellProcess()
	if s.started {
		s.tellStop()
	}
}

func configurationDone(s *session, _ *godap.Request, _ []byte) (any, error) {
	s.started = true
	return nil, nil
}

func (s *session) tellStart() {
	if s.launched {
		s.tellStop()
	}
}

// goodbye answers disconnect and terminate; the recording stays where it is.
func goodbye(*session, *godap.Request, []byte) (any, error) { return nil, nil }

func (s *session) leave() {
	s.event("terminated", nil)
	s.over = true
}

// restart goes to the beginning of the recording.
func restart(s *session, _ *godap.Request, _ []byte) (any, error) {
	s.undivert()
	if err := s.target.Rewind(); err != nil {
		return nil, err
	}
	s.refresh()
	s.stop = api.Stop{Kind: api.StopReplayBegin, TID: s.stop.TID}
	return nil, nil
}

func threads(s *session, _ *godap.Request, _ []byte) (any, error) {
	body := godap.ThreadsResponseBody{Threads: []godap.Thread{}}
	for _, t := range s.threads {
		name := t.Name
		if name == "" {
			name = "thread"
		}
		body.Threads = append(body.Threads, godap.Thread{Id: t.TID, Name: fmt.Sprintf("%s (%d)", name, t.TID)})
	}
	return body, nil
}

// refresh forgets what was known of the position before.
func (s *session) refresh() {
	s.base += len(s.handles)
	s.handles = nil
	clear(s.frames)
	clear(s.named)
	s.threads = s.target.Threads()
	s.follow()
}

// thread returns the id of the thread that a request means.
func (s *session) thread(id int) (int, error) {
	for _, t := range s.threads {
		if t.TID == id {
			return id, nil
		}
	}
	if id == 0 && len(s.threads) > 0 {
		return s.threads[0].TID, nil
	}
	return 0, fmt.Errorf("there is no thread %d", id)
}
