package main

import (
	"io"
	"os"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"vplay/replay/debug/text"
)

// The log: which messages of which component are written, and how. The protocol servers'
// way into it is in slog.go.

// logger builds the logger that the flags ask for; by default warnings only.
func logger(c *cobra.Command, component string) zerolog.Logger {
	spec, _ := c.Flags().GetString("log")
	format, _ := c.Flags().GetString("log-format")
	out := stderr
	service, _ := c.Flags().GetBool("service")
	if j, ok := levelled(stderr); ok && format == "" {
		out = j
	} else if format == "console" || format == "" && isTerminal(os.Stderr) {
		out = zerolog.ConsoleWriter{
			Out: os.Stderr, NoColor: os.Getenv("NO_COLOR") != "" || service, TimeFormat: "15:04:05.000", // it writes colours
			FormatPrepare: escapeEvent,
		}
	}
	level := zerolog.WarnLevel
	for _, part := range strings.Split(spec, ",") {
		name, value, found := strings.Cut(part, "=")
		if !found {
			name, value = "", part
		}
		if l, err := zerolog.ParseLevel(value); err == nil && value != "" && (name == "" || name == component) {
			level = l
		}
	}
	return zerolog.New(out).Level(level).With().Timestamp().Str("component", component).Logger()
}

// levelled returns the log's way into what has messages with levels, if w has one.
func levelled(w io.Writer) (io.Writer, bool) {
	l, ok := w.(interface{ log() io.Writer })
	if !ok {
		return nil, false
	}
	return l.log(), true
}

// escapeEvent escapes the message of an event of the log. The console's writer
// quotes the values of all other fields.
func escapeEvent(event map[string]any) error {
	if message, ok := event[zerolog.MessageFieldName].(string); ok {
		event[zerolog.MessageFieldName] = text.Escape(message)
	}
	return nil
}
