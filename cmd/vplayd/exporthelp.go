package main

// The manual of the verb export.

func exportHelp() string { return "Export" }

const exportExamples = "  vplayd export"
