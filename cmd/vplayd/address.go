package main

import (
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"vplay/gdbstub"
)

// The address that serve listens on: how it is read from the command line, and how gdb is told
// of it. Listening itself is package gdbstub's.

// listen opens the address that --listen names, with hints for what goes wrong.
func listen(c *cobra.Command, f serveFlags) (net.Listener, error) {
	addr := f.listen
	if f.dap && !c.Flags().Changed("listen") {
		addr = fmt.Sprintf("127.0.0.1:%d", dapPort)
	}
	l, err := gdbstub.Listen(addr, f.remote)
	switch {
	case err == nil:
		return l, nil
	case isInUse(err):
		return nil, withHint(err, exitFailed, "another program has that address, perhaps another vplayd serve: choose one with --listen 127.0.0.1:0")
	}
	hint := "--listen takes HOST:PORT or unix:PATH"
	if strings.Contains(err.Error(), "authentication") {
		hint = "use 127.0.0.1 and an ssh tunnel, or say --allow-remote on a network you trust"
	}
	return nil, withHint(err, exitFailed, "%s", hint)
}

func isInUse(err error) bool {
	return strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) || strings.Contains(err.Error(), "in use")
}

// gdbAddress writes an address the way gdb takes it.
func gdbAddress(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok && t.IP.IsLoopback() {
		return fmt.Sprintf(":%d", t.Port)
	}
	return a.String()
}
