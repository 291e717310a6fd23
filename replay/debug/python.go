package debug

import (
	"context"
	_ "embed"
	"io"
)

// The Python file with the gdb commands, which is part of the program. What the
// commands do is in gdb/vplay.py.

// GDBPython is the Python file that makes vplay's monitor commands gdb commands.
//
//go:embed gdb/vplay.py
var GDBPython string

// PythonPath is where clients find it among the recorded system's files:
// "remote get /vplay/vplay.py vplay.py".
const PythonPath = "/vplay/vplay.py"

func monitorPython(_ context.Context, _ *Cursor, _ []string, out io.Writer) error {
	_, err := io.WriteString(out, GDBPython)
	return err
}
