package debug

import "fmt"

// The threads of a process as "vplay threads" lists them. Stepping a thread is in step.go, a
// thread's registers are in cursor.go.

// ThreadState is a thread of the process at the present position.
type ThreadState struct {
	TID    int    `json:"tid"`
	Name   string `json:"name,omitempty"` // that it has given itself
	Runs   bool   `json:"runs"`           // one does; the others wait for their turn
	InCall bool   `json:"in_call"`        // it is inside a system call
}

// String implements fmt.Stringer: a line as those of gdb's info threads.
func (t ThreadState) String() string {
	mark, state := " ", "waits for its turn"
	switch {
	case t.Runs:
		mark, state = "*", "runs"
	case t.InCall:
		state = "in a system call"
	}
	return fmt.Sprintf("%s %d  %-15s  %s", mark, t.TID, t.Name, state)
}

// ThreadStates returns the threads of the process at the present position, by number.
func (g *Cursor) ThreadStates() []ThreadState {
	var out []ThreadState
	for _, t := range g.threads() {
		out = append(out, ThreadState{TID: int(t.TID), Name: t.Name, Runs: int(t.TID) == g.tid(), InCall: t.InCall})
	}
	return out
}
