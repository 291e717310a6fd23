package gdbstub

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Where to listen: addresses of TCP and Unix sockets, and who may reach them. Clients
// are accepted in accept.go. The servers of package dap are given listeners from here,
// too.

// Listen opens a listener: "HOST:PORT" or ":PORT" for TCP, where no host means
// 127.0.0.1; "unix:PATH", or a path with a slash, for a socket that only its owner
// may use. A host
// that is not the loopback is an error unless AllowRemote is set.
func (v *Server) Listen(addr string) (net.Listener, error) { return Listen(addr, v.opt.AllowRemote) }

// SocketPath returns the path of the socket that Listen makes for an address, if that
// is one.
func SocketPath(addr string) (path string, ok bool) {
	if path, ok = strings.CutPrefix(addr, "unix:"); ok {
		return path, true
	}
	return addr, strings.Contains(addr, "/")
}

// Listen is Server.Listen before there is a server.
func Listen(addr string, allowRemote bool) (net.Listener, error) {
	if path, ok := SocketPath(addr); ok {
		return listenUnix(path)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("gdbstub: listen address %q: want HOST:PORT or unix:PATH", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if !allowRemote && !isLoopback(host) {
		return nil, fmt.Errorf("gdbstub: %q can be reached by others, and the protocol has no authentication", addr)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("gdbstub: %w", err)
	}
	return l, nil
}

// isLoopback reports whether a host names this machine only.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// unixListener removes its socket when it is closed, and before that: the end
// of Accept may be the end of the process.
type unixListener struct {
	*net.UnixListener
	path   string
	remove *sync.Once
}

func (l unixListener) Close() error {
	l.remove.Do(func() { _ = os.Remove(l.path) })
	return l.UnixListener.Close()
}

// Addr is where the socket stands, not where it was made.
func (l unixListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// listenUnix makes a socket with mode 0600. It is made in a private directory
// and moved to its place, so that there is no moment in which others could
// connect. A socket that nobody serves any more is replaced.
func listenUnix(path string) (net.Listener, error) {
	if fi, err := os.Lstat(path); err == nil {
		if fi.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("gdbstub: listen unix:%s: %w", path, os.ErrExist)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("gdbstub: listen unix:%s: address already in use", path)
		}
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".vplay")
	if err != nil {
		return nil, fmt.Errorf("gdbstub: listen unix:%s: %w", path, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // empty by then
	made := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("gdbstub: listen unix:%s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("gdbstub: listen unix:%s: %w", path, err)
	}
	return unixListener{l, path, new(sync.Once)}, nil
}
