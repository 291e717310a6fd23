"use strict";

// The scenes: what a person does in the editor, and what must be seen.

const { wait } = require("./editor");

// toStop opens a file of a story, presses F5 when the editor has had settles milliseconds to start, and waits until the program stands at
// the line that lineOf returns. took is how long that was, in milliseconds.
async function toStop(stage, story, file, settles, lineOf, what) {
    const ed = await stage.open(story);
    await ed.open(file);
    await wait(settles);
    const began = Date.now();
    await ed.page.keyboard.press("F5");
    await ed.atLine(lineOf(ed));
    const took = Date.now() - began;
    stage.note(`F5 to the ${what}: ${took} ms`);
    return { ed, took };
}

// crashed opens the story of a program at its crash. With settles, F5 is to take no more than two seconds; without, the editor is at it
// still.
async function crashed(stage, settles = 0, file = "ledger.c") {
    const { ed, took } = await toStop(stage, file.split(".")[0], file, settles, (ed) => ed.story.lines.CRASH, "crash");
    if (settles > 0 && took > 2000) {
        throw new Error(`F5 to the crash takes ${took} ms, more than 2000`);
    }
    return ed;
}

// stopped is crashed for the debugger that does nothing, which stops at line 38.
async function stopped(stage, settles) {
    const { ed } = await toStop(stage, "nothing", "ledger.c", settles, () => 38, "stop of a debugger that does nothing");
    return ed;
}

const scenes = {
    // A double click on the recording shows a page; its button debugs.
    async page(stage) {
        const ed = await stage.open("ledger");
        const page = await ed.openRecording("ledger.vplay");
        await ed.until("what happened", async () => (await page.locator(".headline").innerText()).includes("killed by SIGSEGV"));
        const table = await page.locator("table").innerText();
        for (const want of [`sum ledger.c:${ed.story.lines.CRASH}`, "si_addr", "1 interval, "]) {
            if (!table.includes(want)) {
                throw new Error(`the page lacks ${want}: ${table}`);
            }
        }
        await page.locator("button", { hasText: "Debug" }).first().click();
        await ed.atLine(ed.story.lines.CRASH);
    },

    // F5 without any configuration stops at the crash, with the signal.
    async crash(stage) {
        const ed = await crashed(stage);
        await ed.signal("SIGSEGV");
        await ed.variable("total", 1850);
        await ed.until("the stack", async () => (await ed.stack()).slice(0, 2).join() === `sum:${ed.story.lines.CRASH},main:${ed.story.lines["ASKS-SUM"]}`);
        await ed.atPosition("end (100%)");
    },

    // Each frame has its variables.
    async frames(stage) {
        const ed = await crashed(stage);
        await ed.variable("total", 1850);
        await ed.row("Call Stack", "main").click();
        await ed.variable("result", /^-?\d+$/);
        await ed.expand("Globals", "accounts");
        await ed.expand("\\[2\\]");
        await ed.variable("balance", /^\d+$/);
        await ed.row("Call Stack", "sum").click();
        await ed.variable("total", 1850);
    },

    // Step Back and Reverse go back, over a call and to the beginning; Continue comes back to the crash.
    async back(stage) {
        const ed = await crashed(stage);
        await ed.button("Step Back");
        await ed.until("another position", async () => /^\d+:\d+/.test(await ed.position()));
        await ed.atLine(ed.story.lines.CRASH);
        await ed.button("Step Back");
        await ed.atLine(ed.story.lines.SUM + 1);
        await ed.page.keyboard.press("Alt+F10");
        await ed.atLine(ed.story.lines.CRASH);
        await ed.button("Reverse");
        await ed.atPosition("(0.0%)");
        await ed.button("Continue");
        await ed.atPosition("end (100%)");
        await ed.atLine(ed.story.lines.CRASH);
    },

    // A data breakpoint from the variable's menu, then back to the line that wrote it.
    async culprit(stage) {
        const ed = await crashed(stage);
        await ed.expand("Globals", "accounts");
        await ed.expand("\\[2\\]");
        await ed.menu(ed.row("Variables", "next ="), "Break on Value Change");
        await ed.until("the data breakpoint", async () => (await ed.rows("Breakpoints")).some((r) => r.includes("next")));
        await ed.button("Reverse");
        await ed.atLine(ed.story.lines.CULPRIT);
        await ed.variable("i", 12);
    },

    // A condition, a hit count and a log point, all of them going back.
    async conditions(stage) {
        const ed = await crashed(stage);
        await ed.breakpoint("ledger.c", ed.story.lines.BALANCE, "condition", "amount == 41");
        await ed.button("Reverse");
        await ed.atLine(ed.story.lines.BALANCE);
        await ed.variable("amount", 41);
        await ed.breakpoint("ledger.c", ed.story.lines.COUNT, "hit", "3");
        await ed.button("Reverse");
        await ed.atLine(ed.story.lines.COUNT);
        await ed.variable("amount", 38);
        await ed.breakpoint("ledger.c", ed.story.lines.DEPOSIT, "log", "deposit of {amount}");
        await ed.button("Reverse");
        await ed.variable("amount", 35);
        await ed.console();
        await ed.said("deposit of 37");
        await ed.said("deposit of 36");
    },

    // Who wrote this? goes to the store, all writes lists them, and one can go back.
    async whowrote(stage) {
        const ed = await crashed(stage);
        await ed.expand("Globals", "accounts");
        await ed.expand("\\[2\\]");
        await ed.menu(ed.row("Variables", "next ="), "Who Wrote This\\?");
        await ed.atLine(ed.story.lines.CULPRIT);
        await ed.until("the answer", async () => (await ed.toasts()).some((t) => /\u2192.*rename_account \(ledger\.c:\d+\)/.test(t.text)));
        await ed.variable("i", 12);
        await ed.command("vplay: Go Back to Where I Was");
        await ed.atLine(ed.story.lines.CRASH);
        await ed.expand("Globals", "accounts");
        await ed.expand("\\[2\\]");
        await ed.menu(ed.row("Variables", "next ="), "Show All Writes");
        const answers = ".quick-input-list .monaco-list-row";
        await ed.until("six writes", async () => (await ed.texts(answers)).length === 6);
        await ed.page.locator(answers).last().click();
        await ed.atLine(ed.story.lines.LINK);
        await ed.variable("i", 2);
    },

    // A click on the timeline moves the program, and the timeline follows it.
    async timeline(stage) {
        const ed = await crashed(stage);
        const view = await ed.webview("#timeline");
        await ed.until("the events", async () => (await view.locator(".event").count()) > 20);
        const last = await view.locator(".event").last().innerText();
        if (!last.includes("SIGSEGV")) {
            throw new Error(`the last event is ${last}`);
        }
        const box = await view.locator("#timeline").boundingBox();
        await ed.page.mouse.click(box.x + box.width * 0.3, box.y + box.height - 12);
        await ed.until("a third of the time", async () => Math.abs(Number(/\(([\d.]+)%\)/.exec(await ed.position())?.[1]) - 30) < 4);
        await ed.until("the cursor there", async () => Math.abs(Number(await view.locator("body").getAttribute("data-at")) - 0.3) < 0.04);
        await view.locator(".event").last().click();
        await ed.inFunction("sum");
        await ed.atLine(ed.story.lines.CRASH);
    },

    // A function is called in the console, and the program stays where it is.
    async call(stage) {
        const ed = await crashed(stage);
        await ed.console("twice(21)");
        await ed.said("42");
        await ed.console("accounts[1].balance");
        await ed.variable("total", 1850);
        await ed.atPosition("end (100%)");
    },

    // The console completes a name, and a member in the middle of a line.
    async completion(stage) {
        const ed = await crashed(stage);
        for (const [typed, label, line] of [["depos", "deposits", "deposits"], ["0 + accounts[1].balan", "balance", "0 + accounts[1].balance"]]) {
            await ed.console();
            await ed.page.locator(".repl-input-wrapper .view-lines").click();
            await ed.page.keyboard.type(typed);
            await ed.until(`${label} among the proposals`, async () => (await ed.texts(".suggest-widget.visible .monaco-list-row")).some((r) => r.includes(label)));
            await ed.page.keyboard.press("Tab");
            await ed.page.keyboard.press("Enter");
            await ed.said(line);
        }
    },

    // The disassembly view steps instruction by instruction, back too.
    async disassembly(stage) {
        const ed = await crashed(stage);
        await ed.command("Open Disassembly View");
        const isCrash = async () => /mov\s+0x10\(%rax\)/.test(await ed.instruction());
        await ed.until("the instruction", isCrash);
        await ed.button("Step Back");
        await ed.until("the instruction before", async () => !(await isCrash()));
        await ed.button("Step Over");
        await ed.until("the instruction again", isCrash);
    },

    // A million elements and a map: only what is looked at is asked for.
    async ample(stage) {
        const ed = await crashed(stage, 0, "ample.cc");
        await ed.expand("Globals");
        const began = Date.now();
        await ed.expand("numbers", "\\[990000\\.\\.999999\\]", "\\[999900\\.\\.999999\\]");
        await ed.scrollTo("Variables", "\\[999999\\]");
        await ed.variable("[999999]", 1999998);
        stage.note(`the last of a million elements: ${Date.now() - began} ms`);
    },

    async map(stage) {
        const ed = await crashed(stage, 0, "ample.cc");
        await ed.expand("Globals", "ages");
        await ed.until("the entries of the map", async () => {
            const rows = (await ed.rows("Variables")).join("\n");
            return rows.includes("Ada") && rows.includes("36") && rows.includes("Grace");
        });
    },

    // Without symbols there are instructions, registers and the way back.
    async stripped(stage) {
        const ed = await stage.open("stripped");
        const page = await ed.openRecording("ledger.vplay");
        await page.locator("button", { hasText: "Debug" }).first().click();
        await ed.atPosition("end (100%)");
        await ed.until("the instruction", async () => /mov\s+0x10\(%rax\)/.test(await ed.instruction()));
        await ed.expand("Registers");
        await ed.variable("rbp", /^0x/);
        await ed.button("Step Back");
        await ed.until("another position", async () => /^\d+:\d+/.test(await ed.position()));
        await ed.until("the instruction before", async () => !/mov\s+0x10\(%rax\)/.test(await ed.instruction()));
    },

    // A recording that cannot be read: the page and the debugger both say what is wrong with it.
    async damaged(stage) {
        stage.mayFail = true;
        const ed = await stage.open("damaged");
        const page = await ed.openRecording("ledger.vplay");
        await ed.until("what is wrong", async () => (await page.locator("body").innerText()).includes("cannot read this file"));
        const said = await page.locator("pre").innerText();
        if (!said.includes("ledger.vplay")) {
            throw new Error(`the page says: ${said}`);
        }
        await ed.page.keyboard.press("F5");
        const dialog = ed.page.locator(".monaco-dialog-box");
        await dialog.waitFor({ timeout: 20000 });
        const text = await dialog.innerText();
        if (!text.includes("ledger.vplay") || text.includes("undefined")) {
            throw new Error(`the dialog says: ${text}`);
        }
    },

    // Where vplayd is missing, the editor says how to get it.
    async missing(stage) {
        stage.mayFail = true;
        const ed = await stage.open("missing");
        const page = await ed.openRecording("ledger.vplay");
        await ed.until("what is missing", async () => (await page.locator("body").innerText()).includes("no-such-vplayd is not on the PATH"));
        await ed.page.keyboard.press("F5");
        await ed.until("how to get it", async () => (await ed.toasts()).some((t) => t.isError && t.text.includes("no-such-vplayd is not on the PATH") && t.text.includes("go build")));
    },

    // Another process of the recording is debugged beside the one that crashed, each at its own place.
    async processes(stage) {
        const ed = await crashed(stage, 0, "family.c");
        await ed.variable("question", 2);
        await ed.command("vplay: Debug Another Process...");
        const parents = ed.page.locator(".quick-input-list .monaco-list-row");
        await ed.until("the parent", async () => (await parents.count()) === 1 && (await parents.first().innerText()).includes("family"));
        await parents.first().click();
        await ed.until("both sessions", async () => (await ed.texts(".debug-call-stack .monaco-list-row .session")).length === 2);
        await ed.row("Call Stack", "family\\.vplay").click();
        await ed.until("the parent's stack", async () => (await ed.stack()).some((f) => f.startsWith("main:"))); // where it was when the child crashed
        await ed.variable("status", /^-?\d+$/);
        await ed.button("Reverse");
        await ed.atPosition("(0.0%)");
        await ed.row("Call Stack", "Debug family").click();
        await ed.atPosition("end (100%)");
        await ed.variable("a", "0x0");
    },

    // The debugger's hover over an expression has its value. With Alt the editor's takes its place, which has the questions of its past, too.
    async hover(stage) {
        const ed = await crashed(stage);
        await ed.stopped("SIGSEGV");
        const at = await ed.point("total += a->balance", "total");
        await ed.until("the value", () => ed.page.locator(".debug-hover-widget", { hasText: "1850" }).isVisible());
        await ed.page.keyboard.down("Alt");
        const hover = ed.page.locator(".monaco-hover", { hasText: "total = 1850" }).first();
        const who = hover.locator("a", { hasText: "Who wrote this?" });
        await ed.until("the value and the questions", () => who.isVisible());
        const box = await who.boundingBox();
        await who.click({ position: { x: at.x - box.x, y: box.height / 2 }, timeout: 20000 }); // straight up: over another character VS Code drops the hover
        await ed.page.keyboard.up("Alt");
        await ed.until("the answer", async () => (await ed.toasts()).some((t) => /^total: .*by sum \(ledger\.c:\d+\)/.test(t.text)));
        await ed.until("an earlier place", async () => !(await ed.position()).includes("end (100%)"));
    },

    // Two editors debug the same recording at the same time, each at its own place.
    async two(stage) {
        const [a, b] = [await crashed(stage), await crashed(stage)];
        await a.button("Reverse");
        await a.atPosition("(0.0%)");
        await b.button("Step Back");
        await b.until("another position", async () => /^\d+:\d+/.test(await b.position()));
        await b.inFunction("sum");
        await a.atPosition("(0.0%)");
        await a.button("Continue");
        await a.atPosition("end (100%)");
    },

    // While the program moves for long the status bar says so, and no position; Pause stops it.
    async moving(stage) {
        const ed = await stage.open("busy");
        await ed.open("busy.c");
        await ed.page.keyboard.press("F5");
        await ed.atPosition("end (100%)");
        await ed.breakpoint("busy.c", ed.story.lines.BEAT, "condition", "i == -1.5");
        await ed.button("Reverse");
        await ed.atPosition("moving");
        await ed.button("Pause");
        await ed.atPosition("%)"); // wherever it is: a search may come back to where it began
    },

    // How long a step back takes, from the key to the painted line; the argument says how often.
    async latency(stage) {
        const ed = await crashed(stage, 5000); // a person opens an editor, and then debugs
        await ed.page.keyboard.press("Alt+F10");
        await ed.until("another position", async () => /^\d+:\d+/.test(await ed.position()));
        const p99 = await measure(stage, ed, "a step back to the painted line");
        if (p99 > 100) {
            throw new Error(`p99 is ${p99.toFixed(0)} ms, more than 100`);
        }
    },

    // F5 to the crash, in an editor that is still starting.
    async starting(stage) {
        await crashed(stage);
    },

    // The same with a debugger that does nothing (folder null).
    async startingNothing(stage) {
        await stopped(stage, 0);
    },

    // Steps back with that debugger.
    async nothing(stage) {
        const ed = await stopped(stage, 5000);
        await ed.page.keyboard.press("Alt+F10");
        await ed.atLine(37);
        await measure(stage, ed, "the same with a debugger that does nothing");
    },
};

// measure steps back as often as the argument says, and returns the 99th percentile of the times from the key to the painted
// line. It notes them in their order, and the median.
async function measure(stage, ed, what) {
    await ed.page.evaluate(watchLine);
    const times = [];
    for (const end = Date.now() + 120000; times.length < stage.argument && Date.now() < end;) {
        await wait(500); // as a person who looks at each
        const painted = ed.page.evaluate(() => window.vplayPainted());
        await ed.page.keyboard.press("Alt+F10");
        const took = await painted;
        if (took > 0) { // else it is the same line as before
            times.push(took);
        }
    }
    const sorted = times.toSorted((a, b) => a - b);
    const p99 = sorted[Math.ceil(0.99 * times.length) - 1];
    stage.note(`${what}: median ${sorted[times.length >> 1].toFixed(0)} ms, p99 ${p99.toFixed(0)} ms of ${times.length}: ${times.map((t) => t.toFixed(0))}`);
    return p99;
}

// watchLine runs in the page. It makes a function that resolves to the milliseconds from the next
// key to the frame in which another line is marked as the present one, or to 0 after 2 seconds.
function watchLine() {
    let pressed;
    window.addEventListener("keydown", (e) => {
        if (e.key === "F10") {
            pressed = performance.now();
        }
    }, true);
    const mark = () => document.querySelector(".debug-top-stack-frame-line")?.parentElement.style.top;
    window.vplayPainted = () => new Promise((resolve) => {
        const before = mark(), began = performance.now();
        pressed = undefined;
        const look = () => {
            const now = mark();
            if (pressed !== undefined && now && now !== before) {
                resolve(performance.now() - pressed);
            } else if (performance.now() - began > 2000) {
                resolve(0);
            } else {
                requestAnimationFrame(look);
            }
        };
        look();
    });
}

module.exports = scenes;
