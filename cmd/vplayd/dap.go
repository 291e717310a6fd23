package main

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"vplay/gdbstub/dap"
)

// serveDAP serves a recording to editors.
func serveDAP(c *cobra.Command, g *target, f serveFlags, l net.Listener) error {
	server := dap.New(g, newDAPSymbols(g), dap.Options{
		Once: f.once, Log: stubLog(c), Commands: slices.Sorted(maps.Keys(monitorCommands)),
		Accesses: []string{"last-write", "writes", "reads"},
	})
	if f.stdio {
		return server.Serve(c.Context(), stdio{renewingReader{os.Stdin, g.s.Rec.Budget()}, raw(c.OutOrStdout())})
	}
	m := g.s.Rec.Manifest()
	fmt.Fprintf(c.ErrOrStderr(), "vplayd: %s (process %d), serving on %s\n", m.Program, m.PID, l.Addr())
	fmt.Fprintf(c.ErrOrStderr(), "vplayd: the Debug Adapter Protocol: in VS Code's launch.json, \"debugServer\" with that port (vplayd vscode writes it)\n")
	return server.ServeListener(c.Context(), renewingListener{l, g.s.Rec.Budget()})
}
