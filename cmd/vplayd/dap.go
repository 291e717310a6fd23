package main

import (
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"vplay/gdbstub/dap"
	"vplay/replay/debug"
)

// Serve's other protocol, the Debug Adapter Protocol, for editors. The server itself is
// package gdbstub/dap, and the verb is in serve.go.

// serveDAP serves a recording to editors.
func serveDAP(c *cobra.Command, g *debug.Cursor, f serveFlags, l net.Listener) error {
	var commands []dap.Command
	for _, d := range debug.EditorCommands() {
		commands = append(commands, dap.Command{Usage: d[0], Help: d[1]})
	}
	server := dap.New(g, debug.NewSymbols(g), dap.Options{
		Once: f.once, Log: stubLog(c), Commands: commands,
		Accesses: []string{"last-write", "writes", "reads"},
	})
	if f.stdio {
		return server.Serve(c.Context(), stdio{renewingReader{os.Stdin, g.Recording().Budget()}, raw(c.OutOrStdout())})
	}
	p := g.Session().Process()
	fmt.Fprintf(c.ErrOrStderr(), "vplayd: %s (process %d), serving on %s\n", p.Program, p.PID, l.Addr())
	fmt.Fprintf(c.ErrOrStderr(), "vplayd: the Debug Adapter Protocol: in VS Code's launch.json, \"debugServer\" with that port (vplayd vscode writes it)\n")
	return serveOn(c.Context(), server, l, g.Recording().Budget())
}
