"use strict";

// Places of a recording: the position in the status bar, going to one, back to where one
// was, and positions that are remembered for the next time.

const vscode = require("vscode");
const path = require("path");

// maxTrail bounds how many places one can go back to.
const maxTrail = 100;

// longMove is how long a movement takes, in milliseconds, before it is shown. A step is over long before.
const longMove = 300;

class Places {
    constructor(sessions, memory) {
        this.sessions = sessions;
        this.memory = memory;
        this.trails = new Map(); // of positions that were left by a jump, by session id
        this.item = vscode.window.createStatusBarItem("vplay.position", vscode.StatusBarAlignment.Left, 50);
        this.item.name = "vplay: Position in the Recording";
        this.item.command = "vplay.seek";
        const command = (name, f) => vscode.commands.registerCommand(name, f, this);
        this.disposables = [
            this.item,
            sessions.onDidMove(() => this.show()),
            vscode.debug.onDidTerminateDebugSession((s) => this.trails.delete(s.id)),
            command("vplay.seek", this.ask),
            command("vplay.seekBegin", () => this.goTo("begin")),
            command("vplay.seekEnd", () => this.goTo("end")),
            command("vplay.goBack", this.goBack),
            command("vplay.remember", this.remember),
            command("vplay.remembered", this.chooseRemembered),
        ];
    }

    // show puts the position in the status bar.
    show() {
        clearTimeout(this.late);
        const session = this.sessions.active();
        if (!session) {
            this.item.hide();
            return;
        }
        const p = this.sessions.position();
        if (p) {
            this.item.text = `$(history) ${p.position} (${percent(p.at)})`;
            this.item.tooltip = `${path.basename(session.configuration.recording)}: interval, instruction and step where the program stands, ` +
                "and how much of the recorded time lies before.\nClick to go elsewhere.";
            this.item.show();
        } else {
            this.late = setTimeout(() => {
                this.item.text = "$(sync~spin) moving";
                this.item.tooltip = "The recording is being replayed. Pause stops it.";
                this.item.show();
            }, longMove);
        }
    }

    // goTo moves the active session to what "seek" takes. It returns whether that worked.
    async goTo(where) {
        const session = this.sessions.active();
        const from = this.sessions.position();
        if (!session || !(await this.move(session, where))) {
            return false;
        }
        if (from) {
            const trail = this.trails.get(session.id) || [];
            trail.push(from.position);
            this.trails.set(session.id, trail.slice(-maxTrail));
        }
        return true;
    }

    async move(session, where) {
        try {
            await session.customRequest("vplay/seek", { to: where });
            return true;
        } catch (e) {
            vscode.window.showErrorMessage(`vplay: ${e.message}`);
            return false;
        }
    }

    // goBack undoes the newest jump.
    async goBack() {
        const session = this.sessions.active();
        const where = session && this.trails.get(session.id)?.pop();
        if (where) {
            await this.move(session, where);
        } else {
            vscode.window.setStatusBarMessage("vplay: there is no jump to undo", 4000);
        }
    }

    async ask() {
        const where = await vscode.window.showInputBox({
            title: "Go to a Position of the Recording",
            prompt: "A position such as 3:120.0, a share such as 50%, begin, end, \"event 12\" or \"interval 3\"",
            value: this.sessions.position()?.position,
        });
        if (where) {
            await this.goTo(where.trim());
        }
    }

    key(session) {
        return `places ${session.configuration.recording}`;
    }

    async remember() {
        const session = this.sessions.active();
        const p = this.sessions.position();
        if (!session || !p) {
            return;
        }
        const label = await vscode.window.showInputBox({ title: "Remember This Position", prompt: "Its name", value: p.place || p.position });
        if (label) {
            const list = this.memory.get(this.key(session), []);
            await this.memory.update(this.key(session), [...list, { label, position: p.position }]);
        }
    }

    async chooseRemembered() {
        const session = this.sessions.active();
        if (!session) {
            return;
        }
        const list = this.memory.get(this.key(session), []);
        const forget = { iconPath: new vscode.ThemeIcon("trash"), tooltip: "Forget" };
        const pick = vscode.window.createQuickPick();
        pick.placeholder = list.length > 0 ? "The position to go to" : "No position is remembered for this recording: \"Remember This Position\" does it";
        pick.items = list.map((p) => ({ label: p.label, description: p.position, buttons: [forget], place: p }));
        pick.onDidAccept(() => {
            const item = pick.selectedItems[0];
            pick.hide();
            if (item) {
                this.goTo(item.place.position);
            }
        });
        pick.onDidTriggerItemButton(async ({ item }) => {
            pick.items = pick.items.filter((i) => i !== item);
            await this.memory.update(this.key(session), pick.items.map((i) => i.place));
        });
        pick.onDidHide(() => pick.dispose());
        pick.show();
    }

    dispose() {
        this.disposables.forEach((d) => d.dispose());
    }
}

// percent writes a share; what is not quite all is never 100%.
function percent(share) {
    if (share >= 1) {
        return "100%";
    }
    return `${Math.min(share * 100, 99.9).toFixed(1)}%`;
}

module.exports = { Places };
