"use strict";

// Answers that come late, which no scene can bring about: what is shown is what was asked for last, and
// an answer to a step that waits for the stop. The editor is played by what stands here.

const test = require("node:test");
const assert = require("node:assert");
const Module = require("module");
const path = require("path");

const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? { Uri: { joinPath: () => "" }, commands: { executeCommand: async () => {} } } : load(name, ...rest));
const source = (name) => require(path.join(__dirname, "..", "..", "gdbstub", "dap", "vscode", "src", name));
const { Timeline } = source("timeline");
const { Movements } = source("movements");

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

// movementsOf returns movements and what VS Code has been told of them, in that order.
function movementsOf() {
    const told = [];
    return { told, movements: new Movements((answer) => told.push(answer.request_seq)) };
}

const request = (seq) => ({ seq, type: "request", command: "stepBack" });
const answerTo = (seq, success = true) => ({ type: "response", request_seq: seq, command: "stepBack", success });

test("the answer to a quick step comes behind the stop", () => {
    const { told, movements } = movementsOf();
    assert.ok(movements.begins(request(1)));
    assert.ok(movements.answered(answerTo(1)));
    assert.deepStrictEqual(told, []);
    movements.stood("step");
    assert.deepStrictEqual(told, [1]);
});

test("the answer to a slow step does not wait for the stop", async () => {
    const { told, movements } = movementsOf();
    movements.begins(request(1));
    movements.answered(answerTo(1));
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.deepStrictEqual(told, [1]);
    movements.stood("step");
    assert.deepStrictEqual(told, [1]);
});

test("a step while the program moves is none", () => {
    const { told, movements } = movementsOf();
    movements.begins(request(1));
    movements.answered(answerTo(1));
    assert.ok(!movements.begins(request(2)));
    movements.stood("step");
    assert.deepStrictEqual(told, [1, 2]);
    assert.ok(movements.begins(request(3)));
});

test("a step that is refused is no movement", () => {
    const { movements } = movementsOf();
    movements.begins(request(1));
    assert.ok(!movements.answered(answerTo(1, false)));
    assert.ok(movements.begins(request(2)));
});

test("VS Code is told that the program runs where it shows an exception", () => {
    const { movements } = movementsOf();
    movements.stood("exception");
    movements.begins(request(1));
    assert.ok(!movements.answered(answerTo(1)));
});
