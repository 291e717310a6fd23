package dap

import (
	"context"
	"log/slog"
	"sync"
)

// failing is a log that keeps the first error.
type failing struct {
	mu   sync.Mutex
	text string
}

func (f *failing) logger() *slog.Logger { return slog.New(failHandler{f}) }

type failHandler struct{ f *failing }

func (failHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (h failHandler) Handle(_ context.Context, r slog.Record) error {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if h.f.text == "" {
		h.f.text = r.Message
		r.Attrs(func(a slog.Attr) bool { h.f.text += " " + a.String(); return true })
	}
	return nil
}

func (h failHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h failHandler) WithGroup(string) slog.Handler      { return h }
