package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"vplay/replay/debug/text"
)

// The verb core-handler: what the kernel starts at each crash, its flags and its arguments. Reading /proc is in
// corehandler_linux_amd64.go, the folder of recordings in corestore.go, the kernel's setting in coreinstall.go.

// handlerFlags are the flags of core-handler.
type handlerFlags struct {
	dir     string
	log     string
	maxCore string
	maxUse  string
	env     string
	keep    int
	time    time.Duration
	action  installAction
}

// crash is what the kernel says of one (man 5 core, "Naming of core dump files").
type crash struct {
	pid      int       // %P: as the initial namespace has it
	uid, gid int       // %u, %g
	signal   int       // %s
	at       time.Time // %t
	dumpable int       // %d: 1 when the user may trace the program
	host     string    // %h
}

// coreSpecifiers are the arguments that the kernel puts in for these names, in the order of crash.
const coreSpecifiers = "%P %u %g %s %t %d %h"

const defaultCoreDir = "/var/lib/vplay"

func newCoreHandler() *cobra.Command {
	var f handlerFlags
	c := &cobra.Command{
		Use:   "core-handler [flags] [--] PID UID GID SIGNAL TIME DUMPABLE HOST",
		Short: "make a recording of each crash on this machine",
		Long: `Core-handler is started by the kernel when a program crashes that nobody recorded. It
reads the core file from its standard input, and from /proc what is still there of the
program: its files, also those that were deleted, its arguments and environment, the
names of its threads. From these it writes a recording of the moment of the crash, as
import-core does, that needs none of the program's files.

  vplayd core-handler --install     sets /proc/sys/kernel/core_pattern, now and at each
                                    boot, by ` + sysctlFile + `
  vplayd core-handler --uninstall   puts back what was there before
  vplayd core-handler --print       prints that file and does nothing

Recordings are NAME-PID-TIME.vplay in --dir, mode 0600. They belong to the user of
the program if the kernel lets that user trace it, else to root. The kernel starts
it whatever a program's limit of the size of core files is (setrlimit(2)).

One crash is worked on at a time, and the program that crashed is held until its
core file was read. When there are more than --keep recordings, or they take more
than --max-use, the oldest are removed, first those of the program that has the
most. What comes after --max-core bytes of a core file is left out. After --time
it gives up. It never fails loudly: what it did, or why it could not, is a line in
--log-file, and no partial file stays.

Under systemd the file is read after systemd's own for systemd-coredump, and services
need no drop-in. To have old recordings removed by age as well, put this line into a
file of /etc/tmpfiles.d: e ` + defaultCoreDir + ` 0755 root root 4w

Compare systemd-coredump(8), which it replaces while it is installed.`,
		Example: "  vplayd core-handler --install --dir /var/crash\n  vplayd core-handler --print",
		RunE: func(c *cobra.Command, args []string) error {
			if f.action != actNone {
				if len(args) > 0 {
					return usageError{withHint(errors.New("--install, --uninstall and --print take no arguments"), exitUsage, "vplayd help core-handler")}
				}
				return installCoreHandler(c, f)
			}
			k, err := parseCrash(args)
			if err != nil {
				return usageError{withHint(err, exitUsage, "the kernel starts it: vplayd core-handler --install")}
			}
			return handleCrash(c, k, f)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.dir, "dir", defaultCoreDir, "`FOLDER` of the recordings")
	fs.StringVar(&f.log, "log-file", "/dev/kmsg", "`FILE` that gets a line for each crash")
	fs.StringVar(&f.maxCore, "max-core", "4G", "`SIZE` of a core file that is read")
	fs.StringVar(&f.maxUse, "max-use", "10G", "`SIZE` that all recordings may take")
	fs.StringVar(&f.env, "env", "", "environment in the manifest: `POLICY` keep, drop, or names to keep (default: all, secrets masked)")
	fs.IntVar(&f.keep, "keep", 32, "`NUMBER` of recordings that are kept")
	fs.DurationVar(&f.time, "time", 5*time.Minute, "how long one crash may take")
	for action, help := range map[installAction]string{
		actInstall: "have the kernel start it, now and at each boot", actUninstall: "put back what was there before", actPrint: "print what --install would write",
	} {
		fs.VarPF(&actionFlag{&f.action, action}, string(action), "", help).NoOptDefVal = "true"
	}
	return c
}

// installAction is one of the flags that make core-handler set itself up.
type installAction string

const (
	actNone      installAction = ""
	actInstall   installAction = "install"
	actUninstall installAction = "uninstall"
	actPrint     installAction = "print"
)

// actionFlag is one of these flags.
type actionFlag struct {
	to   *installAction
	what installAction
}

// String, Set and Type implement pflag.Value.
func (a *actionFlag) String() string { return "" }

// Set takes "true"; a second action is an error.
func (a *actionFlag) Set(s string) error {
	if s != "true" || *a.to != actNone && *a.to != a.what {
		return errors.New("one of --install, --uninstall and --print, without a value")
	}
	*a.to = a.what
	return nil
}

// Type is what help calls the value: nothing.
func (*actionFlag) Type() string { return "bool" }

// parseCrash reads the arguments that the kernel gives.
func parseCrash(args []string) (k crash, err error) {
	const want = 7
	if len(args) != want {
		return k, fmt.Errorf("%s, not the %d that the kernel gives", text.Plural(len(args), "argument"), want)
	}
	var at int64
	for i, to := range []*int{&k.pid, &k.uid, &k.gid, &k.signal, nil, &k.dumpable} {
		n, perr := strconv.ParseInt(args[i], 10, 64)
		if perr != nil || n < 0 || n > 1<<32 && to != nil {
			return k, fmt.Errorf("argument %d is %q, not a number of the kernel's", i+1, args[i])
		}
		if to == nil {
			at = n
		} else {
			*to = int(n)
		}
	}
	k.at, k.host = time.Unix(at, 0), args[want-1]
	if k.pid == 0 {
		return k, errors.New("process 0 does not crash")
	}
	return k, nil
}
