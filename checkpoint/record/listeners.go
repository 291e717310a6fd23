//go:build linux && amd64

package record

// Seccomp filters with a listener (SECCOMP_RET_USER_NOTIF, man 2 seccomp_unotify). Another thread, or another process, answers the calls
// that the filter tells of, by a descriptor: whatever a call is, it may wait until that thread has run. So each call of a thread
// under such a filter gives up the turn, as one that may block by itself. What the calls write goes to scratch memory then, in which the one who answers
// finds the buffers, too: it is told the arguments that the kernel has.

// Of seccomp(2), linux/seccomp.h.
const (
	seccompTSync       = 1 << 0
	seccompNewListener = 1 << 3
)

// noteListener looks at seccomp(2) at its entry. One that fails leaves a thread that gives up its turn in vain.
func (t *thread) noteListener() {
	c := &t.call
	if c.args[0] != seccompSetModeFilter || c.args[1]&seccompNewListener == 0 {
		return
	}
	t.listened = true
	for _, o := range t.group().turns.threads {
		o.listened = o.listened || c.args[1]&seccompTSync != 0 && o.proc == t.proc
	}
}
