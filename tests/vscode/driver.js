"use strict";

// Plays scenes in one browser: each line of standard input names a scene of scenes.js and has a
// number for it; each is answered by a line of JSON with what went wrong, if anything.

const path = require("path");
const readline = require("readline");
const { Editor } = require("./editor");
const scenes = require("./scenes");

const config = JSON.parse(process.argv[2]);
const { chromium } = require(config.playwright);

// ours is what pages may ask for. A web view's own files have an address of that last form, which
// a service worker of the editor answers.
const ours = new RegExp(`^(data:|blob:|(http|ws)://127\\.0\\.0\\.1:${new URL(config.url).port}/|https://[^/]+\\.vscode-resource\\.vscode-cdn\\.net/)`);

// Stage is what a scene gets: editors, and what else it may need.
class Stage {
    constructor(browser, argument) {
        this.browser = browser;
        this.argument = argument;
        this.config = config;
        this.contexts = [];
        this.editors = [];
        this.notes = [];
        this.strays = [];
        this.mayFail = false; // errors may be shown
    }

    // open opens the folder of a story in an editor of its own.
    async open(story, options = {}) {
        const context = await this.browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
        this.contexts.push(context);
        const page = await context.newPage();
        page.on("request", (r) => ours.test(r.url()) || this.strays.push(r.url()));
        const editor = new Editor(page, config.stories[story]);
        this.editors.push(editor);
        await page.addInitScript(watchErrors);
        await page.goto(`${config.url}/?folder=${encodeURIComponent(editor.story.folder)}`);
        await editor.ready();
        return editor;
    }

    note(text) {
        this.notes.push(text);
    }

    // complaints are what no scene may have seen.
    async complaints() {
        const out = this.strays.map((u) => `the page asked for ${u}`);
        for (const e of this.editors) {
            if (!this.mayFail) {
                const errors = await e.page.evaluate(() => window.vplayErrors || []);
                out.push(...errors.map((text) => `an error was shown: ${text}`));
            }
        }
        return out;
    }

    async close() {
        for (const c of this.contexts) {
            await c.close().catch(() => {}); // the browser may have ended
        }
    }
}

// watchErrors runs in the page and keeps the errors that are shown in notifications.
function watchErrors() {
    if (window !== window.top) {
        return;
    }
    window.vplayErrors = [];
    const look = () => {
        for (const e of document.querySelectorAll(".notifications-toasts .notification-list-item")) {
            const text = e.querySelector(".notification-list-item-message")?.textContent;
            if (e.querySelector(".notification-list-item-icon.codicon-error") && text && !window.vplayErrors.includes(text)) {
                window.vplayErrors.push(text);
            }
        }
    };
    document.addEventListener("DOMContentLoaded", () => new MutationObserver(look).observe(document.body, { childList: true, subtree: true }));
}

async function play(browser, name, argument) {
    const stage = new Stage(browser, argument);
    const result = {};
    try {
        await scenes[name](stage);
        const complaints = await stage.complaints();
        if (complaints.length > 0) {
            throw new Error(complaints.join("\n"));
        }
    } catch (e) {
        result.error = e.stack;
    }
    if (result.error || config.all) {
        for (const [i, e] of stage.editors.entries()) {
            result.picture = path.join(config.shots, `${name}${i || ""}.png`);
            await e.screenshot(result.picture).catch(() => {});
        }
    }
    await stage.close();
    return { ...result, notes: stage.notes };
}

function launch() {
    return chromium.launch({
        executablePath: "/usr/bin/chromium",
        args: ["--no-sandbox", "--disable-background-networking", "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
    });
}

async function main() {
    let browser = await launch();
    for await (const line of readline.createInterface({ input: process.stdin })) {
        if (!browser.isConnected()) { // it has crashed, and that scene has failed
            browser = await launch();
        }
        const [name, argument] = line.split(" ");
        process.stdout.write(`${JSON.stringify(await play(browser, name, Number(argument)))}\n`);
    }
    await browser.close();
}

main().catch((e) => {
    process.stderr.write(`${e.stack}\n`);
    process.exit(1);
});
