package main

import (
	"context"
	"log/slog"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

// A bridge between loggers: the protocol servers log with log/slog, and vplayd writes
// with zerolog.

// slogHandler writes slog records with zerolog, so that all of vplayd's
// messages have one form.
type slogHandler struct{ log zerolog.Logger }

var levels = map[slog.Level]zerolog.Level{
	slog.LevelDebug: zerolog.DebugLevel, slog.LevelInfo: zerolog.InfoLevel,
	slog.LevelWarn: zerolog.WarnLevel, slog.LevelError: zerolog.ErrorLevel,
}

func (h slogHandler) Enabled(_ context.Context, l slog.Level) bool {
	return levels[l] >= h.log.GetLevel()
}

func (h slogHandler) Handle(_ context.Context, r slog.Record) error {
	e := h.log.WithLevel(levels[r.Level])
	r.Attrs(func(a slog.Attr) bool {
		e = e.Any(a.Key, a.Value.Any())
		return true
	})
	e.Msg(r.Message)
	return nil
}

func (h slogHandler) WithAttrs(as []slog.Attr) slog.Handler {
	c := h.log.With()
	for _, a := range as {
		c = c.Any(a.Key, a.Value.Any())
	}
	return slogHandler{c.Logger()}
}

func (h slogHandler) WithGroup(string) slog.Handler { return h }

// stubLog passes the protocol server's messages on.
func stubLog(c *cobra.Command) *slog.Logger {
	l := logger(c, "gdbstub")
	return slog.New(slogHandler{l})
}
