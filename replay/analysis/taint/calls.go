package taint

import "vplay/checkpoint"

// CallArguments returns the arguments of the system call that a thread is in; ok is false where
// its entry was not seen.
func (t *Engine) CallArguments(tid checkpoint.TID) (args [6]uint64, ok bool) {
	if a := t.calls[tid]; a != nil {
		return *a, true
	}
	return args, false
}
