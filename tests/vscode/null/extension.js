"use strict";

// A debugger that does nothing. It stands in a file, and each step back is over at once, at another line.
// TestLatency measures it beside vplay: what it takes is the editor's own time.

const vscode = require("vscode");

// lines are those between which it steps, within one page of the file.
const lines = [38, 37, 36, 35, 34];

const capabilities = { supportsConfigurationDoneRequest: true, supportsStepBack: true };

class Adapter {
    constructor(program) {
        this.program = program;
        this.emitter = new vscode.EventEmitter();
        this.onDidSendMessage = this.emitter.event;
        this.steps = 0;
    }

    handleMessage(request) {
        const respond = (body) => this.emitter.fire({ seq: 0, type: "response", request_seq: request.seq, command: request.command, success: true, body });
        const event = (name, body) => this.emitter.fire({ seq: 0, type: "event", event: name, body });
        switch (request.command) {
            case "initialize":
                respond(capabilities);
                event("initialized");
                break;
            case "configurationDone":
                respond();
                event("stopped", { reason: "entry", threadId: 1, allThreadsStopped: true });
                break;
            case "stepBack":
                this.steps++;
                event("stopped", { reason: "step", threadId: 1, allThreadsStopped: true });
                respond();
                break;
            case "threads":
                respond({ threads: [{ id: 1, name: "null" }] });
                break;
            case "stackTrace":
                respond({ stackFrames: [this.frame()], totalFrames: 1 });
                break;
            case "scopes":
                respond({ scopes: [] });
                break;
            default:
                respond({});
        }
    }

    frame() {
        return { id: 1 + this.steps, name: "null", source: { path: this.program }, line: lines[this.steps % lines.length], column: 1 };
    }

    dispose() {}
}

function activate(context) {
    context.subscriptions.push(vscode.debug.registerDebugAdapterDescriptorFactory("null", {
        createDebugAdapterDescriptor: (session) => new vscode.DebugAdapterInlineImplementation(new Adapter(session.configuration.program)),
    }));
}

module.exports = { activate };
