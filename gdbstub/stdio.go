package gdbstub

import (
	"errors"
	"io"
	"os"
)

// Standard input and output as a connection; other connections are in listen.go.

// Stdio returns standard input and output as one connection, for
// "target remote | command". Nothing else may write to standard output then.
func Stdio() io.ReadWriteCloser { return stdio{} }

type stdio struct{}

func (stdio) Read(b []byte) (int, error)  { return os.Stdin.Read(b) }
func (stdio) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdio) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }
