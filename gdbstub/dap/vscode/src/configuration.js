"use strict";

// Configurations of the type vplay: what is missing in one, those that are offered for the
// recordings in a folder, and starting one for a file.

const vscode = require("vscode");
const path = require("path");
const vplayd = require("./vplayd");

// maxRecordings bounds how many recordings of a folder are offered.
const maxRecordings = 200;

class Configurations {
    constructor(sessions) {
        this.sessions = sessions;
    }

    // debug starts a session for a recording: the one given, or the one shown.
    async debug(uri) {
        const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
        uri = uri || input?.uri;
        if (!uri) {
            return;
        }
        const folder = vscode.workspace.getWorkspaceFolder(uri);
        await vscode.debug.startDebugging(folder, forRecording(uri));
    }

    // debugProcess starts a second session for another process of the recording that is debugged. Each
    // session stands where it is, whatever the others do.
    async debugProcess() {
        const session = this.sessions.active();
        if (!session) {
            return;
        }
        const config = session.configuration;
        const listed = await vplayd.run(["processes", "--json", "--", config.recording], config);
        if (listed.code !== 0) {
            vscode.window.showErrorMessage(`vplay: ${listed.missing || vplayd.complaint(listed.err)}`);
            return;
        }
        const all = listed.out.trim().split("\n").map((line) => JSON.parse(line));
        const items = all.filter((p) => (config.process ? p.pid !== config.process : !p.main)).map((p) => ({
            label: `${p.crashed ? "$(error) " : ""}${path.posix.basename(p.program)}`, description: `process ${p.pid}, ${p.ended}`, detail: p.args.join(" "), pid: p.pid,
        }));
        if (items.length === 0) {
            vscode.window.showInformationMessage("The recording has no other process.");
            return;
        }
        const picked = await vscode.window.showQuickPick(items, { placeHolder: "The process to debug as well", matchOnDescription: true, matchOnDetail: true });
        if (picked) {
            const name = `${path.basename(config.recording)}, process ${picked.pid}`;
            await vscode.debug.startDebugging(session.workspaceFolder, { ...config, name, process: picked.pid, at: "end" });
        }
    }

    // dynamic returns a provider that offers each recording of the folder.
    dynamic() {
        return {
            provideDebugConfigurations: async (folder) => (await recordings(folder)).map((u) => withSymbols(forRecording(u), folder)),
        };
    }

    // provideDebugConfigurations is asked for the launch.json of a folder without one.
    async provideDebugConfigurations(folder) {
        const found = (await recordings(folder)).map((u) => forRecording(u, folder));
        return found.length > 0 ? found : [{ ...forRecording(vscode.Uri.file("/crash.vplay")), recording: "${workspaceFolder}/crash.vplay" }];
    }

    // resolveDebugConfiguration fills in a configuration; F5 without a launch.json has an empty one.
    async resolveDebugConfiguration(folder, config) {
        if (!config.type) {
            Object.assign(config, { type: "vplay", request: "launch", name: "vplay" });
        }
        if (!config.recording) {
            const uri = await choose(folder);
            if (!uri) {
                return undefined;
            }
            Object.assign(config, forRecording(uri));
        }
        // The timeline is where the console would open by itself.
        return withSymbols({ internalConsoleOptions: "neverOpen", ...config }, folder);
    }

    // resolveDebugConfigurationWithSubstitutedVariables refuses what cannot start, with what helps.
    async resolveDebugConfigurationWithSubstitutedVariables(folder, config) {
        if (!path.isAbsolute(config.recording) && folder) {
            config.recording = path.join(folder.uri.fsPath, config.recording);
        }
        const { missing } = await vplayd.run(["version"], config);
        if (missing) {
            vplayd.tellMissing(config);
            return undefined;
        }
        return config;
    }
}

// forRecording returns the configuration of a recording, by a path from the folder if that is given.
function forRecording(uri, folder) {
    const name = path.basename(uri.fsPath);
    let recording = uri.fsPath;
    if (folder) {
        recording = "${workspaceFolder}/" + path.relative(folder.uri.fsPath, uri.fsPath).split(path.sep).join("/");
    }
    return { type: "vplay", request: "launch", name: `Debug ${name}`, recording };
}

// withSymbols has symbol files looked for in the folder, unless the configuration says where.
function withSymbols(config, folder) {
    return config.symbols || !folder ? config : { ...config, symbols: [folder.uri.fsPath] };
}

// recordings returns the recordings in a folder, the newest first.
async function recordings(folder) {
    if (!folder) {
        return [];
    }
    const found = await vscode.workspace.findFiles(new vscode.RelativePattern(folder, "**/*.vplay"), undefined, maxRecordings);
    const times = await Promise.all(found.map(async (uri) => ({ uri, time: (await vscode.workspace.fs.stat(uri)).mtime })));
    return times.sort((a, b) => b.time - a.time).map((t) => t.uri);
}

// choose returns the recording to debug: the only one, or the one that the user picks.
async function choose(folder) {
    const found = await recordings(folder || vscode.workspace.workspaceFolders?.[0]);
    if (found.length === 0) {
        vscode.window.showErrorMessage("There is no .vplay file in this folder. \"vplayd record -- PROGRAM\" makes one when the program crashes.");
        return undefined;
    }
    if (found.length === 1) {
        return found[0];
    }
    const items = found.map((uri) => ({ label: path.basename(uri.fsPath), description: vscode.workspace.asRelativePath(uri), uri }));
    const picked = await vscode.window.showQuickPick(items, { placeHolder: "The recording to debug, the newest first" });
    return picked?.uri;
}

module.exports = { Configurations, forRecording };
