"use strict";

// The buttons of a recording's page (../src/recording.js): what they say goes to the extension.

const editor = acquireVsCodeApi();

document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) {
        const { command, at, process } = button.dataset;
        editor.postMessage({ command, at, process: process && Number(process) });
    }
});
