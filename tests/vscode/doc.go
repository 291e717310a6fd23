// Package vscode tests the extension in gdbstub/dap/vscode in a real VS Code: its server part
// from npm (fetch.sh), Debian's chromium, and playwright, which does what a person does and
// sees what a person sees. Each scene of scenes.js is a test; what it must show is asserted by
// the page alone.
//
// The extension is packed by vsce and installed from the file, as a user does. Nothing leaves
// the machine: the browser resolves no name, and the server's way to the network is a proxy
// that fails the test when somebody uses it. No scene but those about errors may show an
// error. A scene that fails leaves a picture, whose name the test prints.
//
// How long the editor takes by itself is known from a debugger that does nothing (folder null),
// which TestLatency measures beside vplay.
//
//	go test ./tests/vscode -run 'TestVSCode/timeline' -v
//	go test ./tests/vscode -v -long -shots /tmp/shots     # all scenes, and a picture of each one's end
//	go test ./tests/vscode -run TestLatency -v -latency 50
package vscode
