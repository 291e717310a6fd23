"use strict";

// The debug sessions of the type vplay, and where each stands. What is shown of a position
// (places.js, timeline.js) listens here.

const vscode = require("vscode");

// afterPaint is how long a stop is left to the editor alone, in milliseconds: it draws the line, and what is asked
// and shown besides would delay that.
const afterPaint = 60;

// movements are the requests that the server answers before it moves; a stop follows.
const movements = new Set(["continue", "reverseContinue", "next", "stepIn", "stepOut", "stepBack"]);

class Sessions {
    constructor() {
        this.moved = new vscode.EventEmitter();
        // onDidMove tells of a session that moves or stands somewhere else, or has ended, or of another that the user looks at.
        this.onDidMove = this.moved.event;
        this.positions = new Map(); // by session id; null while the session moves
        this.stops = new Map(); // how often it has stopped or gone on, by session id
        this.listeners = [
            vscode.debug.onDidTerminateDebugSession((s) => {
                this.positions.delete(s.id);
                this.stops.delete(s.id);
                this.moved.fire(s);
            }),
            vscode.debug.onDidChangeActiveDebugSession((s) => this.moved.fire(s)),
        ];
    }

    // createDebugAdapterTracker sees what the adapter sends.
    createDebugAdapterTracker(session) {
        return {
            onDidSendMessage: (message) => {
                const stops = message.type === "event" && message.event === "stopped";
                if (!stops && !goesOn(message)) {
                    return;
                }
                const now = (this.stops.get(session.id) || 0) + 1;
                this.stops.set(session.id, now);
                if (stops) {
                    setTimeout(() => this.stops.get(session.id) === now && this.arrived(session, now), afterPaint);
                } else {
                    this.positions.set(session.id, null);
                    this.moved.fire(session);
                }
            },
        };
    }

    // arrived asks where a session stands, after that many stops and movements.
    async arrived(session, now) {
        let position;
        try {
            position = await session.customRequest("vplay/position");
        } catch {
            return; // it is over
        }
        if (this.stops.get(session.id) === now) { // else it has moved on
            this.positions.set(session.id, position);
            this.moved.fire(session);
        }
    }

    // active returns the session that the user looks at, if it is one of a recording.
    active() {
        const s = vscode.debug.activeDebugSession;
        return s && s.type === "vplay" ? s : undefined;
    }

    // position returns where the active session stands: what vplay/position answers; undefined while it moves.
    position() {
        const s = this.active();
        return (s && this.positions.get(s.id)) || undefined;
    }

    dispose() {
        this.listeners.forEach((l) => l.dispose());
        this.moved.dispose();
    }
}

// goesOn reports whether a message says that the program moves from now on.
function goesOn(message) {
    return message.type === "event" ? message.event === "continued"
        : message.type === "response" && message.success && movements.has(message.command);
}

module.exports = { Sessions };
