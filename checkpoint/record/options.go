//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// What a caller of this package gives and gets: the options of a recording with their
// defaults, the result, its counts, and the error of a program that could not be
// started.

// Keep says which recordings are kept.
type Keep string

// The two answers.
const (
	KeepCrash  Keep = "crash"  // only when the program dies of a signal; the last seconds of it
	KeepAlways Keep = "always" // everything, written while the program runs
)

// Follow says which children of the program are recorded with it: all, none, or, behind
// FollowExec, those that execute a program that matches a pattern of path.Match, and what these
// make. The pattern is compared with the whole and with the last name of two paths: the one given
// to execve(2), and that of the file, without symbolic links and, for a script, of its
// interpreter. The program itself always is recorded.
type Follow string

// The answers.
const (
	FollowAll  Follow = "all"
	FollowNone Follow = "none"
	FollowExec Follow = "exec="
)

// Check returns what is wrong with f, if anything is.
func (f Follow) Check() error {
	glob, ok := strings.CutPrefix(string(f), string(FollowExec))
	if !ok {
		if f != FollowAll && f != FollowNone {
			return fmt.Errorf("%q is not all, none or exec=PATTERN", string(f))
		}
		return nil
	}
	if _, err := path.Match(glob, ""); err != nil || glob == "" {
		return fmt.Errorf("%q is not a pattern", glob)
	}
	return nil
}

// wants reports whether a process is recorded that executes the program at name, "" for none.
func (f Follow) wants(name string) bool {
	glob, ok := strings.CutPrefix(string(f), string(FollowExec))
	if !ok {
		return f == FollowAll
	}
	whole, _ := path.Match(glob, name)
	last, _ := path.Match(glob, path.Base(name))
	return name != "" && (whole || last)
}

// OnCrash says what the crash of a process does where several are recorded.
type OnCrash string

// The answers.
const (
	// OnCrashFirst: the first crash ends the recording. The other processes are in it up to
	// that moment, and run on unrecorded.
	OnCrashFirst OnCrash = "first"
	// OnCrashEach: each crash gives a recording of the process that crashed, and the others
	// go on being recorded.
	OnCrashEach OnCrash = "each"
)

// Options of one recording. The zero value of a field means the default.
type Options struct {
	// Path is the recording to write, normally *.vplay.
	Path string
	Keep Keep // default KeepCrash
	// Follow says which children are recorded; default FollowAll.
	Follow Follow
	// OnCrash is for KeepCrash; default OnCrashFirst.
	OnCrash OnCrash
	// Interval is the CPU time of the program between two images; default 100 ms.
	Interval time.Duration
	// KeepSeconds bounds the ring by the program's CPU time; default 5.
	KeepSeconds float64
	// RingBytes bounds the ring's memory, log and copied pages; default 1 GiB.
	RingBytes int64
	// ForceEvery ends an interval at an arbitrary instruction each time so much
	// wall time has passed; 0 is never. It exists for tests.
	ForceEvery time.Duration
	// ForceAfter is how long a signal may be held, and an interval may outlast
	// Interval, without a system call; default 10 ms.
	ForceAfter time.Duration

	// Chaos schedules the program's threads at random, to provoke races: see chaos.go. The
	// same ChaosSeed gives the same random numbers, which is not the same schedule.
	Chaos     bool
	ChaosSeed uint64

	// Agent has the frequent system calls of processes that share no memory with others made and logged by
	// code inside them, without stops (package agent), where the kernel and the CPU can do
	// that. The recording is the same. AgentAfter is how many calls a process other than the program itself makes
	// before it gets one: default 40; with a negative number it gets it at once.
	Agent      bool
	AgentAfter int
	// TSCAfter is how often the threads of a process with an agent must have been switched to before its files are looked through for
	// RDTSC, so that it need not fault any more: default 1000; with a negative number they are at once.
	TSCAfter int

	// Vsyscall records calls through the vsyscall page, under a seccomp filter.
	Vsyscall bool

	// NoTrapCPUID lets the program execute CPUID, as on a CPU that cannot make it
	// fault.
	NoTrapCPUID bool

	// NoTrapTSC has RDTSC looked for in the program's files, as where it cannot be made to fault.
	NoTrapTSC bool

	// NoFSGSBase has the agent do without the FSGSBASE instructions, as on a CPU that has none.
	NoFSGSBase bool

	// Of [Attach] alone. For, when it is not 0, is how long is recorded; Stop, when it is closed, ends
	// the recording. UntilCrash keeps only what a crash has ended.
	For        time.Duration
	Stop       <-chan struct{}
	UntilCrash bool

	// Control has the recorder answer to [Snapshot] of other processes of its user.
	Control bool

	// Handle, when set, asks for snapshots from inside this process.
	Handle *Handle
	// Stderr, when set, takes a snapshot when a line on standard error says so.
	Stderr *StderrTrigger
	// Name, when set, names the file of each recording that is made of a ring when it is to
	// be written, instead of Path. pid is the process that it is about. It must return quickly.
	Name func(pid int) string

	// KeepEnv says which environment variables the manifest holds: see
	// checkpoint.MaskEnvironment.
	KeepEnv string

	// FullRegs logs the whole registers with each event, to find out which one
	// differs when replay diverges.
	FullRegs bool

	Args []string // program and arguments; Args[0] is looked up in PATH
	Env  []string // nil: the recorder's own
	Dir  string   // "" is the recorder's own
	// Files are the program's descriptors from 0 on; nil: the recorder's 0 to 2.
	Files []*os.File

	// TimerSlack is what the program inherits, in nanoseconds (prctl(2), PR_SET_TIMERSLACK), where the recorder
	// has another for itself. 0: the recorder's.
	TimerSlack uint64

	// Launcher is the command that becomes the program: it gets the arguments
	// FD PROG ARGS... appended and must call Launch. Default: /proc/self/exe
	// __launch.
	Launcher []string

	// Guardian is the command of a process that puts the program right if the recorder is killed by
	// SIGKILL: it must call Guard. None by default.
	Guardian []string

	Logger zerolog.Logger
	// Started, when set, is called with the program's process once it runs.
	// It must return quickly.
	Started func(pid int)
	// Ended, when set, is called when recording ends while the program runs on by
	// itself, with the reason and whether what came before is being kept. It must
	// return quickly.
	Ended func(reason string, kept bool)
	// Progress, when set, is called while the recording is written, with the
	// number of intervals done and in all. It must return quickly.
	Progress func(done, total int)

	// This package's tests alone set what follows. checkClean compares, at the end of
	// every interval, the pages that are taken to be clean with those of its start;
	// refuseShadows makes every clone count as refused; source, when set, is in the place of ptrace's.
	checkClean, refuseShadows bool
	source                    stopSource
}

// Result says how the program ended and what became of the recording.
type Result struct {
	ExitCode int // of the program; 128+Signal when a signal killed it
	Signal   int // that killed the program, or 0
	Recorded bool
	Path     string   // of the recording, when Recorded
	More     []string // further recordings: with OnCrashEach one for each further crash
	// Crashed is the process that crashed, when it is not the program itself. The recording
	// at Path is about it, or, where it shared its parent's memory, about that.
	Crashed *Crashed
	// Detached says that a program that was attached to has been let go, and runs on.
	Detached bool
	// Sanitizer says that the program was linked with AddressSanitizer or
	// LeakSanitizer, which end it with an exit code.
	Sanitizer bool
	// LeakCheck says that LeakSanitizer, which does not work under a tracer, was on in
	// the program that was executed last, and fails it at its exit.
	LeakCheck bool
	// Missing says what the recording lacks of large shared mappings, by name and size.
	Missing []string
	// Reason says why nothing was recorded, or why recording stopped early.
	Reason string
	// Err is the failure that Reason describes, when it is one.
	Err   error
	Stats Stats
}

// Crashed is a process that a signal has killed.
type Crashed struct {
	PID     int
	Program string
	Signal  int
}

// Stats count what the recorder did.
type Stats struct {
	Events, Calls, Signals, Faults, Instrs uint64
	Intervals, ForcedEnds, Gaps            uint64
	// AgentCalls counts those of Calls that the agent has made, AgentInstrs those of Instrs.
	AgentCalls, AgentInstrs uint64
	// Referred counts the bytes that these have read from files and that are not in the log's memory, which says where in
	// the file they are.
	Referred uint64
	// Dispatches counts stops for calls from which no jump leads to the agent, or not yet, and for those that it leaves
	// to the recorder.
	Dispatches uint64
	// Stopped counts those of Calls that were made with stops, by number.
	Stopped                           map[int64]uint64
	Shadows, Children, Threads, Execs uint64
	// TSCRuns counts how often RDTSC was allowed to run in a thread, because all such instructions of its code are known.
	TSCRuns uint64
	// KnownPages counts pages of files that were neither read nor hashed, because the
	// recording had them from another process.
	KnownPages uint64
	// Windows counts the shadows that wrote their pages themselves, Scans those of them that
	// left out pages that are the same as the one before.
	Windows, Scans uint64
	// CrashReaders counts the helpers that read the memory of programs that a signal has killed.
	CrashReaders uint64
	// Cuts is the wall time that was spent on ending intervals and starting the next.
	Cuts time.Duration
	// Borders says how long the program stood at each of them.
	Borders Borders
	// MissedPages counts pages that changed without being seen, where that was
	// checked. It is a defect when it is not 0.
	MissedPages uint64
	// MapDrift counts ends of intervals at which the map model was not the kernel's list;
	// the last difference is in MapDriftNote. It is a defect when it is not 0.
	MapDrift     uint64
	MapDriftNote string
}

// StartError says why the program could not be started. Code is the exit code
// that a shell would give: 127 when it is missing, 126 when it cannot be
// executed, 125 when the recorder itself failed.
type StartError struct {
	Program string
	Code    int
	Err     error
	Hint    string
}

// Error implements error.
func (e *StartError) Error() string { return fmt.Sprintf("record: %s: %v", e.Program, e.Err) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

func (o *Options) setDefaults() {
	if o.Keep == "" {
		o.Keep = KeepCrash
	}
	if o.Follow == "" {
		o.Follow = FollowAll
	}
	if o.OnCrash == "" {
		o.OnCrash = OnCrashFirst
	}
	if o.Interval <= 0 {
		o.Interval = 100 * time.Millisecond
	}
	if o.KeepSeconds <= 0 {
		o.KeepSeconds = 5
	}
	if o.RingBytes <= 0 {
		o.RingBytes = 1 << 30
	}
	if o.ForceAfter <= 0 {
		o.ForceAfter = 10 * time.Millisecond
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Files == nil {
		o.Files = []*os.File{os.Stdin, os.Stdout, os.Stderr}
	}
	if len(o.Launcher) == 0 {
		o.Launcher = []string{"/proc/self/exe", LaunchVerb}
	}
}
