package abi

//go:generate go run ./internal/abigen -in syscalls.txt -out syscalls_gen.go

// Effect is the class of what a system call does besides returning a value and
// filling its output arguments.
type Effect uint8

// The effect classes.
const (
	EffectPlain     Effect = 1 + iota // nothing that the recorder must follow
	EffectMem                         // changes the memory map or drops pages
	EffectTask                        // creates a process or thread
	EffectExec                        // replaces the program
	EffectExit                        // ends the thread or process
	EffectSignal                      // changes signal actions, mask, stack, or returns from a handler
	EffectOpaque                      // effects on memory cannot be listed: the interval ends with a gap
	EffectRefuse                      // cannot be replayed: refused, see Syscall.Deny and Why
	EffectFileWrite                   // changes file content, and with it mapped views of the file
)

var effectNames = [...]string{"", "plain", "mem", "task", "exec", "exit", "signal", "opaque", "refuse", "filewrite"}

// String returns the class's name as syscalls.txt writes it.
func (e Effect) String() string {
	if int(e) < len(effectNames) && e != 0 {
		return effectNames[e]
	}
	return "effect?"
}

// Restart says what the kernel makes of a blocking call that a signal
// interrupts (include/linux/errno.h).
type Restart uint8

// The restart kinds.
const (
	RestartNone   Restart = iota // does not block, or returns EINTR itself
	RestartSys                   // ERESTARTSYS: again with SA_RESTART, else EINTR
	RestartNoIntr                // ERESTARTNOINTR: always again
	RestartNoHand                // ERESTARTNOHAND: again when no handler ran, else EINTR
	RestartBlock                 // ERESTART_RESTARTBLOCK: restart_syscall when no handler ran, else EINTR
)

var restartNames = [...]string{"", "sys", "noint", "nohand", "block"}

// String returns the kind's name as syscalls.txt writes it, "" for none.
func (r Restart) String() string {
	if int(r) < len(restartNames) {
		return restartNames[r]
	}
	return "restart?"
}

// Kind is what an argument or a result means.
type Kind uint8

// The argument and result kinds. Kinds from KindPath on are addresses.
const (
	KindInt   Kind = 1 + iota // signed 32 bit
	KindUint                  // unsigned 32 bit
	KindLong                  // signed 64 bit
	KindUlong                 // unsigned 64 bit
	KindSize                  // bytes or elements, unsigned 64 bit
	KindOff                   // file offset, signed 64 bit
	KindHex                   // unsigned 64 bit, shown in hexadecimal
	KindFD                    // file descriptor
	KindDirFD                 // file descriptor or AT_FDCWD
	KindMode                  // file mode, octal
	KindDev                   // device number
	KindPID                   // process, thread or group
	KindUID                   // user or group, -1 for none
	KindSigno                 // signal number
	KindFlags                 // bits; Arg.Set names them
	KindEnum                  // one value; Arg.Set names them
	KindZero                  // result only: 0 or an errno
	KindNone                  // result only: does not return

	KindPath    // NUL-terminated path
	KindStr     // NUL-terminated string
	KindStrv    // NULL-terminated vector of strings
	KindPtr     // address that the call does not read or write, or not as a row can say
	KindIn      // the kernel reads Arg.Len elements
	KindOut     // the kernel may write Arg.Len elements
	KindInOut   // both
	KindIovIn   // vector of iovec whose buffers the kernel reads
	KindIovOut  // vector of iovec whose buffers the kernel writes
	KindSockIn  // socket address, its length in another argument
	KindSockOut // socket address, its length behind another argument
	KindLenPtr  // the 4-byte length that goes with a KindSockOut
)

// IsAddr reports whether an argument of this kind is an address.
func (k Kind) IsAddr() bool { return k >= KindPath }

// LenRule says how many elements a KindIn, KindOut or KindInOut argument has.
type LenRule uint8

// The length rules.
const (
	LenOne LenRule = iota // one element
	LenN                  // Arg.N elements
	LenArg                // as many as argument Arg.Of says
	LenRet                // as many as the result says, at most argument Arg.Of
)

// Arg describes one argument.
type Arg struct {
	Name   string
	Kind   Kind
	Set    string  // KindFlags, KindEnum: the set's name in this package's tables
	Struct string  // KindIn, KindOut, KindInOut: the struct's name, "" for bytes
	Size   uint32  // bytes of one element
	Len    LenRule // how many elements
	Of     uint8   // index of the argument that gives a length
	N      uint32  // LenN: how many
}

// Syscall is one row of the table. Rows are shared and must not be changed.
type Syscall struct {
	NR      int64
	Name    string
	Args    []Arg // in register order rdi, rsi, rdx, r10, r8, r9; at most six
	Ret     Kind
	Effect  Effect // of the row; EffectOf knows better when the arguments are known
	Restart Restart
	// Irregular rows have their outputs listed by Go code.
	Irregular bool
	// Absent marks numbers that no kernel implements any more: always ENOSYS.
	Absent bool
	// Deny, of a refused call, is the errno with which a recorder may answer in
	// the kernel's place; programs are known to have a fallback for it.
	Deny Errno
	Why  string // of an opaque or refused call: the reason, for people
}

// unknown is the row of every number that the table does not have.
var unknown = Syscall{
	NR: -1, Name: "unknown", Ret: KindHex, Effect: EffectOpaque, Irregular: true,
	Args: []Arg{
		{Name: "arg1", Kind: KindHex},
		{Name: "arg2", Kind: KindHex},
		{Name: "arg3", Kind: KindHex},
		{Name: "arg4", Kind: KindHex},
		{Name: "arg5", Kind: KindHex},
		{Name: "arg6", Kind: KindHex},
	},
	Why: "the number is in no table: its effects are unknown",
}

// Lookup returns the row of system call nr. For a number that the table does
// not have it returns the row named "unknown" (its NR is -1, its effect
// EffectOpaque) and false.
func Lookup(nr int64) (*Syscall, bool) {
	if nr >= 0 && nr < int64(len(syscalls)) && syscalls[nr].Name != "" {
		return &syscalls[nr], true
	}
	return &unknown, false
}

// Name returns the name of system call nr, "syscall_N" when it is unknown.
func Name(nr int64) string {
	if s, ok := Lookup(nr); ok {
		return s.Name
	}
	return "syscall_" + itoa(nr)
}

// Number returns the number of the system call called name.
func Number(name string) (nr int64, ok bool) {
	for i := range syscalls {
		if syscalls[i].Name == name && name != "" {
			return int64(i), true
		}
	}
	return 0, false
}

// Table returns the rows in ascending order of number. The slice is the
// caller's, the rows are shared.
func Table() []*Syscall {
	rows := make([]*Syscall, 0, len(syscalls))
	for i := range syscalls {
		if syscalls[i].Name != "" {
			rows = append(rows, &syscalls[i])
		}
	}
	return rows
}
