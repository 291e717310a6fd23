"use strict";

// The editor, as scenes use it: one page of VS Code in chromium, what a person does in it, and
// what the person sees.

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// patience bounds each wait for something to be seen, in milliseconds.
const patience = 60000;

// matches reports whether a row is that of a variable and has a value that is, or matches, value.
function matches(row, name, value) {
    const m = /^(.*?) ?=(.*)$/.exec(row);
    return Boolean(m) && m[1].trim() === name && (value instanceof RegExp ? value.test(m[2].trim()) : m[2].trim() === String(value));
}

class Editor {
    constructor(page, story) {
        this.page = page;
        this.story = story;
    }

    // until waits until what f returns is true, and returns it.
    async until(what, f, limit = patience) {
        const end = Date.now() + limit;
        let last;
        for (;;) {
            try {
                last = undefined;
                const got = await f();
                if (got) {
                    return got;
                }
            } catch (e) {
                last = e; // the page is being drawn anew
            }
            if (Date.now() > end) {
                throw new Error(`not seen: ${what}${last ? ` (${last.message.split("\n")[0]})` : ""}`);
            }
            await wait(20);
        }
    }

    async ready() {
        await this.page.waitForSelector(".monaco-workbench .part.statusbar", { timeout: 60000 });
    }

    texts(selector) {
        return this.page.$$eval(selector, (list) => list.map((e) => e.innerText || e.textContent));
    }

    // pick chooses in the box that a key opens, and returns the choice.
    async pick(key, text, label) {
        const input = this.page.locator(".quick-input-widget input.input");
        return this.until(`${label} to choose`, async () => {
            if (!(await input.isVisible())) { // something else may have taken the key
                await this.page.keyboard.press(key);
                await input.waitFor({ timeout: 2000 });
            }
            await input.fill(text, { timeout: 2000 });
            await wait(100);
            for (const row of await this.page.locator(".quick-input-list .monaco-list-row").all()) {
                if ((await row.getAttribute("aria-label", { timeout: 1000 })).startsWith(label)) {
                    return row;
                }
            }
            return undefined;
        });
    }

    // command runs a command by its title.
    async command(title) {
        await this.until(`${title} chosen`, async () => { // the box may close by itself, as in open
            await (await this.pick("F1", `>${title}`, title)).click({ timeout: 2000 });
            return true;
        });
    }

    // open opens a file by its name, at a line.
    async open(name, line) {
        await this.until(`${name} opened`, async () => { // the box closes when something else takes the focus, as a view that is shown
            await this.pick("Control+p", name, name);
            if (line) {
                await this.page.locator(".quick-input-widget input.input").fill(`${name}:${line}`, { timeout: 2000 });
                await wait(200);
            }
            await this.page.keyboard.press("Enter");
            return this.page.waitForSelector(`.tab.active[data-resource-name="${name}"]`, { timeout: 5000 });
        });
    }

    // line is the number of the line that the debugger marks as the present one, 0 for none.
    async line() {
        return this.page.evaluate(() => {
            const mark = document.querySelector(".editor-instance .view-overlays .debug-top-stack-frame-line");
            if (!mark) {
                return 0;
            }
            const top = mark.parentElement.style.top;
            for (const n of document.querySelectorAll(".editor-instance .margin-view-overlays > div")) {
                const number = n.querySelector(".line-numbers");
                if (n.style.top === top && number) {
                    return Number(number.textContent);
                }
            }
            return 0;
        });
    }

    async atLine(n, limit) {
        await this.until(`the program at line ${n}`, async () => (await this.line()) === n, limit).catch(async (e) => {
            throw new Error(`${e.message}: it is at ${await this.line()}`);
        });
    }

    // button clicks a button of the debug toolbar.
    async button(name) {
        const b = this.page.locator(`.debug-toolbar .action-label[aria-label^="${name}"]:not(.disabled)`);
        await b.waitFor({ timeout: patience });
        await b.click();
    }

    // row is a row of a view in the side bar: that whose text begins so.
    row(view, text) {
        return this.page.locator(`.pane:has(.pane-header[aria-label^="${view}"]) .monaco-list-row`).filter({ hasText: new RegExp(`^\\s*${text}`) }).first();
    }

    // rows are the texts of a view.
    rows(view) {
        return this.texts(`.pane:has(.pane-header[aria-label^="${view}"]) .monaco-list-row`);
    }

    // scrollTo turns the wheel over a view until a row is seen.
    async scrollTo(view, text) {
        const row = this.row(view, text);
        await row.waitFor({ timeout: 2000 }).catch(() => {}); // it is further down
        await this.until(`${text} in ${view}`, async () => {
            if (await row.isVisible()) {
                return true;
            }
            await this.page.locator(`.pane:has(.pane-header[aria-label^="${view}"]) .monaco-list`).hover();
            await this.page.mouse.wheel(0, 150);
            await wait(50);
            return false;
        });
        return row;
    }

    // expand opens rows of the Variables view, each inside the one before.
    async expand(...names) {
        for (const name of names) {
            const row = await this.scrollTo("Variables", name);
            await this.until(`${name} with what is in it`, async () => {
                if ((await row.getAttribute("aria-expanded")) === "true") {
                    return true;
                }
                await row.locator(".monaco-tl-twistie").click();
                await wait(200);
                return false;
            });
        }
    }

    // variable waits for a row "NAME =VALUE" of the Variables view.
    async variable(name, value) {
        await this.until(`${name} = ${value}`, async () => (await this.rows("Variables")).some((r) => matches(r.replace(/\s+/g, " ").trim(), name, value))).catch(
            async (e) => {
                throw new Error(`${e.message} among ${JSON.stringify(await this.rows("Variables"))}`);
            });
    }

    // menu chooses from the context menu of an element.
    async menu(element, entry) {
        await element.click({ button: "right" });
        const item = this.page.locator(".monaco-menu .action-label", { hasText: new RegExp(`^${entry}$`) }).first();
        await item.waitFor({ timeout: patience });
        await this.until(`the entry ${entry} chosen`, async () => { // a menu takes no click in the moment in which it opens
            if (await item.isVisible()) {
                await item.click({ timeout: 2000 });
                await wait(100);
            }
            return !(await item.isVisible());
        });
    }

    // stack is what the call stack lists, "FUNCTION:LINE" each.
    async stack() {
        return this.page.$$eval(".debug-call-stack .monaco-list-row .stack-frame", (list) =>
            list.map((e) => `${e.querySelector(".label")?.textContent}:${(e.querySelector(".line-number")?.textContent || "").split(":")[0]}`));
    }

    async inFunction(name) {
        await this.until(`the program in ${name}`, async () => (await this.stack())[0]?.startsWith(`${name}:`)).catch(async (e) => {
            throw new Error(`${e.message}: ${await this.stack()}`);
        });
    }

    // position is what the status bar says.
    async position() {
        return (await this.texts('[id="vplay.vplay.vplay.position"]'))[0]?.trim() || "";
    }

    async atPosition(text) {
        await this.until(`the position ${text}`, async () => (await this.position()).includes(text)).catch(async (e) => {
            throw new Error(`${e.message}: ${await this.position()}`);
        });
    }

    // stopped waits until all is there that a first stop shows besides the line: the exception and the timeline. When they come the
    // text is laid out anew, and VS Code drops the hover that is shown, or is about to be.
    async stopped(signal) {
        await this.signal(signal);
        await this.webview(".event");
    }

    // signal waits until the box of an exception names a signal.
    async signal(name) {
        await this.until("the signal", async () => (await this.texts(".exception-widget .title"))[0]?.includes(name));
    }

    // point moves the mouse to a word in the line of the shown text that has text, and returns where that is. It comes as a
    // hand does, from the views beside the text, along the line and a few pixels at a time (gdbstub/dap/RATIONALE.md says what
    // VS Code makes of one that jumps).
    async point(text, word) {
        const at = await this.until(`the line ${text}`, () => this.page.evaluate(([wanted, part]) => {
            for (const line of document.querySelectorAll(".editor-instance .view-line")) {
                if (!line.textContent.replace(/\u00a0/g, " ").includes(wanted)) {
                    continue;
                }
                const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
                for (let n = texts.nextNode(); n; n = texts.nextNode()) {
                    const from = n.data.indexOf(part);
                    if (from >= 0) {
                        const range = document.createRange();
                        range.setStart(n, from);
                        range.setEnd(n, from + part.length);
                        const box = range.getBoundingClientRect();
                        return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
                    }
                }
            }
            return undefined;
        }, [text, word]));
        const views = (await this.page.locator(".part.sidebar").boundingBox()).width / 2;
        await this.page.mouse.move(views, at.y);
        await this.page.mouse.move(at.x, at.y, { steps: Math.ceil((at.x - views) / 6) });
        return at;
    }

    // breakpoint sets one in a line of the file that is shown; with what, a "condition", a "hit"
    // count or a "log" message of that text.
    async breakpoint(file, line, kind, text) {
        await this.open(file, line);
        await this.command(kind === "log" ? "Debug: Add Logpoint..." : "Debug: Add Conditional Breakpoint...");
        const widget = this.page.locator(".breakpoint-widget");
        await widget.waitFor({ timeout: patience });
        if (kind === "hit") {
            await widget.locator("select").first().selectOption({ label: "Hit Count" });
        }
        await widget.locator(".inputContainer .view-lines").click();
        await this.page.keyboard.type(text);
        await this.page.keyboard.press("Enter");
        await widget.waitFor({ state: "detached", timeout: patience });
    }

    // instruction is the row of the disassembly view that is marked as the present one.
    async instruction() {
        return this.page.locator(".disassembly-view .monaco-list-row:has(.codicon-debug-stackframe)").first().innerText({ timeout: 2000 });
    }

    // console evaluates in the debug console; without a text it is shown only.
    async console(text) {
        await this.command("Debug Console: Focus on Debug Console View");
        if (text) {
            await this.page.locator(".repl-input-wrapper .view-lines").click();
            await this.page.keyboard.type(text);
            await this.page.keyboard.press("Enter");
        }
    }

    // said waits for a line of the debug console.
    async said(text) {
        await this.until(`"${text}" in the console`, async () => (await this.texts(".repl-tree .monaco-list-row")).some((r) => r.includes(text))).catch(async (e) => {
            throw new Error(`${e.message}: ${JSON.stringify(await this.texts(".repl-tree .monaco-list-row"))}`);
        });
    }

    // toasts are the notifications that are seen.
    async toasts() {
        return this.page.$$eval(".notifications-toasts .notification-list-item", (list) =>
            list.map((e) => ({
                text: e.querySelector(".notification-list-item-message")?.textContent,
                isError: !!e.querySelector(".codicon-error"),
            })));
    }

    // openRecording opens a recording by a double click and returns its page. In its first
    // second the editor does not know yet what extensions there are.
    async openRecording(name) {
        return this.until(`the page of ${name}`, async () => {
            await this.page.locator(`.explorer-folders-view [aria-label^="${name}"]`).dblclick();
            const shown = await this.page.locator(".editor-container .monaco-editor-pane-placeholder, iframe.webview").first();
            await shown.waitFor({ timeout: 5000 });
            if (await this.page.locator(".monaco-editor-pane-placeholder").count()) {
                await this.page.locator(".tab.active .codicon-close").click();
                return undefined;
            }
            return this.webview("h1");
        });
    }

    // webview returns the frame inside of the page that has an element.
    async webview(selector) {
        return this.until(`a web view with ${selector}`, async () => {
            for (const f of this.page.frames()) {
                if (await f.locator(selector).count()) {
                    return f;
                }
            }
            return undefined;
        });
    }

    async screenshot(file) {
        await this.page.screenshot({ path: file });
    }
}

module.exports = { Editor, wait, patience };
