// Package report tests the page of vplayd report in a real browser: Debian's chromium, by
// playwright, as tests/vscode has them. page.js opens the file as a person does, in light and in
// dark, narrow and printed, and says what it saw; what must be seen is asserted here. What is
// written on the page is tested by tests/e2e.
//
//	go test ./tests/report -v -shots /tmp/shots     # and a picture of each page
package report
