"use strict";

// Questions about the past of a variable: who wrote it, all writes, run until it changes;
// and the calls of a function. They can be asked from the Variables view, in the editor's
// menu, and in the hover.

const vscode = require("vscode");
const path = require("path");

// mostAnswers bounds how many writes or calls are listed.
const mostAnswers = 200;

class Questions {
    constructor(sessions, places) {
        this.sessions = sessions;
        this.places = places;
        const command = (name, f) => vscode.commands.registerCommand(name, f, this);
        this.disposables = [
            command("vplay.lastWrite", this.lastWrite),
            command("vplay.writes", this.writes),
            command("vplay.breakOnChange", this.breakOnChange),
            command("vplay.calls", this.calls),
            vscode.languages.registerHoverProvider([{ scheme: "file" }], { provideHover: (d, p) => this.hover(d, p) }),
        ];
    }

    // hover offers the questions for the expression under the mouse, below its value: VS Code shows this hover in some places
    // where it should show the debugger's, which has the value.
    async hover(document, position) {
        const session = this.sessions.active();
        const found = this.sessions.position() && expressionAt(document, position);
        if (!found) {
            return undefined;
        }
        const link = (command, title) => `[${title}](command:vplay.${command}?${encodeURIComponent(JSON.stringify([{ expression: found.text }]))})`;
        const text = new vscode.MarkdownString("", true);
        const value = await valueOf(session, found.text);
        if (value !== undefined) {
            text.appendCodeblock(`${found.text} = ${value}`, document.languageId);
        }
        text.appendMarkdown(
            `${link("lastWrite", "$(history) Who wrote this?")} \u2002 ${link("writes", "All writes")} \u2002 ${link("breakOnChange", "Break when this changes")}`);
        text.isTrusted = { enabledCommands: ["vplay.lastWrite", "vplay.writes", "vplay.breakOnChange"] };
        return new vscode.Hover(text, found.range);
    }

    // lastWrite goes to the store that gave a variable its value.
    async lastWrite(what) {
        const asked = await this.accesses(what, 1);
        if (!asked) {
            return;
        }
        const { name, body } = asked;
        const write = body.accesses[0];
        if (!write) {
            vscode.window.showInformationMessage(`${name} is not written before here in the recorded time.`);
            return;
        }
        if (await this.places.goTo(write.position)) {
            const back = "Go Back", all = "All Writes";
            const text = `${name}: ${change(write)}, by ${place(write)}`;
            const answer = await vscode.window.showInformationMessage(text, back, all);
            if (answer === back) {
                await this.places.goBack();
            } else if (answer === all) {
                await this.writes({ name, address: body.address, size: body.size });
            }
        }
    }

    // writes lists the stores to a variable, the newest first.
    async writes(what) {
        const asked = await this.accesses(what, mostAnswers);
        if (asked) {
            await this.show(`Writes of ${asked.name}, the newest first`, asked.body.accesses.map((w) => item(change(w), w)), asked.name);
        }
    }

    // calls lists the calls of a function.
    async calls() {
        const session = this.sessions.active();
        const editor = vscode.window.activeTextEditor;
        const range = editor?.document.getWordRangeAtPosition(editor.selection.active);
        const name = session && await vscode.window.showInputBox({
            title: "Show Calls of a Function", prompt: "Its name", value: range && editor.document.getText(range),
        });
        if (!name) {
            return;
        }
        const body = await this.request(session, "vplay/calls", { function: name, count: mostAnswers });
        if (body) {
            await this.show(`Calls of ${name}, the newest first`, body.calls.map((c) => item(`${name}(${c.arguments.join(", ")})`, c)), name);
        }
    }

    // breakOnChange sets a data breakpoint on what an expression is.
    async breakOnChange(what) {
        const session = this.sessions.active();
        const target = session && await expression(what);
        if (!target) {
            return;
        }
        const body = await this.request(session, "vplay/watch", { ...target.request, frameId: frame() });
        if (body) {
            vscode.window.setStatusBarMessage(`vplay: stops when ${target.name} changes (${body.size} bytes at ${body.address})`, 8000);
        }
    }

    // accesses asks for the newest writes of what a command was given.
    async accesses(what, count) {
        const session = this.sessions.active();
        const target = session && await expression(what);
        if (!target) {
            return undefined;
        }
        const ask = () => this.request(session, "vplay/accesses", { ...target.request, frameId: frame(), count });
        const body = await vscode.window.withProgress(
            { location: vscode.ProgressLocation.Window, title: `vplay: looking for writes of ${target.name}` }, ask);
        return body && { name: target.name, body };
    }

    async request(session, command, args) {
        try {
            return await session.customRequest(command, args);
        } catch (e) {
            vscode.window.showErrorMessage(`vplay: ${e.message}`);
            return undefined;
        }
    }

    // show lets the user go to one of the answers.
    async show(title, items, name) {
        if (items.length === 0) {
            vscode.window.showInformationMessage(`${name}: nothing before here in the recorded time.`);
            return;
        }
        const picked = await vscode.window.showQuickPick(items, { title, placeHolder: "Go to...", matchOnDescription: true, matchOnDetail: true });
        if (picked) {
            await this.places.goTo(picked.position);
        }
    }

    dispose() {
        this.disposables.forEach((d) => d.dispose());
    }
}

// expression returns what a command is about: the variable of a menu, the expression of
// a hover, what is selected in the editor, or what the user types.
async function expression(what) {
    if (what?.variable) {
        const v = what.variable;
        return { name: plain(v.evaluateName || v.name), request: { variablesReference: what.container.variablesReference, name: v.name } };
    }
    if (what?.address) {
        return { name: what.name, request: { address: what.address, size: what.size } };
    }
    let text = what?.expression;
    if (!text) {
        const editor = vscode.window.activeTextEditor;
        const found = editor && (editor.selection.isEmpty
            ? expressionAt(editor.document, editor.selection.active)?.text
            : editor.document.getText(editor.selection));
        text = found || await vscode.window.showInputBox({ prompt: "Of which variable or expression?" });
    }
    return text && { name: text, request: { expression: text } };
}

// plain takes brackets out of an expression that a person would not write: ((a)[2]).b is a[2].b.
function plain(expression) {
    const without = expression.replace(/(?<![\w$])\(([\w$.:[\]]+)\)(?=[.[]|->|$)/g, "$1");
    return without === expression ? expression : plain(without);
}

// lvalue matches names with members and indices, up to the part that is pointed to.
const lvalue = /[A-Za-z_$][\w$]*(?:(?:::|\.|->)[A-Za-z_$][\w$]*|\[[^[\]\n]*\])*/g;

// expressionAt returns the expression under a position of the text: of a.b[i].c that up
// to the name that is there.
function expressionAt(document, position) {
    const line = document.lineAt(position.line).text;
    for (const m of line.matchAll(lvalue)) {
        const end = m.index + m[0].length;
        if (m.index > position.character || end < position.character) {
            continue;
        }
        const rest = /^[\w$]*/.exec(line.slice(position.character))[0];
        const text = line.slice(m.index, position.character + rest.length);
        return { text, range: new vscode.Range(position.line, m.index, position.line, m.index + text.length) };
    }
    return undefined;
}

// frame is the frame that the user looks at, 0 for the innermost.
function frame() {
    return vscode.debug.activeStackItem?.frameId || 0;
}

// valueOf returns what an expression is in the frame that the user looks at, undefined if it is nothing there.
async function valueOf(session, text) {
    try {
        return (await session.customRequest("evaluate", { expression: text, frameId: frame(), context: "hover" })).result;
    } catch {
        return undefined; // a word of the language, or a name of another frame
    }
}

function change(w) {
    return w.changed ? `${w.before} \u2192 ${w.after}` : `${w.after} (as before)`;
}

function place(w) {
    const where = w.source ? ` (${path.posix.basename(w.source.name)}:${w.line})` : "";
    return (w.function || w.address) + where;
}

function item(label, answer) {
    return { label, description: place(answer), detail: `${answer.position}  ${answer.instruction || ""}`, position: answer.position };
}

module.exports = { Questions };
