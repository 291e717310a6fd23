"use strict";

// vplay in VS Code: the debug type "vplay", the page of a .vplay file, the timeline and
// the questions about the past. What a recording holds, vplayd knows; this is about
// asking it. There is no build step and no library: what is here is what runs.

const vscode = require("vscode");
const { Configurations } = require("./configuration");
const { Adapters } = require("./adapter");
const { Sessions } = require("./sessions");
const { RecordingPage } = require("./recording");
const { Timeline } = require("./timeline");
const { Questions } = require("./questions");
const { Places } = require("./places");

function activate(context) {
    const sessions = new Sessions();
    const places = new Places(sessions, context.workspaceState);
    const questions = new Questions(sessions, places);
    const configurations = new Configurations(sessions);
    const timeline = new Timeline(context.extensionUri, sessions, places);
    context.subscriptions.push(
        sessions,
        places,
        questions,
        vscode.debug.registerDebugConfigurationProvider("vplay", configurations),
        vscode.debug.registerDebugConfigurationProvider(
            "vplay", configurations.dynamic(), vscode.DebugConfigurationProviderTriggerKind.Dynamic),
        vscode.debug.registerDebugAdapterDescriptorFactory("vplay", new Adapters((session) => timeline.show(session))),
        vscode.debug.registerDebugAdapterTrackerFactory("vplay", sessions),
        vscode.window.registerCustomEditorProvider("vplay.recording", new RecordingPage(context.extensionUri), {
            supportsMultipleEditorsPerDocument: true,
        }),
        vscode.window.registerWebviewViewProvider("vplay.timeline", timeline, {
            webviewOptions: { retainContextWhenHidden: true },
        }),
        vscode.commands.registerCommand("vplay.debug", (uri) => configurations.debug(uri)),
        vscode.commands.registerCommand("vplay.debugProcess", () => configurations.debugProcess()),
    );
}

module.exports = { activate };
