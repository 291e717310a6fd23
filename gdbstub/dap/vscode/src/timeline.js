"use strict";

// The timeline: a view in the panel that shows the whole recording, its threads,
// system calls and signals, and where the program stands; a click goes there. The drawing is
// in media/timeline.js, what it draws comes from the request vplay/history.

const vscode = require("vscode");

// mostMarks bounds the events that are drawn one by one; of more in a view, some stand for their neighbours.
const mostMarks = 1500;

class Timeline {
    constructor(extensionUri, sessions, places) {
        this.media = vscode.Uri.joinPath(extensionUri, "media");
        this.sessions = sessions;
        this.places = places;
        this.range = [0, 1]; // the part of the recording that is shown
        this.revealed = new Set(); // sessions, by id, for which it was shown once
        sessions.onDidMove(() => {
            this.reveal();
            this.update();
        });
    }

    // reveal shows the view when a session stands for the first time.
    async reveal() {
        const session = this.sessions.active();
        await this.activate(Boolean(session));
        if (session && this.sessions.position()) {
            await this.show(session);
        }
    }

    // activate says whether there is a session: without one there is no view.
    async activate(is) {
        if (this.isActive !== is) { // each step comes here, and is not to wait for it
            this.isActive = is;
            await vscode.commands.executeCommand("setContext", "vplay.active", is);
        }
    }

    // show shows the view for a session, once. The editor keeps the focus.
    async show(session) {
        if (this.revealed.has(session.id)) {
            return;
        }
        this.revealed.add(session.id);
        await this.activate(true);
        if (vscode.workspace.getConfiguration("vplay").get("showTimeline")) {
            await vscode.commands.executeCommand("vplay.timeline.focus", { preserveFocus: true });
        }
    }

    resolveWebviewView(view) {
        const webview = view.webview;
        this.webview = webview;
        view.onDidDispose(() => (this.webview = undefined));
        webview.options = { enableScripts: true, localResourceRoots: [this.media] };
        webview.onDidReceiveMessage((m) => this.received(m));
        const uri = (file) => webview.asWebviewUri(vscode.Uri.joinPath(this.media, file));
        webview.html = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${webview.cspSource} 'unsafe-inline'; script-src ${webview.cspSource}">
<link rel="stylesheet" href="${uri("timeline.css")}">
<title>Timeline</title>
</head>
<body><canvas id="timeline" tabindex="0" role="img" aria-label="Timeline of the recording"></canvas><div id="text"></div><div id="events" role="list" aria-label="Events"></div><script src="${uri("timeline.js")}"></script></body>
</html>`;
    }

    received(message) {
        switch (message.command) {
            case "ready":
                this.loaded = undefined;
                this.update();
                break;
            case "seek":
                this.places.goTo(message.to);
                break;
            case "show":
                this.range = [message.from, message.to];
                this.loaded = undefined;
                this.update();
                break;
        }
    }

    // update sends the view what has changed: the recording's history, or where it stands only.
    async update() {
        const session = this.sessions.active();
        if (!this.webview) {
            return;
        }
        if (!session) {
            this.loaded = undefined;
            this.range = [0, 1];
            this.webview.postMessage({ command: "clear" });
            return;
        }
        if (!this.sessions.position()) {
            return;
        }
        const wanted = `${session.id} ${this.range}`;
        if (this.loaded !== wanted) {
            this.loaded = wanted;
            let history;
            try {
                history = await session.customRequest("vplay/history", { from: this.range[0], to: this.range[1], most: mostMarks });
            } catch {
                // It moves, or is over: the next stop asks again.
            }
            if (this.loaded !== wanted) {
                return; // another part, or another session, has been asked for since
            }
            if (!history) {
                this.loaded = undefined;
                return;
            }
            this.webview?.postMessage({ command: "history", history });
        }
        const position = this.sessions.position(); // it may have moved meanwhile
        if (position) {
            this.webview?.postMessage({ command: "position", position });
        }
    }
}

module.exports = { Timeline };
