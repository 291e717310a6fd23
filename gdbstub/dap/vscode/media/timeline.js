"use strict";

// Draws the timeline (../src/timeline.js). From top to bottom: the scale with the intervals,
// a lane for each thread with its system calls, signals and turns, and the line where the
// program stands. A click goes to an event, or to that share of the recorded time; the wheel
// shows more or less, a drag moves along.

const editor = acquireVsCodeApi();
const canvas = document.getElementById("timeline");
const text = document.getElementById("text");
const list = document.getElementById("events");
const scale = 18, lane = 20, right = 8, near = 6; // pixels
const mostLanes = 24;

const picture = document.createElement("canvas"); // all but where the program stands, which each step changes
const colours = new Map(); // by name: each costs the browser a look through all rules

let history, position, drag;

function colour(name) {
    if (!colours.has(name)) {
        colours.set(name, getComputedStyle(document.body).getPropertyValue(`--vscode-${name}`).trim());
    }
    return colours.get(name);
}

const isSignal = (m) => m.kind === "signal" || m.kind === "fault";
const left = () => (history.threads.length > 1 ? 130 : 8); // where time begins; the names of threads are before it
const width = () => canvas.clientWidth - left() - right;
const x = (at) => left() + ((at - history.from) / (history.to - history.from)) * width();
const at = (px) => history.from + Math.min(Math.max((px - left()) / width(), 0), 1) * (history.to - history.from);
const lanes = () => history.threads.slice(0, mostLanes);
const laneTop = (tid) => scale + lane * Math.max(lanes().findIndex((t) => t.tid === tid), 0);

const height = () => (history ? scale + lane * lanes().length + 4 : 0);
const ratio = () => window.devicePixelRatio || 1;

// draw draws all of it.
function draw() {
    colours.clear(); // there may be another theme
    canvas.style.height = `${height()}px`;
    canvas.width = picture.width = canvas.clientWidth * ratio();
    canvas.height = picture.height = height() * ratio();
    if (!history) {
        return;
    }
    const g = picture.getContext("2d");
    g.scale(ratio(), ratio());
    g.font = `10px ${colour("font-family") || "sans-serif"}`;
    g.textBaseline = "middle";
    drawScale(g, height());
    lanes().forEach((t) => drawLane(g, t));
    history.marks.forEach((m) => drawMark(g, m));
    drawPosition();
}

// drawPosition shows the picture, and in it where the program stands.
function drawPosition() {
    if (!history || canvas.width === 0 || canvas.height === 0) {
        return; // it is hidden
    }
    const g = canvas.getContext("2d");
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, canvas.width, canvas.height);
    g.drawImage(picture, 0, 0);
    if (position) {
        g.scale(ratio(), ratio());
        drawCursor(g, height());
    }
}

// drawScale draws the borders of the intervals, as many as can be told apart.
function drawScale(g, height) {
    g.fillStyle = colour("descriptionForeground");
    g.strokeStyle = colour("panel-border") || colour("descriptionForeground");
    let last = -Infinity;
    for (const i of history.intervals) {
        const px = x(i.from);
        if (px < last + 3) {
            continue;
        }
        g.globalAlpha = 0.5;
        line(g, px, scale - 4, height);
        g.globalAlpha = 1;
        if (px >= last + 26 || last === -Infinity) {
            g.fillText(String(i.id), px + 3, scale / 2);
        }
        last = px;
    }
}

function line(g, px, from, to) {
    g.beginPath();
    g.moveTo(Math.round(px) + 0.5, from);
    g.lineTo(Math.round(px) + 0.5, to);
    g.stroke();
}

function drawLane(g, thread) {
    const y = laneTop(thread.tid);
    g.fillStyle = colour("descriptionForeground");
    g.globalAlpha = 0.25;
    g.fillRect(left(), y + lane / 2, width(), 1);
    if (history.threads.length > 1) {
        g.globalAlpha = 1;
        g.fillText(`${thread.name || "thread"} ${thread.tid}`, right, y + lane / 2, left() - 2 * right);
        g.globalAlpha = 0.25;
    }
    g.fillStyle = colour("charts-blue");
    for (const turn of history.turns.filter((t) => t.tid === thread.tid)) {
        const from = Math.max(x(turn.from), left()), to = Math.min(x(turn.to), left() + width());
        g.fillRect(from, y + lane / 2 - 3, Math.max(to - from, 1), 7);
    }
    g.globalAlpha = 1;
}

function drawMark(g, m) {
    const y = laneTop(m.tid), px = Math.round(x(m.at));
    if (isSignal(m)) {
        g.fillStyle = colour("charts-red");
        g.beginPath();
        g.moveTo(px - 4, y + 2);
        g.lineTo(px + 4, y + 2);
        g.lineTo(px, y + 10);
        g.fill();
        g.fillRect(px - 0.5, y + 8, 1, lane - 12);
        return;
    }
    g.fillStyle = colour(m.kind === "thread" ? "charts-green" : "charts-yellow");
    const tall = Math.min(4 + Math.log2(m.count), lane / 2 - 2);
    g.fillRect(px, y + lane / 2 - tall, 1.5, 2 * tall + 1);
}

function drawCursor(g, height) {
    const px = x(position.at);
    g.strokeStyle = g.fillStyle = colour("editorCursor-foreground") || colour("foreground");
    g.lineWidth = 2;
    line(g, px, 6, height);
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(px - 5, 1);
    g.lineTo(px + 5, 1);
    g.lineTo(px, 9);
    g.fill();
}

// hit returns the event that is meant by a place on the canvas.
function hit(px, py) {
    let best, distance = near;
    for (const m of history.marks) {
        const d = Math.abs(x(m.at) - px) + (py < laneTop(m.tid) || py > laneTop(m.tid) + lane ? near / 2 : 0) - (isSignal(m) ? 1 : 0);
        if (d < distance) {
            [best, distance] = [m, d];
        }
    }
    return best;
}

function describe(m) {
    const thread = history.threads.find((t) => t.tid === m.tid);
    const name = history.threads.length > 1 && thread ? `${thread.name || "thread"} ${thread.tid}: ` : "";
    return `${name}${m.text}${m.count > 1 ? ` (and ${m.count - 1} more here)` : ""}`;
}

function say() {
    if (!history) {
        text.textContent = "Timeline of a recording: start debugging one.";
        return;
    }
    const m = say.mark;
    text.textContent = m ? describe(m) : position ? `${position.position}${position.place ? ` in ${position.place}` : ""}` : "";
    text.className = m && isSignal(m) ? "signal" : "";
}

canvas.addEventListener("mousemove", (e) => {
    if (!history) {
        return;
    }
    if (drag && Math.abs(e.offsetX - drag.px) > 3) {
        drag.moved = true;
        const by = ((drag.px - e.offsetX) / width()) * (drag.to - drag.from);
        const size = drag.to - drag.from;
        history.from = Math.min(Math.max(drag.from + by, 0), 1 - size);
        history.to = history.from + size;
        draw();
        return;
    }
    say.mark = hit(e.offsetX, e.offsetY);
    canvas.style.cursor = say.mark ? "pointer" : "default";
    say();
});

canvas.addEventListener("mouseleave", () => {
    say.mark = drag = undefined;
    say();
});

canvas.addEventListener("mousedown", (e) => {
    if (history) {
        drag = { px: e.offsetX, from: history.from, to: history.to };
    }
});

canvas.addEventListener("mouseup", (e) => {
    const was = drag;
    drag = undefined;
    if (!history || !was) {
        return;
    }
    if (was.moved) {
        show();
        return;
    }
    const m = hit(e.offsetX, e.offsetY);
    editor.postMessage({ command: "seek", to: m ? m.seek : nearest(at(e.offsetX)) });
});

// nearest returns what to seek for a place where no event is: that share of the recorded time,
// or, where events are dense, the last one before.
function nearest(share) {
    const interval = history.intervals.find((i) => share >= i.from && share < i.to);
    const before = history.marks.findLast((m) => m.at <= share);
    const dense = interval && interval.events > 20 && before && before.at >= interval.from;
    return dense ? before.seek : `${(share * 100).toFixed(4)}%`;
}

// fill fills the list of events.
function fill() {
    list.replaceChildren(...(history ? history.marks : []).map((m) => {
        const row = document.createElement("div");
        row.className = isSignal(m) ? "event signal" : "event";
        row.dataset.seek = m.seek;
        row.textContent = describe(m);
        return row;
    }));
}

// follow marks the event that comes next in the list, and brings it into view.
function follow() {
    list.querySelector(".next")?.classList.remove("next");
    const i = history && position ? history.marks.findIndex((m) => m.event >= position.event) : -1;
    if (i >= 0) {
        list.children[i].classList.add("next");
        list.scrollTop = list.children[i].offsetTop - list.offsetTop - list.clientHeight / 2;
    } else {
        list.scrollTop = list.scrollHeight;
    }
}

list.addEventListener("click", (e) => {
    const to = e.target.closest(".event")?.dataset.seek;
    if (to) {
        editor.postMessage({ command: "seek", to });
    }
});

canvas.addEventListener("wheel", (e) => {
    if (!history) {
        return;
    }
    e.preventDefault();
    const here = at(e.offsetX), factor = e.deltaY > 0 ? 1.25 : 0.8;
    const size = Math.min((history.to - history.from) * factor, 1);
    const before = (here - history.from) / (history.to - history.from);
    history.from = Math.min(Math.max(here - before * size, 0), 1 - size);
    history.to = history.from + size;
    draw();
    show();
}, { passive: false });

canvas.addEventListener("keydown", (e) => {
    const marks = history ? history.marks : [];
    if (e.key === "Home" || e.key === "End") {
        editor.postMessage({ command: "seek", to: e.key === "Home" ? "begin" : "end" });
    } else if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
        const next = e.key === "ArrowRight" ? marks.find((m) => m.event > position.event) : marks.findLast((m) => m.event < position.event);
        if (next) {
            editor.postMessage({ command: "seek", to: next.seek });
        }
    }
});

// show asks for the events of what is shown now, when that has not changed for a moment.
function show() {
    clearTimeout(show.timer);
    show.timer = setTimeout(() => editor.postMessage({ command: "show", from: history.from, to: history.to }), 150);
}

window.addEventListener("message", ({ data }) => {
    if (data.command === "history") {
        history = data.history;
        fill();
        draw();
    } else if (data.command === "position") {
        position = data.position;
        document.body.dataset.position = position.position;
        document.body.dataset.at = position.at;
        drawPosition();
    } else if (data.command === "clear") {
        history = position = undefined;
        fill();
        draw();
    }
    say();
    follow();
});

new ResizeObserver(draw).observe(document.body);
say();
editor.postMessage({ command: "ready" });
