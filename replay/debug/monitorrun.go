package debug

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug/api"
)

// The monitor command that runs a script over the recording. How scripts are run is not known here: the owner of the
// session says it, so that debuggers do not depend on the scripts' language. A script is one that the owner knows by its name, or
// one that the client sends: the file is on the client's machine, and what serves opens no file that a client names.

// Script is what is run over the process that a session shows.
type Script struct {
	Name    string
	Source  []byte // nil: one that comes with the program, by its name
	Args    []string
	JSON    bool // results as JSON objects, one a line
	PID     int32
	Symbols *image.Symbols
}

// ScriptRunner runs a script over the recording of a replay session, which others use meanwhile. It writes what the script prints to
// out as it comes, and calls progress, when that is not nil, now and then. The
// error is the script's, of the replay, or ctx's.
type ScriptRunner func(ctx context.Context, s *replay.Session, q Script, out io.Writer, progress func(string)) error

// maxScript bounds a script that a client sends, in bytes.
const maxScript = 1 << 20

var errNoScripts = errors.New("no script can be run here")

func init() {
	maps.Copy(monitorCommands, map[string]monitorCommand{
		"run": {
			usage: "run [--json] SCRIPT [ARG...]", run: monitorRun,
			help: "run a script over the whole recording, and show what it prints; the position stays. SCRIPT is one that comes with vplayd, as strace, heap or locks (vplayd run --list), with what it has as args behind it",
			gdb:  ". The command vplay run takes files of this machine, too",
		},
	})
}

// monitorRun is the command. Clients send a script in pieces, "run --text BASE64" behind "run --text -", and run it then under
// a name, "run --sent NAME".
func monitorRun(ctx context.Context, g *Cursor, args []string, out io.Writer) error {
	q := Script{PID: g.session.process.PID, Symbols: g.session.symbols}
	if len(args) == 2 && args[0] == "--text" {
		return g.takeScript(args[1])
	}
	sent := false
	for len(args) > 0 && strings.HasPrefix(args[0], "--") {
		switch args[0] {
		case jsonFlag:
			q.JSON = true
		case "--sent":
			sent = true
		default:
			return fmt.Errorf("there is no option %s; monitor help run", args[0])
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("say which script: one that comes with vplayd, as strace, heap or locks")
	}
	q.Name, q.Args = args[0], args[1:]
	if sent {
		q.Source, g.script = append([]byte{}, g.script...), nil
	}
	run := g.session.RunScript
	if run == nil {
		return errNoScripts
	}
	var show func(string)
	if shown, ok := out.(api.Progress); ok {
		show = shown.Progress
	}
	return interrupted(ctx, run(ctx, g.s, q, out, show), out)
}

// takeScript keeps a piece of a script.
func (g *Cursor) takeScript(piece string) error {
	if piece == "-" {
		g.script = nil
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(piece)
	if err != nil {
		g.script = nil
		return fmt.Errorf("a piece of a script is in base64: %w", err)
	}
	if len(g.script)+len(b) > maxScript {
		g.script = nil
		return fmt.Errorf("a script has at most %d bytes", maxScript)
	}
	g.script = append(g.script, b...)
	return nil
}
