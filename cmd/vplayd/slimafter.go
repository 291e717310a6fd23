package main

import (
	"errors"
	"strings"
)

// What record does about slimming, once the recording is written. The program has
// ended, and whoever started record waits for its exit status: so by default a
// process of its own does it (slimbehind_linux_amd64.go), and record ends.

// slimWhen says when a new recording is slimmed. It is a flag's value.
type slimWhen uint8

const (
	slimBackground slimWhen = iota
	slimNow
	slimNever
)

var slimWhens = [...]string{slimBackground: "background", slimNow: "now", slimNever: "never"}

// String, Set and Type implement pflag.Value.
func (w *slimWhen) String() string { return slimWhens[*w] }

// Set takes one of the words.
func (w *slimWhen) Set(s string) error {
	for i, name := range slimWhens {
		if s == name {
			*w = slimWhen(i)
			return nil
		}
	}
	return errors.New("it takes " + strings.Join(slimWhens[:], ", "))
}

// Type is what help calls the value.
func (*slimWhen) Type() string { return "when" }

// slims returns when a new recording is slimmed.
func (f *recordFlags) slims() slimWhen {
	if f.noSlim || f.slimTime <= 0 {
		return slimNever
	}
	return f.slim
}
