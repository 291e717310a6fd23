# vplay's commands for gdb 9 and later. They talk to the server by "monitor"; what
# they add is expressions, progress, Ctrl-C, completion and help.
#
# To load it: "source vplay.py", or, once connected, without a file:
#   python exec(gdb.execute('monitor python', to_string=True))

import base64
import glob
import os
import re
import sys

import gdb


def _monitor(line):
    return gdb.execute("monitor " + line, to_string=True)


def _of_process(line):
    """A monitor command about the selected process: gdb's packets do not always tell which one that is."""
    pid = gdb.selected_inferior().pid
    others = [i for i in gdb.inferiors() if i.pid and i.pid != pid]
    return "--process %d %s" % (pid, line) if pid and others else line


def _ask(line, tell=None):
    """Runs a monitor command in pieces, so that Ctrl-C ends it at once. tell gets each piece of the answer as it comes."""
    shown = False
    answer = []
    piece = _monitor("& " + _of_process(line))
    try:
        while True:
            status, _, text = piece.partition("\n")
            if tell and text and status != "done":
                if shown:
                    gdb.write("\r\033[K" if gdb.parameter("style enabled") else "\n", gdb.STDLOG)
                    shown = False
                tell(text)
            else:
                answer.append(text)
            if status == "done":
                break
            if not status.startswith("running"):
                raise gdb.GdbError("this is no recording: target remote to vplayd serve first")
            if len(status) > 8 and os.isatty(2):  # where gdb's log goes
                gdb.write("\r" + status[8:] + " ", gdb.STDLOG)
                gdb.flush(gdb.STDLOG)
                shown = True
            piece = _monitor("&")
    finally:
        if shown:
            gdb.write("\r\033[K" if gdb.parameter("style enabled") else "\n", gdb.STDLOG)
    text = "".join(answer)
    if text.startswith("error: "):
        raise gdb.GdbError(text[7:].strip())
    return text


def vplay(question):
    """For scripts: asks what a monitor command asks, and returns the answers as pairs of position and text."""
    pairs = (line.partition("  ")[::2] for line in _ask(question).splitlines())
    return [(position, text) for position, text in pairs if ":" in position and text]


def _together(questions):
    """The answers to several questions, a line each, in the order of time; the last refusal when there is none."""
    answers, refusal = [], ""
    for question in questions:
        for line in _ask(question).splitlines(True):
            at = re.match(r"(\d+):(\d+)\.(\d+)  ", line)
            if at:
                answers.append(([int(n) for n in at.groups()], line))
            else:
                refusal = line
    return [line for _, line in sorted(answers)] or [refusal]


def _address(text):
    """The address that an expression is at, or points to, and how many bytes."""
    value = gdb.parse_and_eval(text)
    if value.is_optimized_out or value.address is None and text.replace("_", "a").isalnum() and not text[0].isdigit():
        raise gdb.GdbError("%s is not in memory here, but in a register or optimized out" % text)
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_FUNC:
        return int(value.address), 1
    if value.address is not None:
        return int(value.address), max(value.type.sizeof, 1)
    return int(value) & (2**64 - 1), 8


def _split_count(arg):
    """Splits "EXPR [N]": a last word that is a number, with something before it."""
    words = arg.rsplit(None, 1)
    if len(words) == 2 and words[1].isdigit() and words[0][-1] not in "+-*/%&|^<>=(,.":
        return words[0], words[1]
    return arg, "10"


def _places(text):
    """The addresses of a line, a function or *ADDRESS."""
    if text.startswith("*"):
        return [int(gdb.parse_and_eval(text[1:])) & (2**64 - 1)]
    spots = gdb.decode_line(text)[1] or ()
    if not spots:
        raise gdb.GdbError("no such place: " + text)
    return [spot.pc for spot in spots]


def _around(pc):
    """The functions around an address, innermost first: all but the last are inlined."""
    try:
        block = gdb.block_for_pc(pc)
    except RuntimeError:
        block = None
    found = []
    while block is not None:
        if block.function is not None:
            found.append(block.function)
        block = block.superblock
    return found


def _plain(name):
    """A function's name without its parameters."""
    name = re.sub(r"( const| volatile| &&?)+$", "", name.strip())
    depth, i = 0, len(name)
    if not name.endswith(")"):
        return name
    while i > 0:
        i -= 1
        depth += {")": 1, "(": -1}.get(name[i], 0)
        if depth == 0:
            break
    return name if i == 0 or name[:i].endswith("operator") else name[:i].strip()


def _is_named(function, name):
    """Whether gdb means a function by name, which may lack namespaces and template arguments."""
    plain = _plain(function)
    return any(p == name or p.endswith("::" + name) for p in (plain, re.sub(r"<.*>$", "", plain)))


def _entries(text):
    """Where functions are entered: pairs of an address and, where the function was inlined, its name."""
    if text.startswith("*"):
        return [(pc, None) for pc in _places(text)]
    entries = []
    name = _plain(text)
    for pc in _places(text):
        around = _around(pc)
        for i, function in enumerate(around):
            if not _is_named(function.print_name, name):
                continue
            if i < len(around) - 1:
                entries.append((pc, _plain(function.print_name)))
            else:
                entries.append((int(function.value().address), None))
            break
        else:  # no debugging information: the start of the symbol
            known = re.search(r" \+ (\d+) in section", gdb.execute("info symbol %#x" % pc, to_string=True))
            entries.append((pc - int(known.group(1)) if known else pc, None))
    return sorted(set(entries), key=lambda e: e[0])


def _integer_letter(kind):
    """The letter of Python's struct module for an integer argument, or None."""
    kind = kind.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF, getattr(gdb, "TYPE_CODE_RVALUE_REF", gdb.TYPE_CODE_REF)):
        return "P"
    if kind.code == gdb.TYPE_CODE_BOOL:
        return "?"
    if kind.code not in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_ENUM):
        return None
    letter = {1: "b", 2: "h", 4: "i", 8: "q"}.get(kind.sizeof)
    try:
        signed = int(gdb.Value(-1).cast(kind)) < 0
    except (gdb.error, OverflowError):
        signed = True
    return letter if letter is None or signed else letter.upper()


def _is_assembler(function):
    """Whether a function is from assembler, whose debug information has no arguments."""
    at = function.address
    table = gdb.find_pc_line(int(at)).symtab if at is not None else None
    return table is not None and table.filename.lower().endswith(".s")


def _signature(text):
    """The letters of a function's first integer arguments, None where they are not known."""
    try:
        function = gdb.parse_and_eval(text)
        kind = function.type.strip_typedefs()
    except gdb.error:
        return None
    if kind.code != gdb.TYPE_CODE_FUNC or "no debug info" in str(kind):
        return None
    fields = kind.fields()
    if not fields and _is_assembler(function):
        return None
    if not fields or kind.target().sizeof > 16:
        return "-"  # the first register may be the address of the result
    letters = ""
    for field in fields:
        code = field.type.strip_typedefs().code
        if code == gdb.TYPE_CODE_FLT:
            continue  # in a vector register
        letter = _integer_letter(field.type)
        if letter is None:
            break
        letters += letter
    return letters or "-"


def _typed(text):
    """The address of the function whose type _signature knows, None when there is no address."""
    try:
        address = gdb.parse_and_eval(text).address
    except gdb.error:
        return None
    return None if address is None else int(address)


def _plain_errors(invoke):
    """Makes gdb's errors plain ones, without a Python exception's looks."""

    def plain(self, arg, from_tty):
        try:
            return invoke(self, arg, from_tty)
        except gdb.error as e:
            raise gdb.GdbError(str(e))

    return plain


def _go(where):
    """Moves: the next step, whatever it is, goes there, so that gdb sees a stop."""
    threads = gdb.selected_inferior().threads()
    if threads:  # the first, which is there nearly always: gdb steps one thread
        min(threads, key=lambda t: t.ptid[1]).switch()
    _ask("resume-at " + where)
    gdb.execute("stepi")
    runs = re.search(r"^\* (\d+)", _ask("threads"), re.M)
    for t in gdb.selected_inferior().threads():
        if runs and t.ptid[1] == int(runs.group(1)) and t != gdb.selected_thread():
            gdb.execute("thread %d" % t.num)


class _Vplay(gdb.Command):
    """Questions to a recording that vplayd serves.

help vplay SUBCOMMAND explains one of them. Answers begin with a position
I:N.S (interval, instructions since its start, step) for vplay seek."""

    def __init__(self):
        super().__init__("vplay", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE, True)


class _Command(gdb.Command):
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.invoke = _plain_errors(cls.invoke)

    def __init__(self, *complete):
        super().__init__("vplay " + self.word, gdb.COMMAND_RUNNING, *complete)


class _Plain(_Command):
    """Passes its arguments on."""

    def __init__(self, word, doc):
        self.word, self.__doc__ = word, doc
        super().__init__(gdb.COMPLETE_NONE)

    def invoke(self, arg, from_tty):
        gdb.write(_ask((self.word + " " + arg).strip()))


class _Seek(_Command):
    """Move to another moment: vplay seek WHERE

WHERE is a position I:N.S, begin, end, crash, a share such as 50% or 0.5,
event N, interval N, interval +N or interval -N. To gdb it is a stop."""

    word = "seek"
    places = ("begin", "end", "crash", "event", "interval")

    def invoke(self, arg, from_tty):
        if not arg:
            raise gdb.GdbError("vplay seek WHERE: help vplay seek")
        _go(arg)

    def complete(self, text, word):
        return [p for p in self.places if p.startswith(text)]


class _Access(_Command):
    def __init__(self, word, doc, counted):
        self.word, self.__doc__, self.counted = word, doc, counted
        super().__init__(gdb.COMPLETE_EXPRESSION)

    def invoke(self, arg, from_tty):
        if not arg:
            raise gdb.GdbError("vplay %s EXPR: help vplay %s" % (self.word, self.word))
        count = ""
        if self.counted:
            arg, count = _split_count(arg)
        address, size = _address(arg)
        gdb.write(_ask("%s %#x %d %s" % (self.word, address, size, count)))


class _Calls(_Command):
    """The last calls of a function before here: vplay calls FUNCTION [N]

Each with its position, its first integer arguments, and where it was called
from. N is 10 unless told."""

    word = "calls"

    def __init__(self):
        super().__init__(gdb.COMPLETE_LOCATION)

    def invoke(self, arg, from_tty):
        if not arg:
            raise gdb.GdbError("vplay calls FUNCTION [N]: help vplay calls")
        arg, count = _split_count(arg)
        letters = _signature(arg) or "QQQ"
        typed = _typed(arg)
        found = _together(
            "calls %#x %s %s" % (pc, count, "inlined " + name if name else letters if typed in (None, pc) else "QQQ") for pc, name in _entries(arg)
        )
        gdb.write("".join(found[-int(count) :]))


class _FirstExec(_Command):
    """The first time that a place was executed: vplay first-exec WHERE

WHERE is a function, FILE:LINE or *ADDRESS."""

    word = "first-exec"

    def __init__(self):
        super().__init__(gdb.COMPLETE_LOCATION)

    def invoke(self, arg, from_tty):
        if not arg:
            raise gdb.GdbError("vplay first-exec WHERE: help vplay first-exec")
        is_line = re.fullmatch(r"(.*:)?\d+", arg)
        places = _places(arg) if is_line else [pc for pc, _ in _entries(arg)]
        gdb.write(_together("first-exec %#x" % pc for pc in places)[0])


class _Slice(_Command):
    """Passes on a place, or what is in a register: the server knows those."""

    def __init__(self, word, doc):
        self.word, self.__doc__ = word, doc
        super().__init__(gdb.COMPLETE_EXPRESSION)

    def invoke(self, arg, from_tty):
        if self.word != "slice" and not arg:
            raise gdb.GdbError("vplay %s EXPR: help vplay %s" % (self.word, self.word))
        options = ""
        while arg.startswith("-"):
            option, _, arg = arg.partition(" ")
            options += option + " "
            if option == "-n":
                count, _, arg = arg.partition(" ")
                options += count + " "
            arg = arg.strip()
        what = arg
        if arg and not arg.startswith("$") and not (self.word == "affected" and re.match(r"input(:|$)", arg)):
            try:
                what = "%#x %d" % _address(arg)
            except gdb.error as e:
                if isinstance(e, gdb.MemoryError):
                    raise
            except gdb.GdbError:
                pass
        thread = gdb.selected_thread()
        if thread and arg:
            options += "--thread %d " % thread.ptid[1]
        gdb.write(_ask(("%s %s%s" % (self.word, options, what)).strip()))


class _Run(_Command):
    """Run a script over the recording: vplay run [--json] SCRIPT [ARG...]

SCRIPT is one that comes with vplayd (strace, ltrace, heap, fdleaks, locks), or a file of
this machine in Starlark, as vplayd run takes it; ARGs are the script's args. What
it prints is shown as it comes, and positions in it are for vplay seek. Where the program
stands does not change. Ctrl-C ends it."""

    word = "run"
    most = 1 << 20  # bytes of a script

    def __init__(self):
        super().__init__(gdb.COMPLETE_FILENAME)

    def invoke(self, arg, from_tty):
        words = gdb.string_to_argv(arg)
        options = ""
        if words and words[0] == "--json":
            options, words = "--json ", words[1:]
        if not words:
            raise gdb.GdbError("vplay run [--json] SCRIPT [ARG...]: help vplay run")
        name = words[0]
        if re.search(r"[/\\.]", name):
            self._send(os.path.expanduser(name))
            options += "--sent "
            name = re.sub(r"\s", "_", os.path.basename(name))
        if any(re.search(r"\s", w) or not w for w in words[1:]):
            raise gdb.GdbError("an argument of a script has no spaces here")
        line = "run " + options + " ".join([name] + words[1:])
        if len(line) > 3000:
            raise gdb.GdbError("the arguments are too long")
        text = _ask(line, tell=gdb.write)
        before, failed, error = text.rpartition("error: ")
        if failed and (not before or before.endswith("\n")):
            gdb.write(before)
            raise gdb.GdbError(error.strip())
        gdb.write(text)

    def _send(self, path):
        try:
            with open(path, "rb") as f:
                source = f.read(self.most + 1)
        except OSError as e:
            raise gdb.GdbError(str(e))
        if len(source) > self.most:
            raise gdb.GdbError("%s: a script has at most %d bytes" % (path, self.most))
        _ask("run --text -")  # begins anew
        for i in range(0, len(source), 2048):
            _ask("run --text " + base64.b64encode(source[i : i + 2048]).decode())


class _AtAddress(_Command):
    def __init__(self, word, doc):
        self.word, self.__doc__ = word, doc
        super().__init__(gdb.COMPLETE_EXPRESSION)

    def invoke(self, arg, from_tty):
        if self.word == "why" and not arg:
            raise gdb.GdbError("vplay why EXPR: help vplay why")
        gdb.write(_ask(self.word + (" %#x" % _address(arg)[0] if arg else "")))


class _Restart(_Command):
    """Move to what a checkpoint remembers: vplay restart N"""

    word = "restart"

    def invoke(self, arg, from_tty):
        for line in _ask("checkpoints").splitlines():
            n, _, rest = line.partition("  ")
            if n == arg:
                return _go(rest.split()[0])
        raise gdb.GdbError("there is no checkpoint " + (arg or "without a number"))


class _Inferiors(_Command):
    """Attach to processes of the recording: vplay inferiors [PID...]

Without a PID to all of them. Each becomes an inferior; "info inferiors" lists them and
"inferior N" selects one. gdb attaches only after "target extended-remote": after "target
remote" this connects anew. vplayd replay does both.
A continue or a step moves the selected process, and the others stay where they are. After
"set schedule-multiple on" the others are moved to the same moment."""

    word = "inferiors"

    def invoke(self, arg, from_tty):
        rows = [re.match(r"[* ] (\d+)  ", line) for line in _ask("processes").splitlines()]
        known = [int(row.group(1)) for row in rows if row]
        have = {i.pid for i in gdb.inferiors()}
        for word in arg.split():
            if not word.isdigit() or int(word) not in known:
                raise gdb.GdbError("%s is no process of the recording: vplay processes" % word)
        wanted = [int(word) for word in arg.split()] or known
        held = gdb.selected_inferior().pid
        if self._extend():
            wanted = [held] + [pid for pid in wanted if pid != held]
            have = set()
        begin = gdb.selected_inferior().num
        for pid in wanted:
            if pid in have:
                continue
            if gdb.selected_inferior().pid:
                before = {i.num for i in gdb.inferiors()}
                gdb.execute("add-inferior", to_string=True)
                gdb.execute("inferior %d" % max({i.num for i in gdb.inferiors()} - before), to_string=True)
            gdb.execute("attach %d" % pid)
            have.add(pid)
        if gdb.selected_inferior().num != begin:
            gdb.execute("inferior %d" % begin, to_string=True)


    def _extend(self):
        """Connects anew where gdb cannot attach; the server keeps the position. Says whether it did."""
        connection = gdb.selected_inferior().connection
        if connection is None or connection.type != "remote":
            return False
        if not connection.details or connection.details.startswith("|"):
            raise gdb.GdbError('connect by "target extended-remote" in place of "target remote" first')
        where = connection.details
        gdb.execute("disconnect", to_string=True)
        gdb.execute("target extended-remote " + where, to_string=True)
        return True


class _Own(gdb.Command):
    """gdb's own commands for checkpoints fork the program; these work here."""


    def __init__(self, name, doc, does):
        self.__doc__, self.does = doc, does
        super().__init__(name, gdb.COMMAND_RUNNING)

    @_plain_errors
    def invoke(self, arg, from_tty):
        self.does(arg, from_tty)


# gdb loads the pretty printers of libstdc++ by the name of the library's file, and
# does not know a name that begins with "target:" (auto-load.c,
# auto_load_objfile_script). So they are loaded here, from where gdb would take them.


def _folders(setting):
    """The folders of a setting such as auto-load safe-path, without gdb's variables."""
    for folder in gdb.parameter(setting).split(os.pathsep):
        folder = folder.replace("$datadir", gdb.parameter("data-directory"))
        for debugdir in gdb.parameter("debug-file-directory").split(os.pathsep) if "$debugdir" in folder else [""]:
            yield os.path.realpath(folder.replace("$debugdir", debugdir))


def _printer_script(library):
    """gdb's script for libstdc++, that of the library's own folder before others; None where there is none."""
    safe = list(_folders("auto-load safe-path"))
    for folder in _folders("auto-load scripts-directory"):
        if not any(path == "/" or (folder + "/").startswith(path + "/") for path in safe):
            continue
        for place in (os.path.dirname(library), "/usr" + os.path.dirname(library), "/**"):
            found = glob.glob(glob.escape(folder) + place + "/libstdc++.so.6*-gdb.py", recursive=True)
            if found:
                return sorted(found)[-1]
    return None


def _load_printers(objfile):
    """Registers the pretty printers of libstdc++ for an objfile that is this library."""
    name = objfile.filename or ""
    has = any(getattr(p, "name", "").startswith("libstdc++") for p in gdb.pretty_printers + objfile.pretty_printers)
    if not name.startswith("target:") or not os.path.basename(name).startswith("libstdc++.so") or has:
        return
    if not gdb.parameter("auto-load python-scripts"):
        return
    script = _printer_script(name[len("target:"):])
    if script is None:
        return
    try:
        with open(script) as f:
            folder = re.search(r"^pythondir = '(.*)'$", f.read(), re.MULTILINE)
        if folder and folder[1] not in sys.path:
            sys.path.insert(0, folder[1])
        from libstdcxx.v6 import register_libstdcxx_printers

        register_libstdcxx_printers(objfile)
    except (OSError, ImportError, gdb.error, RuntimeError) as e:
        gdb.write("the pretty printers of libstdc++ cannot be loaded: %s\n" % e, gdb.STDERR)


_Vplay()
_Seek()
_Calls()
_FirstExec()
_Restart()
_Inferiors()
for _word, _doc in {
    "when": "The present position.",
    "processes": "The processes of the recording: their programs, and how each ended.",
    "threads": "The threads here: which one runs, and which are inside a system call.",
    "events": "The last events before here: vplay events [N]\n\nSystem calls, signals and faults; the numbers are for vplay seek event N.",
    "goroutines": "The goroutines of a Go program here: vplay goroutines [stacks|ID]",
    "modules": "The ELF files in memory, and how to load their symbols by hand.",
    "checkpoint": "Remember the present position; vplay restart N goes back to it.",
    "checkpoints": "The positions remembered.",
    "delete-checkpoint": "Forget a position: vplay delete-checkpoint N",
}.items():
    _Plain(_word, _doc)
for _word, _doc, _counted in (
    ("last-write", "The last store before here: vplay last-write EXPR\n\nEXPR is a variable, or an address as in *(int *) 0x1234.", False),
    ("writes", "The last stores before here: vplay writes EXPR [N]", True),
    ("reads", "The last loads before here: vplay reads EXPR [N]", True),
):
    _Access(_word, _doc, _counted)
_Slice("slice", """What a value was made of: vplay slice [--values] [--control] [-n N] [EXPR]

EXPR is a variable, a register as $rax, or what is in memory; without it: what the
program died of. Below each row stands what it was made of, back to what came in from outside;
behind these rows, what decided where each of them loaded from or stored to. --values leaves
that out. --control adds the branches that led to the rows, with what they compared and which
way they went, and what that was made of; "by #7" names them. -n is how many rows are shown.
Positions are for vplay seek.""")
_Slice("origin", """The store that made a value, or the input it came from: vplay origin EXPR

The value is followed through all copies of it; EXPR as for vplay slice.""")
_Run()
_Slice("affected", """What a value reached later: vplay affected [--here] [--values] [-n N] EXPR

Source lines, branches, outputs, and whether it reached the crash. EXPR as for vplay slice, or
input for what the first read brought, or input:FD for all that was read from a descriptor.
It is followed from where it was written last before here, input from the beginning; with
--here from here on. --values leaves out what was only loaded or stored through an address that
it is part of; -n is how many rows are shown. Positions are for vplay seek.""")
_AtAddress("why", "Whether a byte was captured, and if not, why: vplay why EXPR")
_AtAddress("pages", "What was captured of each mapping, or of the page of EXPR: vplay pages [EXPR]")
for _name, _doc, _does in (
    ("checkpoint", "Remember the present position; restart N goes back to it.", lambda arg, tty: gdb.execute("vplay checkpoint", tty)),
    ("info checkpoints", "The positions remembered.", lambda arg, tty: gdb.execute("vplay checkpoints", tty)),
    ("restart", "Move to what a checkpoint remembers: restart N", lambda arg, tty: gdb.execute("vplay restart " + arg, tty)),
    ("delete checkpoint", "Forget a position: delete checkpoint N", lambda arg, tty: gdb.execute("vplay delete-checkpoint " + arg, tty)),
):
    _Own(_name, _doc, _does)
# gdb reads stacks in lines of 64 bytes, each a question over the connection, which is most of the time of a backtrace of 30,000 frames.
# A line that is not captured to its end costs one question more.
if gdb.parameter("dcache line-size") == 64:
    gdb.execute("set dcache line-size 1024")
gdb.events.new_objfile.connect(lambda event: _load_printers(event.new_objfile))
for _objfile in gdb.objfiles():
    _load_printers(_objfile)
