package x86

//go:generate go run ./internal/isagen
