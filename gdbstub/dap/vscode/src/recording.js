"use strict";

// The page of a .vplay file: what vplayd info says of it, and a button that debugs it. It
// is read-only; scripts run in it only to pass on the clicks.

const vscode = require("vscode");
const path = require("path");
const vplayd = require("./vplayd");
const { forRecording } = require("./configuration");

class RecordingPage {
    constructor(extensionUri) {
        this.media = vscode.Uri.joinPath(extensionUri, "media");
    }

    openCustomDocument(uri) {
        return { uri, dispose() {} };
    }

    async resolveCustomEditor(document, panel) {
        const webview = panel.webview;
        webview.options = { enableScripts: true, localResourceRoots: [this.media] };
        const folder = vscode.workspace.getWorkspaceFolder(document.uri);
        const file = document.uri.fsPath;
        const name = path.basename(file);
        webview.html = page(webview, this.media, name, `<p class="note">Reading ${escape(name)}...</p>`);
        webview.onDidReceiveMessage((m) => this.clicked(m, document.uri, folder));
        const symbols = folder ? ["--symbols", folder.uri.fsPath] : [];
        const result = await vplayd.run(["info", "--json", ...symbols, "--", file]);
        webview.html = page(webview, this.media, name, body(name, result));
    }

    clicked(message, uri, folder) {
        const config = forRecording(uri);
        if (message.at) {
            config.at = message.at;
        }
        if (message.process) {
            config.process = message.process;
        }
        if (message.command === "debug") {
            vscode.debug.startDebugging(folder, config);
        } else if (message.command === "settings") {
            vscode.commands.executeCommand("workbench.action.openSettings", "vplay.vplayd");
        }
    }
}

function escape(text) {
    return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

function page(webview, media, title, content) {
    const uri = (file) => webview.asWebviewUri(vscode.Uri.joinPath(media, file));
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${webview.cspSource}; script-src ${webview.cspSource}">
<link rel="stylesheet" href="${uri("recording.css")}">
<script src="${uri("recording.js")}"></script>
<title>${escape(title)}</title>
</head>
<body>${content}</body>
</html>`;
}

// body shows the answer of vplayd info, or why there is none.
function body(name, result) {
    if (result.missing) {
        return `<h1>${escape(name)}</h1><p class="error">${escape(vplayd.missingText())}</p><p>${escape(vplayd.howToGet)}</p>
<p><button data-command="settings">Open Settings</button></p>`;
    }
    let info;
    try {
        info = JSON.parse(result.out);
    } catch {
        return `<h1>${escape(name)}</h1><p class="error">vplay cannot read this file.</p><pre>${escape(vplayd.complaint(result.err))}</pre>`;
    }
    const others = (info.processes || []).map((p) =>
        `<li><button class="link" data-command="debug" data-process="${Number(p.pid)}">${escape(p.pid)}</button> ${escape(p.program || "")}</li>`);
    return `<h1>${escape(name)}</h1>
<p class="headline">${escape(path.posix.basename(info.program))} ${escape(info.ended)}${info.where ? ` in <code>${escape(info.where)}</code>` : ""}</p>
<p><button data-command="debug">Debug</button> <button class="secondary" data-command="debug" data-at="begin">Debug from the Beginning</button></p>
<table>${rows(info).map(([key, value]) => `<tr><th>${escape(key)}</th><td>${value}</td></tr>`).join("\n")}</table>
${others.length > 0 ? `<h2>Other Processes</h2><ul>${others.join("\n")}</ul>` : ""}`;
}

// rows are what the table shows: pairs of a title and HTML.
function rows(info) {
    const code = (text) => `<code>${escape(text)}</code>`;
    const all = [
        ["Program", `${code(info.program)}, process ${escape(info.pid)}`],
        ["Command", info.args && code(info.args.join(" "))],
        ["Recorded", `${escape(info.start)} on ${escape(info.host)}`],
        ["Signal", info.signal && code(info.signal)],
        ["Message", info.message && code(info.message)],
        ["Source", info.source && code(info.source)],
        ["Instruction", info.instruction && code(info.instruction)],
        ["Calls", info.backtrace && info.backtrace.length > 0 && `<ol start="0">${info.backtrace.map((f) => `<li>${code(frame(f))}</li>`).join("")}</ol>`],
        ["Recording", escape(`${plural(info.intervals, "interval")}, ${plural(info.events, "event")}, ${info.cpu_seconds.toFixed(3)} s of CPU time`)],
        ["Recorded on", escape(info.cpu)],
        ["Replayed by", escape(info.replay)],
        ["Symbols", info.local_files && `this machine's ${escape(info.local_files)}`],
        ["Notes", info.notes && info.notes.map(escape).join("<br>")],
    ];
    return all.filter(([, value]) => value);
}

function plural(n, what) {
    return `${n} ${what}${n === 1 ? "" : "s"}`;
}

function frame(f) {
    const where = f.file ? ` ${path.posix.basename(f.file)}:${f.line}` : "";
    const name = f.function || `0x${f.addr.toString(16)}`;
    return `${name}${where}${f.module ? ` in ${path.posix.basename(f.module)}` : ""}`;
}

module.exports = { RecordingPage };
