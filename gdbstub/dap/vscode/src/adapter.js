"use strict";

// The debug adapter: vplayd serve --dap on standard input and output. VS Code could start
// it by itself, but then says no more than "terminated unexpectedly" where the recording is
// damaged. Here the request that waits gets what vplayd said.

const vscode = require("vscode");
const fs = require("fs");
const { spawn } = require("child_process");
const { Movements } = require("./movements");
const vplayd = require("./vplayd");

class Adapters {
    // showTimeline shows the timeline of a session, once.
    constructor(showTimeline) {
        this.showTimeline = showTimeline;
    }

    createDebugAdapterDescriptor(session) {
        return new vscode.DebugAdapterInlineImplementation(new Adapter(session.configuration, () => this.showTimeline(session)));
    }
}

// serveArguments returns the command line for a configuration.
function serveArguments(config) {
    const args = ["serve", "--dap", "--stdio"];
    for (const folder of [].concat(config.symbols || [])) {
        args.push("--symbols", folder);
    }
    if (config.process) {
        args.push("--process", String(config.process));
    }
    return args.concat("--", config.recording);
}

// headerEnd is what stands between a message's header and its content.
const headerEnd = "\r\n\r\n";

// Requests of our own have numbers that VS Code does not come to.
const firstOfOurs = 1_000_000_000;

// fewFrames is how many frames VS Code looks at for one with a source.
const fewFrames = 20;

// hasNoSource reports whether no frame of a stack has a source that is here.
function hasNoSource(answer) {
    const frames = answer.body?.stackFrames || [];
    return frames.length > 0 && !frames.some((f) => f.source && f.source.presentationHint !== "deemphasize");
}

class Adapter {
    constructor(config, showTimeline) {
        this.showTimeline = showTimeline;
        this.emitter = new vscode.EventEmitter();
        this.onDidSendMessage = this.emitter.event;
        this.input = Buffer.alloc(0);
        this.stderr = "";
        this.waiting = new Map(); // requests without an answer, by number
        this.asked = new Map(); // what takes the answers to our own requests, by number
        this.questions = 0;
        this.movements = new Movements((answer) => this.emitter.fire(answer));
        this.present = new Map(); // whether a source is on this machine, by path
        this.child = spawn(vplayd.program(config), serveArguments(config), { windowsHide: true });
        this.child.on("error", (e) => this.ended(`${vplayd.missingText(config)} ${vplayd.howToGet} (${e.message})`));
        this.child.stdin.on("error", () => {}); // the end of the program says it
        this.child.stderr.setEncoding("utf8").on("data", (s) => (this.stderr = (this.stderr + s).slice(-4096)));
        this.child.stdout.on("data", (b) => this.received(b));
        this.child.on("close", () => this.ended(vplayd.complaint(this.stderr)));
    }

    handleMessage(message) {
        if (this.over) {
            this.refuse(message, this.over);
            return;
        }
        if (!this.movements.begins(message)) {
            return;
        }
        if (message.type === "request") {
            this.waiting.set(message.seq, message);
        }
        const content = Buffer.from(JSON.stringify(message), "utf8");
        this.child.stdin.write(`Content-Length: ${content.length}${headerEnd}`);
        this.child.stdin.write(content);
    }

    // received cuts messages out of what came in.
    received(bytes) {
        this.input = Buffer.concat([this.input, bytes]);
        for (;;) {
            const end = this.input.indexOf(headerEnd);
            if (end < 0) {
                return;
            }
            const length = /Content-Length: *(\d+)/i.exec(this.input.toString("latin1", 0, end));
            const start = end + headerEnd.length;
            const size = length ? Number(length[1]) : 0;
            if (this.input.length < start + size) {
                return;
            }
            const content = this.input.toString("utf8", start, start + size);
            this.input = this.input.subarray(start + size);
            if (size > 0) {
                this.message(JSON.parse(content));
            }
        }
    }

    // message passes a message on, unless it is, or waits for, an answer to a question of ours.
    message(message) {
        if (message.type === "event" && message.event === "stopped" && message.body.threadId) {
            this.ask("stackTrace", { threadId: message.body.threadId, startFrame: 0, levels: fewFrames }, async (answer) => {
                await this.stopped(message, hasNoSource(this.missing(answer)));
                this.emitter.fire(message);
                this.movements.stood(message.body.reason);
            });
            return;
        }
        if (message.type === "response") {
            const take = this.asked.get(message.request_seq);
            if (take) {
                this.asked.delete(message.request_seq);
                take(message);
                return;
            }
            this.waiting.delete(message.request_seq);
            this.missing(message);
            if (this.movements.answered(message)) {
                return;
            }
        }
        this.emitter.fire(message);
        if (message.event === "stopped") {
            this.movements.stood(message.body.reason);
        }
    }

    // stopped prepares VS Code for a stop. Where no frame has a source it would show nothing of where
    // the program stands, but for one reason, for which it opens the disassembly; what it says of
    // the stop is the description. Once open, it stays in front, so we close what we have opened
    // when there is a source again, unless the user steps in it. It loses its place when the panel opens while it is
    // loaded, so that is opened before.
    async stopped(message, noSource) {
        if (noSource) {
            await this.showTimeline();
            message.body.reason = "instruction breakpoint";
            this.opened = true;
        } else if (this.opened && message.body.reason !== "step") {
            this.opened = false;
            const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
            if (tab && !tab.input) { // the disassembly has no input that extensions know
                await vscode.window.tabGroups.close(tab);
            }
        }
    }

    ask(command, args, take) {
        const seq = firstOfOurs + this.questions++;
        this.asked.set(seq, take);
        this.handleMessage({ seq, type: "request", command, arguments: args });
        this.waiting.delete(seq); // nobody else waits for it
    }

    // missing marks the frames whose source is not on this machine. VS Code would open it
    // and complain; so it goes to the first frame whose source is here, and folds the others
    // away. Frames that never had a source are not folded: they may be all there is.
    missing(message) {
        for (const frame of (message.command === "stackTrace" && message.body?.stackFrames) || []) {
            if (!frame.source) {
                delete frame.presentationHint;
            }
            const file = frame.source?.path;
            if (file && !frame.source.sourceReference) {
                if (!this.present.has(file)) {
                    this.present.set(file, fs.existsSync(file));
                }
                if (!this.present.get(file)) {
                    frame.source.presentationHint = "deemphasize";
                }
            }
        }
        return message;
    }

    // ended answers what waits, once, and ends the session.
    ended(why) {
        if (this.over) {
            return;
        }
        this.over = why;
        this.movements.flush();
        for (const request of this.waiting.values()) {
            this.refuse(request, why);
        }
        this.waiting.clear();
        this.emitter.fire({ seq: 0, type: "event", event: "terminated" });
    }

    refuse(request, why) {
        if (request.type !== "request") {
            return;
        }
        const isGoodbye = request.command === "disconnect" || request.command === "terminate";
        this.emitter.fire({
            seq: 0, type: "response", request_seq: request.seq, command: request.command, success: isGoodbye, message: why,
            body: isGoodbye ? undefined : { error: { id: 1, format: why.replace(/[{}]/g, ""), showUser: true } },
        });
    }

    dispose() {
        this.over = this.over || "the session is over";
        this.movements.dispose();
        this.child.stdin.end();
        this.child.kill();
    }
}

module.exports = { Adapters };
