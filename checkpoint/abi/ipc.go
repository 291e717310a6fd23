package abi

// Numbers of the calls by which threads and processes wait for each other and send data: futex,
// System V IPC, epoll. What these calls write is in the table and in sys_*.go.

// Operations of futex: include/uapi/linux/futex.h.
const (
	FUTEX_WAIT            = 0
	FUTEX_WAKE            = 1
	FUTEX_FD              = 2
	FUTEX_REQUEUE         = 3
	FUTEX_CMP_REQUEUE     = 4
	FUTEX_WAKE_OP         = 5
	FUTEX_LOCK_PI         = 6
	FUTEX_UNLOCK_PI       = 7
	FUTEX_TRYLOCK_PI      = 8
	FUTEX_WAIT_BITSET     = 9
	FUTEX_WAKE_BITSET     = 10
	FUTEX_WAIT_REQUEUE_PI = 11
	FUTEX_CMP_REQUEUE_PI  = 12
	FUTEX_LOCK_PI2        = 13
)

var setFutexop = enumSet{
	{FUTEX_WAIT, "FUTEX_WAIT"},
	{FUTEX_WAKE, "FUTEX_WAKE"},
	{FUTEX_FD, "FUTEX_FD"},
	{FUTEX_REQUEUE, "FUTEX_REQUEUE"},
	{FUTEX_CMP_REQUEUE, "FUTEX_CMP_REQUEUE"},
	{FUTEX_WAKE_OP, "FUTEX_WAKE_OP"},
	{FUTEX_LOCK_PI, "FUTEX_LOCK_PI"},
	{FUTEX_UNLOCK_PI, "FUTEX_UNLOCK_PI"},
	{FUTEX_TRYLOCK_PI, "FUTEX_TRYLOCK_PI"},
	{FUTEX_WAIT_BITSET, "FUTEX_WAIT_BITSET"},
	{FUTEX_WAKE_BITSET, "FUTEX_WAKE_BITSET"},
	{FUTEX_WAIT_REQUEUE_PI, "FUTEX_WAIT_REQUEUE_PI"},
	{FUTEX_CMP_REQUEUE_PI, "FUTEX_CMP_REQUEUE_PI"},
	{FUTEX_LOCK_PI2, "FUTEX_LOCK_PI2"},
}

// setIpc: Flags of the System V get calls: include/uapi/linux/ipc.h. The low nine bits
// setIpc// are a mode.
var ipcFlags = flagSet{
	{0x200, "IPC_CREAT"},
	{0x400, "IPC_EXCL"},
	{0x800, "IPC_NOWAIT"},
}

// setEpollCtl: Operations of epoll_ctl.
var setEpollCtl = enumSet{
	{1, "EPOLL_CTL_ADD"},
	{2, "EPOLL_CTL_DEL"},
	{3, "EPOLL_CTL_MOD"},
}
