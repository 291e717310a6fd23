"use strict";

// Where vplayd is, running it once, and what to say where it is not.

const vscode = require("vscode");
const { spawn } = require("child_process");

// program returns the vplayd that a configuration wants: its own, or the setting's.
function program(config) {
    return (config && config.vplayd) || vscode.workspace.getConfiguration("vplay").get("vplayd") || "vplayd";
}

// maxOutput bounds what is kept of a program's output, in characters.
const maxOutput = 1 << 20;

// run runs vplayd to its end. It resolves to { code, out, err }; where the program cannot
// be started, code is undefined and missing says why.
function run(args, config) {
    return new Promise((resolve) => {
        const result = { out: "", err: "" };
        const child = spawn(program(config), args, { stdio: ["ignore", "pipe", "pipe"], windowsHide: true });
        child.on("error", (e) => resolve({ ...result, missing: e.message }));
        child.stdout.setEncoding("utf8").on("data", (s) => (result.out = (result.out + s).slice(0, maxOutput)));
        child.stderr.setEncoding("utf8").on("data", (s) => (result.err = (result.err + s).slice(0, maxOutput)));
        child.on("close", (code) => resolve({ ...result, code }));
    });
}

// complaint returns what vplayd said before it ended, without its own name before it.
function complaint(text) {
    return text.trim().replace(/^vplayd: (error: )?/gm, "").replace(/^error: /gm, "") || "vplayd ended without a word";
}

// howToGet is shown where vplayd is missing.
const howToGet =
    "vplayd is one file without dependencies: in the vplay repository, \"go build -trimpath ./cmd/vplayd\" makes it. " +
    "Put it on the PATH of this machine, or name it in the setting vplay.vplayd.";

// tellMissing says that vplayd is not there, and offers what helps.
async function tellMissing(config) {
    const choose = "Choose vplayd...", settings = "Open Settings";
    const answer = await vscode.window.showErrorMessage(`${missingText(config)} ${howToGet}`, choose, settings);
    if (answer === settings) {
        await vscode.commands.executeCommand("workbench.action.openSettings", "vplay.vplayd");
    } else if (answer === choose) {
        const files = await vscode.window.showOpenDialog({ title: "The vplayd to start", openLabel: "Use This" });
        if (files && files.length > 0) {
            await vscode.workspace.getConfiguration("vplay").update("vplayd", files[0].fsPath, vscode.ConfigurationTarget.Global);
        }
    }
}

function missingText(config) {
    const name = program(config);
    return /[\\/]/.test(name) ? `There is no vplayd at ${name}.` : `${name} is not on the PATH.`;
}

module.exports = { program, run, complaint, tellMissing, missingText, howToGet };
