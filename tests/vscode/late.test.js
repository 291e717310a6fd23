"use strict";

// Answers that come late, which no scene can bring about: what is shown is what was asked for last.
// The editor is played by what stands here.

const test = require("node:test");
const assert = require("node:assert");
const Module = require("module");
const path = require("path");

const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? { Uri: { joinPath: () => "" }, commands: { executeCommand: async () => {} } } : load(name, ...rest));
const { Timeline } = require(path.join(__dirname, "..", "..", "gdbstub", "dap", "vscode", "src", "timeline"));

test("the timeline of the part that was asked for last", async () => {
    const answers = [], shown = [];
    let position = { at: 0.5 };
    const session = { id: "1", customRequest: (_, part) => new Promise((resolve) => answers.push(() => resolve(part))) };
    const timeline = new Timeline("", { onDidMove: () => {}, active: () => session, position: () => position }, {});
    timeline.webview = { postMessage: (m) => shown.push(m) };
    const updates = [timeline.update()];
    timeline.range = [0.25, 0.5];
    updates.push(timeline.update());
    position = { at: 0.3 };
    answers[1]();
    await updates[1];
    answers[0]();
    await updates[0];
    assert.deepStrictEqual(shown.filter((m) => m.command === "history").map((m) => m.history.from), [0.25]);
    assert.deepStrictEqual(shown.filter((m) => m.command === "position").map((m) => m.position.at), [0.3]);
});
