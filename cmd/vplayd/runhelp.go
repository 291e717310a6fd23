package main

// The manual of the verb run: what a script can ask for, and what it gets. The verb is in run.go.

// runHelp is the description of the verb run.
const runHelp = `Run runs a script over recordings. The script is a file in Starlark, a language that
looks like Python (github.com/google/starlark-go, doc/spec.md), or one that comes with vplayd, by
its name: --list has them, and --about NAME what one does. Without a
recording it takes the newest in this folder. What follows -- is the script's args.

The script is loaded once for each recording, and asks what it wants to be called for. Then the
recording is replayed, on all CPUs, and the functions are called in the order of execution, one
at a time:

  calls = {}                                    # global lists and dictionaries keep their content
  def on_malloc(m):
      calls[m.caller.function] = calls.get(m.caller.function, 0) + m.arg(0)
  def finish(m):
      for name in calls:
          row(function=name, bytes=calls[name])
  on_call("malloc", on_malloc)
  on_end(finish)

A function cannot assign to a global name; it can change a global list or dictionary.

What a script can ask for, while it is loaded:
  on_call(NAME, f)      at the first instruction of functions of that name, in all modules. body=True: behind
                        the code that makes the frame, where variables are in their places.
                        inlined=True: also where they were inlined; there are no arguments then
  on_return(NAME, f)    where a call of them has returned, tail calls too
  on_line("FILE:LINE", f), on_exec(ADDRESS or SYMBOL, f)
  on_syscall(NAME or None, f)   behind the call; enter=True: before it
  on_signal(f)          before a signal is delivered, and at a fault
  on_access(EXPR, f)    behind each access to a global variable, or to a range (START, END) of addresses; kind="w":
                        stores alone. EXPR is evaluated at the start of each interval
  on_end(f)             behind all of them
NAME may be a list of names. optional=True says that none of them need be there; else that is an error.

What a moment, which f gets, has:
  kind, position, interval, instruction, thread, pc, sp
  function, source, module, location, caller, place(ADDRESS)    names, as far as they are known
  registers, backtrace(n=32), value(EXPR), show(EXPR)     EXPR in the program's language;
                        value gives a number, or text; show gives text, as a debugger prints it. frame=1 is the caller,
                        default=None what there is instead of an error
  memory(ADDRESS, N), string(ADDRESS), u8, u16, u32, u64(ADDRESS)   None where it was not captured
  call, return          name, arg(0) to arg(5); of return result and entered, the position of the call
  syscall               name, number, args, result, error, text as strace prints it
  signal                name, number, text, fault, address
  access                address, size, store, kernel (by a system call), data, old, new_value, old_value
  end                   ended, crashed
It is over when f returns.

Other names: args, recording (file, name, pid, program, arguments, crashed, ended), row(NAME=VALUE...) for
results that --json writes as an object, hex(n), signed(n, bits=64), struct, json, math.

A script reads no file, has no network and no clock, and loads no other; --steps, --time and --memory
bound it. Once the recordings are open, vplayd itself can open no other file but symbol files, where the
kernel has Landlock and seccomp.

Exit codes: 0 done, 1 an error of the script, 2 wrong use or a mistake that is found when the script is
read, 3 replay and recording differ, 4 a recording is damaged.`
