package abi

// System V shared memory, semaphores and message queues. Sizes are those of the
// 64-bit structs (include/uapi/asm-generic/{shm,sem,msg}buf.h).

var ipcRows = rowFuncs{
	SYS_SHMCTL: func(o *outputs) { o.ipcctl(o.args[1], o.args[2], shmctlSizes) },
	SYS_SEMCTL: func(o *outputs) { o.ipcctl(o.args[2], o.args[3], semctlSizes) },
	SYS_MSGCTL: func(o *outputs) { o.ipcctl(o.args[1], o.args[2], msgctlSizes) },
	SYS_MSGRCV: (*outputs).msgrcv,
}

const (
	ipcRmid, ipcSet, ipcStat, ipcInfo = 0, 1, 2, 3
	ipc64                             = 0x100
)

// A command that is in none of these maps is unknown; size 0 writes nothing.
var (
	shmctlSizes = map[uint64]uint64{
		ipcRmid: 0, ipcSet: 0, ipcStat: 112, ipcInfo: 72,
		11: 0, 12: 0, // SHM_LOCK, SHM_UNLOCK
		13: 112, 14: 48, 15: 112, // SHM_STAT, SHM_INFO, SHM_STAT_ANY
	}
	semctlSizes = map[uint64]uint64{
		ipcRmid: 0, ipcSet: 0, ipcStat: 104, ipcInfo: 40,
		11: 0, 12: 0, 14: 0, 15: 0, 16: 0, 17: 0, // GETPID, GETVAL, GETNCNT, GETZCNT, SETVAL, SETALL
		// GETALL: 2 bytes for each semaphore of the set, whose number the call
		// does not say; at most 65535.
		13: 1 << 17,
		18: 104, 19: 40, 20: 104, // SEM_STAT, SEM_INFO, SEM_STAT_ANY
	}
	msgctlSizes = map[uint64]uint64{
		ipcRmid: 0, ipcSet: 0, ipcStat: 120, ipcInfo: 32,
		11: 120, 12: 32, 13: 120, // MSG_STAT, MSG_INFO, MSG_STAT_ANY
	}
)

func (o *outputs) ipcctl(cmd, addr uint64, sizes map[uint64]uint64) {
	size, ok := sizes[uint64(uint32(cmd))&^ipc64]
	if !ok {
		o.opaque = o.errno == 0
		return
	}
	o.add(addr, size)
}

// msgrcv: a long with the message's type, then at most msgsz bytes.
func (o *outputs) msgrcv() {
	if o.clean() || o.blocked() || o.args[1] == 0 {
		return
	}
	o.arg(1, 8)
	o.received(o.args[1]+8, o.args[2])
}
