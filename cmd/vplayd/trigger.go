package main

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/pflag"
)

// The flags of record and attach that have a recording written while the program runs on: what asks
// for one, and how many are kept. What they do is in trigger_linux_amd64.go.

// triggerFlags are the flags.
type triggerFlags struct {
	command string
	every   time.Duration
	http    string
	stderr  string
	pause   time.Duration
	files   int
	maxUse  string
}

func (f *triggerFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.command, "trigger", "", "shell `COMMAND` that asks for a recording, by exit status 0, while the program runs (see above)")
	fs.DurationVar(&f.every, "trigger-every", time.Second, "how long after its end that command is run again")
	fs.StringVar(&f.http, "trigger-http", "", "`SOCKET` to make, at which HTTP asks for a recording (see above)")
	fs.StringVar(&f.stderr, "trigger-stderr", "", "a line on standard error that matches `REGEXP` asks for a recording (see above)")
	fs.DurationVar(&f.pause, "trigger-pause", 10*time.Second, "how long after such a recording no line asks for another")
	fs.IntVar(&f.files, "keep-files", 10, "`NUMBER` of recordings with such names that are kept: the oldest are deleted")
	fs.StringVar(&f.maxUse, "max-use", "10G", "`SIZE` that these recordings may take")
}

// wanted reports whether anything may ask for a recording.
func (f *triggerFlags) wanted() bool { return f.command != "" || f.http != "" || f.stderr != "" }

// minTriggerEvery bounds how often a command is run.
const minTriggerEvery = 10 * time.Millisecond

// check returns what is wrong with the flags. keep and tries are --keep and --tries.
func (f *triggerFlags) check(keep string, tries int) error {
	wrong := func(err error, hint string) error { return usageError{withHint(err, exitUsage, "%s", hint)} }
	switch {
	case f.every < minTriggerEvery:
		return wrong(fmt.Errorf("--trigger-every %v", f.every), "--trigger-every takes "+minTriggerEvery.String()+" or more")
	case f.pause < 0:
		return wrong(fmt.Errorf("--trigger-pause %v", f.pause), "--trigger-pause takes a time, as 10s")
	case f.files < 1:
		return wrong(fmt.Errorf("--keep-files %d", f.files), "--keep-files takes 1 or more")
	}
	if _, err := parseSize(f.maxUse); err != nil {
		return wrong(fmt.Errorf("--max-use: %w", err), "it takes a size as 500M or 10G")
	}
	if _, err := regexp.Compile(f.stderr); err != nil {
		return wrong(fmt.Errorf("--trigger-stderr: %w", err), "the syntax is that of Go and RE2: https://github.com/google/re2/wiki/Syntax")
	}
	switch {
	case !f.wanted():
	case keep == "always":
		return wrong(errors.New("--trigger with --keep always"), "everything is kept then, and there is nothing to ask for; leave --keep out")
	case tries > 1:
		return wrong(errors.New("--trigger with --tries"), "take one of them")
	}
	return nil
}

// triggerHelp explains the flags.
const triggerHelp = `A recording can be asked for while the program runs on, as by vplayd snapshot: of
the last seconds, which led to a fault that is no crash. The program runs on while
it is written. It is NAME-PID-TIME.vplay, in the folder of the recording
itself. When there are more than --keep-files recordings with such names in the
folder, or they take more than --max-use, the oldest are deleted.

--trigger COMMAND is run by sh -c, at the start and then --trigger-every after it
has ended, with the program's process in $VPLAY_PID. Exit status 0 asks for a
recording: for one, until the command has failed and so said that the fault is over.
After 10 s it is killed, which says neither. Its output goes to the log (--log
record=info).

--trigger-http SOCKET makes a unix socket, for this user alone, that is removed at
the end. POST /snapshot writes a recording and answers {"path": FILE}; GET /status
tells what is recorded, and the last recording.

--trigger-stderr REGEXP: a line that matches, written by write(2) or writev(2) to
standard error, asks for a recording, which ends with that call. For --trigger-pause
no other does. The recorder sees what the calls write: standard error stays what it
is. Descriptor 2 counts, and what dup(2) has made of it, so on a terminal standard
output, too. Of a line, 64 KiB are looked at; of processes that are not recorded,
nothing.`
