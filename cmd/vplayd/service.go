package main

import (
	"errors"
	"os"
	"strings"
)

// The flag --service of record, for services that systemd starts: its help, and the folder of the
// recordings. What else it changes is in service_linux_amd64.go.

// serviceHelp explains the flag.
const serviceHelp = `With --service record is the ExecStart of a systemd service, in front of the
program. It stays the service's main process: signals and the exit status pass
through it, so that ExecReload, Restart and SuccessExitStatus work as without it, and
the SIGABRT of WatchdogSec is a crash, which gives a recording. Restarts are
systemd's. The sockets and the watchdog that systemd means for the main process are
the program's. With Type=notify the unit needs NotifyAccess=all, or systemd does not
take READY=1 from a child. A program that sends MAINPID= makes itself the main
process: systemd is not its parent then, and does not learn its exit status.

The recordings of a service are NAME-PID-TIME.vplay in $STATE_DIRECTORY, or in the
folder that -o names; --keep-files and --max-use bound what is kept, as above. There
is no progress and no colour, and messages have levels for the journal if standard
error leads there. Recordings are not made smaller (--slim never), for the process
that does it would be killed with the service; --slim now does it before the service
is started again.

  [Service]
  Type=notify
  NotifyAccess=all
  StateDirectory=server
  ExecStart=/usr/bin/vplayd record --service --trigger-stderr FATAL -- \
      /usr/bin/server --port 80
  Restart=on-failure
  TimeoutStopSec=2min

What uses seccomp (SystemCallFilter= and others) must allow @debug. Where there is no
/run/user/UID, PrivateTmp=yes hides the recorder from vplayd snapshot: use
RuntimeDirectory=server and --trigger-http %t/server/vplay.sock.`

// serviceFolder returns the folder for the recordings of a service: out, or the first of
// $STATE_DIRECTORY.
func serviceFolder(out string) (string, error) {
	if out != "" {
		return out, nil
	}
	dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	if dir == "" {
		return "", usageError{withHint(errors.New("--service without $STATE_DIRECTORY"), exitUsage,
			"the unit sets it by StateDirectory=NAME; or name a folder for the recordings: -o FOLDER")}
	}
	return dir, nil
}
