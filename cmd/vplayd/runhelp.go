package main

// The manual of the verb run: what a script can ask for, and what it gets. The verb is in run.go.

// runHelp is the description of the verb run.
const runHelp = `Run runs a script over recordings. The script is a file in Starlark, a language
that looks like Python (go.starlark.net, doc/spec.md), or one that comes with
vplayd, by its name: --list has them, --about NAME says what one does. Without a
recording it takes the newest in this folder. What follows -- is the script's args.

The script is loaded once for each recording, and asks what it wants to be called
for. Then the recording is replayed, on all CPUs, and the functions are called in
the order of execution, one at a time:

  calls = {}              # global lists and dictionaries keep their content
  def on_malloc(m):
      calls[m.caller.function] = calls.get(m.caller.function, 0) + m.arg(0)
  def finish(m):
      for name in calls:
          row(function=name, bytes=calls[name])
  on_call("malloc", on_malloc)
  on_end(finish)

A function cannot assign to a global name; it can change a global list or
dictionary.

What a script can ask for, while it is loaded. A NAME may be a list of names;
optional=True says that none of them need be there, else that is an error.
  on_call(NAME, f)   at the first instruction of functions of that name, in all
                modules, where arguments are in registers. body=True: behind the
                code that makes the frame, where variables are in their places.
                inlined=True: also where they were inlined; without arguments
  on_return(NAME, f)   where a call of one has returned. Of two functions asked
                for, one of which ends in a jump to the other, the latter returns
  on_line("FILE:LINE", f), on_exec(ADDRESS or SYMBOL, f)
  on_syscall(NAME or None, f)   behind a system call; enter=True: before it
  on_signal(f)  before a signal is delivered, and at a fault
  on_access(EXPR or (START, END), f)   behind each access to a global variable,
                or to a range of addresses; kind="w": stores alone. EXPR is
                evaluated at the start of each interval
  on_access(R, f)   with R = ranges(): behind each access to what is in the set at
                that moment. R.add(START, END, value=None), R.remove(START, END),
                R.find(ADDRESS): (START, END, value) or None; at any time. What is
                unmapped leaves it
  on_heap(f)    at each misuse of the heap: m.problem says what (kind, access,
                address, size, block, ...); the result has allocated, freed, held,
                summary(m), and known: whether there is an allocator at all
  on_uninit(f)  before the program uses bytes that it has never written; once for
                each place. All instructions are looked at, which is slow
  on_end(f)     where the recording ends, behind all others
  races(f, freed=g)   f at each pair of accesses by two threads, one of them a store,
                that nothing orders. It returns a detector, which is told what
                orders: acquire and release(THREAD, ADDRESS, kind=""), drop, join
                (THREAD, CHILD), clear(ADDRESS, SIZE) for memory that is handed out
                anew, as malloc's is without that; handle(PTHREAD_T) is a thread,
                block(ADDRESS) (START, SIZE, POSITION, RETURN ADDRESS) of the block
                that has it, or None. g is called when the block with an address is
                freed that note(ADDRESS) was called with. The script locks uses all
                of it. Each access is looked at once there is a second thread, so
                this is slow; on_access beside it is not called from then on for
                accesses by system calls

What all moments, which f gets, have. A moment is over when f returns.
  kind, position, interval, instruction, thread, image (0; 1 behind an execve...)
  pc, sp, registers, function, module, source, location, caller, place(ADDRESS),
  symbol(ADDRESS)
  backtrace(n=32)    places, innermost first: function, module, file, line, text
  value(EXPR)   a number, or text, of an expression in the program's language;
                frame=1: in the caller, default=None: instead of an error
  show(EXPR)    the same as a debugger prints it
  call(FUNCTION, NUMBER...)   what a function of the program returns; expressions
                call functions, too: value("length(list)"). They run in a copy of
                the process that is thrown away then, as far as their code was
                recorded; what they print is the script's output
  memory(ADDRESS, N), string(ADDRESS), u8, u16, u32, u64(ADDRESS)
                None, or less, where memory was not captured
  unreferenced(BLOCKS, freed={})   which of the blocks, a dictionary from address
                to size, nothing in the program's memory points to

What a moment of a kind has:
  call          name, arg(0) to arg(5), inlined
  return        name, arg(n) as at the call, result, entered: the call's position
  syscall       name, number, args, result, error, text as strace prints it
  signal        name, number, text, fault, address
  access        address, size, store, kernel (by a system call), data, old,
                new_value, old_value
  race          address, size, store; other: the access before, with address, size,
                store, position, thread, place
  freed         address
  uninit        use ("branch", "target", "address", "argument", "buffer" or
                "string"), text, origin: None, or kind ("heap", "realloc" or
                "stack"), text, function, position, address, size
  end           ended, crashed

Other names: args, recording (file, name, pid, program, arguments, crashed, ended,
whole: the program begins with it), row(NAME=VALUE...) for results that --json
writes as an object, hex(n), signed(n, bits=64), struct, json, math.

A script reads no file, has no network and no clock, and loads no other; --steps,
--time and --memory bound it. Once the recordings are open, vplayd itself can open
no other file but symbol files, where the kernel has Landlock and seccomp.

Exit codes: 0 done, 1 an error of the script, 2 wrong use or a mistake found when
the script is read, 3 replay and recording differ, 4 a recording is damaged.`
