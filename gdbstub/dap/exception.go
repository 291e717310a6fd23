package dap

import (
	"encoding/binary"
	"errors"
	"fmt"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// The request exceptionInfo, and the filter of signals: what signals are called, and what is
// known of one that the program has stopped with.

const sigTRAP = 5

// signals are Linux's (signal(7)).
var signals = [...]string{
	1: "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2",
	"SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG",
	"SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS",
}

func signalName(n int) string {
	if n > 0 && n < len(signals) {
		return signals[n]
	}
	return fmt.Sprintf("signal %d", n)
}

// codes say what si_code means for a signal (sigaction(2)).
var codes = map[int]map[int32]string{
	4:  {1: "the instruction does not exist", 2: "the operand is not allowed", 3: "the addressing mode is not allowed", 5: "the instruction is privileged"},
	7:  {1: "the address is not aligned", 2: "the file that is mapped there ends before it", 3: "the hardware reports an error"},
	8:  {1: "an integer is divided by zero", 2: "an integer overflows", 3: "a floating-point number is divided by zero", 4: "a floating-point number overflows", 5: "a floating-point number underflows", 6: "a floating-point result is not exact", 7: "a floating-point operation is not valid"},
	11: {1: "nothing is mapped there", 2: "the mapping does not allow it", 3: "its bounds do not allow it", 4: "its protection key does not allow it"},
}

// Codes of any signal (sigaction(2)).
const (
	codeUser   = 0
	codeKernel = 0x80
	codeQueue  = -1
	codeThread = -6
)

// faultAt tells the signals whose si_addr means something.
func faultAt(signo int) bool { return codes[signo] != nil }

// explain says what a siginfo_t does: si_signo, si_errno and si_code, then the address or
// the sender (sigaction(2)).
func explain(signo int, info []byte) string {
	if len(info) < 24 {
		return ""
	}
	code := int32(binary.LittleEndian.Uint32(info[8:]))
	switch {
	case code == codeUser || code == codeQueue || code == codeThread:
		return fmt.Sprintf(", sent by process %d", binary.LittleEndian.Uint32(info[16:]))
	case code == codeKernel && signo == 11:
		return ": the address is not canonical, or the processor names none"
	case faultAt(signo):
		text := fmt.Sprintf(" at address %#x", binary.LittleEndian.Uint64(info[16:]))
		if why := codes[signo][code]; why != "" {
			text += ": " + why
		}
		return text
	}
	return ""
}

// exceptionInfo answers with the signal that the program has stopped with.
func exceptionInfo(s *session, _ *godap.Request, _ []byte) (any, error) {
	if s.stop.Kind != api.StopSignal && s.stop.Kind != api.StopKilled {
		return nil, errors.New("no signal is pending here")
	}
	name := signalName(s.stop.Signo)
	text := "the program received " + name
	if info, err := s.target.Siginfo(s.stop.TID); err == nil {
		text += explain(s.stop.Signo, info)
	}
	if t, ok := s.target.(api.ReasonTarget); ok {
		if reason := t.Reason(); reason != "" {
			text += "\n" + reason
		}
	}
	body := godap.ExceptionInfoResponseBody{ExceptionId: name, BreakMode: "always", Description: text}
	body.Details = &godap.ExceptionDetails{Message: text, TypeName: name}
	if s.stop.Signo != sigTRAP {
		body.Details.EvaluateName = "$rip"
		if frames := s.stack(s.stop.TID); len(frames) > 0 {
			body.Details.StackTrace = stackText(frames)
		}
	}
	return body, nil
}

// stackText writes the innermost frames as text.
func stackText(frames []api.Frame) (text string) {
	const most = 20
	for i := range frames[:min(len(frames), most)] {
		f := &frames[i]
		name := f.Function
		if name == "" {
			name = hex(f.PC)
		}
		text += "    at " + name
		if f.File != "" {
			text += fmt.Sprintf(" (%s:%d)", f.File, f.Line)
		}
		text += "\n"
	}
	return text
}

// filterSignals is the exception filter that makes signals stop.
const filterSignals = "signals"

func setExceptionBreakpoints(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.SetExceptionBreakpointsArguments](raw)
	if err != nil {
		return nil, err
	}
	s.pass = nil
	for n := 1; n <= 64; n++ { // until the filter is named
		s.pass = append(s.pass, n)
	}
	for _, f := range a.Filters {
		if f == filterSignals {
			s.pass = nil
		}
	}
	return nil, nil
}
