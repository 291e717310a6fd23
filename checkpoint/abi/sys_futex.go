package abi

// The irregular outputs of futex(2) (linux/futex.h). Other calls are in the sys_*.go of their
// kind.

var futexRows = rowFuncs{SYS_FUTEX: (*outputs).futex}

// futex: most operations only read the word; the kernel itself writes it for
// the priority-inheritance operations and for FUTEX_WAKE_OP (linux/futex.h).
func (o *outputs) futex() {
	switch o.args[1] & 127 { // without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
	case 0, 1, 3, 4, 9, 10: // WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAIT_BITSET, WAKE_BITSET
	case 5: // WAKE_OP
		o.arg(4, 4)
	case 6, 7, 8, 13: // LOCK_PI, UNLOCK_PI, TRYLOCK_PI, LOCK_PI2
		o.arg(0, 4)
	case 11, 12: // WAIT_REQUEUE_PI, CMP_REQUEUE_PI
		o.arg(0, 4)
		o.arg(4, 4)
	default:
		o.opaque = o.errno == 0
	}
}
