"use strict";

// The debug sessions of the type vplay, and where each stands. What is shown of a position
// (places.js, timeline.js) listens here.

const vscode = require("vscode");
const movements = require("./movements").names;

// afterPaint is how long the editor is left alone after it has chosen the frame of a stop, in milliseconds: it draws the
// line, and what is asked and shown besides would delay that. Only the session that the user looks at gets
// a frame; noFrame bounds the wait for one.
const afterPaint = 60, noFrame = 400;

class Sessions {
    constructor() {
        this.moved = new vscode.EventEmitter();
        // onDidMove tells of a session that moves or stands somewhere else, or has ended, or of another that the user looks at.
        this.onDidMove = this.moved.event;
        this.positions = new Map(); // by session id; null while the session moves
        this.stops = new Map(); // the newest stop or movement of each, by session id
        this.listeners = [
            vscode.debug.onDidTerminateDebugSession((s) => {
                this.change(s);
                this.positions.delete(s.id);
                this.stops.delete(s.id);
                this.moved.fire(s);
            }),
            vscode.debug.onDidChangeActiveDebugSession((s) => this.moved.fire(s)),
        ];
        if (vscode.debug.onDidChangeActiveStackItem) { // since VS Code 1.90
            this.listeners.push(vscode.debug.onDidChangeActiveStackItem((item) => item?.frameId !== undefined && this.shown(item.session)));
        }
    }

    // createDebugAdapterTracker sees what goes to the adapter and what it sends. That a session moves is told by the request:
    // the adapter may hold the answer back until the stop.
    createDebugAdapterTracker(session) {
        return {
            onWillReceiveMessage: (message) => message.type === "request" && movements.has(message.command) && this.goesOn(session),
            onDidSendMessage: (message) => {
                if (message.event === "continued") {
                    this.goesOn(session);
                } else if (message.event === "stopped" || isRefused(message)) {
                    const now = this.change(session);
                    now.ask = () => this.arrived(session, now);
                    now.timer = setTimeout(now.ask, noFrame);
                }
            },
        };
    }

    // change begins another state of a session.
    change(session) {
        clearTimeout(this.stops.get(session.id)?.timer);
        const now = {};
        this.stops.set(session.id, now);
        return now;
    }

    goesOn(session) {
        this.change(session);
        this.positions.set(session.id, null);
        this.moved.fire(session);
    }

    // shown is called when the editor has chosen the frame that it shows.
    shown(session) {
        const now = this.stops.get(session.id);
        if (now?.ask) {
            clearTimeout(now.timer);
            now.timer = setTimeout(now.ask, afterPaint);
        }
    }

    // arrived asks where a session stands since its newest stop.
    async arrived(session, now) {
        now.ask = undefined;
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

// isRefused reports whether a message says that the program does not move: it stands where it was.
function isRefused(message) {
    return message.type === "response" && !message.success && movements.has(message.command);
}

module.exports = { Sessions };
