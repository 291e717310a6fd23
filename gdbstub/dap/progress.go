package dap

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"

	godap "github.com/google/go-dap"
)

// What a client is shown of a movement that takes long (events progressStart, progressUpdate
// and progressEnd), and the request cancel, which ends one, or a request that waits.

// firstProgress is after what time a movement is shown, nextProgress how often it is then.
const (
	firstProgress = time.Second
	nextProgress  = 300 * time.Millisecond
)

// progress is what a client has been shown of a movement.
type progress struct {
	tick *time.Ticker
	id   string // "": nothing yet
	last string
}

// showProgress shows how far a movement is.
func (s *session) showProgress(m *movement) {
	if !s.canProgress {
		m.shown.tick.Stop()
		return
	}
	share, text := 0.0, ""
	if m.told != nil {
		share, text = m.told()
	}
	if m.shown.id == "" {
		m.shown.id = fmt.Sprintf("vplay-%d", s.nextSeq())
		m.shown.tick.Reset(nextProgress)
		title := m.title
		if title == "" {
			title = "Searching the recording"
		}
		s.event("progressStart", godap.ProgressStartEventBody{
			ProgressId: m.shown.id, Title: title, RequestId: m.req, Cancellable: true, Message: text, Percentage: int(100 * share),
		})
	} else if text != m.shown.last {
		s.event("progressUpdate", godap.ProgressUpdateEventBody{ProgressId: m.shown.id, Message: text, Percentage: int(100 * share)})
	}
	m.shown.last = text
}

// endProgress takes away what was shown of a movement.
func (s *session) endProgress(m *movement) {
	m.shown.tick.Stop()
	if m.shown.id != "" {
		s.event("progressEnd", godap.ProgressEndEventBody{ProgressId: m.shown.id})
	}
}

// errCancelled is the protocol's word for a request that its client cancelled.
var errCancelled = errors.New("cancelled")

// cancel ends the movement that a progress, or a request, is about, and answers a request
// that waits. What is unknown has ended already.
func cancel(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.CancelArguments](raw)
	if err != nil {
		return nil, err
	}
	if m := s.move; m != nil && (a.ProgressId != "" && a.ProgressId == m.shown.id || a.RequestId != 0 && a.RequestId == m.req) {
		m.cancel()
	}
	for i, req := range s.pending {
		if a.RequestId != 0 && req.Seq == a.RequestId {
			s.pending = append(s.pending[:i:i], s.pending[i+1:]...)
			delete(s.raw, req)
			s.send(failure(s.nextSeq(), req, errCancelled, false))
			break
		}
	}
	return nil, nil
}

// writer keeps what is written to it, up to a bound, and what it is told of how the work
// goes on.
type writer struct {
	b []byte

	mu   sync.Mutex
	last string // of Progress
}

// maxOutput bounds the output of one monitor command.
const maxOutput = 1 << 20

func (w *writer) Write(p []byte) (int, error) {
	w.b = append(w.b, p[:min(len(p), maxOutput-len(w.b))]...)
	return len(p), nil
}

// tail is a writer that keeps the newest lines instead, whole, and knows whether there were more.
type tail struct {
	writer
	isCut bool
}

func (w *tail) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	if over := len(w.b) - maxOutput; over > 0 {
		_, w.b, _ = bytes.Cut(w.b[over-1:], []byte("\n"))
		w.isCut = true
	}
	return len(p), nil
}

// Progress implements api.Progress.
func (w *writer) Progress(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = text
}

func (w *writer) progress() (share float64, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return 0, w.last
}
