"use strict";

// When VS Code is told that the program moves.
//
// The server answers a movement before it moves, as the protocol wants it, and VS Code shows a running
// program from then on: it empties the views and changes the buttons of each toolbar, and back at the stop. For a step
// of a few milliseconds that is most of what the editor does, and the new line waits for it. VS Code does
// not do so when the stop comes before the answer. So an answer is held back until the stop, but not
// for long: a movement that takes time is shown, and can be paused.

// names are the requests that move the program.
const names = new Set(["continue", "reverseContinue", "next", "stepIn", "stepOut", "stepBack"]);

// quick is how long an answer waits for the stop, in milliseconds.
const quick = 100;

class Movements {
    // pass takes the answers that VS Code is to have.
    constructor(pass) {
        this.pass = pass;
        this.held = [];
        this.isMoving = false;
        this.atException = false;
    }

    // begins reports whether a request is for the server. While the program moves, another movement is none: VS Code
    // ignores keys that come while the program runs, but does not know yet that it does.
    begins(request) {
        if (request.type !== "request" || !names.has(request.command)) {
            return true;
        }
        if (this.isMoving) {
            this.hold({ seq: 0, type: "response", request_seq: request.seq, command: request.command, success: true });
            return false;
        }
        this.isMoving = true;
        return true;
    }

    // answered takes the answer to a movement and reports whether it did. VS Code takes the box of an exception away only
    // when the program runs.
    answered(answer) {
        if (!names.has(answer.command)) {
            return false;
        }
        if (!answer.success) {
            this.release();
        } else if (!this.atException) {
            this.hold(answer);
            return true;
        }
        return false;
    }

    // stood is called behind a stop.
    stood(reason) {
        this.atException = reason === "exception";
        this.release();
    }

    hold(answer) {
        this.held.push(answer);
        this.late ??= setTimeout(() => this.flush(), quick);
    }

    release() {
        this.isMoving = false;
        this.flush();
    }

    // flush passes on what is held back.
    flush() {
        clearTimeout(this.late);
        this.late = undefined;
        for (const answer of this.held.splice(0)) {
            this.pass(answer);
        }
    }

    dispose() {
        this.held = [];
        this.flush();
    }
}

module.exports = { Movements, names };
